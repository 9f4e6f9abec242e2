"""A SLURM of one node on the loopback interface, for tests and to try things by hand.

python cluster.py start FOLDER   install it if needed (Debian, as root), start it
python cluster.py stop FOLDER    cancel its jobs, end its daemons
python cluster.py hold FOLDER    start it, print "ready", stop it when standard input ends: however
                                 the process that writes to it ends, a cluster does not outlive it

FOLDER holds all it writes, but for a link at /etc/slurm/slurm.conf: jobs run without SLURM_CONF and
find their cluster there. Its name begins with "privclust-slurm", by which a link that was left
behind is told from the configuration of a cluster that is somebody else's. The folder's path must
be short: that of a Unix socket has at most 107 bytes.
"""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

LINK = Path("/etc/slurm/slurm.conf")
PREFIX = "privclust-slurm"
DAEMONS = ("munged", "slurmctld", "slurmd")
# No accounting, no cgroups. Memory is sampled each second, and a job that has more is killed. Jobs
# are remembered for a day, so that tests can count them.
CONFIGURATION = """\
ClusterName=privclust
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket={folder}/munge/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=1,batch_sched_delay=1
MpiDefault=none
SwitchType=switch/none
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
ReturnToService=2
MailProg=/bin/true
MinJobAge=86400
KillWait=5
DefMemPerCPU=500
{node} NodeAddr=127.0.0.1 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=24:00:00 State=UP
"""

