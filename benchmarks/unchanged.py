"""Does a change of the code leave every result as it was, byte by byte?

    python benchmarks/unchanged.py REVISION [--before FOLDER] [--after FOLDER] [--renamed FILE]

The project as it was at a revision, and as it stands, are run whole at quick effort on two cores,
each in a copy of its own. Compared are tables, figures, verdicts and the page as they are, and
each array of the HDF5 files; not their headers, nor the page's words on settings: these name code
by its dotted path. What says how long something took is left out, as in determinism.py. Then
every private estimator is fitted with seeds in both (seeded_fits.py), and what it learned and
promises is compared to the last bit. Ends with status 1 where anything differs. ``--before`` and
``--after`` name folders in which such a run is done already, on this machine: OpenBLAS has other
code for another processor.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import h5py
from determinism import COMPARED, arrays_of_fits, comparable, difference
from scratch import ROOT, copy_project, run_workflow

# what the page says of code and settings by their paths
SPEC = rb"<code>(privclust(_audit|_papers)?\.|config/papers/)[^<]*</code>"
FITS = "benchmarks/seeded_fits.py"  # of each checkout, as names may differ
NAMED = ("src/**/*.*", "config/**/*.*", "workflow/**/*.*", FITS)  # files with names


def copy_revision(folder, revision):
    """Write the files of a revision into a folder."""
    archive = folder.with_suffix(".tar")
    command = ["git", "archive", "--output", archive, revision]
    subprocess.run(command, cwd=ROOT, check=True)
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    archive.unlink()


def rename(folder, table):
    """Give the files of a checkout new names for old ones, by a table of regular expressions."""
    with open(table, encoding="utf-8", newline="") as file:
        rules = [
            (re.compile(row["pattern"], re.M), row["replacement"]) for row in csv.DictReader(file)
        ]
    for path in (path for pattern in NAMED for path in folder.glob(pattern) if path.is_file()):
        text = path.read_text(encoding="utf-8")
        for pattern, replacement in rules:
            text = pattern.sub(replacement, text)
        path.write_text(text, encoding="utf-8")


def array_digests(file):
    """Return a digest of each array of an HDF5 file, by its name."""
    digests = {}

    def add(name, item):
        if isinstance(item, h5py.Dataset):
            array = item[()]
            text = f"{array.dtype.str} {array.shape} ".encode()
            digests[name] = hashlib.sha256(text + array.tobytes()).hexdigest()

    with h5py.File(file) as opened:
        opened.visititems(add)
    return digests


def outcomes(folder):
    """Return a digest of each table, figure, page and array of a finished run, by its name."""
    digests, fits = {}, []
    for part in ("data/prepared", "data/features", "results/quick"):
        for file in sorted((folder / part).rglob("*")):
            name = str(file.relative_to(folder))
            if file.suffix not in COMPARED or file.parts[-3] == "shared":  # in all that is fitted
                continue
            if file.parts[-3] == "fit":
                fits.append(file)
            elif file.suffix == ".h5":
                digests |= {f"{name}/{key}": digest for key, digest in array_digests(file).items()}
            elif (content := comparable(file)) is not None:
                digests[name] = hashlib.sha256(re.sub(SPEC, b"", content)).hexdigest()
    return digests | arrays_of_fits(fits)


def seeded_fits(folder):
    """Return a digest of what each private estimator learns and promises, by its settings."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, folder / FITS], env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def main():
    """Run what is not done, compare, and say what differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revision", help="a commit to compare with, such as HEAD~3")
    parser.add_argument("--before", type=Path, help="a folder with a finished run of it")
    parser.add_argument("--after", type=Path, help="a folder with a finished run of the project")
    parser.add_argument("--renamed", type=Path, help="a table of old and new names")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        before = options.before or Path(scratch) / "before"
        after = options.after or Path(scratch) / "after"
        if options.before is None:
            copy_revision(before, options.revision)
            if options.renamed is not None:
                rename(before, options.renamed)
            run_workflow(before, "--cores", "2")
        if options.after is None:
            copy_project(after)
            run_workflow(after, "--cores", "2")
        pairs = {
            "tables, figures, verdicts, page, arrays": (outcomes(before), outcomes(after)),
            "seeded fits": (seeded_fits(before), seeded_fits(after)),
        }
    texts = {name: difference(*pair, cut_alike=True) for name, pair in pairs.items()}
    for name, text in texts.items():
        print(f"{name}, {len(pairs[name][0])} in number: {text}")
    sys.exit(set(texts.values()) != {"same"})


if __name__ == "__main__":
    main()
