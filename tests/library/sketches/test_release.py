"""Noise on sketches against the paper's formulas, and what it promises against closed forms."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privclust.privacy import Budget, BudgetError, Neighbours
from privclust.privacy.measurements import Laplace
from privclust.sketches import (
    FeatureSums,
    Sketch,
    corrected_sigma_xi,
    printed_sigma_xi,
    release,
    scrambled,
    sensitivities,
)

MARGIN = 1 + 2.0**-19  # of sensitivities: half is for features that are rounded


def example(n=200, m=50, r=None, seed=0):
    rng = np.random.default_rng(seed)
    X, frequencies = rng.standard_normal((n, 2)), rng.standard_normal((2, m))
    return Sketch.of(X, frequencies, n_measurements=r, mask_seed=seed)


def parts(sketch):
    return sketch.sums.view(np.float64)


@pytest.mark.parametrize(("m", "r", "n", "epsilon"), [(50, 50, 200, 1.0), (64, 4, 31, 0.03)])
def test_laplace_noise_is_definition_3_with_the_sound_constant(m, r, n, epsilon):
    """Eq. (4): noise of parts sigma_xi / (2 sqrt(alpha_r m n0)) on sums / (alpha_r n0 √m)."""
    alpha = r / m
    sigma_xi = 4 * math.sqrt(2 * alpha) * m / (math.sqrt(n) * epsilon)
    on_s = sigma_xi / (2 * math.sqrt(alpha * m * n))
    noisy = release(example(n, m, r), epsilon, random_state=0)
    assert noisy.noise.scale == pytest.approx(on_s * alpha * n * math.sqrt(m) * MARGIN, rel=1e-12)
    assert corrected_sigma_xi(alpha, m, n, epsilon) == pytest.approx(sigma_xi, rel=1e-12)
    # E|xi|^2 = sigma_xi^2 by Definition 2, so that s has noise of variance sigma_xi^2 / (...)
    variance_of_s = 2 * noisy.noise_variance / (alpha * n * math.sqrt(m)) ** 2
    assert variance_of_s == pytest.approx(sigma_xi**2 / (alpha * m * n) * MARGIN**2, rel=1e-12)


@pytest.mark.parametrize("alpha", [1.0, 0.5, 0.01])
def test_printed_constant_promises_more_than_it_gives(alpha):
    m, n, epsilon = 100, 1000, 0.5
    printed = printed_sigma_xi(alpha, m, n, epsilon)
    assert printed == pytest.approx(corrected_sigma_xi(alpha, m, n, epsilon / math.sqrt(alpha)))
    sketch = example(n, m, round(alpha * m))
    given = scrambled(sketch, printed, random_state=0).guarantee.epsilon
    assert given == pytest.approx(epsilon / math.sqrt(alpha) * MARGIN, rel=1e-9)


def test_scrambled_with_the_sound_constant_is_a_release():
    sketch = example(m=50, r=20)
    sigma_xi = corrected_sigma_xi(0.4, 50, 200, 0.5)
    by_sigma, by_epsilon = (
        scrambled(sketch, sigma_xi, random_state=3),
        release(sketch, 0.5, random_state=3),
    )
    np.testing.assert_allclose(
        parts(by_sigma) - parts(sketch), (parts(by_epsilon) - parts(sketch)) / MARGIN, rtol=1e-8
    )
    assert by_sigma.guarantee.epsilon == pytest.approx(0.5, rel=3e-6)
    assert scrambled(sketch, 0.0) is sketch


def one_feature(angle):
    return np.array([np.cos(angle), np.sin(angle)])


def test_sensitivities_are_the_largest_changes_of_one_feature():
    """A search over all pairs of phases, which finds the bounds to the grid's resolution."""
    phases = np.linspace(0, 2 * np.pi, 721)  # steps of half a degree: 45 degrees is on the grid
    z = one_feature(phases).T
    difference = z[:, None] - z[None]
    l1, l2 = sensitivities(1, "replace_one")
    assert np.abs(difference).sum(-1).max() * MARGIN == pytest.approx(l1.value, rel=1e-9)
    assert np.linalg.norm(difference, axis=-1).max() * MARGIN == pytest.approx(l2.value, rel=1e-9)
    l1, l2 = sensitivities(1, "add_remove")
    assert (np.abs(z).sum(-1).max() + 1) * MARGIN == pytest.approx(l1.value, rel=1e-9)
    assert np.hypot(np.linalg.norm(z, axis=-1), 1).max() * MARGIN == pytest.approx(l2.value)


