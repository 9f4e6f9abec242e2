"""The house style of figures, and how they are written: same figure, same bytes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias

import matplotlib as mpl
from matplotlib.figure import Figure

from privclust.core.files import atomic_path

# Okabe and Ito's palette, distinguishable with common kinds of colour blindness; and two greys.
COLOURS = {
    "vermillion": "#D55E00",
    "blue": "#0072B2",
    "green": "#009E73",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "orange": "#E69F00",
    "black": "#000000",
    "grey": "#7f7f7f",
    "silver": "#999999",
}
PALETTE = tuple(COLOURS.values())[:7]
AnyPath = str | os.PathLike[str]
Style: TypeAlias = Callable[[], AbstractContextManager[None]]

RC: dict[Any, Any] = {
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
    # without it, ids of an SVG's elements are random
    "svg.hashsalt": "privclust",
}

TEXT_RC: dict[Any, Any] = {"font.family": "sans-serif", "svg.fonttype": "none"}
"""Settings for an SVG with text as text: a list of fonts, ours first."""


def house_style() -> AbstractContextManager[None]:
    """Return a context in which figures have the house style."""
    # Matplotlib's own defaults first: the user's matplotlibrc may have changed any of them.
    defaults = {name: mpl.rcParamsDefault[name] for name in mpl.rcParamsDefault}
    del defaults["backend"]  # figures are written without a backend
    return mpl.rc_context({**defaults, **RC})


@contextmanager
def text_style() -> Iterator[None]:
    """Give a context for figures with text that a viewer draws in its own fonts.

    For names in any script: glyphs that are missing in our font would be drawn as boxes.
    """
    missing = r"Glyph \d+ .* missing from font"
    with house_style(), mpl.rc_context(TEXT_RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", missing, UserWarning)
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure in the house style; sizes in inches."""
    with house_style():
        return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Figure, path: AnyPath, kind: str, style: Style = house_style) -> None:
    """Write a figure as ``"svg"`` or ``"png"``, without a date."""
    # would differ from day to day, or between versions of Matplotlib
    entry = {"svg": "Date", "png": "Software"}[kind]
    with style(), atomic_path(path) as temporary:
        figure.savefig(temporary, format=kind, metadata={entry: None})
