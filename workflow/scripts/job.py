"""What every job does first: logging, and errors that end in one clear line."""

import logging
import sys
import traceback
from pathlib import Path

# In a conda environment of Snakemake's own making, the package is not installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from privclust.artefacts import ArtefactError
from privclust.config import ConfigError
from privclust.datasets.images import UnreadableImagesError
from privclust.datasets.registry import DataError
from privclust.features._weights import WeightsError

EXPECTED = (ArtefactError, ConfigError, DataError, UnreadableImagesError, WeightsError)


def start(snakemake):
    """Send log lines to the job's log file and to the terminal, and explain what ends the job.

    Parameters
    ----------
    snakemake : object
        The object that Snakemake gives to a script.

    Returns
    -------
    logging.Logger
    """
    log = logging.getLogger("privclust")
    log.setLevel(logging.INFO)
    for handler in (logging.FileHandler(snakemake.log[0], mode="w"), logging.StreamHandler()):
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
    logging.captureWarnings(True)
    logging.getLogger("py.warnings").addHandler(log.handlers[0])

    def explain(kind, error, trace):
        if issubclass(kind, EXPECTED):
            log.error("%s", " ".join(str(error).split()))
        else:
            with open(snakemake.log[0], "a", encoding="utf-8") as file:
                traceback.print_exception(kind, error, trace, file=file)
            log.error("%s: %s (see %s)", kind.__name__, error, snakemake.log[0])

    sys.excepthook = explain
    return log


def prepared(snakemake):
    """Read the data set or the features of a job: arrays and digest, or nothing where none is."""
    from privclust import artefacts

    path = snakemake.input.get("dataset")
    if not path:
        return None, {}
    kind = "features" if Path(path).parent.name == "features" else "dataset"
    dataset = artefacts.read(path, kind)
    arrays = {**dataset.arrays, "source": dataset.parameters["source"]}
    return arrays, {"dataset": dataset.digest}
