"""The page of a run: the scorecard, then each target with the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from privclust.verdicts import VERDICTS


def render(
    spec: Mapping[str, Any], verdicts: pd.DataFrame, tables: Mapping[str, pd.DataFrame]
) -> str:
    """Return the page as HTML that works from a file, without network.

    Parameters
    ----------
    spec : mapping
        From `privclust.planning.Plan.page_spec`.
    verdicts : DataFrame
        From `privclust.verdicts.judge`, empty cells as empty text.
    tables : mapping of str to DataFrame
        The numbers behind each target.

    Returns
    -------
    str
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("privclust", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    targets = [
        {
            **target,
            "claims": verdicts[verdicts["target"] == name].to_dict("records"),
            "counts": _counts(verdicts[verdicts["target"] == name]),
            "printed": _printed_rows(tables[name]),
            "substitute": _substitute(verdicts[verdicts["target"] == name]),
        }
        for name, target in spec["targets"].items()
    ]
    return environment.get_template("page.html.j2").render(
        effort=spec["effort"],
        papers=spec["papers"],
        targets=targets,
        verdicts=VERDICTS,
        counts=_counts(verdicts),
        n_claims=len(verdicts),
    )


def _counts(verdicts: pd.DataFrame) -> dict[str, int]:
    """Count the claims by verdict."""
    return {name: int((verdicts["verdict"] == name).sum()) for name in VERDICTS}


def _substitute(verdicts: pd.DataFrame) -> str:
    """Return the substitute a target's data came from, or an empty text."""
    found = [source for source in verdicts["data"] if source.startswith("substitute")]
    return found[0] if found else ""


def _printed_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return printed numbers beside ours, for targets that have any."""
    return table.to_dict("records") if "printed" in table else []
