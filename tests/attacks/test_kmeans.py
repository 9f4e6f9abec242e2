"""Attacks on k-means: DPLloyd, EUGkM, CompressiveKMeans and its sketches."""

import copy
import warnings
from fractions import Fraction

import numpy as np
import pytest

from privclust.core.fixed_point import FixedPoint
from privclust.core.lloyd import nearest_center
from privclust.kmeans import CompressiveKMeans, DPLloyd, EUGkM, TreeKMeans
from privclust.kmeans.last_rounds import round_sums, sensitivity, weights
from privclust.privacy import Neighbours, NoiseWarning
from privclust.privacy.bounds import Box
from privclust.privacy.measurements import Gaussian
from privclust.sketches import Sketch, release
from privclust_audit.black_box import audit_mechanism

pytestmark = [
    pytest.mark.filterwarnings("ignore::privclust.privacy.NoiseWarning"),
    pytest.mark.filterwarnings("ignore:.*clipped.*:UserWarning"),
]
SURE = 300  # runs of each of two data sets; an event that tells them apart gives epsilon of 3.9


def l1_change(model, X, other, centers):
    """How far an exchange of rows moves what an iteration of DPLloyd releases, exactly."""
    released = [model.one_round(rows, centers)[0] for rows in (X, other)]
    if isinstance(released[0], FixedPoint):
        numbers = [[Fraction(int(i), 2**r.bits) for i in r.integers.ravel()] for r in released]
    else:
        numbers = [list(map(Fraction, r.ravel())) for r in released]
    return float(sum(abs(a - b) for a, b in zip(*numbers, strict=True)))


@pytest.mark.attack(
    claim="DPLloyd: replacing one of 1,000 rows changes counts and sums by at most 4 within "
    "bounds (1e14, 1e14 + 1).",
    before="Changed by 32, because sums of raw coordinates were rounded to the size of the sum; "
    "epsilon was 4.58 where 1 was claimed.",
    now="Changed by at most 4, in whole numbers.",
)
def test_bounds_far_from_the_origin():
    low, high = 1e14, 1e14 + 1
    model = DPLloyd(1, bounds=(low, high), max_iter=1, random_state=0)
    center, rng = np.zeros((1, 1)), np.random.default_rng(1)
    for turn in range(300):
        value = rng.uniform(low, high)
        X = np.full((1000, 1), value)
        if turn % 2:
            X = np.where(rng.random((1000, 1)) < 0.5, value, rng.uniform(low, high))
        other = X.copy()
        other[rng.integers(10)] = rng.uniform(low, high)
        assert l1_change(model, X, other, center) <= 4.0


@pytest.mark.attack(
    claim="DPLloyd: replacing one of 10,000 nanosecond timestamps changes counts and sums by at "
    "most 4 within bounds one millisecond apart.",
    before="Changed by 4.19 where 4 was claimed.",
    now="Changed by at most 4, in whole numbers.",
)
def test_nanosecond_timestamps():
    low, high = 1.7e18, 1.7e18 + 1e6
    model = DPLloyd(1, bounds=(low, high), max_iter=1, random_state=0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        X = np.full((10_000, 1), rng.uniform(low, high))
        other = X.copy()
        other[0] = low
        assert l1_change(model, X, other, np.zeros((1, 1))) <= 4.0


@pytest.mark.attack(
    claim="DPLloyd in a ball about the origin: replacing a row changes counts and sums by at most "
    "4, for any number of rows.",
    before="4.0005 with 5 million rows, 4.745 with 170 million. A sum at a power of two absorbs "
    "small rows in rounding; one just below it does not.",
    now="At most 4, in whole numbers: each row's share is rounded separately.",
)
def test_large_sums_do_not_swallow_small_rows():
    """2^22 + 1 rows of 1, and a million that are next to nothing beside their sum."""
    n_ones = 2**22 + 1
    X = np.full((n_ones + 1_000_000, 1), np.float32(-0.45 * 2.0**-30))
    X[:n_ones] = 1.0
    other = X.copy()
    other[0] = -1.0
    model = DPLloyd(2, norm_bound=1.0, max_iter=1, random_state=0)
    assert l1_change(model, X, other, np.array([[0.4], [-1.0]])) <= 4.0


@pytest.mark.attack(
    claim="DPLloyd: the result shows neither the order of rows nor their division into blocks.",
    before="The last bits of sums showed the order: 50 orders gave 50 different sums.",
    now="All orders give one sum.",
)
def test_order_of_rows_leaves_no_trace():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (999, 3)) * 2.0 ** rng.integers(-20, 1, (999, 1))
    model = DPLloyd(2, bounds=(-1.0, 1.0), random_state=0)
    centers = np.array([[0.1, 0.0, 0.0], [-0.1, 0.0, 0.0]])
    seen = {
        np.asarray(model.one_round(rng.permutation(X), centers)[0]).tobytes() for _ in range(50)
    }
    assert len(seen) == 1


