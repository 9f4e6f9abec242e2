"""The README's Python runs as it stands."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)


@pytest.mark.parametrize("block", BLOCKS)
def test_python_of_the_readme_runs(block, tmp_path, monkeypatch):
    if "random_state" not in block:
        pytest.importorskip("opendp", reason="noise for release needs the extra privclust[secure]")
    rng = np.random.default_rng(0)
    cities = np.array([[13.4, 52.5], [2.35, 48.9], [-3.7, 40.4]])
    places = cities[rng.integers(3, size=3000)] + rng.normal(scale=0.3, size=(3000, 2))
    pd.DataFrame(places, columns=["longitude", "latitude"]).to_csv(tmp_path / "visits.csv")
    monkeypatch.chdir(tmp_path)
    found = {}
    exec(compile(block, str(README), "exec"), found)
    if "mixture" in found:
        assert found["synthetic"].shape == (1000, 2)
        gaps = np.linalg.norm(found["mixture"].means_[:, None] - cities[None], axis=2).min(axis=0)
        assert gaps.max() < 1.0  # degrees; the cities are 8 and more apart
