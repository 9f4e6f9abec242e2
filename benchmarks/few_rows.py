"""What rounds bring with few rows whose number is private: the experiment behind `_CAUTION`.

``OMP_NUM_THREADS=1 PYTHONPATH=benchmarks python benchmarks/few_rows.py`` draws 150 and 400 rows of
three real tables of the half "choose" of `collection` and fits 20 times, with rows added or
removed.
Cells: loss over Lloyd's, mean / largest, and the mean number of rounds; without rounds, and with
rounds where they pay for a number of rows that is 0, 1 or 2 standard deviations smaller than the
noisy one.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from unittest import mock

import collection
import numpy as np
import pandas as pd
from scratch import markdown, write_into

from privclust.kmeans import CompressiveKMeans, _compressive

TABLES = ("penguins", "diabetes", "anes96")
ROWS, EPSILONS, N_FITS = (150, 400), (0.5, 1.0, 2.0), 20
CAUTIONS = (None, 0.0, 1.0, 2.0)


def cell(X, k, epsilon, caution):
    """Return the losses over Lloyd's and the number of rounds, as text."""
    best, ratios, rounds = collection.lloyd_loss(X, k), [], []
    how = {"epsilon": epsilon, "delta": len(X) ** -1.1, "bounds": (-1.0, 1.0)}
    how |= {"neighbours": "add_remove", "last_round": caution is not None and "auto"}
    with mock.patch.object(_compressive, "_CAUTION", caution or 0.0):
        for seed in range(N_FITS):
            model = CompressiveKMeans(k, **how, random_state=seed).fit(X)
            ratios.append(collection.loss(X, model.cluster_centers_) / best)
            rounds.append(model.n_rounds_)
    return f"{np.mean(ratios):.2f} / {max(ratios):.2f} ({np.mean(rounds):.1f})"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, help="document with the marks of 'few'")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    tables, lines = {table.name: table for table in collection.tables("choose")}, []
    for name in TABLES:
        whole = tables[name].scaled()
        for n in (n for n in ROWS if n <= len(whole)):
            X = whole[np.random.default_rng(1).choice(len(whole), n, replace=False)]
            for epsilon in EPSILONS:
                cells = [cell(X, tables[name].k, epsilon, caution) for caution in CAUTIONS]
                lines.append((name, n, str(epsilon), *cells))
                print(*lines[-1], flush=True)
    head = ["table", "rows", "epsilon", "no rounds", "0", "1", "2"]
    text = markdown(pd.DataFrame(lines, columns=head))
    print(text)
    if arguments.into:
        write_into(arguments.into, "few", text)


if __name__ == "__main__":
    main()
