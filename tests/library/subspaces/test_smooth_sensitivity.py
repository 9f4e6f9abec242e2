import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import ncx2

from privclust.subspaces import (
    most_central,
    neighbour_radii,
    printed_sensitivity,
    smooth_sensitivity,
)
from privclust.subspaces._smooth_sensitivity import (
    exact_calibration,
    hockey_stick,
    lemma_calibration,
    neighbours_needed,
    worst_delta,
)

DIAMETER = 1.0


def distances_of(points):
    """A metric of diameter 1 on the line."""
    return np.minimum(np.abs(points[:, None] - points), DIAMETER)


def bounds_of(points, beta, s):
    radii = neighbour_radii(distances_of(points))
    return points[most_central(radii, s)], smooth_sensitivity(radii, beta, DIAMETER, s)


def starts(m, rng):
    """Points in one cluster, in two of nearly half each, spread, coinciding, or at all scales."""
    half = np.where(np.arange(m) < m // 2 + 1, 0.0, 0.7)
    return [
        rng.normal(0, 0.01, m),
        half + rng.normal(0, 1e-3, m),
        half,
        rng.uniform(0, 3, m),
        np.zeros(m),
        rng.choice([-1, 1], m) * 10 ** rng.uniform(-6, 1, m),
    ]


def moves(points, s, rng):
    """Other places for s of the points: random ones, those of others, far ones, near the center."""
    scales = 10.0 ** rng.uniform(-6, 1, s)
    center = np.median(points)
    return [
        rng.normal(0, 1, s) * scales,
        rng.choice(points, s),
        np.full(s, 50.0) + 10 * np.arange(s),
        np.full(s, center),
        center + rng.choice([-1, 1], s) * rng.choice(np.abs(points - center), s),
    ]


# --- the bound -------------------------------------------------------------------------------


def test_radii_and_center_by_hand():
    points = np.array([0.0, 0.1, 0.3, 0.9])
    radii = neighbour_radii(distances_of(points))
    np.testing.assert_allclose(radii[0], [0.0, 0.1, 0.3, 0.9])
    assert neighbours_needed(4, 1) == 3
    assert most_central(radii, 1) == 1  # its third point is 0.2 away
    # A_0 = r_(1)(3) + r_(2)(4), A_1 = r_(2)(4) + diameter
    assert smooth_sensitivity(radii, 2.0, DIAMETER) == pytest.approx(0.2 + 0.8)
    assert smooth_sensitivity(radii, 1e-9, DIAMETER) == pytest.approx(1.0)


@pytest.mark.parametrize("s", [1, 2, 3])
@pytest.mark.parametrize("m", [1, 2, 3, 5, 8, 13, 24])
def test_bound_is_smooth_and_bounds_the_move(m, s):
    """Deterministic: ln S moves by beta at most, the center by S at most, for every change."""
    rng = np.random.default_rng([m, s])
    for beta in (0.05, 0.4, 3.0):
        for points in starts(m, rng):
            before, bound = bounds_of(points, beta, s)
            for _ in range(6):
                which = rng.permutation(m)[:s]
                for place in moves(points, s, rng):
                    changed = points.copy()
                    changed[which] = place[: len(which)]
                    after, other = bounds_of(changed, beta, s)
                    assert abs(math.log(bound / other)) <= beta * (1 + 1e-9)
                    assert min(abs(before - after), DIAMETER) <= min(bound, other) * (1 + 1e-12)


def test_bound_is_smooth_under_greedy_changes():
    """Climb to the change that moves ln S most, from many starts: beta is reached, never passed."""
    rng = np.random.default_rng(0)
    beta, m, worst = 0.3, 11, 0.0
    for points in starts(m, rng) + starts(m, rng):
        _, bound = bounds_of(points, beta, 1)
        for i in range(m):
            changed, best = points.copy(), 0.0
            for step in np.geomspace(3.0, 1e-4, 40):
                trial = changed.copy()
                trial[i] += step * rng.standard_normal()
                ratio = abs(math.log(bounds_of(trial, beta, 1)[1] / bound))
                if ratio >= best:
                    changed, best = trial, ratio
            worst = max(worst, best)
    assert 0.9 * beta < worst <= beta * (1 + 1e-9)


def test_bound_where_all_agree():
    """The diameter, damped once for each result that would have to change."""
    for m in (3, 10, 101):
        radii = neighbour_radii(np.zeros((m, m)))
        steps = m - neighbours_needed(m, 1)
        expected = DIAMETER * math.exp(-0.1 * steps)
        assert smooth_sensitivity(radii, 0.1, DIAMETER) == pytest.approx(expected)


def test_bound_is_below_the_one_with_both_terms_at_the_larger():
    rng = np.random.default_rng(1)
    for m in (4, 9, 30):
        for points in starts(m, rng):
            radii = neighbour_radii(distances_of(points))
            ordered = np.sort(radii, axis=0)
            t0 = neighbours_needed(m, 1)
            simple = 0.0
            for k in range(m + 2):
                j, t = k + 2, t0 + k + 1
                r = ordered[j - 1, t - 1] if max(j, t) <= m else DIAMETER
                simple = max(simple, 2 * r * math.exp(-0.2 * k))
            assert smooth_sensitivity(radii, 0.2, DIAMETER) <= min(simple, DIAMETER) + 1e-15


def test_printed_bound_is_not_smooth():
    """All results agree, then s of them do not: S(B) grows by e^8, with beta = 1/2."""
    m, s, beta = 900, 30, 0.5
    points = np.zeros(m)
    before = printed_sensitivity(neighbour_radii(distances_of(points)), beta, DIAMETER, s)
    points[:s] = 10.0
    radii = neighbour_radii(distances_of(points))
    after = printed_sensitivity(radii, beta, DIAMETER, s)
    # t0 = 466, so that t0 + (k + 1) s is above m from k = 14 on
    assert before == pytest.approx(2 * math.exp(-14 * beta))
    assert after >= 2 * (s / 60) * DIAMETER
    assert math.log(after / before) > 12 * beta
    corrected = [
        smooth_sensitivity(r, beta, DIAMETER, s) for r in (neighbour_radii(np.zeros((m, m))), radii)
    ]
    assert abs(math.log(corrected[1] / corrected[0])) <= beta * (1 + 1e-9)


def test_printed_bound_by_hand():
    """Points 0, 0, 1 with m = 3, s = 1: t0 = 3, all terms but k = 0 are beyond m."""
    radii = neighbour_radii(distances_of(np.array([0.0, 0.0, 1.0])))
    assert printed_sensitivity(radii, 0.5, DIAMETER, 1) == pytest.approx(2.0)
    # m = 5, s = 1: t0 = 4, rho(5) is the mean of the two largest
    radii = neighbour_radii(distances_of(np.array([0.0, 0.0, 0.0, 0.0, 0.3])))
    expected = 2 * max((0.3 + 0.3) / 2, math.exp(-0.5))
    assert printed_sensitivity(radii, 0.5, DIAMETER, 1) == pytest.approx(expected)


# --- the noise -------------------------------------------------------------------------------


def divergence_by_chi_square(epsilon, shift, c, d):
    """The same from distributions of scipy: squared distances from the ball's center."""
    gap = 1 - c**2
    squared = (2 * (epsilon - d * math.log(c)) + shift**2 / gap) * c**2 / gap
    if squared <= 0:
        return 1.0 if c < 1 else 0.0
    measure = ncx2.sf if c < 1 else ncx2.cdf
    first = measure(squared, d, (shift / gap) ** 2)
    return first - math.exp(epsilon) * measure(squared / c**2, d, (shift * c / gap) ** 2)


@pytest.mark.parametrize("d", [2, 3, 4, 30, 500])
@pytest.mark.parametrize(
    ("epsilon", "shift", "c"),
    [
        (1, 0.2, 0.98),
        (1, 0.2, 1.03),
        (0.1, 0.05, 1.02),
        (10, 1.0, 0.8),
        (10, 1.0, 1.2),
        (0.5, 1e-3, 0.95),
        (0.5, 0.5, 1.005),
        (30, 2.0, 0.6),
        (3, 1e-6, 1.2),
    ],
)
def test_divergence_is_that_of_chi_square_distributions(epsilon, shift, c, d):
    expected = divergence_by_chi_square(epsilon, shift, c, d)
    found = hockey_stick(epsilon, shift, c, d)
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-18)