# How often a small cluster is asked; all else is as the profile has it. The executor plugin waits
# 10 s longer whenever no job has ended since it last asked: it begins with what a job takes.
HASTE = {
    "slurm": [
        *("--jobs", "6", "--latency-wait", "5"),
        *("--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "8"),
    ],
    "cluster-generic": [
        *("--jobs", "6", "--latency-wait", "5", "--seconds-between-status-checks", "1")
    ],
}


class NoClusterError(Exception):
    """This machine cannot have a SLURM of ours, for the reason given."""


class CommandError(Exception):
    """A command failed."""


def start(folder):
    """Start the daemons and wait until a job has run.

    The folder has a short path and a name that begins with ``privclust-slurm``; it is made if
    needed. Raises a NoClusterError if not root, if SLURM is not available, or if the machine
    belongs to another cluster, and a CommandError if a daemon does not start or no job would run.
    """
    folder = Path(folder).resolve()
    if not folder.name.startswith(PREFIX):
        raise ValueError(f'folder: its name must begin with "{PREFIX}"; got {folder.name}')
    if os.geteuid() != 0:
        raise NoClusterError("a SLURM of one's own needs root")
    _install()
    _claim_link()
    for name in ("state", "spool", "log", "munge"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    folder.chmod(0o711)  # munge wants its socket to be within everybody's reach
    node = _output("slurmd", "-C").splitlines()[0]
    text = CONFIGURATION.format(host=socket.gethostname().split(".")[0], folder=folder, node=node)
    (folder / "slurm.conf").write_text(text)
    LINK.symlink_to(folder / "slurm.conf")
    try:
        _start_munge(folder / "munge")
        _output("slurmctld", "-c")
        _output("slurmd")
        _output("srun", "--immediate=60", "--mem=100", "true")
    except CommandError:
        stop(folder)
        raise


def hold(folder):
    """Start the daemons, and stop them when standard input ends."""
    start(folder)
    try:
        print("ready", flush=True)
        sys.stdin.read()
    finally:
        stop(folder)


def stop(folder):
    """Cancel all jobs, end the daemons and take the link away; nothing to stop is no error."""
    folder = Path(folder).resolve()
    if _owner() == folder and _alive(folder, "slurmctld"):
        with contextlib.suppress(CommandError):  # it may die at this very moment
            _output("scancel", "--user=root")
            _wait(lambda: not _output("squeue", "--noheader"), 30)
    daemons = {name: _alive(folder, name) for name in DAEMONS}
    for name in reversed(DAEMONS):
        if daemons[name]:
            os.kill(daemons[name], signal.SIGTERM)
            if not _wait(lambda name=name: not _alive(folder, name), 20):
                os.kill(daemons[name], signal.SIGKILL)
    if _owner() == folder:
        LINK.unlink()


def profile_arguments(profile):
    """Return the arguments by which a run uses one of the project's profiles on this cluster."""
    return ["--workflow-profile", f"workflow/profiles/{profile}", *HASTE[profile]]


def records():
    """Return state, memory, time and comment of each job of a workflow, oldest first."""
    command = ("squeue", "--states=all", "--noheader", "--sort=i", "--format=%T|%m|%l|%k")
    return [tuple(line.split("|")) for line in _output(*command).splitlines()]


def state_of_node():
    """Return what SLURM says of the cluster's node, such as "idle"."""
    return _output("sinfo", "--noheader", "--format=%t").strip()


def _install():
    """Get SLURM and munge from Debian where they are missing."""
    if all(shutil.which(name) for name in (*DAEMONS, "sbatch")):
        return
    if not shutil.which("apt-get"):
        raise NoClusterError("SLURM is not installed, and this machine has no apt-get")
    install = ("apt-get", "install", "-y", "--no-install-recommends", "slurm-wlm", "munge")
    try:
        try:
            _output(*install)
        except CommandError:  # lists of packages that are old or were never fetched
            _output("apt-get", "update")
            _output(*install)
    except CommandError as error:
        raise NoClusterError(f"SLURM cannot be installed: {error}") from None


def _claim_link():
    """Refuse a machine that belongs to another cluster, and clear away what was left of ours."""
    owner = _owner()
    if owner is None:
        if LINK.exists() or LINK.is_symlink():
            raise NoClusterError(f"{LINK} is there already: this machine is part of a cluster")
        return
    if any(_alive(owner, name) for name in DAEMONS):
        raise NoClusterError(f"a cluster of ours is running from {owner}")
    LINK.unlink()


def _owner():
    """The folder of the cluster of ours that the link belongs to, if any."""
    if LINK.is_symlink():
        folder = Path(os.readlink(LINK)).parent
        if folder.name.startswith(PREFIX):
            return folder
    return None


def _start_munge(folder):
    """Start the daemon by which SLURM's parts know one another, with a key of its own."""
    folder.chmod(0o711)
    key = folder / "munge.key"
    key.touch(mode=0o400)
    key.write_bytes(secrets.token_bytes(128))
    options = {
        "key-file": key,
        "socket": folder / "munge.sock",
        "pid-file": folder.parent / "munged.pid",
        "log-file": folder / "munged.log",
        "seed-file": folder / "munged.seed",
    }
    _output("munged", *(f"--{name}={path}" for name, path in options.items()))


def _alive(folder, name):
    """The process of a daemon that was started from this folder, 0 if there is none."""
    try:
        process = int((folder / f"{name}.pid").read_text())
        # "number (name) state ...", where Z is a process that has ended
        _, running, state, *_ = Path(f"/proc/{process}/stat").read_text().split()
    except (OSError, ValueError):
        return 0
    return process if running == f"({name})" and state != "Z" else 0


def _wait(condition, seconds):
    """Wait until something holds, and say whether it did in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


def _output(*command):
    """Run a command and return what it prints; say what fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"{command[0]}: {error}") from None
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise CommandError(f"{' '.join(command[:2])} failed: {' '.join(last)}")
    return done.stdout


if __name__ == "__main__":
    commands = {"start": start, "stop": stop, "hold": hold}
    if len(sys.argv) != 3 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    try:
        commands[sys.argv[1]](sys.argv[2])
    except NoClusterError as error:
        sys.exit(f"no cluster: {error}")
    except (CommandError, ValueError) as error:
        sys.exit(f"error: {error}")
