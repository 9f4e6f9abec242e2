"""How figures look, and how they are written: same tables, same bytes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from privclust.artefacts import write_table
from privclust.files import atomic_path

# Okabe and Ito's palette: told apart with every common kind of colour blindness.
PALETTE = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
BELOW = "below"  # marks a legend outside below all panels, which a note on sources is put into
_NOTE = "#b00000"
# For methods of a user's own, beside any of the papers': Tol's muted colours.
_OWN = ("#882255", "#332288", "#999933", "#44AA99")
_OWN_MARKERS = ("*", "p", "h", "8")
DASHES = ("-", "--", "-.", (0, (1, 1.2)), (0, (4, 1, 1, 1, 1, 1)), (0, (6, 2)), ":")

RC = {
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "svg.fonttype": "path",
    "svg.hashsalt": "privclust",
}


@dataclass(frozen=True)
class Results:
    """What a drawing function gets.

    Attributes
    ----------
    target : str
    trials, summaries : mapping of str to DataFrame
        The tables of each experiment that the target draws from.
    arrays : mapping of (experiment, method) to mapping of str to ndarray
        Metrics that are arrays, as ``"array/<task>/<name>"``.
    printed : DataFrame
        The numbers the paper prints; empty where it prints none.
    costs : mapping of str to DataFrame
        CPU seconds that the fits of each method of an experiment took. They differ from run to run.
    own : sequence of str
        Methods of a user's own among those of the trials.
    """

    target: str
    trials: Mapping[str, pd.DataFrame]
    summaries: Mapping[str, pd.DataFrame]
    arrays: Mapping[tuple[str, str], Mapping[str, np.ndarray]]
    printed: pd.DataFrame
    costs: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    own: Sequence[str] = ()

    @property
    def own_styles(self) -> dict[str, MethodStyle]:
        """A style for each method of a user's own."""
        return own_methods(self.own, ())


@dataclass(frozen=True)
class Drawing:
    """A figure and the numbers behind it."""

    figure: Figure
    table: pd.DataFrame


@dataclass(frozen=True)
class MethodStyle:
    """Colour, marker and dash of a method."""

    color: str
    marker: str
    dash: object


def method_styles(labels: list[str]) -> dict[str, MethodStyle]:
    """Give each method its colour, marker and dash, by its place in the list."""
    return {
        label: MethodStyle(
            PALETTE[index % len(PALETTE)],
            MARKERS[index % len(MARKERS)],
            DASHES[index % len(DASHES)],
        )
        for index, label in enumerate(labels)
    }


def own_style(number: int) -> MethodStyle:
    """Return the style of the so-manyth method of a user's own."""
    return MethodStyle(_OWN[number % len(_OWN)], _OWN_MARKERS[number % len(_OWN_MARKERS)], "-")


def own_methods(methods: Iterable[str], known: Iterable[str]) -> dict[str, MethodStyle]:
    """Give a style to each method that a figure does not know by name: those of a user's own.

    Parameters
    ----------
    methods : iterable of str
        As a table has them, any number of times.
    known : iterable of str

    Returns
    -------
    dict of str to MethodStyle
        In the order in which they come.

    Examples
    --------
    >>> list(own_methods(["em", "mine", "mine", "other"], ["em"]))
    ['mine', 'other']
    """
    found = dict.fromkeys(name for name in methods if name not in set(known))
    return {name: own_style(number) for number, name in enumerate(found)}


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure in the house style; sizes in inches."""
    with mpl.rc_context(RC):
        return Figure(figsize=(width, height), layout="constrained")


def note_sources(figure: Figure, tables: Mapping[str, pd.DataFrame]) -> None:
    """Write below a figure, or above its legend there, which substitutes stand in for data."""
    sources = sorted({source for table in tables.values() for source in table["source"]})
    substitutes = [source for source in sources if source.startswith("substitute")]
    if not substitutes:
        return
    text = "Not comparable with the paper: " + "; ".join(substitutes)
    below = [legend for legend in figure.legends if legend.get_gid() == BELOW]
    if below:  # layouts keep room for a legend or for a label of the figure, not for both
        below[0].set_title(text, prop={"size": 8})
        below[0].get_title().set_color(_NOTE)
    else:
        figure.supxlabel(text, fontsize=8, color=_NOTE)


def note_of(figure: Figure) -> str:
    """Return what `note_sources` wrote."""
    titles = [legend.get_title().get_text() for legend in figure.legends]
    return figure.get_supxlabel() or next((title for title in titles if title), "")


def save(
    drawing: Drawing,
    svg: str | os.PathLike[str],
    png: str | os.PathLike[str],
    table: str | os.PathLike[str],
) -> None:
    """Write a drawing as SVG and PNG, and its numbers as CSV, each whole or not at all."""
    with mpl.rc_context(RC):
        with atomic_path(svg) as temporary:
            drawing.figure.savefig(temporary, format="svg", metadata={"Date": None})
        with atomic_path(png) as temporary:
            drawing.figure.savefig(temporary, format="png", metadata={"Software": None})
    write_table(table, drawing.table.to_csv(index=False, float_format="%.6g"))
