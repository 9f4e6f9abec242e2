import copy
import math
import pickle
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import stats

from privclust.kmeans import DPLloyd
from privclust.privacy import NoiseWarning, PrivacyLeakWarning

START = np.array([[0.2, 0.1], [-0.2, 0.1], [0.0, -0.3]])


def three_groups(n=1500, seed=0):
    """Rows in the unit disc."""
    rng = np.random.default_rng(seed)
    centers = np.array([[0.4, 0.3], [-0.45, 0.2], [0.05, -0.45]])
    X = centers[rng.integers(3, size=n)] + 0.1 * rng.standard_normal((n, 2))
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)


def model(k=3, **params):
    known = {"norm_bound": 1.0, "random_state": 0, "init": START[:k]}
    return DPLloyd(k, **(known | params))


# --- the noise -------------------------------------------------------------------------------


@pytest.mark.parametrize("n_iter", [1, 4])
@pytest.mark.parametrize(
    ("params", "law"),
    [
        ({"variant": "paper"}, lambda d, eps: stats.laplace(scale=(d + 1) / eps)),
        (
            {"variant": "corrected"},
            lambda d, eps: stats.laplace(scale=2 * (1 + math.sqrt(d)) / eps),
        ),
        ({"accounting": "cdp"}, lambda d, eps: stats.norm(scale=2 / math.sqrt(2 * eps))),
    ],
)
def test_noise_has_the_printed_scale(params, law, n_iter):
    """``paper``: Lap((d + 1) J / epsilon), DP-EM Section 6; false-alarm rate 1e-4 each.

    Each of 250 clusters is 200 times the same row on a circle. The other coordinates of the sums
    are noise alone, and the noise on the counts stretches it by some 1e-5 or less.
    """
    k, n, d, epsilon = 250, 200, 5, 1e4 * n_iter
    angles = 2 * np.pi * np.arange(k) / k
    start = np.zeros((k, d))
    start[:, 0], start[:, 1] = 0.99 * np.cos(angles), 0.99 * np.sin(angles)
    found = DPLloyd(
        k, norm_bound=1.0, epsilon=epsilon, init=start, max_iter=n_iter, random_state=0, **params
    ).fit(np.repeat(start, n, axis=0))
    np.testing.assert_array_equal(found.labels_, np.repeat(np.arange(k), n))
    noise = found.cluster_centers_[:, 2:] * n
    assert stats.kstest(noise.ravel(), law(d, epsilon / n_iter).cdf).pvalue > 1e-4


@pytest.mark.parametrize("n_iter", [1, 4, 9])
@pytest.mark.parametrize("d", [1, 2, 10])
def test_printed_scales(d, n_iter):
    """The guarantee states what was added, and it grows with J as printed."""
    X = np.full((20, d), 0.1)
    for variant, scale in (
        ("paper", (d + 1) * n_iter / 0.5),
        ("corrected", 2 * (1 + math.sqrt(d)) * n_iter / 0.5),
    ):
        found = DPLloyd(
            1, epsilon=0.5, variant=variant, max_iter=n_iter, norm_bound=1.0, random_state=0
        ).fit(X)
        assert found.guarantee_.releases[0].noise == f"scale {scale:.4g}"
    found = DPLloyd(
        1, epsilon=0.5, accounting="cdp", max_iter=n_iter, norm_bound=1.0, random_state=0
    ).fit(X)
    assert found.guarantee_.releases[0].noise == f"scale {2 / math.sqrt(1.0 / n_iter):.4g}"


def _largest_change(d, order, relation, seed=0):
    """Largest change of (n_k, s_k) of three clusters by one row, by search with local climbs."""
    rng = np.random.default_rng(seed)

    def change(x, y, same):
        first, second = (np.hstack([np.ones((len(a), 1)), a]) for a in (x, y))
        if relation == "add-remove":
            return np.linalg.norm(first, order, axis=1)
        apart = np.linalg.norm(np.hstack([first, second]), order, axis=1)
        return np.where(same, np.linalg.norm(first - second, order, axis=1), apart)

    def ball(x):
        return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0)

    x, y = ball(rng.standard_normal((1000, d)) * 2), ball(rng.standard_normal((1000, d)) * 2)
    same = rng.random(1000) < 0.5
    found = change(x, y, same)
    for step in np.geomspace(0.5, 1e-3, 150):
        a, b = (ball(z + step * rng.standard_normal(z.shape)) for z in (x, y))
        values = change(a, b, same)
        better = values > found
        x, y = np.where(better[:, None], a, x), np.where(better[:, None], b, y)
        found = np.where(better, values, found)
    return float(found.max())


