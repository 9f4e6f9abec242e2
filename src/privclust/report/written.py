"""The files of a report on clusters."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from privclust.core.files import write_text
from privclust.core.packages import require
from privclust.core.printable import counted
from privclust.privacy.groups import ROW
from privclust.report.coordinate import DATE, NUMBER, SHARE, WIDTH_95, Coordinate
from privclust.report.figures import save_figure, text_style
from privclust.report.picture import caption, picture
from privclust.report.table_clusters import TableClusters
from privclust.report.words import (
    clusters_in_words,
    five_rows_in_words,
    guarantee_in_words,
    weakness_in_words,
)

NAMES = (
    *("centers.csv", "clusters.json", "clusters.svg"),
    *("guarantee.json", "guarantee.txt", "report.html"),
)
"""The names of the files of `write`."""
_MOST_COLUMNS = 7  # most columns of a table that fits 1,100 px; further ones have their own table


def write(
    clusters: TableClusters,
    folder: str | os.PathLike[str],
    *,
    source: str = "",
    origin: str = "",
    is_number_given: bool | None = None,
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
    is_number_given : bool or None
        Whether the user chose the number of clusters; False: it was chosen by their fit.
    """
    folder = Path(folder)
    write_text(folder / "centers.csv", clusters.csv())
    write_text(folder / "clusters.json", _json(clusters.as_dict()))
    write_text(folder / "guarantee.json", _json(clusters.guarantee.as_dict()))
    write_text(folder / "guarantee.txt", f"{clusters.guarantee}\n")
    told = source, origin, is_number_given
    # first without the picture: whatever ends its drawing leaves a report
    write_text(folder / "report.html", _report(clusters, "", *told))
    if svg := _picture(clusters, folder):
        write_text(folder / "report.html", _report(clusters, svg, *told))


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


def _report(
    clusters: TableClusters, svg: str, source: str, origin: str, is_number_given: bool | None
) -> str:
    """Return the report as one file of HTML."""
    jinja2 = require("jinja2", "reports")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    numbers = [c for c in clusters.coordinates if c.kind != SHARE]
    categories = [c for c in clusters.coordinates if c.kind == SHARE]
    return environment.get_template("report.html.j2").render(
        clusters=clusters,
        title=(
            "Differentially private clusters" if clusters.is_private else "Clusters, not private"
        )
        + (f" of {source}" if source else ""),
        origin=origin,
        size=_size(clusters, is_number_given),
        in_words=clusters_in_words(clusters),
        has_both=bool(categories and numbers),
        has_marks=not clusters.is_reliable[clusters.is_detected].all(),
        reliable=_reliable(clusters),
        of_five=five_rows_in_words(clusters.guarantee) if clusters.is_private else "",
        promise=guarantee_in_words(clusters.guarantee) if clusters.is_private else "",
        weakness=weakness_in_words(clusters.guarantee, clusters.n_rows),
        centers=_tables(
            clusters,
            [("share of rows", _weight), *((c.name, partial(_center, c)) for c in numbers)],
        ),
        shares=_tables(clusters, [(c.name, partial(_center, c)) for c in categories]),
        picture=svg if clusters.is_detected.any() else "",
        caption=caption(clusters),
        spreads=_tables(
            clusters, [(c.name, partial(_spread, c)) for c in numbers if c.spreads is not None]
        ),
        declared=[
            (name, _declared(ends), name in clusters.private_bounds)
            for name, ends in clusters.columns.items()
        ],
    )


_Cell = Callable[[TableClusters, int], str]


def _tables(clusters: TableClusters, columns: Sequence[tuple[str, _Cell]]) -> list[list[list[str]]]:
    """Return tables of at most seven columns: a header, and a row for each detected cluster."""
    shown = np.flatnonzero(clusters.is_detected).tolist()
    if not shown:
        return []
    first = [f"{j + 1}{'' if clusters.is_reliable[j] else ' ?'}" for j in shown]
    tables = []
    for start in range(0, len(columns), _MOST_COLUMNS):
        part = columns[start : start + _MOST_COLUMNS]
        lines = [
            [name, *(cell(clusters, j) for _, cell in part)]
            for name, j in zip(first, shown, strict=True)
        ]
        tables.append([["cluster", *(name for name, _ in part)], *lines])
    return tables


