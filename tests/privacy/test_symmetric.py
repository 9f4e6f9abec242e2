"""Normal noise on symmetric matrices, and what it costs."""

import math

import numpy as np
import pytest
from scipy import stats

from privclust.privacy import Sensitivity, pld_epsilon
from privclust.privacy.accounting import Loss
from privclust.privacy.symmetric import SymmetricNoise, mod_sulq_scale, round_share

MOVED = Sensitivity(1.0, "l2", "add-remove", "|xx'| = |x|^2 <= 1")


def test_frobenius_noise_is_the_one_stated():
    """Standard deviations with weight sqrt 2, Kolmogorov-Smirnov, false alarms 1e-4 each.

    Rotating a symmetric matrix does not change its law: u'Nu has variance sigma^2 for all unit u.
    """
    noise = SymmetricNoise(MOVED, 3.0, math.sqrt(2.0), 1)
    drawn = noise.add(np.zeros((4000, 4, 4)), np.random.default_rng(1))
    np.testing.assert_array_equal(drawn, drawn.transpose(0, 2, 1))
    u = np.array([0.5, 0.5, 0.1, -0.7])
    along = np.einsum("i,kij,j->k", u, drawn, u) / (u @ u)
    for values, scale in (
        (drawn[:, 2, 2], 3.0),
        (drawn[:, 1, 3], 3.0 / math.sqrt(2)),
        (along, 3.0),
    ):
        assert stats.kstest(values, stats.norm(scale=scale).cdf).pvalue > 1e-4
    shifted = noise.add(np.full((4000, 4, 4), 7.0), np.random.default_rng(1))
    np.testing.assert_allclose(shifted - 7.0, drawn, atol=1e-12)


def test_noise_of_the_triangle_is_the_same_on_every_entry():
    """Weight 1; false alarms 1e-4 each."""
    drawn = SymmetricNoise(MOVED, 0.5, 1.0, 3).add(np.zeros((4000, 3, 3)), np.random.default_rng(2))
    for i, j in ((0, 0), (2, 2), (0, 1), (1, 2)):
        assert stats.kstest(drawn[:, i, j], stats.norm(scale=0.5).cdf).pvalue > 1e-4


@pytest.mark.parametrize("n_rounds", [1, 30])
@pytest.mark.parametrize("epsilon", [0.1, 3.0])
def test_all_rounds_together_spend_the_budget(epsilon, n_rounds):
    share = round_share(epsilon, 1e-5, n_rounds)
    whole = pld_epsilon([Loss(n_rounds * share**2 / 2)], 1e-5)
    assert epsilon * (1 - 1e-3) < whole <= epsilon * (1 + 1e-6)


def test_mod_sulq_scale_by_hand():
    """d = 3, epsilon 0.5, delta 1e-3: 4/0.5 sqrt(2 ln(12 / 0.0050133)) + 1/sqrt(0.5)."""
    expected = 8 * math.sqrt(2 * 7.78055) + 1.41421
    assert mod_sulq_scale(3, 0.5, 1e-3) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: SymmetricNoise(MOVED, 0.0, 1.0, 1), "sigma must be"),
        (lambda: SymmetricNoise(MOVED, 1.0, math.nan, 1), "weight must be"),
        (lambda: SymmetricNoise(MOVED, 1.0, 1.0, 0), "n_rounds must be"),
        (lambda: round_share(0.0, 1e-5, 1), "epsilon must be"),
        (lambda: round_share(1.0, 1.0, 1), "delta must lie"),
        (lambda: round_share(1.0, 1e-5, 0), "n_rounds must be"),
        (lambda: mod_sulq_scale(0, 1.0, 1e-5), "n_features must be"),
        (lambda: mod_sulq_scale(3, 1.0, 0.0), "delta must be"),
        (lambda: mod_sulq_scale(1, 1.0, 0.5), "delta must be less than 0.399"),
    ],
)
def test_bad_input(call, match):
    with pytest.raises(ValueError, match=match):
        call()