@pytest.mark.parametrize("d", [1, 2, 5])
def test_losses_follow_from_the_changes_found(d):
    """Pure: l1 over the scale; rho: l2^2 / (2 scale^2). The printed d + 1 is above 1 + sqrt d."""
    epsilon, n_iter = 0.6, 3
    X = np.full((20, d), 0.1)
    for params, relation in (
        ({"variant": "paper"}, "add-remove"),
        ({"variant": "corrected"}, "replace-one"),
        ({"accounting": "cdp"}, "replace-one"),
        ({"accounting": "pld"}, "replace-one"),
    ):
        found = DPLloyd(
            1, epsilon=epsilon, max_iter=n_iter, norm_bound=1.0, random_state=0, **params
        ).fit(X)
        assert found.guarantee_.relation == relation
        release, _ = found.guarantee_.releases
        scale = float(release.noise.removeprefix("scale "))
        l1, l2 = (_largest_change(d, order, relation) for order in (1, 2))
        assert release.loss.count == n_iter
        # the scale is printed with four digits
        cost = l2**2 / (2 * scale**2)
        if release.mechanism == "laplace":
            change = l2**2 / l1 / scale  # of each entry, if all change alike
            cost = l1 / scale / change * (change + math.exp(-change) - 1)
        assert release.loss.rho == pytest.approx(cost, rel=0.02)
        assert cost <= release.loss.rho * 1.001
        if release.mechanism == "laplace":
            assert l1 / scale <= release.loss.epsilon * 1.001
            attained = (1 + math.sqrt(d)) / (d + 1) if params["variant"] == "paper" else 1.0
            assert l1 / scale == pytest.approx(attained * release.loss.epsilon, rel=0.02)


# --- what is promised ------------------------------------------------------------------------


def test_guarantees():
    X = three_groups(100)
    paper = model(variant="paper", epsilon=0.8).fit(X).guarantee_
    assert (paper.definition, paper.relation) == ("pure", "add-remove")
    assert paper.epsilon == pytest.approx(0.8)
    corrected = model(epsilon=0.8).fit(X).guarantee_
    assert (corrected.definition, corrected.relation) == ("pure", "replace-one")
    assert corrected.epsilon == pytest.approx(0.8)
    pld = model(epsilon=0.8, accounting="pld", delta=1e-5).fit(X).guarantee_
    assert (pld.definition, pld.relation) == ("approximate", "replace-one")
    assert 0.97 * 0.8 < pld.epsilon <= 0.8
    assert pld.delta == 1e-5
    cdp = model(epsilon=0.8, accounting="cdp").fit(X).guarantee_
    assert (cdp.definition, cdp.relation) == ("cdp", "replace-one")
    assert cdp.mu == pytest.approx(0.8)
    for promise in (paper, corrected, pld, cdp):
        assert promise.seeded
        (caveat,) = promise.caveats
        assert "rows count as clipped to the bounds" in caveat


def test_bound_from_the_data_leaves_no_guarantee():
    with pytest.warns(PrivacyLeakWarning, match="norm_bound"):
        found = model(norm_bound=None).fit(three_groups(100))
    assert found.guarantee_.definition == "none"
    assert any("norm_bound" in caveat for caveat in found.guarantee_.caveats)


@pytest.mark.skipif(find_spec("opendp") is None, reason="needs opendp (privclust[secure])")
@pytest.mark.parametrize("accounting", ["pure", "pld"])
def test_noise_of_a_release_cannot_be_repeated(accounting):
    first, second = (
        model(random_state=None, accounting=accounting).fit(three_groups(100)) for _ in range(2)
    )
    assert not first.guarantee_.seeded
    assert not np.isclose(first.cluster_centers_, second.cluster_centers_).all()