def _size(clusters: TableClusters, is_number_given: bool | None) -> str:
    """Return sentences on the numbers of clusters and rows."""
    k, n = len(clusters.weights), clusters.n_records
    what = "row" if clusters.guarantee.unit == ROW else "person"
    words = counted(n, what)
    if isinstance(n, float):  # noisy: to four digits
        words = f"About {counted(round(n, min(4 - len(f'{n:.0f}'), 0)), what)}"
    if clusters.n_rows is not None and clusters.n_rows != n:
        words += f" of {clusters.n_rows:,}"
    words += f" in {counted(k, 'cluster')}."
    if is_number_given is not None:
        how = "The user chose" if is_number_given else "The best fit to the data has"
        words += f" {how} this number of clusters."
    return f"{words} {_hidden(clusters)}".strip()


def _reliable(clusters: TableClusters) -> str:
    """Return a sentence on the clusters with errors that are known well."""
    known = (np.flatnonzero(clusters.is_detected & clusters.is_reliable) + 1).tolist()
    if not known:
        return "No ± of this report is reliable."
    of = "cluster" if len(known) == 1 else "clusters"
    return f"Only those of {of} {', '.join(map(str, known))} are reliable."


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


def _weight(clusters: TableClusters, j: int) -> str:
    value, error = clusters.weights[j], clusters.weight_errors[j]
    if not error:  # all rows are of one cluster
        return f"{_interval(100 * value, 0.0)} %"
    if value - WIDTH_95 * error > 0.0 and value + WIDTH_95 * error < 1.0:
        return f"{_interval(100 * value, 100 * error)} %"
    return _percent(value, WIDTH_95 * error)


def _spread(coordinate: Coordinate, clusters: TableClusters, j: int) -> str:
    """Return the standard deviation of a cluster's rows, to two digits.

    A spread that noise hides is "or less" than the end of its interval. The others have none.
    """
    value, is_hidden = coordinate.spreads[j], coordinate.hidden_spreads[j]
    end = value + WIDTH_95 * coordinate.spread_errors[j]
    shown = _two_digits(end if is_hidden else value)
    unit = " days" if coordinate.kind == DATE else ""
    return f"about {shown}{' or less' if is_hidden else ''}{unit}"


def _two_digits(value: float) -> str:
    """Return a number to two digits.

    Examples
    --------
    >>> _two_digits(0.01234), _two_digits(5.0), _two_digits(81234.5)
    ('0.012', '5.0', '81,000')
    """
    if not value or not math.isfinite(value):
        return f"{value:g}"
    digits = 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, digits):,.{max(digits, 0)}f}"


def _center(coordinate: Coordinate, clusters: TableClusters, j: int) -> str:
    """Return a coordinate of a center with its 95 % interval."""
    value, width = coordinate.centers[j], WIDTH_95 * coordinate.errors[j]
    if coordinate.kind == SHARE:
        return _percent(value, width)
    if coordinate.kind == NUMBER:
        return _interval(value, coordinate.errors[j])
    if not math.isfinite(width):
        return "unknown"
    return f"{np.datetime_as_string(value, unit='D')} ± {max(math.ceil(width), 1)} days"


def _percent(value: float, width: float) -> str:
    """Return a share with its 95 % interval of half this width, between 0 and 100 %.

    Examples
    --------
    >>> _percent(0.5, 0.0123), _percent(0.99, 0.02), _percent(-0.01, 0.02)
    ('50.0 ± 1.3 %', 'at least 97.0 %', 'at most 1.0 %')
    """
    if not math.isfinite(width):
        return "unknown"
    # tenths of a per cent, outwards, but not for rounding errors
    low = math.floor(round(1000 * max(value - width, 0.0), 6)) / 10
    high = math.ceil(round(1000 * min(value + width, 1.0), 6)) / 10
    if low <= 0.0 and high >= 100.0:
        return "0 to 100 %"
    if high >= 100.0:
        return f"at least {low:.1f} %"
    if low <= 0.0:
        return f"at most {max(high, 0.1):.1f} %"
    return f"{100 * value:.1f} ± {max(math.ceil(1000 * width) / 10, 0.1):.1f} %"


def _interval(value: float, error: float) -> str:
    """Return a number to the digits that its error lets one tell.

    Examples
    --------
    >>> _interval(52.3456, 0.2), _interval(81234.5, 1234.0)
    ('52.35 ± 0.39', '81,200 ± 2,400')
    """
    width = WIDTH_95 * error
    if not math.isfinite(width):
        return "unknown"
    if width == 0.0:
        return f"{value:,.6g}"
    digits = 1 - math.floor(math.log10(width))
    # 0.0 is added, as -0.0 has a sign
    shown = [f"{round(number, digits) + 0.0:,.{max(digits, 0)}f}" for number in (value, width)]
    return " ± ".join(shown)


def _declared(ends: Any) -> str:
    if isinstance(ends, list):
        return ", ".join(map(str, ends))
    low, high = (f"{end:,.6g}" if isinstance(end, float | int) else str(end) for end in ends)
    return f"{low} to {high}"
