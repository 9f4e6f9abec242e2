"""SLURM's daemon on a worker is killed again and again: the run ends with a local run's bytes."""

import contextlib
import importlib.util
import random
import subprocess
import time
from pathlib import Path

import psutil
import pytest

HERE = Path(__file__).parent
_SPEC = importlib.util.spec_from_file_location("workflow_faults", HERE.parent / "faults.py")
faults = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(faults)
slurm = faults.load("slurm/cluster.py")


def daemon_of(cluster):
    """The daemon that a cluster's file names, or None where that one has ended."""
    with contextlib.suppress(psutil.Error, OSError, ValueError):
        process = psutil.Process(int((cluster / "slurmd.pid").read_text()))
        if process.name() == "slurmd" and process.status() != psutil.STATUS_ZOMBIE:
            return process
    return None


@pytest.mark.system
def test_killed_daemon_of_a_worker(cluster, undisturbed, tmp_path, record_property):
    name, moments = "a worker's daemon is killed", random.Random(4)
    project = faults.SmallProject(tmp_path / "project")
    plan, before = project.planned(), len(slurm.records())
    run = project.begin(*slurm.profile_arguments("cluster-generic"))
    for _ in range(4):
        time.sleep(moments.uniform(1.0, 6.0))
        assert run.poll() is None, project.terminal
        assert faults.end(daemon_of(cluster))
        faults.wait(lambda: daemon_of(cluster) is None)
        time.sleep(moments.uniform(0.1, 2.0))
        subprocess.run(["slurmd"], check=True)
        faults.wait(lambda: daemon_of(cluster) is not None)
    assert run.wait() == 0, project.terminal
    line = faults.said(project.terminal, r"\d+ of \d+ steps \(100%\) done")
    for step in faults.FAULTS[name].steps:
        project.take(step)
    assert project.made() == undisturbed.made()
    states = [state for state, *_ in slurm.records()[before:]]
    assert states.count("COMPLETED") == sum(plan.values()) - plan["all"]
    faults.wait(lambda: slurm.state_of_node() == "idle")
    record_property(name, line)
