"""Sensitivities: what is refused, and scaling."""

import math
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest

from privclust.privacy.sensitivity import NORMS, Sensitivity, root_above

GOOD = {"value": 2.0, "norm": "l1", "relation": "replace-one", "proof": "eq. (14)"}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_fields_are_kept(norm, relation):
    sensitivity = Sensitivity(0.5, norm, relation, "by hand")
    assert (sensitivity.value, sensitivity.norm) == (0.5, norm)
    assert (sensitivity.relation, sensitivity.proof) == (relation, "by hand")
    with pytest.raises(FrozenInstanceError):
        sensitivity.value = 0.0


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("value", 0.0),
        ("value", -1.0),
        ("value", np.inf),
        ("value", np.nan),
        ("value", "1"),
        ("value", True),
        ("value", np.ones(2)),
        ("norm", "linf"),
        ("norm", None),
        ("relation", "replace"),
        ("proof", ""),
        ("proof", "  "),
        ("proof", None),
    ],
)
def test_bad_fields_are_named(field, bad):
    with pytest.raises(ValueError, match=f"^{field} must .*got"):
        Sensitivity(**{**GOOD, field: bad})


def test_single_precision_is_widened():
    """A float32 would make sensitivity / epsilon a float32, off by 1 part in 10^8."""
    value = Sensitivity(**{**GOOD, "value": np.float32(3.0)}).value
    assert type(value) is float
    assert value / 0.7 == 3.0 / 0.7


def test_scaled_keeps_the_rest():
    assert Sensitivity(**GOOD).scaled(0.25) == Sensitivity(**{**GOOD, "value": 0.5})


@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, np.inf, "2"])
def test_bad_factors_are_named(factor):
    with pytest.raises(ValueError, match=r"^factor must .*got"):
        Sensitivity(**GOOD).scaled(factor)


@pytest.mark.parametrize("factor", [1e-323, 1e308])
def test_scaling_out_of_range_is_refused(factor):
    """2e-323 / 10 is zero and 2e309 infinite: no bound at all."""
    with pytest.raises(ValueError, match=r"^value must"):
        Sensitivity(**GOOD).scaled(factor).scaled(0.1 if factor < 1 else 10.0)


def test_roots_are_no_smaller_than_they_are():
    for whole in range(1, 400):
        root = Fraction(root_above(float(whole)))
        assert root**2 >= whole
        below = Fraction(math.nextafter(float(root), 0.0))
        assert below**2 < whole
