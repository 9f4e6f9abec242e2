"""A process that has imported other projects' packages, and is copied for each job.

Most of a short job is the import of packages. This imports them once a run. A job's own process,
started by Snakemake as ever, asks for a copy (a fork) to run the same script in the same place with
the same arguments, environment and open files, waits, and ends as that ended. The project's own
code is not imported here: each job reads it anew. Where there is no such process, as on a cluster,
in a container or on another system than Linux, jobs import all by themselves; results do not depend
on it. Packages start no thread that a copy could miss, but one of jemalloc (of pyarrow), which
looks after itself when it is copied.
"""

import atexit
import contextlib
import fcntl
import gc
import io
import json
import os
import resource
import select
import signal
import socket
import sys

ADDRESS = "PRIVCLUST_WARM_PROCESS"
SPENT = "PRIVCLUST_WARM_CPU_S"  # what a job's own process took before it asked
# What a job's file begins with: it asks before it imports anything else.
BEGINNING = (
    f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r}); import warm; "
    "del sys.path[0]; warm.run_there(sys.argv[0])\n"
)
_PACKAGES = (
    *("numpy", "scipy.linalg", "scipy.optimize", "scipy.special", "scipy.spatial.distance"),
    *("scipy.stats", "scipy.sparse.linalg", "h5py", "numba", "pandas", "sklearn.base"),
    *("sklearn.cluster", "sklearn.utils.validation", "mpmath"),
    *("dp_accounting.rdp.rdp_privacy_accountant", "dp_accounting.pld.privacy_loss_distribution"),
    *("matplotlib.pyplot", "matplotlib.backends.backend_svg"),
    *("matplotlib.backends.backend_agg", "yaml", "jsonschema", "tqdm", "threadpoolctl"),
    *("snakemake.iocontainers", "snakemake.logging"),
)
_HEADER, _LIMIT = 8, 2**24  # bytes that tell a message's length, and its greatest length


def start():
    """Start the process and say where by the environment; return what stops it and waits."""
    import shutil  # a job that asks for a copy needs none of these
    import subprocess
    import tempfile

    folder = tempfile.mkdtemp(prefix="privclust-")  # for this user alone
    address = os.path.join(folder, "socket")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(64)
        command = [sys.executable, __file__, str(listening.fileno())]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, pass_fds=[listening.fileno()], cwd=os.getcwd()
        )
    os.environ[ADDRESS] = address

    def stop():
        os.environ.pop(ADDRESS, None)
        process.stdin.close()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop)
    return stop


def run_there(script):
    """Run a script in a copy and end as it ends; return where there is none to be had."""
    address = os.environ.get(ADDRESS)
    if not address:
        return
    usage = resource.getrusage(resource.RUSAGE_SELF)
    state = {
        "script": script,
        "arguments": sys.argv,
        "path": sys.path,
        "folder": os.getcwd(),
        "environment": {**os.environ, SPENT: str(usage.ru_utime + usage.ru_stime)},
        "python": sys.version,
        "prefix": sys.prefix,
    }
    message = json.dumps(state).encode()
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address)
        header = len(message).to_bytes(_HEADER, "big")
        socket.send_fds(connection, [header], [0, 1, 2])
        connection.sendall(message)
        accepted = connection.recv(1)
    except OSError:
        return
    if accepted != b"y":
        return
    # the copy tells its code when the script ends, and hangs up when all of it has
    code = connection.recv(1)
    while connection.recv(1):
        pass
    if not code:
        said = "the copy that ran the job was killed, as where memory is short, or crashed"
        print(said, file=sys.stderr, flush=True)
    os._exit(code[0] if code else 1)


def _serve(listening):
    """Copy this process for each that asks, until what started it has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: _bury())
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    for package in _PACKAGES:
        with contextlib.suppress(ImportError):
            __import__(package)
    gc.collect()
    gc.freeze()

    while True:
        ready, _, _ = select.select([listening, sys.stdin], [], [])
        if sys.stdin in ready:  # closed: it never says anything
            break
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            return connection
        connection.close()
    while True:  # what still runs counts among what this process took
        try:
            os.wait()
        except ChildProcessError:
            return None


def _bury():
    """Wait for copies that have ended, so that what they took counts as this process's."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _received(connection):
    """Return what a job's process asks for, with its open files in place of ours."""
    header, files, _, _ = socket.recv_fds(connection, _HEADER, 3)
    if not header:
        os._exit(1)  # it was killed before it asked
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    size, message = int.from_bytes(header, "big"), b""
    while len(message) < min(size, _LIMIT):
        part = connection.recv(size - len(message))
        if not part:
            os._exit(1)
        message += part
    return json.loads(message)


def _run(connection):
    """Run the script that a job's process asks for, in a copy; return its exit code."""
    import runpy

    state = _received(connection)
    if (state["python"], state["prefix"]) != (sys.version, sys.prefix):
        connection.sendall(b"n")
        os._exit(0)
    # where the job's process is killed, so is this
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(connection, fcntl.F_GETFL)
    fcntl.fcntl(connection, fcntl.F_SETFL, flags | os.O_ASYNC)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        connection.sendall(b"y")
    except OSError:
        os._exit(1)  # it was killed before that
    os.environ.clear()
    os.environ.update(state["environment"])
    del os.environ[ADDRESS]
    os.chdir(state["folder"])
    sys.argv, sys.path[:] = state["arguments"], state["path"]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()  # its own numbers are not those of other copies
    try:
        runpy.run_path(state["script"], run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, int) or end.code is None:
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _flush_files():
    """Write out what files hold that the job has left open; those of this process are frozen."""
    for thing in gc.get_objects():
        if issubclass(type(thing), io.IOBase):
            with contextlib.suppress(Exception):  # closed, or only read
                thing.flush()


def _leave(codes):
    """End a copy whose job has ended without taking the interpreter apart, object by object.

    That would copy each page that was shared with this process: 0.1 CPU seconds, for nothing.
    """
    if codes:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(codes[0])


def main():
    """Serve, and in a copy run a job."""
    codes = []
    atexit.register(_leave, codes)  # the first of all, hence called after all others
    connection = _serve(socket.socket(fileno=int(sys.argv[1])))
    if connection is not None:
        code = _run(connection) & 255
        _flush_files()
        sys.stdout.flush()
        connection.sendall(bytes([code]))
        codes.append(code)
        sys.exit(code)


if __name__ == "__main__":
    main()
