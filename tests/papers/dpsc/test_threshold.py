"""Algorithm 2 on the stochastic model."""

import math

import numpy as np
import pytest

from privclust_papers.dpsc import threshold
from privclust_papers.pipeline.runner import TrialData, TrialStreams

POINT = {
    "n_samples": 900, "n_clusters": 3, "n_features": 60, "dimension": 2, "noise": 0.3, "decay": 0,
}  # fmt: skip


def streams():
    spec = {"seed": 1, "paper": "dpsc", "experiment": "e", "swept": [], "method": {"name": "m"}}
    return TrialStreams(spec, POINT, 0)


def trial(**changes):
    return threshold.stochastic_trial({**POINT, **changes}, 0, streams(), None)


@pytest.mark.parametrize(("decay", "sigma"), [(0, 0.3), (1, 0.3 * math.log(300) / math.log(900))])
def test_noise_has_the_models_size(decay, sigma):
    """What is off a row's subspace is chi-square with d - q degrees of freedom, of sigma^2 / d."""
    data = trial(decay=decay)
    bases = data.extra["truth"][data.y]
    off = data.X - np.einsum("idq,ieq,ie->id", bases, bases, data.X)
    freedom = 900 * 58
    mean = (off**2).sum() / freedom
    # five standard errors of a chi-square's mean
    assert mean == pytest.approx(sigma**2 / 60, rel=5 * math.sqrt(2 / freedom))


def test_without_noise_both_steps_find_the_subspaces():
    data = trial(noise=0.0)
    for step in ("points", "rows"):
        outputs = threshold.threshold_clusters(data, streams(), subspaces=step)
        found = threshold.evaluate_threshold(data, outputs)
        assert found["mismatch"] == 0.0
        assert found["distance"] < 1e-6


def test_points_span_their_subspace_exactly():
    """Bases of q rows hold these rows; they are drawn of the component."""
    data = trial()
    outputs = threshold.threshold_clusters(data, streams(), subspaces="points")
    for label, basis in enumerate(outputs["bases"]):
        own = data.X[outputs["labels"] == label]
        off = np.linalg.norm(own - own @ basis @ basis.T, axis=1)
        assert (off < 1e-12).sum() == 2


def test_mismatches_are_told():
    data = trial(noise=0.0)
    bases = data.extra["truth"]

    def mismatch(labels, bases=bases):
        return threshold.evaluate_threshold(data, {"labels": labels, "bases": bases})

    assert mismatch((data.y + 1) % 3)["mismatch"] == 0.0
    one_wrong = data.y.copy()
    one_wrong[0] = (one_wrong[0] + 1) % 3
    assert mismatch(one_wrong) == {"mismatch": 1.0, "distance": pytest.approx(0.0, abs=1e-6)}
    merged = mismatch(np.minimum(data.y, 1), bases[:2])
    assert merged["mismatch"] == 1.0
    assert math.isnan(merged["distance"])
    empty = TrialData(data.X[data.y < 2], data.y[data.y < 2], "", extra=data.extra)
    two = {"labels": empty.y, "bases": bases[:2]}
    assert threshold.evaluate_threshold(empty, two)["mismatch"] == 0.0


def test_steps_have_names():
    with pytest.raises(ValueError, match="subspaces must be one of points, rows"):
        threshold.threshold_clusters(trial(), streams(), subspaces="all")
