"""The example of clusters by a job per file: the bytes of one process, and no second release."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from privclust.preprocessing import TableEncoder
from privclust.sketches import Sketch, draw_frequencies

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "sketch_jobs"
CENTERS = pd.DataFrame({"age": [25, 45, 75], "income": [30e3, 120e3, 50e3]})
DECLARED = {"age": (0, 110), "income": (0, 200_000), "plan": ["basic", "plus"]}


def customers(n=4000, seed=0):
    """Three groups, of which the second has another plan; some entries are missing."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    rows = CENTERS.iloc[group].reset_index(drop=True) + rng.normal(size=(n, 2)) * [4, 7e3]
    rows["plan"] = np.where(group == 1, "plus", "basic")
    rows.loc[::500, "age"] = None
    return rows.assign(name="someone")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").mkdir()
    for i in range(3):
        customers(seed=i).to_parquet(tmp_path / "data" / f"day{i}.parquet", row_group_size=999)
    shutil.copy(EXAMPLE / "settings.yaml", tmp_path)
    return tmp_path


def run(folder, *arguments):
    """Run Snakemake in a folder; return its code and what it prints."""
    command = [sys.executable, "-m", "snakemake", "-s", EXAMPLE / "Snakefile"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [*command, "--configfile", "settings.yaml", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def check_centers(folder):
    """Compare centers, in the table's units, with the groups."""
    centers = pd.read_csv(folder / "sketched" / "centers.csv").sort_values("age")
    assert np.abs(centers.age.to_numpy() - CENTERS.age).max() < 3
    assert np.abs(centers.income.to_numpy() - CENTERS.income).max() < 6e3
    np.testing.assert_allclose(centers["plan=plus"], [0, 1, 0], atol=0.1)
    np.testing.assert_allclose(centers.weight, 1 / 3, atol=0.05)


def test_settings_are_those_of_this_test():
    settings = yaml.safe_load((EXAMPLE / "settings.yaml").read_text())
    columns = {k: v if k == "plan" else tuple(v) for k, v in settings["columns"].items()}
    assert columns == DECLARED


@pytest.mark.system
def test_a_job_per_file_gives_the_bytes_of_one_process(folder):
    code, output = run(folder, "--cores", "2", "--notemp")
    assert code == 0, output
    assert "(1, 1e-06)-differential privacy (add-remove neighbours)" in output
    encoder = TableEncoder(DECLARED)
    frequencies = draw_frequencies(4, 500, variance=0.02, random_state=1)
    rows = pd.concat([customers(seed=i) for i in range(3)])
    whole = Sketch.of(encoder.transform(rows.dropna()), frequencies)
    parts = [Sketch.load(folder / "sketched" / "exact" / f"day{i}.h5") for i in range(3)]
    merged = parts[2] + parts[0] + parts[1]
    assert {name: array.tobytes() for name, array in merged.exact.items()} == {
        name: array.tobytes() for name, array in whole.exact.items()
    }
    assert merged.left_out == rows.age.isna().sum() > 0
    released = Sketch.load(folder / "sketched" / "released.h5")
    assert released.guarantee.epsilon <= 1.0
    assert not released.guarantee.seeded
    assert (released.sums != merged.sums).all()
    check_centers(folder)


@pytest.mark.system
def test_exact_sums_do_not_stay_and_nothing_is_released_twice(folder):
    assert run(folder, "--cores", "2")[0] == 0
    check_centers(folder)
    sketched = folder / "sketched"
    assert sorted(path.name for path in sketched.rglob("*.h5")) == ["released.h5"]
    assert json.loads((sketched / "released.h5.budget.json").read_text())["epsilon"] == 1.0
    assert "Nothing to be done" in run(folder, "--cores", "2")[1]
    code, output = run(folder, "--cores", "2", "--forceall")
    assert code != 0
    assert "BudgetError" in output
    assert not (sketched / "released.h5").exists()


@pytest.mark.system
def test_the_profile_of_a_cluster_plans_a_job_for_each_file(folder):
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="the profile is for SLURM")
    profile = ROOT / "workflow" / "profiles" / "slurm"
    code, output = run(folder, "--workflow-profile", profile, "--dry-run")
    assert code == 0, output
    assert output.count("rule sketch:") == 3
    code, output = run(folder, "--configfile")
    assert code != 0
