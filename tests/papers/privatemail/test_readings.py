"""Readings of the PrivateMail paper: against the library's SMLQ, and where they are not defined."""

import numpy as np
import pytest

from privclust.embedding import SMLQ
from privclust_papers.pipeline.runner import TrialStreams
from privclust_papers.privatemail import readings
from privclust_papers.privatemail.data import retrieval_trial, task_of
from privclust_papers.privatemail.metrics import evaluate_reading

SETTINGS = {"reading": "unit, sigma", "labels": "integer"}
POINT = {
    "n_public": 40,
    "alpha": 0.6,
    "n_components": 2,
    "init_scale": 1e-8,
    "n_iter": 5,
    "delta": 1e-5,
}


def streams():
    spec = {"seed": 1, "paper": "privatemail", "experiment": "e", "swept": []}
    return TrialStreams({**spec, "method": {"name": "m"}}, POINT, 0)


def data_of():
    """Six classes far apart, half of each class's images public."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 10)
    X = 5.0 * np.eye(6, 16)[y] + 0.05 * rng.normal(size=(60, 16))
    dataset = {"X": X.astype(np.float32), "y": y, "train": np.arange(60) % 10 < 5, "source": "made"}
    return retrieval_trial(POINT, 0, streams(), dataset)


@pytest.mark.parametrize("kernel", ["sigma", "sigma^2", "2 sigma^2"])
def test_iterates_are_those_of_smlq_but_for_their_scale(kernel):
    data, sigma = data_of(), 0.5
    task = task_of(data, "deep", streams())
    X = readings._rows(task, True)
    width = readings._WIDTHS[kernel](sigma)
    iterates = list(
        readings._iterates(X, task, data, np.random.default_rng(0), width, "integer", 4)
    )
    model = SMLQ(2, alpha=0.6, sigma=sigma, kernel=kernel, n_iter=4, init=iterates[0])
    model.fit(X, np.append(task.y_public, task.y_gallery))
    for own, library in zip(iterates, model.iterates_, strict=True):
        np.testing.assert_allclose(
            own / np.abs(own).max(), library / np.abs(library).max(), rtol=1e-6, atol=1e-9
        )


def test_a_width_times_a_scale_is_the_scale_of_features():
    """Features as they are, c times others, with width c^2 times: the same kernel of features."""
    X = np.random.default_rng(0).normal(size=(20, 5))
    near = np.exp(-readings._squares(X) / 0.7)
    np.testing.assert_allclose(np.exp(-readings._squares(3.0 * X) / 6.3), near, rtol=1e-9)


def test_labels_alone_place_images_where_degrees_are_small():
    """With classes far apart and a narrow kernel, shuffled features do about as well."""
    own, shuffled = (
        evaluate_reading(
            data_of(),
            readings.read_smlq(
                data_of(), streams(), sigma=0.5, is_shuffled=is_shuffled, **SETTINGS
            ),
        )
        for is_shuffled in (False, True)
    )
    assert own["chance_8"] == shuffled["chance_8"]
    assert 0.0 <= own["density"] <= 1.0
    assert np.isnan(own["density_6"])


def test_one_hot_labels_know_no_order():
    """Renaming classes changes integers' weights, and nothing of unit vectors'."""
    data = data_of()
    task = task_of(data, "deep", streams())
    X, order = readings._rows(task, True), np.array([2, 0, 4, 1, 5, 3])
    renamed = type(task)(task.X_public, order[task.y_public], task.X_gallery, order[task.y_gallery])
    for labels, is_same in (("one-hot", True), ("integer", False)):
        first, second = (
            list(readings._iterates(X, t, data, np.random.default_rng(0), 2.0, labels, 3))[-1]
            for t in (task, renamed)
        )
        assert np.allclose(first, second) == is_same


@pytest.mark.parametrize("reading", ["unit, sigma", "raw, 2 sigma^2"])
def test_where_theorem_2_bounds_nothing_there_is_no_release(reading):
    outputs = readings.read_mail(
        data_of(), streams(), reading=reading, sigma=0.1, epsilon=10.0, labels="one-hot"
    )
    values = evaluate_reading(data_of(), outputs)
    assert all(np.isnan(value) for value in values.values())
    outputs = readings.read_mail(
        data_of(), streams(), reading=reading, sigma=6.0, epsilon=10.0, n_queries=10
    )
    assert outputs["ranks"].shape == (1, 10)
    assert 0.0 <= evaluate_reading(data_of(), outputs)["recall_8"] <= 1.0
