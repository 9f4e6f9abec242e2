"""Copies of the project to run the workflow in, and tables in documents."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]


def copy_project(folder, with_kernels=False):
    """Copy what the repository has, as it stands; and compiled kernels, if asked for."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    names = list(filter(None, listed.stdout.decode().split("\0")))
    if with_kernels:
        names += [str(file.relative_to(ROOT)) for file in (ROOT / "src").rglob("__pycache__/*.nb?")]
    for name in names:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)


def run_workflow(folder, *options, python=sys.executable):
    """Run Snakemake in a copy, with the data that the project finds; or end with what it said."""
    from privclust_papers.pipeline.plan import DEFAULT_MIRROR  # old versions lack it

    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}  # the copy's own package
    mirror = (ROOT / DEFAULT_MIRROR).resolve()
    if mirror.is_dir():
        environment.setdefault("PRIVCLUST_DATA_MIRROR", str(mirror))
    command = [python, "-m", "snakemake", *options]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} in {folder} failed:\n{done.stderr[-2000:]}")


def markdown(table):
    """Return a table in Markdown, numbers to whole units from 100 on."""

    def show(value):
        if not isinstance(value, float):
            return str(value)
        if pd.isna(value):
            return ""
        return f"{value:,.0f}" if round(value, 1) >= 100 else f"{value:.1f}"

    rows = [table.columns, ["---"] * table.shape[1], *table.itertuples(index=False)]
    return "\n".join("| " + " | ".join(map(show, row)) + " |" for row in rows)


def write_into(path, name, text):
    """Replace what stands between the marks of a name in a document."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    document = path.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(document):
        raise SystemExit(f"{path}: has no marks {begin} and {end}")
    document = pattern.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", document)
    path.write_text(document, encoding="utf-8")
