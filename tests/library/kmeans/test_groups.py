"""Rows of one person, who is protected as a whole: sketches and fits by groups."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

from privclust.kmeans import CompressiveKMeans
from privclust.privacy import Budget, BudgetError, Guarantee
from privclust.privacy.groups import Groups, by_size
from privclust.sketches import (
    FeatureSums,
    Sketch,
    draw_frequencies,
    release,
    sensitivities,
)


def frequencies(d=2, m=20, seed=0):
    return draw_frequencies(d, m, variance=1.0, random_state=seed)


def visits(n_groups=400, seed=0, d=2):
    """Rows of groups of 1 to 12, each about a place of its own, and whose they are."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), rng.integers(1, 13, n_groups))
    places = rng.uniform(-1.0, 1.0, (n_groups, d))
    return places[groups] + 0.1 * rng.standard_normal((len(groups), d)), groups


def same(one, other):
    states = one.state(), other.state()
    return all(np.array_equal(states[0][name], states[1][name]) for name in states[0])


# --- weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [[3, 1, 3, 3], ["c", "a", "c", "c"], [2.5, -1.0, 2.5, 2.5]])
def test_weights_are_one_over_the_rows_of_a_group(ids):
    groups = Groups.of(ids, 4)
    np.testing.assert_array_equal(groups.weights, [1 / 3, 1.0, 1 / 3, 1 / 3])
    assert groups.count == 2


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, 2], "groups must be one a row"),
        (np.array([[1], [2], [3]]), "one a row"),
        (np.array([1, 2, 3], "m8[s]"), r"'groups' holds timedelta64\[s\], not persons"),
        (np.array([1j, 2, 3]), "'groups' holds complex128, not persons"),
    ],
)
def test_groups_that_are_none_are_refused_and_not_named(ids, message):
    with pytest.raises(ValueError, match=message) as error:
        Groups.of(ids, 3)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("missing", [None, math.nan, " ", "NaN", np.datetime64("NaT", "s"), pd.NA])
def test_a_row_of_nobody_contributes_nothing(missing):
    groups = Groups.of([1, missing, 2.0, "1"], 4)
    assert groups.sizes.tolist() == [2, 0, 1, 2]
    assert groups.count == 2
    assert groups.weights[1] == groups.units[1] == 0
    assert all(1 not in places for _, places in by_size(groups, np.arange(4)))


def test_weights_of_other_rows_are_refused():
    with pytest.raises(ValueError, match="groups must be one a row"):
        Groups.of(Groups.of([1, 1], 2), 3)
    assert Groups.of([], 0).count == 0


# --- sums ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 4, 9, 33])
def test_sums_are_of_the_means_of_groups(dtype, d):
    X, groups = visits(d=d)
    X, Omega = X.astype(dtype), frequencies(d)
    sums = FeatureSums(Omega).add(X, groups)
    features = np.exp(1j * (X.astype(float) @ Omega))
    expected = sum(features[groups == g].mean(axis=0) for g in range(400))
    np.testing.assert_allclose(sums.values, expected, rtol=0, atol=400 * 1e-6)
    assert sums.n_samples == 400


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_groups_of_one_row_are_rows_to_the_byte(dtype):
    X = visits()[0].astype(dtype)
    groups = np.random.default_rng(1).permutation(len(X))
    assert same(FeatureSums(frequencies()).add(X, groups), FeatureSums(frequencies()).add(X))


def test_sums_do_not_depend_on_the_order_of_rows():
    X, groups = visits(5000)
    whole = FeatureSums(frequencies()).add(X, groups)
    order = np.random.default_rng(1).permutation(len(X))
    assert same(whole, FeatureSums(frequencies()).add(X[order], groups[order]))


def test_a_sketch_has_the_same_bytes_for_any_order_of_groups():
    X, groups = visits()
    order = np.random.default_rng(1).permutation(len(X))
    whole = Sketch.of(X, frequencies(), groups=groups)
    again = Sketch.of(X[order], frequencies(), groups=groups[order])
    assert again.sums.tobytes() == whole.sums.tobytes()
    assert again.n_samples == whole.n_samples == 400
    for wrong in (groups[:-1], np.append(groups, 0)):
        with pytest.raises(ValueError, match="groups must be one a row"):
            Sketch.of(X, frequencies(), groups=wrong)


def test_parts_with_groups_of_their_own_merge_to_the_whole():
    X, groups = visits()
    whole = Sketch.of(X, frequencies(), groups=groups)
    first = groups < 150
    parts = [Sketch.of(X[p], frequencies(), groups=groups[p]) for p in (first, ~first)]
    assert (parts[0] + parts[1]).sums.tobytes() == whole.sums.tobytes()


def test_kinds_of_records_do_not_mix():
    X, groups = visits()
    with pytest.raises(ValueError, match="records are all rows of one group each so far"):
        FeatureSums(frequencies()).add(X, groups).add(X)
    with pytest.raises(ValueError, match="records are one row each so far"):
        FeatureSums(frequencies()).add(X).add(X, groups)
    one, other = Sketch.of(X, frequencies()), Sketch.of(X, frequencies(), groups=groups)
    with pytest.raises(ValueError, match="kinds of records differ"):
        one + other
    with pytest.raises(ValueError, match="groups cannot have masks"):
        FeatureSums(frequencies(), n_measurements=5).add(X, groups)