def private_models():
    """Estimators for rows that are added or removed, with small sizes for speed."""
    known = {"epsilon": 1.0, "neighbours": "add_remove", "bounds": (0.0, 1.0)}
    return [
        lambda rng: DPLloyd(2, max_iter=1, random_state=rng, **known),
        lambda rng: DPLloyd(2, max_iter=1, random_state=rng, variant="paper", norm_bound=2.0),
        lambda rng: EUGkM(2, n_init=1, random_state=rng, **known),
        lambda rng: EUGkM(2, n_samples=100, n_init=1, random_state=rng, **known),
        lambda rng: TreeKMeans(2, random_state=rng, **known),
        lambda rng: CompressiveKMeans(
            2, n_frequencies=10, variance=1.0, decoder="clompr", random_state=rng, **known
        ),
        lambda rng: CompressiveKMeans(2, n_frequencies=10, random_state=rng, **known),
    ]


@pytest.mark.attack(
    claim="SuLQKPlanes, add-remove: (1, 1e-6).",
    before="With k rows, the fit succeeded; with k - 1, an error stated their number.",
    now="Any number of rows, including none, gives a result of the same form.",
)
@pytest.mark.parametrize("which", range(6))
def test_fewer_rows_than_clusters(which):
    forms = set()
    for n in range(4):
        model = private_models()[which](0).fit(np.full((n, 2), 0.5))
        arrays = vars(copy.copy(model)).items()
        forms.add(
            (model.cluster_centers_.shape, str(model.guarantee_), tuple(sorted(dict(arrays))))
        )
    assert len(forms) == 1


@pytest.mark.attack(
    claim="DPLloyd with add_remove is 1-private between 2 rows and 1, including errors.",
    before="Violated: epsilon 4.9 and delta 0.97 at 1,000 runs.",
    now="The audit finds no violation.",
)
def test_audit_of_two_rows_against_one():
    def ends_in_an_error(data, rng):
        try:
            private_models()[0](rng).fit(data)
        except ValueError:
            return 1.0
        return 0.0

    X = np.full((2, 2), 0.5)
    result = audit_mechanism(
        ends_in_an_error,
        data=X,
        neighbour=X[:1],
        epsilon=1.0,
        delta=0.0,
        n_trials=SURE,
        random_state=0,
    )
    assert result.verdict != "violated"
    assert result.epsilon_lower_bound == 0.0


