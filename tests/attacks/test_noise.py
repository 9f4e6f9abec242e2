"""Attacks on noise: sums that swallow a record, and bits that give a value away."""

import numpy as np
import pytest
from scipy import stats

from privclust.core.fixed_point import SUM_BITS, FixedPoint
from privclust.privacy import SystemEntropy
from privclust.privacy.bounds import bounded_rows, row_norms

ALPHA = 1e-9  # false alarms of each test that draws from the system


@pytest.fixture(scope="module")
def system():
    pytest.importorskip("opendp")
    return SystemEntropy()


@pytest.mark.attack(
    claim="A sum changes by a row's own share, whatever the other rows are.",
    before="One row of 1 at a sum of 2^27 + 1 absorbed 10^8 small rows: a change of 4.7 where 4 "
    "was claimed.",
    now="The difference of the sums equals the row's share, bit for bit, even where doubles are 2 "
    "apart.",
)
def test_a_large_sum_swallows_no_row(system):
    # what stands at 2^53 in doubles, there 2^60: the noise is added to integers
    large = 2**60
    rows = np.array([3, -1, 1])
    without, with_row = (FixedPoint(np.array([large + rows[:m].sum()]), SUM_BITS) for m in (2, 3))
    assert np.asarray(without) == np.asarray(with_row)  # as doubles they cannot be told apart
    assert with_row.integers - without.integers == 1


@pytest.mark.attack(
    claim="With noise of scale s, two values at distance a are distinguished with log odds of at "
    "most a / s.",
    before="The promise held: OpenDP's noise is clipped integers.",
    now="For either value, the last bits of a noisy sum are fair coins (chi^2 at 1e-9).",
)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_last_bits_reveal_nothing(system, kind):
    add = getattr(system, "add_" + kind)
    for value in (0, 1, 2**SUM_BITS, 2**45 + 1):
        noisy = add(FixedPoint(np.full(4000, value), SUM_BITS), 2.0)
        steps = np.ldexp(noisy, SUM_BITS).astype(np.int64)
        counts = np.bincount(steps & 7, minlength=8)
        assert stats.chisquare(counts).pvalue > ALPHA


@pytest.mark.attack(
    claim="The treatment of a row depends only on that row.",
    before="The promise held, although NumPy guarantees no order of a sum.",
    now="Norms of 20,000 rows have the same bits at every offset, and one by one.",
)
def test_norms_do_not_depend_on_a_rows_place():
    rng = np.random.default_rng(0)
    for d in (3, 7, 33):
        X = rng.normal(size=(20_000, d))
        norms = row_norms(X)
        memory = np.empty(X.size + 8)
        for offset in range(8):
            shifted = memory[offset : offset + X.size].reshape(X.shape)
            shifted[:] = X
            np.testing.assert_array_equal(row_norms(shifted), norms)
        alone = [row_norms(row[None])[0] for row in X[:200]]
        np.testing.assert_array_equal(alone, norms[:200])


@pytest.mark.attack(
    claim="With declared bounds any row is accepted.",
    before="In 8 estimators, one row above 1e100 raised an error that contained its norm.",
    now="Rows with entries of 1e308 or infinity are clipped, and other rows keep their bits. A "
    "fit leaves out rows with NaN by default; the clipping counts NaN as 0.",
)
def test_no_row_is_too_large_to_be_clipped():
    rng = np.random.default_rng(1)
    X = rng.uniform(-0.5, 0.5, (50, 3))
    for extreme in (1e101, 1e308, -np.inf, np.nan):
        worse = X.copy()
        worse[7] = [extreme, 0.1, -1e300]
        with pytest.warns(UserWarning, match="clipped"):
            rows, _, leaks = bounded_rows(worse, 1.0)
        assert leaks == ()
        assert np.linalg.norm(rows[7]) <= 1.0 + 1e-12
        np.testing.assert_array_equal(np.delete(rows, 7, axis=0), np.delete(X, 7, axis=0))
