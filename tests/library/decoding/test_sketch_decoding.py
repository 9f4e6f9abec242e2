"""From a sketch to clusters, with all that a sketch can be."""

import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from privclust.decoding import Moments, decode, hidden_by_noise, standard_errors
from privclust.decoding._seed import decoding_generator
from privclust.decoding._sketch_decoding import decode_density
from privclust.privacy.bounds import checked_box
from privclust.sketches import Sketch, draw_frequencies, release

CENTERS = np.array([[-6.0, 0.0], [6.0, 2.0], [0.0, 8.0]])
BOX = (-12.0, 12.0)
METHODS = [
    {"method": "gaussian"},
    {"method": "gaussian", "spread": "shared"},
    {"method": "clompr", "n_init": 10},  # one start often ends in a wrong place
]


def three_groups(n=3000, seed=0, d=2):
    rng = np.random.default_rng(seed)
    return CENTERS[rng.integers(3, size=n), :d] + rng.standard_normal((n, d))


def sketch_of(X, m=150, variance=4.0, seed=0):
    return Sketch.of(X, draw_frequencies(X.shape[1], m, variance=variance, random_state=seed))


def error(found, truth=CENTERS):
    """Largest distance of a true center to the nearest that was found."""
    return cdist(truth, found.centers).min(axis=1).max()


def checked(found, k, box=None):
    """What holds for whatever was decoded."""
    assert found.weights.shape == found.variances.shape == (k,)
    assert np.isfinite(found.centers).all()
    assert (found.weights >= 0).all()
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-9)
    assert (found.variances >= 0).all()
    assert 0 <= found.residual < math.inf
    assert 0 <= found.expected_residual < math.inf
    if box is not None:
        assert ((found.centers >= box[0]) & (found.centers <= box[1])).all()
    return found


# --- good sketches ---------------------------------------------------------------------------


@pytest.mark.parametrize("options", METHODS)
@pytest.mark.parametrize("bounds", [None, BOX, (np.array([-9.0, -4.0]), np.array([9.0, 12.0]))])
@pytest.mark.parametrize("noisy", [False, True])
def test_groups_are_found(options, bounds, noisy):
    """Sampling moves centers by 0.03 each; noise on the sums is less than that of sampling."""
    sketch = sketch_of(three_groups(), variance=9.0)
    if noisy:
        sketch = release(sketch, 10.0, 1e-5, random_state=0)
    found = checked(decode(sketch, 3, bounds=bounds, random_state=0, **options), 3, bounds)
    assert error(found) < (0.2 if options["method"] == "gaussian" else 0.5)
    np.testing.assert_allclose(found.weights, 1 / 3, atol=0.05)
    if options["method"] == "gaussian":
        assert found.residual < found.expected_residual


@pytest.mark.parametrize("options", METHODS)
def test_same_seed_same_bytes(options, tmp_path):
    """Also from the sketch's file."""
    sketch = sketch_of(three_groups(500), m=40)
    sketch.save(tmp_path / "s.h5")
    with pytest.warns(UserWarning, match="identifiable"):
        found = [
            decode(s, 14, random_state=3, **options)
            for s in (sketch, sketch, Sketch.load(tmp_path / "s.h5"))
        ]
    for name in ("centers", "weights", "variances"):
        first, *others = (getattr(result, name).tobytes() for result in found)
        assert others == [first, first]


@pytest.mark.parametrize("options", METHODS[:2])
@pytest.mark.parametrize(("a", "b"), [(2.0**-20, 0.0), (1e5, -3e6), (1.0, 50.0)])
def test_moves_and_scales_with_the_data(options, a, b):
    """Equal up to where the optimiser stops, on the same records; the box moves as well."""
    X = three_groups()
    omega = draw_frequencies(2, 150, variance=9.0, random_state=0)
    box = np.full(2, BOX[0]), np.full(2, BOX[1])
    plain = decode(Sketch.of(X, omega), 3, bounds=box, random_state=0, **options)
    moved = decode(
        Sketch.of(a * X + b, omega / a),
        3,
        bounds=(a * box[0] + b, a * box[1] + b),
        random_state=0,
        **options,
    )
    assert error(replace(moved, centers=(moved.centers - b) / a), plain.centers) < 0.01