@pytest.mark.attack(
    claim="Rows are clipped to declared bounds: no record decides between a result and an error.",
    before="A row above 1e100, above 2e36 in float32, infinite or NaN raised an error that named "
    "its value.",
    now="Each gives a result: a row with NaN is left out, and any other such row is clipped.",
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("which", range(6))
def test_one_record_of_any_numbers(which, dtype):
    largest = np.finfo(dtype).max
    X = np.random.default_rng(0).uniform(0.0, 1.0, (9, 2)).astype(dtype)
    rows = [[largest, -largest], [np.inf, 0.5], [np.nan, np.nan], [-np.inf, np.nan], [2e37, 0.0]]
    if dtype == np.float64:
        rows.append([1e101, 0.0])
    for row in rows:
        X[4] = row
        model = private_models()[which](0).fit(X)
        assert np.isfinite(model.cluster_centers_).all()
        assert not any(str(value) in str(model.guarantee_) for value in np.abs(X[4]) if value > 1)


@pytest.mark.attack(
    claim="Messages contain no cell of the data.",
    before="'got 3.14159e+37 in row 1', 'got 0.5 to 3.14159e+199'.",
    now="The message states the row's number and the allowed values.",
)
def test_errors_name_no_cell():
    secret = 3.14159265
    attempts = [
        (lambda X: Sketch.of(X.astype(np.float32), np.full((2, 5), 10.0)), 1e37),
        (lambda X: Sketch.of(X, np.full((2, 5), 10.0)), 1e307),
        (lambda X: CompressiveKMeans(2, epsilon=None).fit(X), 1e199),
        (lambda X: EUGkM(2).fit(X), 1e199),
    ]
    for attempt, size in attempts:
        X = np.full((5, 2), 0.5)
        X[1] = secret * size * np.array([1.0, 0.01])
        with pytest.raises(ValueError, match=r"magnitude|norm|bounds") as raised:
            attempt(X)
        assert "3.14" not in str(raised.value)


@pytest.mark.attack(
    claim="A model that is passed on contains only information that its guarantee covers.",
    before="Pickles contained labels_, with one label per row.",
    now="Neither pickles nor released() contain it. The size of their content depends only on the "
    "3 clusters.",
)
def test_a_passed_on_model_says_nothing_of_single_rows():
    X = np.random.default_rng(0).uniform(0.0, 1.0, (777, 2))
    for make in private_models():
        state = vars(copy.copy(make(0).fit(X)))
        assert "labels_" not in state
        assert not [name for name, value in state.items() if np.shape(value)[:1] == (777,)]
        assert 777 not in [value for value in state.values() if isinstance(value, int)]


@pytest.mark.attack(
    claim="Sums of a sketch change by at most their sensitivity.",
    before="The promise held, because of a margin for sums rounded to float64.",
    now="It holds in whole numbers, to which the noise is added.",
)
def test_worst_rows_of_a_sketch():
    """Two records whose phases are opposite at all frequencies, at 45 degrees; no noise to see."""
    frequencies = np.ones((1, 40))
    rest = np.random.default_rng(0).uniform(-9.0, 9.0, (1000, 1))
    for dtype in (np.float32, np.float64):
        sums = [
            release(
                Sketch.of(np.vstack([rest, [[angle]]]).astype(dtype), frequencies),
                1e12,
                random_state=0,
            )
            for angle in (np.pi / 4, np.pi / 4 + np.pi)
        ]
        change = np.abs((sums[0].sums - sums[1].sums).view(np.float64)).sum()
        assert change <= 1e12 * sums[0].noise.scale
        assert change == pytest.approx(2 * np.sqrt(2) * 40, rel=1e-5)


@pytest.mark.attack(
    claim="CompressiveKMeans, like all private estimators, is private by default.",
    before="CompressiveKMeans() added no noise and gave no warning.",
    now="epsilon is 1 by default; epsilon=None must be given explicitly.",
)
def test_defaults_are_private():
    X = np.random.default_rng(0).uniform(0.0, 1.0, (300, 2))
    for kind in (DPLloyd, EUGkM, CompressiveKMeans, TreeKMeans):
        model = kind(2, bounds=(0.0, 1.0), random_state=0).fit(X)
        assert model.epsilon == 1.0
        assert model.guarantee_.epsilon == pytest.approx(1.0)


def said_of_noise(model, X):
    """What the fit warns of, if it does."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    return " ".join(str(each.message) for each in caught if each.category is NoiseWarning)


@pytest.mark.attack(
    claim="A result that is indistinguishable from noise is flagged.",
    before="'2 centers from 1 records', without a warning, at any epsilon.",
    now="A NoiseWarning and is_detected_ for one record and for epsilon = 1e-9, in 5 of 5 fits "
    "each.",
)
@pytest.mark.parametrize(("n", "epsilon"), [(1, 1.0), (5000, 1e-9)])
def test_centers_of_noise(n, epsilon):
    X = np.random.default_rng(0).choice([0.3, 0.7], (n, 1)) * np.ones(2)
    known = {"epsilon": epsilon, "neighbours": "add_remove", "bounds": (0.0, 1.0)}
    for kind in (DPLloyd, EUGkM, CompressiveKMeans, TreeKMeans):
        for seed in range(5):
            model = kind(2, random_state=seed, **known)
            assert "cannot be distinguished from noise" in said_of_noise(model, X)
            assert not model.is_detected_.all()


@pytest.mark.attack(
    claim="'bounds may be generous'.",
    before="With bounds 20 apart, 1,000 rows and delta 0, a center was wrong by 2 to 10 units in "
    "8 of 8 fits, without a warning.",
    now="8 of 8 warn. With a delta none warns, and all are right.",
)
def test_generous_bounds():
    rng = np.random.default_rng(0)
    X = rng.choice([0.3, 0.7], (1000, 1)) + 0.03 * rng.standard_normal((1000, 2))
    for seed in range(8):
        model = CompressiveKMeans(2, bounds=(-10, 10), random_state=seed)
        assert "cannot be distinguished from noise" in said_of_noise(model, X)
        model.set_params(delta=1e-6)
        assert said_of_noise(model, X) == ""
        assert np.abs(np.sort(model.cluster_centers_[:, 0]) - [0.3, 0.7]).max() < 0.1


@pytest.mark.attack(
    claim="Bounds that do not cover the data are detected.",
    before="CompressiveKMeans(bounds=(5, 6)) of data in [0, 1] gave centers at the corners of the "
    "bounds, with a full guarantee and without a warning.",
    now="8 of 8 fits say that data lie outside the bounds.",
)
def test_bounds_that_miss_the_data():
    X = np.random.default_rng(0).uniform(0.0, 1.0, (20_000, 2)).astype(np.float32)
    for seed in range(8):
        model = CompressiveKMeans(2, bounds=(5, 6), random_state=seed)
        assert "data lie outside the bounds" in said_of_noise(model, X)
        assert model.is_outside_bounds_


@pytest.mark.attack(
    claim="CompressiveKMeans, rounds: the release changes by at most 2.017 if a row is replaced, "
    "and by 1.116 if one is added.",
    before="The promise held in a search over pairs of rows, of size 1e-300 to 1e300, with known "
    "centers.",
    now="At most the stated bounds, and within 0.1 % of them, in whole numbers.",
)
def test_rows_made_for_the_last_round_of_k_means():
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0, 0.0], [3.0, 1e-3, 0.0]])
    weighed = [*map(Fraction, weights(3))]

    def change(*parts):
        totals = [round_sums(X, nearest_center(X, centers), centers, 0.25) for X in parts]
        bits = max(total.bits for total in totals)
        first, *rest = [total.in_bits(bits).integers for total in totals]
        moved = first - sum(rest)
        squares = (
            (weight * Fraction(int(i), 2**bits)) ** 2
            for row in moved
            for weight, i in zip(weighed, row, strict=True)
        )
        return float(sum(squares)) ** 0.5

    largest = [0.0, 0.0]
    for turn in range(2000):
        pair = rng.standard_normal((2, 1, 3)) * 10.0 ** rng.uniform(-2, 2, (2, 1, 1))
        if turn % 2:
            pair[1] = -pair[0]
        if turn % 5 == 0:  # one radius away, so that v is 1/4
            pair[1] = -0.25 * pair[0] / np.linalg.norm(pair[0])
        if turn % 7 == 0:
            pair *= 10.0 ** rng.choice([-300, 150, 298])
        largest[0] = max(largest[0], change(*pair))
        largest[1] = max(largest[1], change(pair[0]))
    stated = [sensitivity(relation).value for relation in Neighbours]
    for most, bound in zip(largest, sorted(stated, reverse=True), strict=True):
        assert 0.999 * bound < most <= bound


@pytest.mark.attack(
    claim="CompressiveKMeans: only released values decide whether there is a last round, and its "
    "parameters.",
    before="The promise held: the choice depends on the pilot (a first, private round) and on "
    "public numbers.",
    now="One pilot with two data sets gives the same rounds, radii and frequencies.",
)
def test_the_choice_of_rounds_reads_no_row(monkeypatch):
    real, released = Gaussian.release, []

    def record(self, value, source, weight=1.0):
        released.append(real(self, value, source, weight))
        return released[-1]

    def radii(X, release):
        with monkeypatch.context() as patch:
            patch.setattr(Gaussian, "release", release)
            fit = CompressiveKMeans(3, **how).fit(X)
        return [round_.extent.tolist() for round_ in fit._rounds], fit._frequencies.tobytes()

    for d in (2, 30):
        how = {"epsilon": 1.0, "delta": 1e-6, "bounds": (-1, 1), "random_state": 0}
        rng = np.random.default_rng(d)
        X = rng.choice([-0.5, 0.0, 0.5], (3000, 1)) + 0.05 * rng.standard_normal((3000, d))
        released.clear()
        first = radii(X, record)
        left = iter(list(released))

        def replay(self, value, source, weight=1.0, left=left):
            real(self, value, source, weight)
            return next(left)

        assert first[0]
        assert radii(np.zeros((3000, d)), replay) == first


@pytest.mark.attack(
    claim="Where float32 cannot represent the bounds, a float32 row changes a round by its own "
    "share.",
    before="Changed by 8.6e9 where 1 was claimed: the middle of the bounds was infinite in "
    "float32.",
    now="Rows that float32 cannot place within the bounds are clipped in float64.",
)
@pytest.mark.parametrize(
    "ends", [(0.0, 1e39), (-1e50, -1e49), (3.3e38, 3.5e38), (0.1, 0.1 + 1e-12)]
)
def test_float32_rows_under_bounds_beyond_float32(ends):
    low, high = np.array(ends)[:, None]
    box, largest = Box(low, high), sensitivity(Neighbours.ADD_REMOVE).value
    for entry in (0.0, np.nan, np.inf, -np.inf, 3.4e38):
        X = box.clipped(np.array([[entry]], np.float32))
        for radius in (1e-9, 0.1, 1.0):
            own = radius * box.half_widths[0]
            sums = np.asarray(round_sums(X, np.zeros(1, int), box.center[None], own))
            assert np.linalg.norm(sums * weights(1)) <= largest
