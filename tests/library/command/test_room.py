"""The room that is tried before a budget is spent."""

import os

import numpy as np
import pytest

from privclust.command import main
from privclust.command.output import room_for

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")


@pytest.mark.slow
@pytest.mark.parametrize(("d", "k"), [(1, 3), (2, 200), (5, 30), (12, 20), (40, 20)])
def test_the_room_that_is_tried_is_enough(tmp_path, monkeypatch, d, k):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = rng.uniform(-0.9, 0.9, (k, d))[rng.integers(k, size=20_000)]
    rows += 0.02 * rng.standard_normal(rows.shape)
    names = [f"x{j}" for j in range(d)]
    np.savetxt("t.csv", rows, fmt="%.4f", header=",".join(names), delimiter=",", comments="")
    bounds = [part for name in names for part in ("--bounds", f"{name}=-1:1")]
    how = ["--clusters", str(k), "--epsilon", "8", "--delta", "1e-6", "--seed", "0", "-o", "out"]
    assert main(["cluster", "t.csv", *bounds, *how]) == 0
    sizes = [os.path.getsize(f"out/{name}") for name in os.listdir("out")]
    assert sum(sizes) < room_for(k, d)