# --- what one group moves ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_group_moves_the_sums_by_no_more_than_a_row_may(dtype):
    """Groups of up to a thousand rows, at random and at one place; the bound is attained."""
    m, rng, largest = 6, np.random.default_rng(0), 0.0
    Omega = frequencies(2, m)
    others, ids = visits(50)
    l1, l2 = sensitivities(m, "replace_one")

    def numbers(own):
        X = np.concatenate([others, own]).astype(dtype)
        groups = np.concatenate([ids, np.full(len(own), 99)])
        return FeatureSums(Omega).add(X, groups).values.view(float)

    for size in (1, 2, 7, 1000):
        for spread in (0.0, 1.0, 1e3):
            pair = [
                rng.uniform(-9, 9, 2) + spread * rng.standard_normal((size, 2)) for _ in range(2)
            ]
            change = numbers(pair[0]) - numbers(pair[1])
            assert np.abs(change).sum() <= l1.value
            assert np.linalg.norm(change) <= l2.value
            largest = max(largest, np.linalg.norm(change) / l2.value)
    many, none = np.zeros((1000, 2)), np.full((1000, 2), 1e6)
    rows = [FeatureSums(Omega).add(rows.astype(dtype)).values for rows in (many, none)]
    assert np.linalg.norm(rows[0] - rows[1]) > 100 * l2.value  # what rows of one person would do
    assert largest > 0.6


def test_noise_of_groups_is_that_of_rows_and_names_the_unit(tmp_path):
    X, groups = visits()
    exact = Sketch.of(X, frequencies(), groups=groups)
    private = release(exact, 1.0, 1e-6, random_state=0)
    of_rows = release(Sketch.of(X, frequencies()), 1.0, 1e-6, random_state=0)
    assert private.noise == of_rows.noise
    assert private.guarantee.unit == "group"
    assert "all rows of one group" in str(private.guarantee)
    assert Guarantee.from_dict(private.guarantee.as_dict()) == private.guarantee
    for sketch in (private, exact):
        sketch.save(tmp_path / "s.h5")
        assert Sketch.load(tmp_path / "s.h5").unit == "group"
    with pytest.raises(ValueError, match="one part protects rows and another groups"):
        private.guarantee.compose(of_rows.guarantee)


# --- fits ----------------------------------------------------------------------------------------


def model(k=3, **params):
    return CompressiveKMeans(
        k, **{"bounds": (-2, 2), "epsilon": 1.0, "delta": 1e-6, "random_state": 0, **params}
    )


def heavy_users(n_groups=3000, seed=0):
    """Groups about three places; those about the last have 50 rows each, the others one or two."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=n_groups)
    groups = np.repeat(np.arange(n_groups), np.where(kind == 2, 50, rng.integers(1, 3, n_groups)))
    places = np.array([[-1.0, -1.0], [1.0, 1.0], [1.0, -1.0]])
    X = places[kind[groups]] + 0.1 * rng.standard_normal((len(groups), 2))
    return X, groups, places


def test_every_group_weighs_the_same():
    X, groups, places = heavy_users()
    fitted = model().fit(X, groups=groups)
    order = [int(np.linalg.norm(fitted.cluster_centers_ - p, axis=1).argmin()) for p in places]
    np.testing.assert_allclose(fitted.cluster_centers_[order], places, atol=0.03)
    np.testing.assert_allclose(fitted.weights_[order], 1 / 3, atol=0.05)
    assert fitted.guarantee_.unit == "group"
    assert fitted.guarantee_.epsilon_at(1e-6) <= 1.0
    of_rows = model().fit(X)
    assert of_rows.weights_.max() > 0.9


@pytest.mark.filterwarnings("ignore")
def test_the_number_of_groups_refuses_nothing():
    """One ID that is missing changes it."""
    X, groups, _ = heavy_users(100)
    assert np.isfinite(model().fit(X, groups=groups % 2).cluster_centers_).all()


def test_names_of_groups_do_not_change_a_seeded_fit():
    X, groups, _ = heavy_users(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = model().fit(X, groups=groups)
        other = model().fit(X, groups=[f"customer {g}" for g in groups])
    assert first.cluster_centers_.tobytes() == other.cluster_centers_.tobytes()


def test_a_ledger_of_rows_counts_fits_of_groups():
    """Exchanging a row exchanges its group; a row more is no group more."""
    X, groups, _ = heavy_users(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Budget(epsilon=3.0, delta=1e-6) as ledger:
            model().fit(X, groups=groups)
            model().fit(X)
            assert ledger.guarantee.unit == "row"
            assert 1.0 < ledger.guarantee.epsilon_at(1e-6) < 2.0
        with Budget(epsilon=9.0, delta=1e-6) as ledger:
            model(neighbours="add_remove").fit(X, groups=groups)
            assert ledger.guarantee.epsilon_at(1e-6) > 1.5  # of a replaced group, two steps
        ledger = Budget(epsilon=3.0, delta=1e-6, neighbours="add_remove")
        with ledger, pytest.raises(BudgetError, match="another row of a group changes a record"):
            model(neighbours="add_remove").fit(X, groups=groups)