@pytest.mark.parametrize("r", [1, 7, 30])
def test_a_record_can_move_the_sums_as_far_and_no_further(r):
    """All frequencies 1: a record at 45 degrees and its opposite are the worst pair."""
    frequencies = np.ones((1, 30))

    def sums(*angles):
        X = np.array([[0.3], *([a] for a in angles)])
        return parts(Sketch.of(X, frequencies, n_measurements=r, mask_seed=5))

    replaced = sums(np.pi / 4) - sums(5 * np.pi / 4)
    added = np.append(sums(np.pi / 4) - sums(), 1.0)
    for change, neighbours in ((replaced, "replace_one"), (added, "add_remove")):
        l1, l2 = sensitivities(r, neighbours)
        assert l1.value / MARGIN == pytest.approx(np.abs(change).sum(), rel=1e-7)
        assert l2.value / MARGIN == pytest.approx(np.linalg.norm(change), rel=1e-7)
        assert np.abs(change).sum() <= l1.value
        assert np.linalg.norm(change) <= l2.value


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_record_counts_as_much_as_the_margin_allows(dtype):
    """Rounding may lift no feature above the half of the margin, however large the record."""
    rng = np.random.default_rng(1)
    frequencies = rng.standard_normal((2, 400))
    ordinary = rng.standard_normal((100, 2)) * rng.choice([1e-3, 1, 30], (100, 1))
    extreme = [[1e4, 1], [-1e8, 1e8], [1e20, 3], [1e37, -1e37], [0, 0], [1e-40, 0]]
    if dtype == np.float64:
        extreme += [[1e200, 1], [1.7e308, -1.7e308]]
    for record in [*ordinary, *extreme]:
        X = np.array([record], dtype=dtype)
        try:
            values = FeatureSums(frequencies).add(X).values
        except ValueError:
            assert np.abs(X).max() > 1e6  # to refuse what cannot be represented is fine too
            continue
        assert np.isfinite(values).all()
        assert np.abs(values).max() <= 1 + 2.0**-20


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_noise_has_the_distribution_that_it_says(noise, neighbours):
    """Kolmogorov-Smirnov on 6,000 numbers, real and imaginary parts apart: false alarm 1e-3."""
    sketch = example(n=20, m=3000, r=100)
    noisy = release(sketch, 0.8, 1e-5, noise=noise, neighbours=neighbours, random_state=7)
    law = {"laplace": stats.laplace, "gaussian": stats.norm}[noise](scale=noisy.noise.scale)
    difference = noisy.sums - sketch.sums
    for values in (difference.real, difference.imag):
        assert stats.kstest(values, law.cdf).pvalue > 1e-3
    assert abs(np.corrcoef(difference.real, difference.imag)[0, 1]) < 4 / math.sqrt(3000)
    assert noisy.noise_variance == pytest.approx(law.var())


def test_count_is_released_too_where_its_privacy_is_asked_for():
    """500 releases of one count: Kolmogorov-Smirnov, false alarm 1e-3."""
    sketch = example(n=20, m=3, r=2)
    noisy = [
        release(sketch, 2.0, neighbours="add_remove", random_state=seed) for seed in range(500)
    ]
    scale = (math.sqrt(2) * 2 + 1) / 2.0 * MARGIN
    assert noisy[0].noise.scale == pytest.approx(scale)
    counts = [each.n_samples - 20 for each in noisy]
    assert stats.kstest(counts, stats.laplace(scale=scale).cdf).pvalue > 1e-3
    assert release(sketch, 2.0, random_state=0).n_samples == 20


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_gaussian_noise_is_as_private_as_asked(epsilon, neighbours):
    delta, r = 1e-6, 10
    noisy = release(
        example(r=r), epsilon, delta, noise="gaussian", neighbours=neighbours, random_state=0
    )
    shift = {"replace_one": 2 * math.sqrt(r), "add_remove": math.sqrt(r + 1)}[neighbours]
    mu = shift * MARGIN / noisy.noise.scale
    # delta of two normal distributions mu deviations apart
    exact = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(
        -mu / 2 - epsilon / mu
    )
    assert exact <= delta
    assert exact == pytest.approx(delta, rel=1e-4)
    guarantee = noisy.guarantee
    assert (guarantee.definition, guarantee.delta) == ("approximate", delta)
    assert guarantee.epsilon_at(delta) <= epsilon
    assert guarantee.epsilon_at(delta) == pytest.approx(epsilon, rel=1e-4)
    assert guarantee.total_rho == pytest.approx(mu**2 / 2)


