"""The steps of a private clustering by jobs: sketch a file, release the sum of sketches, decode it.

    python steps.py sketch settings.yaml day1.parquet day1.h5
    python steps.py release settings.yaml day1.h5 day2.h5 released.h5
    python steps.py decode settings.yaml released.h5 centers.csv

The Snakefile beside this runs them; so does any scheduler's array of jobs. What `sketch` writes is
NOT private: keep it as the data, and remove it when the sum is released. Noise comes once, at the
end, from the operating system. A ledger beside the released sketch refuses a second release, which
would cost as much again.
"""

import argparse
import functools
import operator

import pandas as pd
import yaml

from privclust.decoding import decode
from privclust.preprocessing import TableEncoder
from privclust.privacy import Budget
from privclust.sketches import Sketch, draw_frequencies, release


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=("sketch", "release", "decode"))
    parser.add_argument("settings")
    parser.add_argument("files", nargs="+", help="those to read, and the one to write")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    with open(args.settings, encoding="utf-8") as file:
        settings = yaml.safe_load(file)
    *inputs, output = args.files
    encoder = TableEncoder({name: declared(entry) for name, entry in settings["columns"].items()})
    if args.step == "sketch":
        frequencies = draw_frequencies(
            len(encoder.get_feature_names_out()),
            settings["frequencies"],
            variance=settings["variance"],
            random_state=settings["seed"],
        )
        sketch = Sketch.of_table(inputs, frequencies, encoder=encoder, n_threads=args.threads)
        sketch.save(output)
    elif args.step == "release":
        whole = functools.reduce(operator.add, map(Sketch.load, inputs))
        budget = settings["epsilon"], settings["delta"]
        with Budget.open(f"{output}.budget.json", *budget, neighbours="add_remove"):
            released = release(whole, *budget, neighbours="add_remove")
        released.save(output)
        print(released.guarantee)
    else:
        decoded = decode(
            Sketch.load(inputs[0]), settings["clusters"], bounds=encoder.bounds_, random_state=0
        )
        table = pd.DataFrame(encoder.inverse_transform(decoded.centers))
        table.assign(weight=decoded.weights).to_csv(output, index=False)


def declared(entry):
    """Names are categories, and two numbers bounds."""
    return list(entry) if isinstance(entry[0], str) else tuple(entry)


if __name__ == "__main__":
    main()
