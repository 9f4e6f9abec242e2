"""Style of figures, and their files: the same tables give the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from privclust.report.figures import COLOURS, AnyPath, house_style, new_figure, save_figure
from privclust_papers.pipeline.artefacts import write_table
from privclust_papers.pipeline.words import is_part, is_substitute

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
BELOW = "below"  # id of a legend below all panels, to which a note on sources is added
_NOTE = "#b00000"
# For a user's own methods, distinct from those of the papers: Tol's muted colours.
_OWN_LOOKS = (("#882255", "*"), ("#332288", "p"), ("#999933", "h"), ("#44AA99", "8"))
_LINES = {"solid": "-", "dashed": "--", "dashdot": "-.", "dotted": ":"}
_PROMISES = {"private": "solid", "weaker": "dashed", "none": "dotted"}


@dataclass(frozen=True)
class MethodStyle:
    """Colour, marker and dash of a method."""

    color: str
    marker: str
    dash: object

    @property
    def line(self) -> dict[str, Any]:
        """Keywords of a curve for Matplotlib."""
        return {"color": self.color, "marker": self.marker or None, "linestyle": self.dash}


_OTHER = MethodStyle("#56B4E9", "X", ":")  # for methods without an entry in the paper's file


@dataclass(frozen=True)
class Results:
    """The argument of a drawing function."""

    target: str
    trials: Mapping[str, pd.DataFrame]  # the table of each experiment of the target
    summaries: Mapping[str, pd.DataFrame]
    # metrics that are arrays, named ``"array/<task>/<name>"``
    arrays: Mapping[tuple[str, str], Mapping[str, np.ndarray]]
    printed: pd.DataFrame  # the numbers that the paper prints; may be empty
    # CPU seconds of the fits of each method of an experiment, which differ from run to run
    costs: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    own: Sequence[str] = ()  # a user's own methods among those of the trials
    # style of each method of the trials, in the order of legends
    styles: Mapping[str, MethodStyle] = field(default_factory=dict)
    # kinds of metrics, which their intervals keep; see `privclust_papers.report.comparison.RANGES`
    kinds: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Drawing:
    """A figure and the numbers behind it."""

    figure: Figure
    table: pd.DataFrame


def styles_of(
    methods: Iterable[tuple[str, Mapping[str, Any]]], own: Iterable[str] = ()
) -> dict[str, MethodStyle]:
    """Return the style of each method in the given order, a user's own methods last.

    `methods` are from `privclust_papers.pipeline.plan.styles_in`: names and their entries in the
    paper's file. A user's own methods have styles that no method of a paper has.
    """
    looks = (MethodStyle(*look, "-") for look in cycle(_OWN_LOOKS))
    return {name: _style_of(entry) for name, entry in methods} | dict(zip(own, looks, strict=False))


def _style_of(entry: Mapping[str, Any]) -> MethodStyle:
    if not entry:
        return _OTHER
    line = entry.get("line", _PROMISES[entry.get("promise", "private")])
    dash = _LINES[line] if isinstance(line, str) else (0, tuple(line))
    return MethodStyle(COLOURS[entry.get("colour", "black")], entry.get("marker", ""), dash)


@contextmanager
def canvas(width: float, height: float, tables: Mapping[str, pd.DataFrame]) -> Iterator[Figure]:
    """Yield an empty figure of a size in inches; at the end, note the sources of its trials."""
    with house_style():
        figure = new_figure(width, height)
        yield figure
        note_sources(figure, tables)


def note_sources(figure: Figure, tables: Mapping[str, pd.DataFrame]) -> None:
    """Write the names of substitutes for data below a figure, or as its legend's title."""
    sources = sorted({source for table in tables.values() for source in table["source"]})
    notes = {"Not comparable with the paper": is_substitute}
    notes["The order of methods is comparable with the paper, numbers are not"] = is_part
    found = {text: "; ".join(filter(kind, sources)) for text, kind in notes.items()}
    text = ". ".join(f"{text}: {names}" for text, names in found.items() if names)
    if not text:
        return
    below = [legend for legend in figure.legends if legend.get_gid() == BELOW]
    if below:  # a layout reserves space for a legend or a label of the figure, not for both
        below[0].set_title(text, prop={"size": 8})
        below[0].get_title().set_color(_NOTE)
    else:
        figure.supxlabel(text, fontsize=8, color=_NOTE)


def save(drawing: Drawing, svg: AnyPath, png: AnyPath, table: AnyPath) -> None:
    """Write a drawing as SVG and PNG, and its numbers as CSV, each atomically."""
    save_figure(drawing.figure, svg, "svg")
    save_figure(drawing.figure, png, "png")
    write_table(table, drawing.table.to_csv(index=False, float_format="%.6g"))
