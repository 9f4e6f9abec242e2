import sys
from pathlib import Path

import pytest

import privclust
from privclust.sources import source_files

PACKAGE = Path(privclust.__file__).parent


def names(*dotted):
    """Files relative to the package."""
    found = [Path(path).resolve() for path in source_files(dotted)]
    return {str(path.relative_to(PACKAGE)) for path in found}


def test_a_method_depends_on_its_module_and_not_on_its_neighbours():
    ssc = names("privclust.segmentation.SSC")
    assert {"segmentation/_ssc.py", "segmentation/_base.py", "spectral.py"} <= ssc
    assert not {"segmentation/_lrr.py", "segmentation/_mtsc.py", "segmentation/__init__.py"} & ssc


def test_fits_do_not_depend_on_metrics_and_metrics_not_on_methods():
    fit = names("privclust.experiments.segmentation.fit_segmentation")
    evaluate = names("privclust.experiments.evaluation.evaluate_segmentation")
    assert "metrics/segmentation.py" not in fit
    assert "metrics/segmentation.py" in evaluate
    assert not any(name.startswith("segmentation/") for name in evaluate)


def test_nothing_depends_on_figures_but_figures():
    everything = names("privclust.experiments.runner", "privclust.verdicts", "privclust.page")
    assert not any(name.startswith("figures/") for name in everything)


def test_a_foreign_module_counts_itself_only(tmp_path, monkeypatch):
    (tmp_path / "my_method.py").write_text("import numpy\nclass Mine: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert source_files(["my_method.Mine"]) == [str(tmp_path / "my_method.py")]
    assert "my_method" not in sys.modules


def test_unknown_module_is_named():
    with pytest.raises(ValueError, match=r"no_such\.Thing: no module"):
        source_files(["no_such.Thing"])


def test_algorithm_packages_do_not_import_the_pipeline():
    for path in PACKAGE.rglob("*.py"):
        assert "import snakemake" not in path.read_text(), path
    used = names("privclust.segmentation")
    assert not any(name.startswith(("experiments/", "figures/")) for name in used)
