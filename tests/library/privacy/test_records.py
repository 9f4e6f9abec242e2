"""What private estimators take, and what of them may leave."""

import copy
import pickle
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from privclust.privacy.estimator import PrivateEstimator, caveats_of_bounds, private_records


class Means(PrivateEstimator, BaseEstimator):
    _NOT_RELEASED: ClassVar = ("labels_", "diagnostics_")

    def __init__(self, norm_bound=None, bounds=None):
        self.norm_bound, self.bounds = norm_bound, bounds


def test_what_is_not_released_stays_behind():
    fitted = Means(2.0)
    fitted.centers_, fitted.labels_, fitted.diagnostics_ = np.eye(2), np.arange(9), {"n": 9}
    for other in (pickle.loads(pickle.dumps(fitted)), copy.copy(fitted)):
        assert isinstance(other, Means)
        assert sorted(vars(other)) == ["bounds", "centers_", "norm_bound"]
        assert np.array_equal(other.centers_, np.eye(2))
    assert fitted.labels_.size == 9


@pytest.mark.parametrize("kind", [{"norm_bound": 1.0}, {"bounds": (0, 1)}])
def test_any_row_is_taken_where_bounds_are_declared(kind):
    X = [[np.nan, np.inf], [1.0, 2.0]]
    np.testing.assert_array_equal(private_records(Means(**kind), X).rows, X)
    with pytest.raises(ValueError, match="contains NaN"):
        private_records(Means(), X)
    assert "clipped" in caveats_of_bounds(Means(**kind))[0]
    assert "outside the guarantee" in caveats_of_bounds(Means())[0]


def test_no_rows_are_taken_where_their_number_is_private():
    empty = np.empty((0, 3))
    assert private_records(Means(1.0), empty, neighbours="add_remove").rows.shape == (0, 3)
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        private_records(Means(1.0), empty)


def test_finite_rows_may_have_a_sum_that_is_none():
    X = np.full((3, 2), 1.7e308)
    np.testing.assert_array_equal(private_records(Means(), X).rows, X)


@pytest.mark.parametrize("X", [[["Mary HIV", 1.0]], [[b"\xff Mary", b"1"]]])
def test_messages_hold_no_cell(X):
    with pytest.raises(ValueError, match="X must hold finite real numbers") as raised:
        private_records(Means(), X)
    assert "Mary" not in str(raised.value)
    assert raised.value.__context__ is None
    rows = private_records(Means(1.0), X).rows  # where any row is taken, an entry is no number
    assert np.isnan(rows[0, 0])
    assert rows[0, 1] == 1.0