def test_same_seed_same_bytes():
    X = three_groups(200)
    first, second = (model(init="uniform").fit(X) for _ in range(2))
    assert first.cluster_centers_.tobytes() == second.cluster_centers_.tobytes()
    other = model(init="uniform", random_state=1).fit(X)
    assert not np.isclose(first.cluster_centers_, other.cluster_centers_).any()


# --- what is computed ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [{"variant": "paper"}, {"variant": "corrected"}, {"accounting": "cdp"}, {"accounting": "pld"}],
)
def test_without_noise_to_speak_of_it_is_lloyds_algorithm(params):
    X = three_groups()
    epsilon = 1e4 if params.get("accounting") == "pld" else 1e9
    found = model(epsilon=epsilon, max_iter=4, **params).fit(X)
    centers = START
    for _ in range(4):
        labels = ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        centers = np.array([X[labels == k].mean(axis=0) for k in range(3)])
    # pld at 1e4: sigma = 0.04 on sums of some 500 rows, four iterations
    error = 0.01 if epsilon == 1e4 else 1e-5
    np.testing.assert_allclose(found.cluster_centers_, centers, rtol=0, atol=error)
    distances = ((X[:, None] - found.cluster_centers_) ** 2).sum(axis=2)
    np.testing.assert_array_equal(found.labels_, distances.argmin(axis=1))
    np.testing.assert_array_equal(found.predict(X), found.labels_)
    assert found.n_iter_ == 4


def test_centers_are_drawn_in_for_the_sound_variant_alone():
    X = three_groups(30)
    for seed in range(10):
        corrected = model(epsilon=0.05, random_state=seed).fit(X)
        assert np.linalg.norm(corrected.cluster_centers_, axis=1).max() <= 1 + 1e-12
        paper = model(epsilon=0.05, random_state=seed, variant="paper").fit(X)
        assert np.linalg.norm(paper.cluster_centers_, axis=1).max() > 1.0


def test_scaling_data_and_bound_scales_the_centers():
    X = three_groups()
    plain = model(init="uniform").fit(X)
    for c in (3.7e-5, 8.9e4):
        scaled = model(init="uniform", norm_bound=c).fit(c * X)
        np.testing.assert_allclose(scaled.cluster_centers_, c * plain.cluster_centers_, rtol=1e-9)
        given = model(init=c * START, norm_bound=c).fit(c * X)
        np.testing.assert_allclose(
            given.cluster_centers_, c * model().fit(X).cluster_centers_, rtol=1e-9
        )


def test_longer_rows_are_drawn_in():
    X = three_groups(200)
    far = X.copy()
    far[0] *= 2.0 / np.linalg.norm(X[0])
    near = far.copy()
    near[0] /= 2.0
    with pytest.warns(UserWarning, match="clipped"):
        clipped = model().fit(far)
    np.testing.assert_allclose(
        clipped.cluster_centers_, model().fit(near).cluster_centers_, rtol=1e-12
    )