def test_divergence_by_simulation():
    """Mean of (1 - e^(epsilon - loss))_+, 10^6 draws, five standard errors: false alarms 1e-6."""
    rng = np.random.default_rng(0)
    for epsilon, shift, c, d in ((0.5, 0.4, 0.9, 6), (0.5, 0.4, 1.1, 6), (0.2, 0.5, 1.0, 3)):
        x = rng.standard_normal((1_000_000, d))
        away = x.copy()
        away[:, 0] -= shift
        loss = ((away**2).sum(1) / c**2 - (x**2).sum(1)) / 2 + d * math.log(c)
        sample = np.maximum(1 - np.exp(epsilon - loss), 0)
        error = sample.std() / 1000
        assert abs(sample.mean() - hockey_stick(epsilon, shift, c, d)) < 5 * error


def test_divergence_grows_with_the_shift():
    """What `worst_delta` rests on."""
    shifts = np.linspace(0.01, 1.2, 40)
    for c in (0.8, 0.99, 1.0, 1.01, 1.2):
        found = [hockey_stick(1.0, v, c, 8) for v in shifts]
        assert (np.diff(found) >= -1e-15).all()
    for alpha in (0.01, 0.5, 1.4):  # alpha^2 <= 2 epsilon
        cs = np.linspace(1.0, 0.5, 60)
        found = [hockey_stick(1.0, alpha * c, c, 8) for c in cs]
        assert (np.diff(found) >= -1e-15).all()