def laplace_renyi(order, shift):
    """Renyi divergence of Laplace distributions of scale 1 (Mironov 2017, Proposition 6)."""
    terms = [
        math.log(order / (2 * order - 1)) + (order - 1) * shift,
        math.log((order - 1) / (2 * order - 1)) - order * shift,
    ]
    return np.logaddexp(*terms) / (order - 1)


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_laplace_noise_is_pure_and_its_concentration_holds(neighbours):
    r, epsilon = 12, 1.5
    noisy = release(example(r=r), epsilon, neighbours=neighbours, random_state=0)
    guarantee = noisy.guarantee
    assert (guarantee.definition, guarantee.epsilon) == ("pure", pytest.approx(epsilon))
    size = 2 if neighbours == "replace_one" else 1
    for order, angle in itertools.product((1.01, 2, 8, 64), np.linspace(0, np.pi / 4, 7)):
        shifts = size * one_feature(angle) / noisy.noise.scale
        divergence = r * sum(laplace_renyi(order, shift) for shift in shifts)
        if neighbours == "add_remove":
            divergence += laplace_renyi(order, 1 / noisy.noise.scale)
        assert divergence <= order * guarantee.total_rho
        assert divergence <= epsilon


def test_auto_takes_the_smaller_noise():
    for r, delta, expected in ((50, 0.0, "laplace"), (1, 1e-6, "laplace"), (50, 1e-6, "gaussian")):
        sketch = example(r=r)
        chosen = release(sketch, 1.0, delta, random_state=0)
        assert chosen.noise.mechanism == expected
        if delta:
            others = [
                release(sketch, 1.0, delta, noise=noise, random_state=0).noise_variance
                for noise in ("laplace", "gaussian")
            ]
            assert chosen.noise_variance == min(others)
    assert release(example(), 1.0, 1e-6, noise="laplace", random_state=0).guarantee.delta == 0


def test_release_is_repeatable_with_a_seed_only():
    sketch = example(m=4)
    one, two = release(sketch, 1.0), release(sketch, 1.0)
    assert (one.sums != two.sums).all()
    assert not one.guarantee.seeded
    seeded = release(sketch, 1.0, random_state=3)
    assert (seeded.sums == release(sketch, 1.0, random_state=3).sums).all()
    assert seeded.guarantee.seeded
    assert release(sketch, 1.0, 1e-5, noise="gaussian").guarantee.seeded is False


