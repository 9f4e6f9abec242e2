"""A SLURM of one node for the tests beside this file."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def cluster():
    folder = tempfile.mkdtemp(prefix="privclust-slurm-")  # a socket's path must be short
    holder = subprocess.Popen(
        [sys.executable, HERE / "cluster.py", "hold", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # where no interrupt of ours reaches it
    )
    try:
        if holder.stdout.readline() != "ready\n":
            _, message = holder.communicate()
            if message.startswith("no cluster:"):
                pytest.skip(f"{message.strip()}; as root: apt-get install slurm-wlm munge")
            pytest.fail(message)
        yield Path(folder)
    finally:
        _, message = holder.communicate()  # which ends its standard input
        shutil.rmtree(folder)
    assert holder.returncode == 0, message