@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 0.05), (1.6, 0.02)])
def test_worst_delta_is_above_all_pairs(alpha, beta):
    """Also where alpha^2 > 2 epsilon (the second), which takes another proof."""
    epsilon, d = 1.0, 12
    bound = worst_delta(epsilon, alpha, beta, d)
    found = max(
        hockey_stick(epsilon, part * alpha * min(1.0, c), c, d)
        for c in np.exp(beta * np.linspace(-1, 1, 81))
        for part in (0.3, 0.9, 1.0)
    )
    assert found <= bound <= found * 1.2


@pytest.mark.parametrize(
    ("d", "epsilon"),
    [*product([2, 30], [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]), (2250, 0.01), (2250, 1000.0)],
)
def test_exact_calibration_is_private_and_tight(epsilon, d):
    delta = 1e-5
    alpha, beta = exact_calibration(epsilon, delta, d)
    assert alpha > 0
    assert worst_delta(epsilon, alpha, beta, d) <= delta
    assert worst_delta(epsilon, alpha, beta * 1.05, d) > delta
    # alpha is half of what the Gaussian mechanism has without any change of scale
    assert hockey_stick(epsilon, 2 * alpha, 1.0, d) == pytest.approx(delta, rel=1e-6)


def test_printed_calibration():
    """Line 2 of Algorithm 1, and the epsilon up to which it is admissible."""
    alpha, beta = lemma_calibration(2.0, 1e-3, 10)
    log_term = math.log(2000)
    assert alpha == pytest.approx(2 / (5 * math.sqrt(2 * log_term)))
    assert beta == pytest.approx(2 / (4 * (10 + log_term)))
    for d, last in ((2, 25.0), (4, 30.0), (30, 105.0), (90, 225.0), (2250, 430.0)):
        for delta in (1e-12, 1e-6, 1e-2):
            for epsilon in (0.1, 3.0, last):
                assert worst_delta(epsilon, *lemma_calibration(epsilon, delta, d), d) <= delta
        # and not for all: what is printed asks for beta in proportion to epsilon
        assert worst_delta(9 * last, *lemma_calibration(9 * last, 1e-6, d), d) > 1e-6


@pytest.mark.parametrize("d", [30, 90])
def test_exact_calibration_asks_for_less(d):
    for epsilon in (0.1, 1.0, 10.0):
        exact, printed = exact_calibration(epsilon, 1e-6, d), lemma_calibration(epsilon, 1e-6, d)
        assert all(own > 2 * other for own, other in zip(exact, printed, strict=True))
