"""Costs of fits, and the commit, as a script that the page loads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

NAME = "costs.js"


def costs_script(
    spec: Mapping[str, Any], costs: Mapping[str, pd.DataFrame], commit: str = ""
) -> str:
    """Return the script ``costs.js``, which gives the page the CPU times of its fits.

    `spec` is from `privclust_papers.pipeline.jobs.Jobs.page_spec`; `costs` has the content of each
    experiment's ``costs.tsv``: ``method`` and ``cpu_seconds``, the CPU seconds of all its fits. The
    script assigns JSON: for each experiment, pairs of a method's label and CPU seconds, in the
    order of the table; and the project's `commit`, if known.
    """
    lines = []
    for name, table in sorted(costs.items()):
        labels = {m["name"]: m["label"] for m in spec["experiments"][name]["methods"]}
        pairs = [
            [labels[method], round(float(seconds), 3)]
            for method, seconds in zip(table["method"], table["cpu_seconds"], strict=True)
        ]
        lines.append(f"{json.dumps(name)}: {json.dumps(pairs)}")
    script = "window.privclustCosts = {\n" + ",\n".join(lines) + "\n};\n"
    return script + (f"window.privclustCommit = {json.dumps(commit)};\n" if commit else "")
