"""Setup of every job: logging, error messages of one line, and costs."""

import atexit
import contextlib
import errno
import gc
import json
import logging
import os
import resource
import sys
import traceback
from pathlib import Path

from privclust.core.hdf5 import FileError
from privclust.features import WeightsError
from privclust.features.images import UnreadableImagesError
from privclust_papers.datasets.registry import DataError
from privclust_papers.pipeline.project_files import PACKAGES
from privclust_papers.settings.config import ConfigError

EXPECTED = (FileError, ConfigError, DataError, UnreadableImagesError, WeightsError)

# Errors of the disk rather than of the project, and advice.
OF_THE_DISK = {
    errno.ENOSPC: "make room there",
    errno.EDQUOT: "make room there or have the quota raised",
    errno.EFBIG: "have the limit raised",
    errno.EROFS: "make it writable",
}


def start(snakemake):
    """Send log lines to the job's log file and to the terminal, and explain fatal errors.

    When the interpreter ends, also after an error, the job's costs are the log's last line.
    """
    logs = [logging.getLogger(name) for name in PACKAGES]
    log = logs[-1]

    def listen(handler):
        handler.setFormatter(logging.Formatter("%(message)s"))
        for each in logs:
            each.setLevel(logging.INFO)
            each.addHandler(handler)
        return handler

    def explain(kind, error, trace):
        if issubclass(kind, EXPECTED):
            # One line, whatever line breaks a parser put into its message.
            log.error("%s", " ".join(str(error).split()))
        elif issubclass(kind, OSError) and error.errno in OF_THE_DISK:
            outputs = [error.filename] if error.filename else snakemake.output
            where = os.path.commonpath(map(os.path.dirname, outputs))
            advice = f"{OF_THE_DISK[error.errno]} and run again"
            log.error("%s: cannot be written (%s); %s", where, os.strerror(error.errno), advice)
        else:
            # if the log cannot be written, the line below still has the error
            path = snakemake.log[0]
            with contextlib.suppress(OSError), open(path, "a", encoding="utf-8") as file:
                traceback.print_exception(kind, error, trace, file=file)
            log.error("%s: %s (see %s)", kind.__name__, error, snakemake.log[0])

    listen(logging.StreamHandler())
    sys.excepthook = explain
    to_file = listen(logging.FileHandler(snakemake.log[0]))  # which Snakemake has removed
    logging.raiseExceptions = False  # a full disk may have no room for the log either
    logging.captureWarnings(True)
    of_warnings = logging.getLogger("py.warnings")
    of_warnings.addHandler(to_file)
    of_warnings.addFilter(_once())
    # No garbage collection of objects that end with the process.
    atexit.register(gc.freeze)
    # The time until here is that of the script's imports.
    atexit.register(_record_cost, snakemake, _cpu_seconds())
    return log


def _once():
    """Return a filter of repeated lines: ten thousand fits may give the same warning."""
    said = set()

    def is_new(line):
        before = len(said)
        said.add(line.getMessage())
        return len(said) > before

    return is_new


def _cpu_seconds():
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _record_cost(snakemake, startup_cpu_s):
    """Append the kernel's counts to the log: benchmark files have samples, 30 s apart."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    # `ru_maxrss` is in bytes on macOS and in kibibytes on Linux; `ru_oublock` has blocks of 512.
    unit = 1 if sys.platform == "darwin" else 1024
    cost = {
        "cpu_s": round(_cpu_seconds(), 3),
        "startup_cpu_s": round(startup_cpu_s, 3),
        "peak_mb": round(max(usage.ru_maxrss for usage in usages) * unit / 1e6, 1),
        "written_mb": round(sum(usage.ru_oublock for usage in usages) * 512 / 1e6, 3),
    }
    # If this line cannot be written, the job has already reported the reason.
    with contextlib.suppress(OSError), open(snakemake.log[0], "a", encoding="utf-8") as file:
        file.write(f"cost {json.dumps(cost)}\n")


def prepared(snakemake):
    """Return arrays and digest of the data set or features of a job; (None, {}) if none."""
    from privclust_papers.pipeline import artefacts

    path = snakemake.input.get("dataset")
    if not path:
        return None, {}
    kind = "features" if Path(path).parent.name == "features" else "dataset"
    dataset = artefacts.read(path, kind)
    arrays = {**dataset.arrays, "source": dataset.parameters["source"]}
    return arrays, {"dataset": dataset.digest}
