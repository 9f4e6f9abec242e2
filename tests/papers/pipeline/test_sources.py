import sys
from pathlib import Path

import pytest

import privclust
from privclust_papers.pipeline.sources import source_files

SOURCES = Path(privclust.__file__).parents[1]


def names(*dotted):
    """Files relative to src, without the library's own name."""
    found = [Path(path).resolve() for path in source_files(dotted)]
    return {path.relative_to(SOURCES).as_posix().removeprefix("privclust/") for path in found}


def test_a_method_depends_on_its_module_only():
    ssc = names("privclust.segmentation.SSC")
    assert {"segmentation/_ssc.py", "segmentation/_self_expressive.py", "core/spectral.py"} <= ssc
    assert not {"segmentation/_lrr.py", "segmentation/_mtsc.py", "segmentation/__init__.py"} & ssc


def test_a_lazy_method_depends_on_its_module_alone():
    dplloyd = names("privclust.kmeans.DPLloyd")
    assert {"kmeans/_dplloyd.py", "kmeans/_lloyd.py", "core/lloyd.py"} <= dplloyd
    assert not {"kmeans/_eugkm.py", "decoding/_sketch_decoding.py", "kmeans/__init__.py"} & dplloyd
    assert {"kmeans/_eugkm.py", "decoding/_sketch_decoding.py"} <= names("privclust.kmeans")


def test_fits_metrics_and_methods_do_not_mix():
    fit = names("privclust_papers.mtsc.data.fit_segmentation")
    evaluate = names("privclust_papers.mtsc.metrics.evaluate_segmentation")
    assert "metrics/segmentation.py" not in fit
    assert "metrics/segmentation.py" in evaluate
    assert not any(name.startswith("segmentation/") for name in evaluate)


def test_nothing_depends_on_drawings_but_drawings():
    everything = names(
        "privclust_papers.pipeline.runner",
        "privclust_papers.report.verdicts",
        "privclust_papers.report.page",
    )
    papers = [path.parent.name for path in Path("config/papers").glob("*/paper.yaml")]
    drawings = [f"privclust_papers/{name}/" for name in (*papers, "report/drawing")]
    assert not any(name.startswith(tuple(drawings)) for name in everything)


def test_files_of_the_environment_do_not_count():
    """So that a copy of a run whose environment lies elsewhere makes nothing again."""
    assert source_files(["sklearn.cluster.KMeans"]) == []
    method = "privclust.kmeans.DPLloyd"
    assert source_files([method, "sklearn.cluster.KMeans"]) == source_files([method])


def test_a_foreign_module_counts_itself_only(tmp_path, monkeypatch):
    (tmp_path / "my_method.py").write_text("import numpy\nclass Mine: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert source_files(["my_method.Mine"]) == [str(tmp_path / "my_method.py")]
    assert "my_method" not in sys.modules


def test_imports_within_functions_count():
    assert "privclust_papers/report/crate.py" in names("privclust_papers.report.archive")


def test_a_function_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="fig9"):
        source_files(["privclust_papers.mtsc.figures.fig9"])


def test_unknown_module_is_named():
    with pytest.raises(ValueError, match=r"no_such\.Thing: no module"):
        source_files(["no_such.Thing"])


def test_algorithm_packages_do_not_import_the_pipeline():
    for path in SOURCES.rglob("*.py"):
        assert "import snakemake" not in path.read_text(), path
    used = names("privclust.segmentation")
    assert not any(name.startswith(("papers/", "pipeline/", "report/")) for name in used)
