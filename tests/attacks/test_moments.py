"""Attacks on moment sketches: sums, the look that follows them, its choice, and what is left."""

import pickle
import warnings

import numpy as np
import pytest

from privclust.privacy import Budget, BudgetError, Neighbours
from privclust.sketches import MomentSketch
from privclust.sketches.moment_release import measurement
from privclust.sketches.moment_sums import HarmonicSums
from privclust.subspaces import MomentSubspaceClustering, decode
from privclust.subspaces.moments import _estimator, last_round

hidden = pytest.mark.filterwarnings("ignore::privclust.privacy.NoiseWarning")


@pytest.mark.attack(
    claim="MomentSketch: replacing a row changes the sums by its own share, whatever the other "
    "rows are.",
    before="With sums in doubles of 20,000 rows in 5 dimensions, another order changed the share "
    "by 1e-14 and the sums by 3e-14.",
    now="Integers: the share is exact to the last bit, in any order, chunks and merges.",
)
def test_rows_of_a_sketch_in_any_order_and_chunks():
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):  # infinite rows are rows as well
        X = rng.standard_normal((20_000, 5)) * np.exp(rng.standard_normal((20_000, 1)) * 200.0)
    exchanged = X.copy()
    exchanged[777] = rng.standard_normal(5)
    whole, other = (HarmonicSums(5, 6).add(rows) for rows in (X, exchanged))
    out, back = (HarmonicSums(5, 6).add(rows[777:778]) for rows in (X, exchanged))
    backwards = HarmonicSums(5, 6)
    for start in range(20_000, 0, -777):
        backwards.add(X[max(start - 777, 0) : start][::-1])
    for degree, integers in whole.integers.items():
        moved = other.integers[degree] - integers
        assert (moved == back.integers[degree] - out.integers[degree]).all()
        assert (backwards.integers[degree] == integers).all()


def steepest(value_of, shape, rng, n_starts=12, n_steps=150):
    """Return the largest value that a search by random steps comes to."""
    best = -np.inf
    for _ in range(n_starts):
        at, size = rng.standard_normal(shape), 1.0
        value = value_of(at)
        for _ in range(n_steps):
            trial = at + size * rng.standard_normal(shape)
            if (higher := value_of(trial)) > value:
                at, value = trial, higher
            else:
                size = max(0.93 * size, 1e-4)
        best = max(best, value)
    return best


@hidden
@pytest.mark.attack(
    claim="MomentSubspaceClustering, last round, with the deviation of each row from its subspace "
    "clipped to norm r: the release changes by at most sqrt(4 + (1/2 - r)^2) r if a row is "
    "replaced, and by sqrt(3/2) r if one is added.",
    before="The promise held in a search over pairs of rows, with known decoded subspaces and r.",
    now="At most the stated bounds, and within 5 % of them.",
)
@pytest.mark.parametrize("radius", [0.02, 0.2])
def test_rows_made_for_the_last_round(radius):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 5))
    union = decode(_noisy(X, 1.0), 2, 2, random_state=0)
    weights = np.ones(8)
    weights[-2:] = radius / 2.0

    def sums(rows):
        return (np.asarray(last_round.round_sums(rows, union, radius)) * weights).ravel()

    replaced = steepest(lambda pair: np.linalg.norm(sums(pair[:1]) - sums(pair[1:])), (2, 5), rng)
    added = steepest(lambda row: np.linalg.norm(sums(row[None])), (5,), rng)
    for largest, relation in ((replaced, Neighbours.REPLACE_ONE), (added, Neighbours.ADD_REMOVE)):
        stated = last_round.sensitivity(radius, relation).value
        assert 0.95 * stated < largest <= stated


@hidden
@pytest.mark.attack(
    claim="MomentSubspaceClustering: only the released sketch decides whether there is a last "
    "round, and its parameters.",
    before="The promise held.",
    now="One sketch with three data sets gives the same choice, radius and noise.",
)
def test_the_choice_of_a_last_round_reads_no_row(monkeypatch, remembering_decoders):
    rng = np.random.default_rng(0)
    rows = np.zeros((3000, 4))
    rows[:1500, :2], rows[1500:, 2:] = rng.standard_normal((2, 1500, 2))
    public = _noisy(rows, 2.0)
    monkeypatch.setattr(MomentSketch, "with_noise", lambda *_: public)
    plans = []

    def watched(*args):
        plans.append(last_round.plan_round(*args))
        return plans[-1]

    monkeypatch.setattr(_estimator, "plan_round", watched)
    fits = [
        MomentSubspaceClustering(2, 2, epsilon=1.0, random_state=0).fit(data)
        for data in (rows, rng.standard_normal((3000, 4)), np.zeros((3000, 4)))
    ]
    assert len(plans) == 3
    assert len({fit.has_last_round_ for fit in fits}) == 1
    assert len({(plan.radius, plan.noise.sigma, plan.variance) for plan in plans}) == 1


@hidden
@pytest.mark.attack(
    claim="MomentSubspaceClustering, add-remove: any number of any rows is accepted.",
    before="The promise held.",
    now="No row, one row, zeros, NaN, infinities and the largest numbers give results of one form.",
)
@pytest.mark.parametrize("last_round", ["auto", True])
def test_odd_rows_for_a_moment_sketch(last_round):
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for rows in (
            np.zeros((0, 4)),
            np.zeros((2, 4)),
            np.eye(4)[:1],
            np.full((3, 4), np.nan),
            np.array([[np.inf, -np.inf, 0.0, 1.0]]),
            np.full((2, 4), 1.7e308),
            np.full((2, 4), 5e-324),
        ):
            model = MomentSubspaceClustering(
                3, 2, neighbours="add_remove", last_round=last_round, random_state=0
            ).fit(rows)
            assert model.subspaces_.shape == (3, 4, 2)
            assert np.isfinite(model.subspaces_).all()
            assert np.isfinite(model.errors_).all()
            assert not model.is_detected_.any()


@hidden
@pytest.mark.attack(
    claim="MomentSubspaceClustering: nothing is released before the ledger has been charged.",
    before="The promise held.",
    now="A refused fit has no sketch and no subspaces, and has drawn no noise.",
)
def test_a_refused_fit_has_released_nothing():
    X = np.random.default_rng(0).standard_normal((200, 4))
    model = MomentSubspaceClustering(2, 2, epsilon=1.0, delta=1e-6, random_state=0)
    with Budget(epsilon=0.9, delta=1e-6), pytest.raises(BudgetError):
        model.fit(X)
    assert not hasattr(model, "sketch_")
    assert not hasattr(model, "subspaces_")


@hidden
@pytest.mark.attack(
    claim="MomentSubspaceClustering: pickles and released() contain only released values.",
    before="The promise held.",
    now="No label, no exact sum and no row.",
)
def test_the_content_of_a_pickled_moment_fit():
    X = np.random.default_rng(0).standard_normal((2000, 4))
    model = MomentSubspaceClustering(2, 2, epsilon=1.0, random_state=0).fit(X)
    left = pickle.loads(pickle.dumps(model))
    assert not hasattr(left, "labels_")
    assert left.sketch_.exact is None
    sizes = [np.size(value) for value in vars(left).values() if isinstance(value, np.ndarray)]
    assert max(sizes) < len(X)


def _noisy(X, epsilon):
    exact = MomentSketch.of(X)
    size = exact.n_features, exact.degree
    noise = measurement(*size, Neighbours.REPLACE_ONE, epsilon, 1e-5)
    return exact.with_noise(noise, np.random.default_rng(0))
