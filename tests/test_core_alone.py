"""Estimators need five packages and nothing more; what does need more says what to install."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from privclust.core.packages import require

SCRIPT = Path(__file__).with_name("core_alone.py")
PACKAGES = {
    "bingham",
    "datasets.synthetic",
    "embedding",
    "features",
    "kmeans",
    "metrics",
    "mixtures",
    "preprocessing",
    "privacy",
    "privacy.audit",
    "segmentation",
    "subspaces",
}
# their default budgets are calibrated by dp-accounting or mpmath
CALIBRATED = {
    "AdaptiveGaussianMixture",
    "DPdSNE",
    "PrivateGaussianMixture",
    "MomentSubspaceClustering",
    "PrivateMail",
    "PrivatePCA",
    "PrivateRandomProjection",
    "SuLQKPlanes",
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """What happens where all other packages cannot be imported."""
    done = subprocess.run(
        [sys.executable, SCRIPT, "--block"],
        cwd=tmp_path_factory.mktemp("alone"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_package_is_imported(outcome):
    assert {f"privclust.{name}" for name in PACKAGES} <= set(outcome["modules"])


def test_every_estimator_fits_or_says_what_to_install(outcome):
    others = {"save", "Sketch.save", "random_state=None"}
    fitted = {name: what for name, what in outcome["results"].items() if name not in others}
    assert {name for name, what in fitted.items() if what != "done"} == CALIBRATED
    for name in CALIBRATED:
        assert re.search(
            r"need (dp-accounting|mpmath), which cannot be imported "
            r"\(No module named '(dp_accounting|mpmath)'\): pip install privclust$",
            fitted[name],
        )
    assert {"LloydKMeans", "GaussianMixtureEM", "SSC", "KPlanes", "SMLQ"} <= set(fitted)


@pytest.mark.parametrize(
    ("what", "install"),
    [
        ("save", "pip install privclust"),
        ("Sketch.save", "pip install privclust"),
        ("random_state=None", "pip install 'privclust[secure]'"),
    ],
)
def test_what_needs_more_says_so_in_one_line(outcome, what, install):
    message = outcome["results"][what]
    assert install in message
    assert "\n" not in message


def test_an_extra_is_quoted_for_the_shell(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"^images need onnxruntime, .*'privclust\[images\]'$"):
        require("onnxruntime", "images")