@pytest.mark.parametrize("options", METHODS)
@pytest.mark.parametrize("k", [1, 2])
def test_one_dimension(options, k):
    X = np.concatenate([np.full((200, 1), -3.0), np.full((200, 1), 3.0)])[: 400 * k // 2]
    X = X + 0.5 * np.random.default_rng(0).standard_normal(X.shape)
    found = checked(decode(sketch_of(X, m=40, variance=9.0), k, random_state=0, **options), k)
    assert error(found, np.array([[-3.0], [3.0]])[:k]) < 0.3


@pytest.mark.parametrize("options", METHODS)
@pytest.mark.parametrize("n", [1, 50])
def test_rows_that_are_all_equal(options, n):
    sketch = sketch_of(np.full((n, 2), 0.7))
    found = checked(decode(sketch, 1, bounds=(-5, 5), random_state=0, **options), 1)
    np.testing.assert_allclose(found.centers, 0.7, atol=1e-2)


@pytest.mark.parametrize("options", METHODS)
def test_known_moments_help_where_frequencies_are_too_high(options):
    X = CENTERS[np.arange(600) % 3] + 0.2 * np.random.default_rng(0).standard_normal((600, 2))
    sketch = sketch_of(X, variance=0.2)
    known = Moments(X.mean(axis=0), X.var(axis=0))
    found = checked(decode(sketch, 3, moments=known, random_state=0, **options), 3)
    if options["method"] == "gaussian":
        assert error(found) < 0.1


def test_more_starts_never_fit_worse():
    sketch = sketch_of(three_groups(300), m=60, variance=1.0)
    residuals = [
        decode(sketch, 6, method="clompr", n_init=n, bounds=BOX, random_state=0).residual
        for n in (1, 2, 4)
    ]
    assert residuals == sorted(residuals, reverse=True)


@pytest.mark.parametrize("aside", [2.0, 30.0])
def test_the_density_alone_is_that_of_whole_decoding(aside):
    """Also where a poor fit makes it look again from the box, for clusters far aside."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0.0, 1.0, (900, 2)), rng.normal(aside, 1.0, (100, 2))])
    sketch = Sketch.of(X, draw_frequencies(2, 80, variance=2.0, random_state=0))
    private = release(sketch, 5.0, 1e-6, noise="gaussian", random_state=0)
    moments, box = Moments(np.zeros(2), np.ones(2)), checked_box((-40.0, 40.0), 2)
    whole = decode(private, 2, bounds=(-40, 40), moments=moments, random_state=3).density
    alone = decode_density(private, 2, moments, box, np.random.default_rng(3), covariances=True)
    if aside < 10.0:  # else `decode` draws points for centers between the two searches
        for name in ("weights", "centers", "spreads"):
            np.testing.assert_array_equal(getattr(alone, name), getattr(whole, name))
    assert np.abs(alone.centers - aside).max(axis=1).min() < 1.0


@pytest.mark.parametrize(("method", "n_init"), [("clompr", 5), ("gaussian", 4)])
def test_the_default_number_of_starts(method, n_init):
    """12 Gaussian clusters have 50 // 12 starts; the decoder's seed depends on the number."""
    sketch = sketch_of(three_groups(300), m=60, variance=1.0)
    options = {"method": method, "bounds": BOX}
    given, default = decode(sketch, 12, n_init=n_init, **options), decode(sketch, 12, **options)
    np.testing.assert_array_equal(given.centers, default.centers)


@pytest.mark.parametrize("variance", [1e-12, 1e6, 1e12, 1e60])
@pytest.mark.parametrize("method", ["gaussian", "clompr"])
def test_frequencies_of_another_scale_than_the_box(variance, method):
    """They tell little or nothing, but centers come out, in the box."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (500, 2))
    sketch = sketch_of(X, m=50, variance=variance, seed=0)
    found = decode(sketch, 2, bounds=(-1.0, 1.0), method=method, random_state=0)
    assert np.isfinite(found.centers).all()
    assert np.abs(found.centers).max() <= 1.0


# --- sketches that tell nothing --------------------------------------------------------------


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore:.*identifiable")
@pytest.mark.parametrize("options", METHODS)
@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_noise_alone_gives_finite_centers_in_the_box(options, neighbours):
    """All sizes, scales and budgets, noisy numbers of records below 1 among them."""
    seed = ["replace_one", "add_remove"].index(neighbours)  # others for each
    rng = np.random.default_rng(seed)
    counts = []
    for trial in range(13):
        d, k, m = rng.integers(1, 5), rng.integers(1, 6), rng.choice([1, 2, 30, 129])
        X = 10.0 ** rng.uniform(-3, 3) * rng.standard_normal((rng.choice([1, 2, 300]), d))
        sketch = sketch_of(X, m, variance=10.0 ** rng.uniform(-12, 12), seed=trial)
        sketch = release(
            sketch, 10.0 ** rng.uniform(-100, 3), neighbours=neighbours, random_state=trial
        )
        counts.append(sketch.n_samples)
        low, width = 10.0 ** rng.uniform(-15, 50, 2)
        box = None if rng.random() < 0.4 else (-low, width)
        checked(decode(sketch, int(k), bounds=box, random_state=0, **options), k, box)
    assert (min(counts) < 1) == (neighbours == "add_remove")


@pytest.mark.parametrize("count", [-1e9, 0.0, 0.999])
def test_a_count_below_one_counts_as_one(count):
    sketch = release(sketch_of(three_groups(10)), 0.01, neighbours="add_remove", random_state=0)
    found, of_one, of_more = (
        decode(replace(sketch, n_samples=n), 2, bounds=BOX, random_state=0)
        for n in (count, 1.0, 1.01)
    )
    assert found.centers.tobytes() == of_one.centers.tobytes()
    assert found.residual == of_one.residual != of_more.residual
    assert found.expected_residual == of_one.expected_residual


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1, got 0"),
        ({"n_clusters": 2.0}, "n_clusters"),
        ({"n_clusters": True}, "n_clusters"),
        ({"method": "omp"}, "method must be one of gaussian, clompr, got 'omp'"),
        ({"spread": None}, "spread must be one of per_cluster, shared"),
        ({"n_init": 0}, "n_init must be an integer of at least 1, got 0"),
        ({"bounds": (1, -1)}, "low < high"),
        ({"bounds": 3}, "bounds must be"),
        ({"bounds": (np.zeros(3), np.ones(3))}, r"arrays of shape \(2,\)"),
        ({"bounds": (-np.inf, 1)}, "bounds must be finite"),
        ({"bounds": (-1, np.nan)}, "bounds must be finite"),
        ({"moments": 3.0}, "moments must be Moments or None, got float"),
        ({"moments": Moments(np.zeros(3), np.ones(3))}, "mean must be 2 finite numbers"),
        ({"moments": Moments(np.zeros(2), np.full(2, np.nan))}, "variances must be 2 finite"),
        ({"moments": Moments(np.zeros(2), np.array([1.0, 0.0]))}, "variances must be positive"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_parameters(params, message):
    known = {"n_clusters": 2, "random_state": 0}
    with pytest.raises(ValueError, match=message):
        decode(sketch_of(three_groups(20)), **(known | params))


@pytest.mark.parametrize("bad", [np.zeros(4), None, "s.h5"])
def test_what_is_no_sketch_is_refused(bad):
    with pytest.raises(ValueError, match="sketch must be a Sketch"):
        decode(bad, 2)


def test_no_records_no_clusters():
    with pytest.raises(ValueError, match="no records has no clusters"):
        decode(sketch_of(np.zeros((0, 2))), 1)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_cannot_get_in(bad):
    sketch = sketch_of(three_groups(20))
    sums = sketch.sums.copy()
    sums[3] = bad
    with pytest.raises(ValueError, match="finite"):
        Sketch(sketch.frequencies, sums, 20)


@pytest.mark.filterwarnings("error")
def test_warns_where_unknowns_outnumber_features():
    """k > m / (d + 1): with d = 2, nine frequencies are enough for three clusters, eight not."""
    X = three_groups(100)
    decode(sketch_of(X, m=9), 3, random_state=0)
    with pytest.warns(UserWarning, match=r"8 frequencies: take at least 9, better 60"):
        checked(decode(sketch_of(X, m=8), 3, random_state=0), 3)


# --- what is said of it ---------------------------------------------------------------------------


def test_what_noise_hides_is_said():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-3, 0.5, (500, 2)), rng.normal(3, 0.5, (500, 2))])
    exact = sketch_of(X, 60, variance=1.0)

    def said(sketch, k=2, **bounds):
        return hidden_by_noise(sketch, decode(sketch, k, random_state=0, **bounds))

    assert said(exact, bounds=(-9, 9)) == ""
    noisy = release(exact, 1e-3, random_state=0)
    assert "of 2 clusters cannot be distinguished from noise" in said(noisy, bounds=(-9, 9))
    clear = release(exact, 1e3, random_state=0)
    assert "noise" not in said(clear, bounds=(-9, 9))
    low = Sketch.of(X, 0.02 * rng.standard_normal((2, 60)))
    outside = release(low, 1e6, random_state=0)
    assert "data lie outside the bounds" in said(outside, bounds=(30, 40))
    assert "data lie outside" not in said(outside, bounds=(-9, 9))


# --- the same answer twice -------------------------------------------------------------------

REPEATED = """
import hashlib, sys
import numpy as np
from privclust.decoding import count_clusters, decode, standard_errors
from privclust.sketches import Sketch
sketch = Sketch.load(sys.argv[1])
found = decode(sketch, 4, bounds=(-12.0, 12.0))
errors = standard_errors(sketch, found)
parts = found.centers, found.weights, errors.covariances, count_clusters(sketch, 5).scores
print(hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest())
"""


def test_ten_processes_give_the_same_bytes(tmp_path):
    """No seed is given: it comes from the released sums, not from the clock or a hash of strings.

    Four clusters of three do not explain the sketch, so that all starts are made.
    """
    release(sketch_of(three_groups(), m=60), 3.0, 1e-5).save(tmp_path / "s.h5")
    command = [sys.executable, "-W", "ignore", "-c", REPEATED, tmp_path / "s.h5"]
    found = [
        subprocess.check_output(command, text=True, env={**os.environ, "PYTHONHASHSEED": seed})
        for seed in ("0", "1", *8 * ["random"])
    ]
    assert len(found) == 10
    assert len(set(found)) == 1


@given(seeds=st.tuples(st.integers(0, 2**32), st.integers(0, 2**32)), of_box=st.floats(13.0, 1e6))
@settings(max_examples=10, deadline=None)
def test_the_seed_depends_on_the_release_and_on_every_setting(seeds, of_box):
    """Nothing but what was released and what is public; and all of it."""
    one, other = (release(sketch_of(three_groups(50), m=5), 1.0, random_state=s) for s in seeds)

    def draw(sketch, *settings):
        return decoding_generator(None, sketch, *settings).integers(2**63)

    assert draw(one, 3, "gaussian") == draw(replace(one, left_out=0), np.int64(3), "gaussian")
    assert (draw(one, 3) == draw(other, 3)) == (one.sums == other.sums).all()
    assert draw(one, 3) != draw(one, 4)
    assert draw(one, np.array([of_box, 1.0])) != draw(one, np.array([of_box]), np.array([1.0]))
    assert draw(one, -of_box) != draw(one, of_box)


def test_a_seed_that_is_given_counts():
    sketch = sketch_of(three_groups(500), m=60)
    found = [decode(sketch, 2, random_state=seed) for seed in (0, 0, 1)]
    assert found[0].centers.tobytes() == found[1].centers.tobytes()
    assert found[0].centers.tobytes() != found[2].centers.tobytes()


def test_starts_that_do_not_agree_say_so():
    """Seven centers share out a uniform square in many ways; three groups are found by all."""
    square = np.random.default_rng(0).uniform(-1.0, 1.0, (4000, 2))
    sketch = release(sketch_of(square, m=200, variance=0.1), 1.0, 1e-6, random_state=0)
    found = decode(sketch, 7, bounds=(-1.0, 1.0))
    assert 1 <= found.starts.n_agreeing < found.starts.n_near_best
    assert not found.is_stable
    told = "equally good starts of the search find other clusters"
    assert told in hidden_by_noise(sketch, found)
    assert not standard_errors(sketch, found).is_reliable[~found.starts.recurs].any()
    clear = release(sketch_of(three_groups()), 1.0, 1e-6, random_state=0)
    found = decode(clear, 3, bounds=BOX)
    assert found.is_stable
    assert found.starts.recurs.all()
    assert "starts" not in hidden_by_noise(clear, found)
