"""Estimators need five packages and nothing more; what does need more says what to install."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from privclust.core.packages import _ORIGINS, require

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("core_alone.py")
PACKAGES = {
    "bingham",
    "decoding",
    "embedding",
    "features",
    "kmeans",
    "metrics",
    "mixtures",
    "preprocessing",
    "privacy",
    "sketches",
    "segmentation",
    "subspaces",
    "synthetic.subspaces",
}
# their default budgets are calibrated by dp-accounting or mpmath
CALIBRATED = {
    "AdaptiveGaussianMixture",
    "DPdSNE",
    "PrivateGaussianMixture",
    "PrivateKMeans",
    "MomentSubspaceClustering",
    "PrivateMail",
    "PrivatePCA",
    "PrivateRandomProjection",
    "SuLQKPlanes",
    "TreeKMeans",
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
    others = {"Sketch.save", "random_state=None"}
    fitted = {name: what for name, what in outcome["results"].items() if name not in others}
    assert {name for name, what in fitted.items() if what != "done"} == CALIBRATED
    for name in CALIBRATED:
        assert re.search(
            r"need (dp_accounting|mpmath), which cannot be imported \(No module named '\1'\): "
            r"pip install '(dp-accounting>=0\.6,<1|mpmath>=1\.3)'$",
            fitted[name],
        )
    assert {"LloydKMeans", "GaussianMixtureEM", "SSC", "KPlanes", "SMLQ"} <= set(fitted)


@pytest.mark.parametrize(
    ("what", "install"),
    [
        ("Sketch.save", "pip install 'h5py>=3.16'"),
        ("random_state=None", "pip install 'opendp>=0.14,<1'"),
    ],
)
def test_what_needs_more_says_so_in_one_line(outcome, what, install):
    message = outcome["results"][what]
    assert install in message
    assert "\n" not in message


def test_an_extra_is_quoted_for_the_shell(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    advice = r"pip install 'onnxruntime>=1\.20,<2' \(in a clone .*: pip install '\.\[images\]'\)$"
    with pytest.raises(ImportError, match=rf"^images need onnxruntime, .*: {advice}"):
        require("onnxruntime", "images")


def test_advice_names_only_packages_of_an_index():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {"": project["dependencies"], **project["optional-dependencies"]}
    for requirement, extra in _ORIGINS.values():
        assert requirement in declared[extra]
    for path in (ROOT / "src").rglob("*.py"):
        assert not re.search(r"pip install '?privclust", path.read_text(encoding="utf-8")), path
