"""The README's Python runs as it stands."""

import re
import shlex
import subprocess
import sys
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
    n = 30_000  # so many that the noise, which has no seed, cannot hide a city
    places = cities[rng.integers(3, size=n)] + rng.normal(scale=0.3, size=(n, 2))
    pd.DataFrame(places, columns=["longitude", "latitude"]).to_csv(tmp_path / "visits.csv")
    monkeypatch.chdir(tmp_path)
    found = {}
    exec(compile(block, str(README), "exec"), found)
    if "mixture" in found:
        assert found["synthetic"].shape == (1000, 2)
        gaps = np.linalg.norm(found["mixture"].means_[:, None] - cities[None], axis=2).min(axis=0)
        assert gaps.max() < 1.0  # degrees; the cities are 8 and more apart


def test_commands_of_the_readme_find_the_clusters(tmp_path):
    pytest.importorskip("opendp", reason="noise for release needs the extra privclust[secure]")
    lines = re.findall(r"^privclust (?:sketch|decode) .*$", README.read_text(), re.M)
    assert [line.split()[1] for line in lines] == ["sketch", "sketch", "decode"]
    rng = np.random.default_rng(0)
    for day in (1, 2):
        records = rng.normal(rng.choice([-4.0, 0.0, 4.0], size=(10_000, 1)), 1.0, (10_000, 2))
        pd.DataFrame(records, columns=["a", "b"]).to_csv(tmp_path / f"day{day}.csv", index=False)
    for line in lines:
        command = [sys.executable, "-m", "privclust.cli", *shlex.split(line)[1:]]
        subprocess.run(command, cwd=tmp_path, check=True)
    centers = pd.read_csv(tmp_path / "centers.csv").sort_values("x1")
    expected = np.repeat([[-4.0], [0.0], [4.0]], 2, axis=1)
    assert np.abs(centers[["x1", "x2"]].to_numpy() - expected).max() < 0.5


def test_the_audit_of_the_readme_convicts_half_the_noise(tmp_path):
    (line,) = re.findall(r"^privclust audit .*$", README.read_text(), re.M)
    (tmp_path / "mymodule.py").write_text(
        "pair = (0.0, 1.0)\n\n\n"
        "def mechanism(data, rng):\n    return data + rng.laplace(scale=0.5)\n"
    )
    command = [sys.executable, "-m", "privclust.cli", *shlex.split(line)[1:], "--seed", "0"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "violated" in done.stdout + done.stderr
