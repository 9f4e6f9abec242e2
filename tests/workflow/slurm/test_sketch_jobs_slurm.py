"""The example of clusters by a job per file, on a real SLURM."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


slurm = load(HERE / "cluster.py")
example = load(HERE.parent / "test_sketch_jobs.py")


@pytest.mark.system
def test_a_job_per_file_on_slurm(cluster, tmp_path):
    (tmp_path / "data").mkdir()
    for i in range(2):
        example.customers(seed=i).to_parquet(tmp_path / "data" / f"day{i}.parquet")
    shutil.copy(example.EXAMPLE / "settings.yaml", tmp_path)
    profile = [str(part) for part in slurm.profile_arguments("slurm")]
    profile = [part.replace("workflow/", f"{example.ROOT}/workflow/") for part in profile]
    code, output = example.run(tmp_path, *profile)
    assert code == 0, output
    command = ["squeue", "--states=all", "--noheader", "--format=%T|%k"]
    jobs = subprocess.check_output(command, text=True)
    for rule, number in (("sketch", 2), ("release", 1), ("decode", 1)):
        assert jobs.count(f"COMPLETED|rule_{rule}") == number, jobs
    example.check_centers(tmp_path)
