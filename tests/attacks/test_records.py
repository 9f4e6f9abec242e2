"""Attacks by what X is made of: objects, tables, other dimensions."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from privclust.kmeans import CompressiveKMeans, DPLloyd
from privclust.mixtures import AdaptiveGaussianMixture, PrivateGaussianMixture
from privclust.preprocessing import AppendOne, BoundsScaler
from privclust.privacy import Budget, Guarantee, Loss
from privclust.subspaces import SuLQKPlanes

pytestmark = pytest.mark.filterwarnings("ignore")
CELL = 123456.5


@pytest.mark.attack(
    claim="No record decides the precision in which another record's share of a sketch is "
    "computed.",
    before="None in one cell of a float32 table: the others were computed in float64, and sums "
    "changed by 1.8 times the claim.",
    now="Tables are always computed in float64, and float32 arrays in float32.",
)
def test_a_cell_that_changes_the_precision_of_all_rows():
    table = pd.DataFrame(np.tile(np.array([[0.7, 0.8]], np.float32), (10, 1)))
    other = table.copy()
    other.iloc[0, 0] = None
    model = CompressiveKMeans(1, bounds=(-1, 1))
    rows, others = model._checked_records(table).every_row, model._checked_records(other).every_row
    assert rows.dtype == others.dtype == np.float64
    np.testing.assert_array_equal(rows[1:], others[1:])
    assert model._checked_records(table.to_numpy()).rows.dtype == np.float32


@pytest.mark.attack(
    claim="Messages and their chained exceptions contain no cell of the data.",
    before="'got 1D array instead: array=[1.234565e+05 ...', complex entries, and text in predict.",
    now="The same errors without entries, in fit and predict.",
)
@pytest.mark.parametrize(
    "model",
    [
        DPLloyd(1, norm_bound=1.0, random_state=0),
        CompressiveKMeans(1, bounds=(-1, 1), random_state=0),
        PrivateGaussianMixture(1, norm_bound=1.0, random_state=0),
        AdaptiveGaussianMixture(1, norm_bound=1.0, random_state=0),
        SuLQKPlanes(1, 1, norm_bound=1.0, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_arrays_of_other_dimensions_and_types(model):
    fitted = model.fit(np.random.default_rng(0).uniform(-0.5, 0.5, (50, 2)))
    worse = np.array([CELL, 7.25]), np.array(CELL), np.array([[CELL + 1j, 1.0]])
    for X in (*worse, [[f"{CELL}x", 1.0]], [[CELL], [1.0, 2.0]]):
        for call in (fitted.fit, fitted.predict):
            told = _told(call, X)
            assert "12345" not in told
            assert "1.2" not in told


def _told(call, X):
    """Return what an error says, and what it was raised from."""
    try:
        call(X)
    except (TypeError, ValueError) as error:
        return f"{error} {error.__cause__} {error.__context__}"
    return ""


@pytest.mark.attack(
    claim="With declared bounds, no cell decides between a result and an error.",
    before="10**400, pd.NA or text in one cell of a table of objects raised an error.",
    now="A number that is too large is clipped, and a row with a cell that is not a number is "
    "left out. Other rows have the same bits.",
)
@pytest.mark.parametrize("cell", [10**400, -(10**400), Fraction(10**400), pd.NA, None, "x"])
def test_a_cell_of_another_kind(cell):
    X = [[0.1, 0.2]] * 5
    odd = [[cell, 0.2], *X[1:]]
    for table in (odd, np.array(odd, dtype=object)):
        model = DPLloyd(1, bounds=(-1, 1), random_state=0).fit(table)
        assert np.isfinite(model.cluster_centers_).all()
    with pytest.raises((TypeError, ValueError)):
        DPLloyd(1, random_state=0).fit(odd)


@pytest.mark.attack(
    claim="A charge to a ledger is never negative.",
    before="A guarantee of epsilon = -5 left 6 in a budget of 1.",
    now="Guarantees and losses below 0, or NaN, are refused.",
)
@pytest.mark.parametrize("bad", [-5.0, -1e-300, np.nan])
def test_negative_privacy_losses(bad):
    budget = Budget(epsilon=1.0)
    for name in ("epsilon", "rho", "mu", "tau"):
        with pytest.raises(ValueError, match=name):
            budget.spend(Guarantee("pure", "replace-one", **{name: bad}))
    for name in ("epsilon", "rho", "delta"):
        with pytest.raises(ValueError, match=name):
            Loss(**{"rho": 1.0, name: bad})
    assert budget.remaining() == 1.0


@pytest.mark.attack(
    claim="No cell decides between a result and an error, whatever the type of table.",
    before="A list in a cell of objects raised an error.",
    now="It counts as no number, both in the fit and in the scalers before it.",
)
@pytest.mark.parametrize("kind", [list, tuple, dict, set])
def test_a_cell_that_is_a_container(kind):
    odd = np.full((6, 2), 0.1, dtype=object)
    odd[0, 0] = kind()
    settings = {"bounds": (-1, 1), "neighbours": "add_remove", "random_state": 0}
    for steps in ((), (BoundsScaler((-1, 1)),), (BoundsScaler((-1, 1), clip=True), AppendOne())):
        model = make_pipeline(*steps, DPLloyd(1, **settings)).fit(odd)[-1]
        assert np.isfinite(model.cluster_centers_).all()