# --- bad and degenerate input ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a finite number greater than 0, got 0.0"),
        ({"epsilon": np.inf}, "epsilon"),
        ({"accounting": "pld", "delta": 0.0}, "delta"),
        ({"accounting": "pld", "delta": 1.5}, "delta must lie in .0, 1., got 1.5"),
        ({"accounting": "zcdp"}, "accounting must be one of pure, pld, cdp, got 'zcdp'"),
        ({"variant": "code"}, "variant must be one of corrected, paper, got 'code'"),
        ({"variant": "paper", "accounting": "cdp"}, "variant='paper' has only accounting 'pure'"),
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1, got 0"),
        ({"n_clusters": 21}, "n_clusters=21 for n_samples=20"),
        ({"max_iter": 0}, "max_iter"),
        ({"norm_bound": -1.0}, "norm_bound must be a finite number greater than 0"),
        ({"random_state": "x"}, "random_state"),
        ({"init": np.zeros((2, 2))}, r"init must be finite of shape \(3, 2\), got shape \(2, 2\)"),
        ({"init": np.zeros((3, 1))}, "init must be finite of shape"),
        ({"init": np.full((3, 2), np.inf)}, "init must be finite"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        model().set_params(**params).fit(three_groups(20))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_that_are_not_numbers_are_refused_unclipped(bad):
    X = three_groups(20)
    X[3, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model(norm_bound=None).fit(X)
    fitted = model(missing="middle").fit(X)  # what a fit takes, its centers are nearest to
    np.testing.assert_array_equal(fitted.predict(X), fitted.labels_)


@pytest.mark.parametrize("bounded", [{}, {"norm_bound": None, "bounds": (-1, 1)}])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_any_row_counts_as_drawn_in(bounded, dtype):
    """NaN is the middle, infinite entries are alone; the largest number is like those."""
    X = three_groups(20).astype(dtype)
    for row, as_if in (
        ([np.nan, 0.5], [0.0, 0.5]),
        ([np.inf, 0.5], [1.0, 0.0] if not bounded else [1.0, 0.5]),
        ([-np.finfo(dtype).max, 0.5], [-1.0, 0.0] if not bounded else [-1.0, 0.5]),
    ):
        far, near = X.copy(), X.copy()
        far[7], near[7] = row, as_if
        with pytest.warns(UserWarning, match="clipped"):
            found = model(**bounded, missing="middle").fit(far)
        expected = model(**bounded, missing="middle").fit(near)
        np.testing.assert_allclose(found.cluster_centers_, expected.cluster_centers_, rtol=1e-9)


@pytest.mark.parametrize("bounded", [{}, {"norm_bound": None, "bounds": (-1, 1)}])
def test_any_number_of_rows_is_taken_where_it_is_private(bounded):
    for n in range(4):
        found = model(neighbours="add_remove", **bounded).fit(three_groups(20)[:n])
        assert found.cluster_centers_.shape == (3, 2)
        assert found.labels_.shape == (n,)
        assert not found.is_detected_.any()
    with pytest.raises(ValueError, match="n_clusters=3 for n_samples=2"):
        model(**bounded).fit(three_groups(2))


# --- what noise hides ------------------------------------------------------------------------


@pytest.mark.parametrize("accounting", ["pure", "pld", "cdp"])
@pytest.mark.parametrize("bounded", [{}, {"norm_bound": None, "bounds": (-1, 1)}])
def test_good_fits_do_not_warn(accounting, bounded):
    X = three_groups(100_000)
    for seed in range(10):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = model(accounting=accounting, random_state=seed, **bounded).fit(X)
        assert found.is_detected_.all()


@pytest.mark.parametrize("bounded", [{}, {"norm_bound": None, "bounds": (-1, 1)}])
@pytest.mark.parametrize(("n", "epsilon"), [(1, 1.0), (10_000, 1e-9), (300, 0.1)])
def test_fits_that_are_noise_warn(bounded, n, epsilon):
    for seed in range(8):
        fit = model(neighbours="add_remove", epsilon=epsilon, random_state=seed, **bounded)
        with pytest.warns(NoiseWarning, match="of 3 clusters cannot be distinguished from noise"):
            fit.fit(three_groups(n))
        assert not fit.is_detected_.all()


def test_wide_bounds_hide_what_narrow_ones_show():
    """Two clusters at 0.3 and 0.7, with bounds of 10 about them: centers are noise."""
    rng = np.random.default_rng(0)
    X = rng.choice([0.3, 0.7], (1000, 1)) + 0.02 * rng.standard_normal((1000, 2))
    start = [[0.3, 0.3], [0.7, 0.7]]
    for seed in range(8):
        known = {"init": start, "norm_bound": None, "random_state": seed}
        with pytest.warns(NoiseWarning, match="tighter bounds help"):
            model(2, bounds=(-10, 10), **known).fit(X)
    assert model(2, epsilon=10.0, bounds=(0, 1), **known).fit(X).is_detected_.all()


# --- pickles ---------------------------------------------------------------------------------


def test_labels_stay_with_the_data():
    found = model().fit(three_groups(200))
    for other in (pickle.loads(pickle.dumps(found)), copy.copy(found)):
        assert not hasattr(other, "labels_")
        np.testing.assert_array_equal(other.predict(three_groups(200)), found.labels_)


@pytest.mark.parametrize("epsilon", [1e-30, 1e-3, 1.0, 1e12])
@pytest.mark.parametrize("params", [{"variant": "paper"}, {}, {"accounting": "cdp"}])
@pytest.mark.filterwarnings(
    "error",
    "ignore::privclust.privacy.NoiseWarning",
    "ignore::privclust.privacy.WeakGuaranteeWarning",
)
def test_degenerate_data_gives_finite_centers(epsilon, params):
    rng = np.random.default_rng(0)
    inside = rng.uniform(-0.5, 0.5, (12, 2))
    for X in (
        inside[:, :1],
        np.full((9, 2), 0.4),
        np.zeros((5, 2)),
        inside[:2],
        inside.astype(np.float32),
        np.asfortranarray(inside),
        rng.uniform(-0.1, 0.1, (4, 10)),
    ):
        found = model(2, init="uniform", epsilon=epsilon, **params).fit(X)
        assert np.isfinite(found.cluster_centers_).all()
        assert set(found.labels_) <= {0, 1}


def test_single_row_and_cluster_without_rows():
    found = model(1, epsilon=1e9).fit(np.array([[0.3, 0.4]]))
    np.testing.assert_allclose(found.cluster_centers_, [[0.3, 0.4]], atol=1e-6)
    X = np.full((50, 2), 0.5)
    found = model(2, init=[[0.5, 0.5], [-0.9, 0.0]], epsilon=1e9).fit(X)
    np.testing.assert_allclose(found.cluster_centers_, [[0.5, 0.5], [0.0, 0.0]], atol=1e-5)


def test_data_within_the_bound_do_not_warn_and_are_left_alone():
    X = three_groups()
    before = X.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().fit(X)
    np.testing.assert_array_equal(X, before)


# --- starts, boxes and neighbours ------------------------------------------------------------


@pytest.mark.parametrize("bounded", [{"norm_bound": 2.0}, {"norm_bound": None, "bounds": (-2, 2)}])
def test_separated_start_keeps_its_distances(bounded):
    """Half the least distance and the distance to the border, in the unit disc and the square."""
    X = np.zeros((400, 2))
    for init in ("separated", "uniform"):
        fit = model(6, init=init, epsilon=1.0, **bounded)
        _, domain, _ = fit._domain(X)
        start = fit._start(domain, 2, np.random.default_rng(1))
        assert start.shape == (6, 2)
        distances = np.linalg.norm(start[:, None] - start, axis=2)[np.triu_indices(6, 1)]
        norm = 2 if "bounds" not in bounded else np.inf
        border = 1 - np.linalg.norm(start, norm, axis=1).max()
        # six discs of radius 0.2 fill a quarter of the unit disc
        assert (min(distances.min() / 2, border) > 0.2) == (init == "separated")
        assert border >= 0


def _change_in_the_cube(d, order, neighbours, seed=0):
    """Largest change of (n_k, s_k) over pairs of corners and random points of the cube."""
    rng = np.random.default_rng(seed)
    points = np.vstack([rng.uniform(-1, 1, (300, d)), rng.choice([-1.0, 1.0], (300, d))])
    points = np.vstack([points, -points])  # antipodes are there
    ones = np.hstack([np.ones((len(points), 1)), points])
    if neighbours == "add_remove":
        return np.linalg.norm(ones, order, axis=1).max()
    others = np.vstack([ones[len(ones) // 2 :], ones[: len(ones) // 2]])  # the antipodes
    same = np.linalg.norm(ones - others, order, axis=1).max()
    apart = np.linalg.norm(np.hstack([ones, others]), order, axis=1).max()
    return max(same, apart)


@pytest.mark.parametrize("d", [1, 2, 10])
@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_noise_in_a_box_covers_the_changes_found(d, neighbours):
    X = np.full((20, d), 2.1)
    known = {"norm_bound": None, "bounds": (1.0, 4.0), "neighbours": neighbours, "random_state": 0}
    for accounting, order in (("pure", 1), ("cdp", 2), ("pld", 2)):
        found = DPLloyd(1, epsilon=0.6, max_iter=3, accounting=accounting, **known).fit(X)
        assert found.guarantee_.relation == neighbours.replace("_", "-")
        release, _ = found.guarantee_.releases
        scale = float(release.noise.removeprefix("scale "))
        change = _change_in_the_cube(d, order, neighbours)
        loss = release.loss.epsilon if order == 1 else math.sqrt(2 * release.loss.rho)
        # corners are among the points, so the bound is attained
        assert change / scale == pytest.approx(loss, rel=1e-3)
    paper = DPLloyd(1, epsilon=0.6, max_iter=3, variant="paper", bounds=(1.0, 4.0), random_state=0)
    release, _ = paper.fit(X).guarantee_.releases
    assert release.noise == f"scale {(d + 1) * 3 / 0.6:.4g}"


@pytest.mark.parametrize("d", [1, 2, 5])
def test_noise_for_rows_added_or_removed_in_the_ball(d):
    X = np.full((20, d), 0.1)
    known = {"norm_bound": 1.0, "neighbours": "add_remove", "random_state": 0}
    for accounting, order in (("pure", 1), ("cdp", 2), ("pld", 2)):
        found = DPLloyd(1, epsilon=0.6, max_iter=3, accounting=accounting, **known).fit(X)
        assert found.guarantee_.relation == "add-remove"
        release, _ = found.guarantee_.releases
        scale = float(release.noise.removeprefix("scale "))
        loss = release.loss.epsilon if order == 1 else math.sqrt(2 * release.loss.rho)
        change = _largest_change(d, order, "add-remove")
        assert change / scale == pytest.approx(loss, rel=0.01)
        if accounting != "cdp":
            assert 0.97 * 0.6 < found.guarantee_.epsilon <= 0.6 * (1 + 1e-9)


def test_box_and_cube_are_one():
    """Shifting and scaling the axes' common unit shifts and scales the centers."""
    X = three_groups()
    cube = DPLloyd(3, bounds=(-1, 1), random_state=0).fit(X)
    box = DPLloyd(3, bounds=([3, -1], [7, 3]), random_state=0).fit(2 * X + [5.0, 1.0])
    np.testing.assert_allclose(box.cluster_centers_, 2 * cube.cluster_centers_ + [5, 1], atol=1e-9)


def test_in_a_box_without_noise_it_is_lloyds_algorithm():
    X = 2 * three_groups() + [5.0, 1.0]
    start = 2 * START + [5.0, 1.0]
    found = DPLloyd(
        3, epsilon=1e9, bounds=([3, -2], [8, 3]), max_iter=4, init=start, random_state=0
    ).fit(X)
    centers = start
    for _ in range(4):
        labels = ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        centers = np.array([X[labels == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(found.cluster_centers_, centers, atol=1e-5)


def test_rows_outside_a_box():
    X = three_groups(200)
    far = X.copy()
    far[3] = [4.0, 0.1]
    near = X.copy()
    near[3] = [1.0, 0.1]
    known = {"norm_bound": None, "bounds": (-1, 1)}
    with pytest.warns(UserWarning, match="outside bounds are clipped"):
        clipped = model(**known).fit(far)
    np.testing.assert_allclose(
        clipped.cluster_centers_, model(**known).fit(near).cluster_centers_, rtol=1e-12
    )
    for seed in range(10):
        found = model(epsilon=0.05, **(known | {"random_state": seed})).fit(X)
        assert np.abs(found.cluster_centers_).max() <= 1.0


def test_single_precision_is_as_double():
    """To the last bit."""
    X = three_groups().astype(np.float32)
    for bounded in ({}, {"norm_bound": None, "bounds": (-1, 1)}):
        first, second = (model(**bounded).fit(rows) for rows in (X, X.astype(np.float64)))
        assert first.cluster_centers_.tobytes() == second.cluster_centers_.tobytes()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"init": "random"}, "init must be one of uniform, separated, got 'random'"),
        ({"init": "uniform", "bounds": (-1, 1)}, "bounds and norm_bound .* give one"),
        ({"neighbours": "add remove"}, "neighbours must be one of replace_one, add_remove"),
        ({"variant": "paper", "neighbours": "replace_one"}, "only for neighbours 'add_remove'"),
    ],
)
def test_bad_starts_boxes_and_neighbours(params, message):
    with pytest.raises(ValueError, match=message):
        model().set_params(**params).fit(three_groups(20))
