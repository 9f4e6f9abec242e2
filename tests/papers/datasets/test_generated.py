"""What stands in for data sets is decided by a seed."""

from functools import partial

import numpy as np
import pytest

from privclust_papers.datasets import gowalla, lifesci, s1, yaleb

GENERATORS = {
    "gowalla": partial(gowalla.generate, n_points=1000),
    "lifesci": lifesci.generate,
    "s1": s1.generate,
    "yaleb": yaleb.generate,
}


@pytest.mark.parametrize("name", GENERATORS)
def test_a_seed_decides_everything(name):
    first, again, other = (GENERATORS[name](seed) for seed in (1, 1, 2))
    for key, values in first.items():
        np.testing.assert_array_equal(values, again[key])
    assert any(not np.array_equal(values, other[key]) for key, values in first.items())
