"""A picture of centers and their errors, drawn only from released numbers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from privclust.report.coordinate import DATE, SHARE, Coordinate
from privclust.report.figures import COLOURS, PALETTE, new_figure, text_style
from privclust.report.table_clusters import TableClusters

_MOST_COLUMNS = 5  # columns shown in pairs: those that separate clusters best
_MOST_CATEGORIES = 6  # categories of a column; others are drawn as one
_PANELS_IN_ROW = 3
_MANY = 40  # clusters, of which some numbers may find no place in a panel
_FIRST_DAY, _LAST_DAY = -719162.0, 2932896.0  # range of Matplotlib's dates: years 1 to 9999
_LARGEST, _SMALLEST = 700.0, 30.0  # areas of markers, in squared points
_MARKERS = "os^DvPX"  # of centers: the next one when the colours are used up
_BEYOND = 0.03  # part of an axis that may lie beyond the declared bounds: room for markers


def picture(clusters: TableClusters) -> Figure:
    """Return a figure: pairs of columns with centers and spreads, and shares of categories.

    Clusters that are not detected are left out.
    """
    of_pairs = _drawn_columns(clusters)
    pairs: list[tuple[int, ...]] = list(itertools.combinations(of_pairs, 2))
    pairs = pairs or [(j,) for j in of_pairs]
    categories = list(dict.fromkeys(c.column for c in clusters.coordinates if c.kind == SHARE))
    with text_style():
        return _drawn(clusters, pairs, categories)


def _drawn(clusters: TableClusters, pairs: Any, categories: Any) -> Figure:
    """Draw a panel for each pair and each column of categories."""
    n_panels = len(pairs) + len(categories)
    n_across = min(_PANELS_IN_ROW, n_panels)
    n_down = -(-n_panels // n_across)
    figure = new_figure(3.6 * n_across, 3.2 * n_down)
    panels = iter(figure.subplots(n_down, n_across, squeeze=False).flat)
    # pairs first: when they end, zip has taken no panel that the next loop needs
    for pair, axes in zip(pairs, panels, strict=False):
        (_draw_pair if len(pair) == 2 else _draw_column)(axes, clusters, *pair)
    for column, axes in zip(categories, panels, strict=False):
        _draw_shares(axes, clusters, column)
    for axes in panels:
        axes.set_axis_off()
    figure.draw_without_rendering()  # gives the panels their sizes
    for axes in figure.axes:
        _place_numbers(axes, on_centers=not _has_spreads(clusters))
    return figure


def caption(clusters: TableClusters) -> str:
    """Return a caption that explains the marks of the picture."""
    numbers = [c for c in clusters.coordinates if c.kind != SHARE]
    if _has_spreads(clusters):
        shape = "Ellipses are" if len(numbers) > 1 else "Broad bars are"
        words = f"Centers of clusters, by number. {shape} one standard deviation of the cluster's"
        words += " rows in each column, to each side. If it is bell-shaped, "
        words += "6 in 10" if len(numbers) > 1 else "1 in 3"
        words += " of its rows lie outside."
        if len(numbers) > 1:
            words += " They do not show whether two columns vary together."
    else:
        words = "Centers of clusters, by number; a larger disc is a larger cluster."
    if numbers:
        words += " Thin bars are 95 % intervals of centers, dotted where they may be too short;"
        words += " the point of the center hides short ones."
        if len(PALETTE) < len(clusters.weights) <= len(PALETTE) * len(_MARKERS):
            words += " Clusters of one colour have different points."
    if len(numbers) < len(clusters.coordinates):
        words += " Filled bars show the shares of categories in each cluster."
    if len(numbers) > _MOST_COLUMNS:
        words += f" Drawn are the {_MOST_COLUMNS} columns that separate the clusters best."
    if clusters.is_detected.sum() > _MANY:
        words += " Numbers that find no place are left out."
    n_hidden = int((~clusters.is_detected).sum())
    if n_hidden:
        are = "cluster is" if n_hidden == 1 else "clusters are"
        words += f" {n_hidden} {are} indistinguishable from noise and not drawn."
    return words


def _has_spreads(clusters: TableClusters) -> bool:
    numbers = [c for c in clusters.coordinates if c.kind != SHARE]
    return bool(numbers) and all(c.spreads is not None for c in numbers)


def _drawn_columns(clusters: TableClusters) -> list[int]:
    """Return the indices of the coordinates that are shown in pairs."""
    places = [j for j, c in enumerate(clusters.coordinates) if c.kind != SHARE]
    if len(places) <= _MOST_COLUMNS:
        return places
    apart = {j: _between(clusters, j) for j in places}
    return sorted(sorted(places, key=lambda j: -apart[j])[:_MOST_COLUMNS])


def _between(clusters: TableClusters, j: int) -> float:
    """Return the spread of centers in a coordinate, relative to its declared range."""
    coordinate, is_shown = clusters.coordinates[j], clusters.is_detected
    if not is_shown.any():
        return 0.0
    places = coordinate.scaled(clusters.columns[coordinate.column])[0][is_shown]
    middle = np.average(places, weights=clusters.weights[is_shown])
    return float(((places - middle) ** 2).mean())


def _colour(j: int | np.integer) -> str:
    return PALETTE[int(j) % len(PALETTE)]


def _draw_pair(axes: Axes, clusters: TableClusters, first: int, second: int) -> None:
    """Draw centers in two coordinates with the spreads of clusters and the errors of centers."""
    coordinates = [clusters.coordinates[j] for j in (first, second)]
    x, y = (c.numbers for c in coordinates)
    for j in np.flatnonzero(clusters.is_detected):
        wide = [2.0 * c.spreads[j] for c in coordinates if c.spreads is not None]
        if len(wide) == 2:
            axes.add_patch(Ellipse((x[j], y[j]), *wide, color=_colour(j), alpha=0.3))
        errors = [c.width_95[j] for c in coordinates]
        _draw_bars(axes, clusters, j, (x[j], y[j]), *errors)
    _draw_numbers(axes, clusters, x, y)
    for coordinate, axis in zip(coordinates, (axes.xaxis, axes.yaxis), strict=True):
        axis.set_label_text(_plain(coordinate.name))
        _set_ticks(axis, coordinate)
        (axes.set_xlim if axis is axes.xaxis else axes.set_ylim)(_limits(clusters, coordinate))


def _draw_bars(
    axes: Axes,
    clusters: TableClusters,
    j: int | np.integer,
    place: tuple[float, float],
    across: float,
    along: float | None = None,
) -> None:
    """Draw a 95 % interval, dotted if its width is not known well."""
    marker = _MARKERS[int(j) // len(PALETTE) % len(_MARKERS)]
    bars = axes.errorbar(
        *place, xerr=across, yerr=along, markersize=3, color=_colour(j), fmt=marker
    )
    for line in bars[2]:
        line.set_linestyle("-" if clusters.is_reliable[j] else ":")


def _draw_numbers(axes: Axes, clusters: TableClusters, x: np.ndarray, y: np.ndarray) -> None:
    """Draw the numbers of clusters at their centers; on discs if spreads are not known."""
    has_spreads = _has_spreads(clusters)
    sizes = np.maximum(_LARGEST * clusters.weights / clusters.weights.max(), _SMALLEST)
    for j in np.flatnonzero(clusters.is_detected):
        if not has_spreads:
            axes.scatter(x[j], y[j], s=sizes[j], color=_colour(j), alpha=0.35, linewidths=0)
        axes.annotate(
            str(j + 1),
            (x[j], y[j]),
            xytext=(0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontweight="bold",
            fontsize=9,
            arrowprops={"arrowstyle": "-", "linewidth": 0.6, "color": "grey", "shrinkB": 2.0},
        ).set_in_layout(False)  # axes keep their size when numbers are moved


def _place_numbers(axes: Axes, on_centers: bool) -> None:
    """Move each number to the free place nearest to its center, with a line if that is far.

    A place is free if the number overlaps no earlier one and no center. Without a free place in the
    panel a number is left out.
    """
    numbers: list[Any] = list(axes.texts)
    centers = axes.transData.transform([number.xy for number in numbers]).reshape(-1, 2)
    point = axes.get_figure(root=True).dpi / 72.0
    taken = [] if on_centers else [np.concatenate([c - point, c + point]) for c in centers]
    (left, bottom), (right, top) = axes.bbox.get_points()
    # places to try, nearest first: 16 directions for each distance in steps of 3 points
    radii = np.repeat(point * np.array([*([0.0] if on_centers else []), *range(3, 250, 3)]), 16)
    angles = np.resize(np.pi * (0.25 + np.arange(16) / 8.0), len(radii))
    for number, center in zip(numbers, centers, strict=True):
        box = Text.get_window_extent(number)  # that of the annotation has its line, too
        half = np.array([box.width, box.height]) / 2.0
        away = np.column_stack([np.cos(angles), np.sin(angles)])
        moves = away * (radii[:, None] + half * (radii[:, None] > 0.0))
        low, high = center + moves - half - point, center + moves + half + point
        is_free = np.all((low > (left, bottom)) & (high < (right, top)), axis=1)
        for other in taken:
            is_free &= np.any((low >= other[2:]) | (high <= other[:2]), axis=1)
        first = int(is_free.argmax())
        number.set_visible(bool(is_free[first]))
        number.set_position(tuple(moves[first] / point))
        number.arrow_patch.set_visible(bool(radii[first] > 6.0 * point))
        if is_free[first]:
            taken.append(np.concatenate([low[first], high[first]]))


def _draw_column(axes: Axes, clusters: TableClusters, j: int) -> None:
    """Draw centers of the only column with their 95 % intervals, a line for each cluster."""
    coordinate = clusters.coordinates[j]
    x, places = coordinate.numbers, np.arange(len(clusters.weights), dtype=float)
    for place in np.flatnonzero(clusters.is_detected):
        if coordinate.spreads is not None:
            ends = x[place] + coordinate.spreads[place] * np.array([-1.0, 1.0])
            axes.plot(ends, [place, place], color=_colour(place), alpha=0.25, linewidth=8)
        _draw_bars(axes, clusters, place, (x[place], float(place)), coordinate.width_95[place])
    _draw_numbers(axes, clusters, x, places)
    axes.set_xlabel(_plain(coordinate.name))
    _set_ticks(axes.xaxis, coordinate)
    axes.set_yticks([])
    axes.invert_yaxis()
    axes.set_xlim(_limits(clusters, coordinate))


def _draw_shares(axes: Axes, clusters: TableClusters, column: str) -> None:
    """Draw the share of each category in each cluster."""
    shares = [c for c in clusters.coordinates if c.column == column]
    left = np.zeros(int(clusters.is_detected.sum()))
    handles: list[tuple[Any, str]] = []
    places = np.arange(len(left))
    drawn = sorted(range(len(shares)), key=lambda k: -shares[k].centers[clusters.is_detected].sum())
    # the most frequent categories, in the order in which they were declared
    for k in sorted(drawn[:_MOST_CATEGORIES]):
        widths = shares[k].centers[clusters.is_detected]
        # other colours than those of clusters
        colour = colormaps["viridis"](len(handles) / max(min(len(shares), _MOST_CATEGORIES) - 1, 1))
        bars = axes.barh(places, widths, left=left, color=colour)
        handles.append((bars, _plain(shares[k].name.removeprefix(f"{column}="))))
        left = left + widths
    if len(shares) > _MOST_CATEGORIES:
        bars = axes.barh(places, 1.0 - left, left=left, color=COLOURS["grey"])
        handles.append((bars, "others"))
    axes.set(xlim=(0, 1), xlabel=f"shares of {_plain(column)}", ylabel="cluster")
    axes.set_yticks(places, [str(j + 1) for j in np.flatnonzero(clusters.is_detected)])
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.legend(
        [bars[0] for bars, _ in handles if len(bars)],
        [label for _, label in handles],
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=3,
        fontsize=8,
    )


def _plain(name: str) -> str:
    """Escape a name, so that Matplotlib does not draw it as a formula."""
    return name.replace("$", r"\$")


def _set_ticks(axis: Any, coordinate: Coordinate) -> None:
    """Format the ticks of an axis: dates as dates, and not too many."""
    axis.set_major_locator(MaxNLocator(4))
    if coordinate.kind == DATE:
        locator = AutoDateLocator(minticks=3, maxticks=6)
        axis.set_major_locator(locator)
        axis.set_major_formatter(ConciseDateFormatter(locator))


def _limits(clusters: TableClusters, coordinate: Coordinate) -> tuple[float, float]:
    """Return the limits of an axis: what is drawn with a margin, hardly beyond the bounds."""
    is_shown = clusters.is_detected
    if not is_shown.any():
        return 0.0, 1.0
    values, reach = coordinate.numbers[is_shown], coordinate.reach[is_shown]
    low, high = float((values - reach).min()), float((values + reach).max())
    # a single center without a known error has no extent
    margin = 0.25 * max(high - low, 1e-9 * max(abs(low), 1.0))
    least, most = coordinate.bounds(clusters.columns[coordinate.column])
    low, high = (
        max(low - margin, min(least, values.min())),
        min(high + margin, max(most, values.max())),
    )
    low, high = low - _BEYOND * (high - low), high + _BEYOND * (high - low)
    if coordinate.kind == DATE:
        return max(low, _FIRST_DAY), min(high, _LAST_DAY)
    return low, high
