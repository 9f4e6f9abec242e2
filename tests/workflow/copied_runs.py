"""Runs of Snakemake in copies of a process that has imported it, which is half of a short run.

A copy has the arguments, folder, environment and path of ``python -m snakemake`` and has imported
nothing of the project. Jobs are processes of their own, as ever.
"""

import atexit
import functools
import json
import multiprocessing
import os
import runpy
import subprocess
import sys

_AS = "__copied_run__"  # as which a copy runs this file


class Run:
    """A run that was started: what tests use of `subprocess.Popen`.

    Parameters
    ----------
    arguments : sequence of str
        Those of Snakemake.
    folder : Path
        The folder that it runs in.
    environment : mapping of str to str
        All of its variables.
    output : Path
        The file that takes what it prints.
    own_group : bool, default=True
        Whether it leads a process group of its own.
    module : str, default="snakemake"
        What is run.
    """

    def __init__(self, arguments, folder, environment, output, own_group=True, module="snakemake"):
        run = {
            "arguments": list(arguments), "folder": str(folder), "environment": dict(environment),
            "output": str(output), "own_group": own_group, "module": module, "path": _path(),
        }  # fmt: skip
        self._process = _copies().Process(target=runpy.run_path, args=(__file__, run, _AS))
        self._process.start()
        self.pid = self._process.pid

    def poll(self):
        """Return its exit code, None while it runs."""
        return self._process.exitcode

    def wait(self):
        """Wait for its end and return its exit code."""
        self._process.join()
        return self.returncode

    returncode = property(poll)


@functools.cache
def _copies():
    """Return what starts copies of a process that has imported Snakemake."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["snakemake.cli"])
    return context


@functools.cache
def _path():
    """Return the path of an interpreter without variables: the library and installed packages."""
    command = [sys.executable, "-I", "-c", "import json, sys; print(json.dumps(sys.path))"]
    return json.loads(subprocess.check_output(command))


def _become(arguments, folder, environment, output, own_group, module, path):
    """Be what ``python -m <module>`` is, in this process."""
    if own_group:
        os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    sys.path[:] = [folder, *environment["PYTHONPATH"].split(os.pathsep), *path]
    sys.argv[1:] = arguments
    imported = [name for name in sys.modules if name.partition("_")[0] == "privclust"]
    assert not imported, f"a run would not import its own copy of {imported}"
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        atexit._run_exitfuncs()  # a copy ends without them


if __name__ == _AS:
    _become(arguments, folder, environment, output, own_group, module, path)  # noqa: F821
