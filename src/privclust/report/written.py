"""The files of a report on clusters."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from privclust.core.files import write_text
from privclust.core.packages import require
from privclust.report.coordinate import DATE, SHARE, WIDTH_95
from privclust.report.figures import save_figure, text_style
from privclust.report.picture import caption, picture
from privclust.report.table_clusters import TableClusters
from privclust.report.words import clusters_in_words, guarantee_in_words

NAMES = (
    *("centers.csv", "clusters.json", "clusters.svg"),
    *("guarantee.json", "guarantee.txt", "report.html"),
)
"""The names of the files of `write`."""
_MOST_COLUMNS = 7  # most columns of a table that fits 1,100 px


def write(
    clusters: TableClusters, folder: str | os.PathLike[str], *, source: str = "", origin: str = ""
) -> None:
    """Write centers, picture, guarantee and report into a folder.

    The same arguments give the same bytes. Files of the same names are replaced.

    Parameters
    ----------
    clusters : TableClusters
    folder : path
    source : str
        The name of the table, for the title of the report.
    origin : str
        When and how the report was made, for its last line (`privclust.report.words.origin`).
    """
    folder = Path(folder)
    write_text(folder / "centers.csv", clusters.csv())
    write_text(folder / "clusters.json", _json(clusters.as_dict()))
    write_text(folder / "guarantee.json", _json(clusters.guarantee.as_dict()))
    write_text(folder / "guarantee.txt", f"{clusters.guarantee}\n")
    svg = _picture(clusters, folder)
    write_text(folder / "report.html", _report(clusters, svg, source, origin))


def _picture(clusters: TableClusters, folder: Path) -> str:
    try:
        save_figure(picture(clusters), folder / "clusters.svg", "svg", text_style)
    except Exception as error:  # budget is spent: a failed picture must not lose the numbers
        warnings.warn(f"no picture: {type(error).__name__}: {error}", UserWarning, stacklevel=3)
        return ""
    svg = (folder / "clusters.svg").read_text(encoding="utf-8")
    return svg[svg.index("<svg") :]


def _json(values: dict[str, Any]) -> str:
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def _report(clusters: TableClusters, svg: str, source: str, origin: str) -> str:
    """Return the report as one file of HTML."""
    jinja2 = require("jinja2", "reports")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    n_records = clusters.n_records
    return environment.get_template("report.html.j2").render(
        clusters=clusters,
        title=("Private clusters" if clusters.is_private else "Clusters, not private")
        + (f" of {source}" if source else ""),
        origin=origin,
        in_words=clusters_in_words(clusters),
        has_categories=any(isinstance(ends, list) for ends in clusters.columns.values()),
        marks=_marks(clusters),
        promise=guarantee_in_words(clusters.guarantee) if clusters.is_private else "",
        centers=_table(
            clusters, ["share of records", *(c.name for c in clusters.coordinates)], _cells
        ),
        n_records=f"{n_records:,.0f}" if isinstance(n_records, float) else f"{n_records:,}",
        is_about=isinstance(n_records, float),
        picture=svg if clusters.is_detected.any() else "",
        caption=caption(clusters),
        spreads=_table(
            clusters, [c.name for c in clusters.coordinates if c.spreads is not None], _spreads
        ),
        hidden=_hidden(clusters),
        declared=[
            (name, _declared(ends), name in clusters.private_bounds)
            for name, ends in clusters.columns.items()
        ],
    )


def _table(
    clusters: TableClusters, names: list[str], cells: Callable[[TableClusters, int], list[str]]
) -> list[list[str]]:
    """Return the header and rows of a table, a row for each detected cluster.

    With many columns the table is transposed. There is no table without columns or clusters.
    """
    has_marks = _marks(clusters) == "some"
    rows = [
        [f"{j + 1}{' ?' if has_marks and not clusters.is_reliable[j] else ''}", *cells(clusters, j)]
        for j in np.flatnonzero(clusters.is_detected).tolist()
    ]
    if not (names and rows):
        return []
    lines = [["cluster", *names], *rows]
    return (
        lines if len(names) <= _MOST_COLUMNS else [list(line) for line in zip(*lines, strict=True)]
    )


def _marks(clusters: TableClusters) -> str:
    """Return of which detected clusters the errors are unreliable: "none", "some" or "all"."""
    is_reliable = clusters.is_reliable[clusters.is_detected]
    return "none" if is_reliable.all() else "some" if is_reliable.any() else "all"


def _hidden(clusters: TableClusters) -> str:
    """Return one sentence on the clusters that are indistinguishable from noise."""
    hidden = np.flatnonzero(~clusters.is_detected) + 1
    if not len(hidden):
        return ""
    if len(hidden) == 1:
        return f"Cluster {hidden[0]} is indistinguishable from noise, and no number is shown."
    listed = ", ".join(map(str, hidden))
    if len(hidden) > 2 and hidden[-1] - hidden[0] == len(hidden) - 1:
        listed = f"{hidden[0]} to {hidden[-1]}"
    return f"Clusters {listed} are indistinguishable from noise, and no numbers are shown."


def _cells(clusters: TableClusters, j: int) -> list[str]:
    weight = _interval(100 * clusters.weights[j], 100 * clusters.weight_errors[j])
    return [
        f"{weight} %",
        *(_center(c.kind, c.centers[j], c.errors[j]) for c in clusters.coordinates),
    ]


def _spreads(clusters: TableClusters, j: int) -> list[str]:
    """Return the standard deviations of a cluster's rows with 95 % intervals."""
    return [
        _interval(c.spreads[j], c.spread_errors[j]) + (" days" if c.kind == DATE else "")
        for c in clusters.coordinates
        if c.spreads is not None and c.spread_errors is not None
    ]


def _center(kind: str, value: Any, error: float) -> str:
    """Return a coordinate of a center with its 95 % interval."""
    if kind == DATE:
        day = np.datetime_as_string(value, unit="D")
        return f"{day} ± {max(math.ceil(WIDTH_95 * error), 1)} days"
    if kind == SHARE:
        width = max(math.ceil(1000 * WIDTH_95 * error) / 10, 0.1)
        return f"{100 * value:.1f} ± {width:.1f} %"
    return _interval(value, error)


def _interval(value: float, error: float) -> str:
    """Return a number to the digits that its error lets one tell.

    Examples
    --------
    >>> _interval(52.3456, 0.2), _interval(81234.5, 1234.0)
    ('52.35 ± 0.39', '81,200 ± 2,400')
    """
    width = WIDTH_95 * error
    if not (math.isfinite(width) and width > 0):
        return f"{value:,.6g}"
    digits = 1 - math.floor(math.log10(width))
    shown = [f"{round(number, digits):,.{max(digits, 0)}f}" for number in (value, width)]
    return " ± ".join(shown)


def _declared(ends: Any) -> str:
    if isinstance(ends, list):
        return ", ".join(map(str, ends))
    low, high = (f"{end:,.6g}" if isinstance(end, float | int) else str(end) for end in ends)
    return f"{low} to {high}"
