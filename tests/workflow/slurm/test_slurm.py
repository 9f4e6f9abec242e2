"""The pipeline on a real SLURM of one node: by either executor the bytes of a local run."""

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from privclust_papers.pipeline import artefacts

HERE = Path(__file__).parent
STATUS = HERE.parents[2] / "workflow/profiles/cluster-generic/slurm_status.sh"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def load_cluster():
    spec = importlib.util.spec_from_file_location("cluster", HERE / "cluster.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


slurm = load_cluster()


@pytest.mark.system
def test_a_cluster_makes_the_bytes_of_one_machine(cluster, undisturbed, tmp_path):
    """By the profile of SLURM; the other one does where a daemon is killed (test_faults_slurm)."""
    clustered = undisturbed.clone(tmp_path / "clustered")
    before = len(slurm.records())
    plan = clustered.planned()
    clustered.run(*slurm.profile_arguments("slurm"))
    assert clustered.made() == undisturbed.made()
    assert {"fetch", "prepare", "fit", "evaluate", "draw"} <= set(plan)

    # and SLURM has run them all
    jobs = slurm.records()[before:]
    assert len(jobs) == sum(plan.values()) - plan["all"]
    assert {state for state, *_ in jobs} == {"COMPLETED"}


@pytest.mark.system
def test_a_job_killed_for_memory_gets_twice_as_much(cluster, new_project, monkeypatch):
    project = new_project()
    project.put_paper(HERE / "hungry.yaml")
    shutil.copy(HERE / "hungry.py", project.folder / "src")
    for name in THREADS[:3]:
        monkeypatch.setenv(name, "3")  # what the user's own shell says shall not reach jobs
    monkeypatch.delenv(THREADS[3], raising=False)
    before = len(slurm.records())
    path = "results/quick/mtsc/hungry/fit/hungry/block_0000.h5"
    project.run(*slurm.profile_arguments("slurm"), "--", path)

    (first, *asked), (second, *asked_again) = (job[:3] for job in slurm.records()[before:])
    assert (first != "COMPLETED", second) == (True, "COMPLETED")
    assert (asked, asked_again) == (["900M", "30:00"], ["1800M", "1:00:00"])
    logs = [log.read_text() for log in (project.folder / ".snakemake/slurm_logs").rglob("*.log")]
    assert any("exceeded memory limit" in log for log in logs)

    arrays = artefacts.read(project.folder / path, "fit").arrays
    assert {name: int(arrays[f"hungry/00000/{name}"]) for name in THREADS} == dict.fromkeys(
        THREADS, 1
    )


def status(job):
    return subprocess.check_output([STATUS, job], text=True).strip()


@pytest.mark.system
def test_status_of_real_jobs(cluster):
    def submit(command):
        return subprocess.check_output(
            ["sbatch", "--parsable", "--mem=50", "--output=/dev/null", f"--wrap={command}"],
            text=True,
        ).strip()

    def end(job):
        for _ in range(100):
            if status(job) != "running":
                break
            time.sleep(0.2)
        return status(job)

    good, bad, long = submit("true"), submit("exit 3"), submit("sleep 300")
    assert status(long) == "running"
    subprocess.check_call(["scancel", long])
    assert [end(job) for job in (good, bad, long)] == ["success", "failed", "failed"]
    assert status("99999") == "failed"


@pytest.mark.system
def test_cluster_is_on_loopback_alone_and_there_is_one(cluster, tmp_path):
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [local.split(":") for _, local, _, state, *_ in lines if state == "0A"]
    addresses = {int(port, 16): address for address, port in listening}
    assert addresses[16817] == addresses[16818] == "0100007F"  # 127.0.0.1

    command = [sys.executable, HERE / "cluster.py", "start", tmp_path / "privclust-slurm-2"]
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert f"a cluster of ours is running from {cluster}" in second.stderr
    assert second.returncode != 0
    for _ in range(150):  # a test before may have left a job that is ending
        if slurm.state_of_node() == "idle":
            break
        time.sleep(0.2)
    assert slurm.state_of_node() == "idle"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("JobId=7 JobName=fit JobState=PENDING Reason=None", "running"),
        ("JobId=7 JobName=fit JobState=RUNNING Reason=None", "running"),
        ("JobId=7 JobName=fit JobState=COMPLETING Reason=None", "running"),
        ("JobId=7 JobName=fit JobState=COMPLETED Reason=None", "success"),
        ("JobId=7 JobName=fit JobState=FAILED Reason=NonZeroExitCode", "failed"),
        ("JobId=7 JobName=fit JobState=TIMEOUT Reason=TimeLimit", "failed"),
        ("JobId=7 JobName=fit JobState=OUT_OF_MEMORY Reason=OutOfMemory", "failed"),
        ("JobId=7 JobName=fit JobState=NODE_FAIL Reason=NodeDown", "failed"),
        # forgotten by the controller: COMPLETED by the database below
        ("slurm_load_jobs error: Invalid job id specified", "success"),
        # the controller is away: nobody knows, so nothing is to be done about the job
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", "running"),
    ],
)
def test_status_from_what_slurm_answers(tmp_path, monkeypatch, answer, expected):
    for name, text in (("scontrol", answer), ("sacct", "COMPLETED")):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{text}"\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert status("7") == expected


@pytest.fixture
def cluster_module(tmp_path, monkeypatch):
    """The script as a module, whose link stands elsewhere and which installs nothing."""
    module = load_cluster()
    monkeypatch.setattr(module, "LINK", tmp_path / "slurm.conf")
    monkeypatch.setattr(module, "_install", lambda: None)
    monkeypatch.setattr(module.os, "geteuid", lambda: 0)
    return module


def test_the_configuration_of_another_cluster_is_left_alone(cluster_module, tmp_path):
    cluster_module.LINK.write_text("ClusterName=theirs\n")
    folder = tmp_path / "privclust-slurm"
    with pytest.raises(cluster_module.NoClusterError, match="part of a cluster"):
        cluster_module.start(folder)
    cluster_module.stop(folder)
    assert cluster_module.LINK.read_text() == "ClusterName=theirs\n"


def test_a_folder_of_another_name_is_refused(cluster_module, tmp_path):
    with pytest.raises(ValueError, match='must begin with "privclust-slurm"; got mine'):
        cluster_module.start(tmp_path / "mine")


def test_a_cluster_needs_root(cluster_module, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_module.os, "geteuid", lambda: 1000)
    with pytest.raises(cluster_module.NoClusterError, match="needs root"):
        cluster_module.start(tmp_path / "privclust-slurm")
