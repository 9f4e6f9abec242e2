"""Lines on long loops: how many, when, and nothing else."""

import logging

import numpy as np
import pytest

from privclust.core import progress
from privclust.kmeans import DPLloyd
from privclust.subspaces import KPlanes


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on by four seconds whenever it is looked at."""
    now = [0.0]

    def monotonic():
        now[0] += 4.0
        return now[0]

    monkeypatch.setattr(progress.time, "monotonic", monotonic)
    return now


def test_a_line_comes_every_ten_seconds(clock, caplog):
    with caplog.at_level(logging.INFO, "privclust"):
        assert list(progress.logged("abcdefg", 7, "letters")) == list("abcdefg")
    assert caplog.messages == ["letters: 3 of 7", "letters: 6 of 7"]


def test_short_loops_are_silent_unless_the_end_is_told(caplog):
    with caplog.at_level(logging.INFO, "privclust"):
        list(progress.logged(range(3), 3, "steps"))
        assert not caplog.messages
        list(progress.logged(range(3), 3, "steps", ends=True))
    assert caplog.messages == ["steps: 3 of 3"]


def test_nothing_is_printed_where_nobody_asked(clock, capsys):
    list(progress.logged(range(9), 9, "steps"))
    assert capsys.readouterr() == ("", "")


def test_a_process_without_standard_error_has_lines(monkeypatch, caplog):
    monkeypatch.setattr("sys.stderr", None)
    with caplog.at_level(logging.INFO, "privclust"):
        assert list(progress.progress_over("abc", 3, "letters")) == list("abc")
    assert caplog.messages == ["letters: 3 of 3"]


@pytest.mark.parametrize(
    ("model", "what"),
    [
        (DPLloyd(2, epsilon=1.0, max_iter=4, bounds=(-1, 1), random_state=0), "DPLloyd: iteration"),
        (KPlanes(2, 1, n_init=4, random_state=0), "k-planes: start"),
    ],
)
def test_a_fit_says_how_far_it_is_and_comes_out_the_same(model, what, clock, caplog):
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (200, 3))
    silent = model.fit(X).labels_
    with caplog.at_level(logging.INFO, "privclust"):
        labels = model.fit(X).labels_
    assert np.array_equal(labels, silent)
    assert [line for line in caplog.messages if line.startswith(what)]
    assert all(line.endswith("of 4") for line in caplog.messages)
