"""The picture of a report: its numbers of clusters can be read."""

import itertools

import numpy as np
import pytest

from privclust.privacy import Guarantee
from privclust.report.coordinate import NUMBER, Coordinate
from privclust.report.table_clusters import TableClusters

picture = pytest.importorskip("privclust.report.picture").picture
Text = pytest.importorskip("matplotlib.text").Text


def clusters(places, spreads):
    """Return clusters at these places (k, d) of a square."""
    k, d = places.shape
    errors = np.full(k, 0.003)
    how = {"spreads": np.full(k, 0.03), "spread_errors": errors} if spreads else {}
    coordinates = tuple(
        Coordinate(f"x{j}", f"x{j}", NUMBER, column, errors, **how)
        for j, column in enumerate(places.T)
    )
    shares = np.full(k, 1.0 / k)
    known = np.ones(k, dtype=bool)
    columns = {f"x{j}": (0.0, 1.0) for j in range(d)}
    promise = Guarantee("pure", "replace-one", epsilon=1.0)
    numbers = shares, shares / 100, known, known, 10_000, columns, promise
    return TableClusters(coordinates, *numbers)


def overlaps(figure):
    """Return the numbers that overlap another one or leave their panel, over all panels."""
    figure.draw_without_rendering()
    found = []
    for axes in figure.axes:
        shown = [text for text in axes.texts if text.get_visible()]
        boxes = {text.get_text(): Text.get_window_extent(text) for text in shown}
        pairs = itertools.combinations(boxes, 2)
        found += [pair for pair in pairs if boxes[pair[0]].overlaps(boxes[pair[1]])]
        panel = axes.get_window_extent()
        found += [name for name, box in boxes.items() if panel.count_contains(box.corners()) < 4]
    return found


@pytest.mark.parametrize("spreads", [True, False])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_no_two_numbers_of_clusters_overlap(spreads, d):
    for seed in range(5):
        places = np.random.default_rng(seed).random((17, d))
        figure = picture(clusters(places, spreads))
        assert overlaps(figure) == []
        for axes in figure.axes:
            shown = [text.get_text() for text in axes.texts if text.get_visible()]
            assert sorted(shown, key=int) == [str(j) for j in range(1, 18)]


def test_clusters_at_one_place_have_each_their_number():
    places = np.repeat([[0.2, 0.3], [0.8, 0.3]], [9, 1], axis=0)
    figure = picture(clusters(places, spreads=True))
    assert overlaps(figure) == []
    assert sum(text.get_visible() for text in figure.axes[0].texts) == 10


def test_two_hundred_clusters_have_a_picture():
    figure = picture(clusters(np.random.default_rng(0).random((200, 2)), spreads=True))
    assert overlaps(figure) == []


def test_axes_end_at_the_declared_bounds():
    places = np.array([[0.0, 0.02], [1.0, 0.98], [0.5, 0.5]])
    for axes in picture(clusters(places, spreads=True)).axes:
        for low, high in (axes.get_xlim(), axes.get_ylim()):
            assert -0.04 < low < 0.0
            assert 1.0 < high < 1.04


def test_no_two_of_forty_clusters_look_alike():
    figure = picture(clusters(np.random.default_rng(0).random((40, 2)), spreads=True))
    points = [line for line in figure.axes[0].lines if line.get_marker() not in "|_"]
    looks = {(line.get_color(), line.get_marker()) for line in points}
    assert len(points) == len(looks) == 40