def test_guarantee_says_what_it_rests_on():
    def text(r, neighbours):
        return str(release(example(r=r), 1.0, neighbours=neighbours, random_state=0).guarantee)

    assert "number of records is public" in text(50, "replace_one")
    assert "number of records is public" not in text(50, "add_remove")
    assert "seed of the masks is secret" in text(5, "replace_one")
    assert "masks is secret" not in text(50, "replace_one")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta must be less than 1"),
        ({"epsilon": 1.0, "delta": -1e-6}, "delta"),
        ({"epsilon": 1.0, "delta": math.nan}, "delta"),
        ({"epsilon": 1.0, "noise": "gamma"}, "noise must be one of"),
        ({"epsilon": 1.0, "noise": "gaussian"}, "delta greater than 0"),
        ({"epsilon": 1.0, "neighbours": "replace one"}, "replace_one, add_remove"),
        ({"epsilon": 1.0, "neighbours": ["add_remove"]}, "replace_one, add_remove"),
        ({"epsilon": 1.0, "random_state": "x"}, "random_state"),
    ],
)
def test_arguments_are_checked(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        release(example(), **{"random_state": 0} | arguments)


def test_noise_comes_once_and_on_sketches_only():
    noisy = release(example(), 1.0, random_state=0)
    for again in (lambda: release(noisy, 1.0), lambda: scrambled(noisy, 1.0)):
        with pytest.raises(ValueError, match="noise already"):
            again()
    with pytest.raises(ValueError, match="must be a Sketch"):
        release(np.zeros(3), 1.0)
    with pytest.raises(ValueError, match="sigma_xi"):
        scrambled(example(), -1.0)
    with pytest.raises(ValueError, match="n_samples"):
        scrambled(example(n=0), 1.0)
    state = {name: np.zeros((2, 2), int) for name in ("whole", "fraction")}
    many = FeatureSums.from_state(state | {"n_samples": [2**31]}, np.ones((1, 2)))
    with pytest.raises(ValueError, match="no room"):
        release(Sketch.from_feature_sums(many), 1.0)
    with pytest.raises(ValueError, match="alpha_r must be at most 1"):
        corrected_sigma_xi(1.5, 10, 10, 1.0)


# --- sums in whole numbers -----------------------------------------------------------------------


def integers(sketch, neighbours):
    """What noise is added to, and the bits of its fraction."""
    numbers = sketch._numbers(Neighbours.of(neighbours))
    return numbers.integers.astype(object), numbers.bits


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_one_row_moves_the_integers_as_far_as_stated(dtype, neighbours):
    """In rational arithmetic; worst phases, beside sums of up to 2^31 records."""
    rng = np.random.default_rng(0)
    m = 12
    frequencies = np.ones((1, m))
    l1, l2 = (Fraction(bound.value) for bound in sensitivities(m, neighbours))
    most = 2**31 - 2
    for turn in range(300):
        angle = np.pi / 4 * rng.integers(8) + 1e-7 * rng.standard_normal()
        ones = [
            FeatureSums(frequencies).add(np.array([[a]], dtype)) for a in (angle, angle + np.pi)
        ]
        others = FeatureSums.from_state(
            {
                "whole": rng.integers(-most, most, (m, 2)) if turn % 2 else np.zeros((m, 2), int),
                "fraction": rng.integers(2**40, size=(m, 2)),
                "n_samples": [most],
            },
            frequencies,
        )
        others = Sketch.from_feature_sums(others)
        with_one, with_other = (
            Sketch.from_feature_sums(one) + others if one else others
            for one in (ones[0], ones[1] if neighbours == "replace_one" else None)
        )
        exact = [integers(sketch, neighbours) for sketch in (with_one, with_other)]
        (first, bits), (second, _) = exact
        change = [(Fraction(a) - Fraction(b)) / 2**bits for a, b in zip(first, second, strict=True)]
        assert sum(map(abs, change)) <= l1
        assert sum(part**2 for part in change) <= l2**2


def test_float32_sums_reach_the_noise_unrounded():
    X = np.random.default_rng(0).standard_normal((1000, 2)).astype(np.float32)
    sums = FeatureSums(np.random.default_rng(1).standard_normal((2, 9))).add(X)
    found, bits = integers(Sketch.from_feature_sums(sums), "add_remove")
    state = sums.state()
    exact = [
        Fraction(int(whole)) + Fraction(int(fraction), 2**40)
        for whole, fraction in zip(state["whole"].ravel(), state["fraction"].ravel(), strict=True)
    ]
    assert [Fraction(int(number), 2**bits) for number in found] == [*exact, Fraction(1000)]


def test_a_release_is_charged_before_it_is_made(monkeypatch):
    for params in ({}, {"delta": 1e-6}, {"neighbours": "add_remove"}):
        with Budget(1.0, 1e-6, neighbours=params.get("neighbours", "replace_one")) as ledger:
            noisy = release(example(r=20), 1.0, random_state=0, **params)
        assert ledger.entries == (noisy.guarantee,)
    with Budget(11.0) as ledger:
        assert scrambled(example(), 2.0, random_state=0).guarantee == ledger.entries[0]
    monkeypatch.setattr(Laplace, "release", None)  # nothing may come to it
    with Budget(0.9), pytest.raises(BudgetError):
        release(example(r=20), 1.0, random_state=0)
