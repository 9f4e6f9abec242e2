"""Copy the tables and pictures of a run at paper effort into docs/results.

``python benchmarks/publish.py CLONE ckm`` copies from a clone in which ``snakemake --config
effort=paper "papers=[config/papers/ckm]"`` and ``snakemake ... costs`` have ended. A run of all
papers is called ``whole``, of which only the costs are copied. docs/results/commits.csv notes for
each table its SHA-256 and the commit that the clone is at, whose files must be unchanged.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import yaml
from scratch import ROOT

RESULTS = ROOT / "docs/results"
COMMITS = RESULTS / "commits.csv"
COSTS = ("costs.csv", "costs_runs.csv")


def commit_of(clone):
    """Return the commit of a clone, or end if files differ from it."""
    git = ["git", "-C", str(clone)]
    changed = subprocess.check_output([*git, "status", "--porcelain", "--untracked-files=no"])
    if changed:
        raise SystemExit(f"{clone} has changed files: {changed.decode().strip()}")
    return subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()


def files_of(clone, paper):
    """Return where to copy which file of a paper's run."""
    run, folder = clone / "results/paper", RESULTS / paper
    if paper == "whole":
        return {folder / "costs.csv": run / "costs.csv"}
    files = {folder / name: run / name for name in (*COSTS, "verdicts.csv")}
    document = yaml.safe_load((clone / f"config/papers/{paper}/paper.yaml").read_text("utf-8"))
    for target in document["targets"]:
        made = run / "targets" / target / target
        files[folder / f"{target}.csv"] = made.with_suffix(".csv")
        if (RESULTS / f"{target}.png").exists():  # pictures of which pages show one
            files[RESULTS / f"{target}.png"] = made.with_suffix(".png")
    return files


def main():
    """Copy, and note the commit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clone", type=Path)
    parser.add_argument("paper")
    options = parser.parse_args()
    commit, files = commit_of(options.clone), files_of(options.clone, options.paper)
    missing = [str(source) for source in files.values() if not source.exists()]
    if missing:
        raise SystemExit(f"the run has not ended: no {', '.join(missing)}")
    noted = pd.read_csv(COMMITS) if COMMITS.exists() else pd.DataFrame()
    rows = {row.file: row._asdict() for row in noted.itertuples(index=False)}
    for place, source in files.items():
        shutil.copyfile(source, place)
        if place.suffix == ".csv":
            name = str(place.relative_to(RESULTS))
            digest = hashlib.sha256(place.read_bytes()).hexdigest()
            rows[name] = {"file": name, "sha256": digest, "commit": commit}
    table = pd.DataFrame(rows.values()).sort_values("file")
    table.to_csv(COMMITS, index=False)
    print(f"{len(files)} files of {options.paper}, made at {commit}")


if __name__ == "__main__":
    main()
