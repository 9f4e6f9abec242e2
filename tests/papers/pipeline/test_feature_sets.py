"""Feature sets: their config, which images they take, and what their files say."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from privclust.features import small_pixels
from privclust.features.images import UnreadableImagesError
from privclust.synthetic.images import generate
from privclust_papers.datasets.registry import DataError
from privclust_papers.pipeline import artefacts
from privclust_papers.pipeline.feature_extraction import extract_set, select_images
from privclust_papers.pipeline.feature_sets import (
    FeatureEntry,
    load_feature_sets,
    other_networks,
)
from privclust_papers.settings.config import ConfigError, load_yaml

ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "workflow" / "schemas" / "features.schema.yaml"
DATASETS = ("cifar100", "cub200", "cars196")
ALL = {"train": None, "test": None}


def entry(**changes):
    given = {"split": "images", "per_class": {"train": 2, "test": 1}} | changes
    return FeatureEntry("small", "gratings", model="lite0", size=40, pixels=2, **given)


def join_files(contents):
    offsets = np.cumsum([0, *map(len, contents)])
    return {"images": np.frombuffer(b"".join(contents), np.uint8), "offsets": offsets}


def extract(images, path, threads=1, **changes):
    extract_set(
        entry(**changes),
        images,
        path,
        source="substitute for gratings",
        inputs={"dataset": "0" * 64},
        threads=threads,
    )


def test_sets_of_the_project():
    sets = load_feature_sets(ROOT / "config" / "features.yaml", SCHEMA, DATASETS, "d.yaml")
    assert {e.dataset for e in sets.values()} == set(DATASETS)
    for dataset in DATASETS:
        quick, paper = sets[f"{dataset}_quick"], sets[f"{dataset}_paper"]
        assert (quick.size, paper.size) == (96, 224)
        assert quick.split == paper.split == ("images" if dataset == "cifar100" else "classes")
        assert (
            quick.published == paper.published == ("ResNet-50" if dataset == "cifar100" else "CGD")
        )
        assert paper.classes is None
        assert paper.per_class["test"] is None


def test_one_network_for_all_sets():
    path = ROOT / "config" / "features.yaml"
    sets = load_feature_sets(path, SCHEMA, (*DATASETS, "resnet50"), "d.yaml", "resnet50")
    assert {(e.model, e.network, e.weights) for e in sets.values()} == {
        ("resnet50", "ResNet-50", "resnet50")
    }
    with pytest.raises(
        ConfigError, match=r"whose weights are a data set of that name, which d\.yaml"
    ):
        load_feature_sets(path, SCHEMA, DATASETS, "d.yaml", "resnet50")


def test_networks_that_stand_in_for_the_papers_are_named():
    theirs, with_head = (entry(published="ResNet-50"), entry(published="CGD"))
    assert other_networks([theirs, with_head]) == (
        "features of EfficientNet-Lite0 in place of ResNet-50 and CGD"
    )
    assert other_networks([entry()]) == ""
    same, other = (replace(e, model="resnet50") for e in (theirs, with_head))
    assert other_networks([same]) == ""
    assert other_networks([same, other]) == "features of ResNet-50 in place of CGD"
    # a sentence is no reason to extract again
    assert theirs.spec() == entry().spec()


@pytest.mark.parametrize(
    ("n_classes", "n_train", "n_test"), [(10, 5, 5), (17, 9, 8), (196, 98, 98), (200, 100, 100)]
)
def test_split_by_classes(n_classes, n_train, n_test):
    images = generate(seed=1, n_classes=n_classes, n_images=2, size=8)
    taken = select_images(entry(split="classes", per_class=ALL), images)
    assert len(taken["y"]) == 2 * n_classes
    np.testing.assert_array_equal(np.unique(taken["y"][taken["train"]]), np.arange(n_train))
    np.testing.assert_array_equal(
        np.unique(taken["y"][~taken["train"]]), np.arange(n_train, n_train + n_test)
    )


def test_quick_sets_stay_small():
    sets = load_feature_sets(ROOT / "config" / "features.yaml", SCHEMA, DATASETS, "d.yaml")
    for name, n_classes, n_images, expected in (
        ("cub200_quick", 200, 60, 20 * 20),  # as the whole set has them
        ("cub200_quick", 10, 60, 5 * 20),
        ("cars196_quick", 196, 80, 20 * 20),
        ("cifar100_quick", 100, 12, 100 * 4),
    ):
        images = generate(seed=1, n_classes=n_classes, n_images=n_images, size=8)
        taken = select_images(sets[name], images)
        assert taken["train"].sum() == (~taken["train"]).sum() == expected


def test_the_first_images_of_the_first_classes_are_taken(png):
    y = np.array([2, 0, 1, 2, 0, 1, 3, 3, 2, 0])
    train = np.array([1, 1, 0, 1, 0, 1, 1, 0, 0, 1], dtype=bool)
    images = {
        **join_files([png(np.full((2, 2, 3), i, dtype=np.uint8)) for i in range(10)]),
        "y": y,
        "train": train,
        "names": np.array([b"a", b"b", b"c", b"d"]),
        "boxes": np.arange(40.0).reshape(10, 4),
        "files": np.array([b"%d" % i for i in range(10)]),
    }
    taken = select_images(entry(per_class={"train": 1, "test": 2}), images)
    # one image of each class for training, at most two for test
    assert taken["files"].tolist() == [b"0", b"1", b"2", b"4", b"5", b"6", b"7", b"8"]
    kept = [0, 1, 2, 4, 5, 6, 7, 8]
    for name in ("y", "train", "boxes"):
        np.testing.assert_array_equal(taken[name], images[name][kept])
    assert taken["names"].tolist() == [b"a", b"b", b"c", b"d"]
    last = taken["images"][taken["offsets"][-2] :].tobytes()
    assert last == images["images"][images["offsets"][8] : images["offsets"][9]].tobytes()
    # the first two classes of each split: 0 and 1 of the training images, 0 and 1 of the test ones
    two = select_images(entry(per_class=ALL, classes=2), images)
    assert two["files"].tolist() == [b"1", b"2", b"4", b"5", b"9"]
    # by classes 0 and 1 are for training; one class of each is 0 and 2
    one = select_images(
        entry(split="classes", per_class={"train": None, "test": 2}, classes=1), images
    )
    assert one["files"].tolist() == [b"0", b"1", b"3", b"4", b"9"]
    np.testing.assert_array_equal(one["train"], [False, True, False, True, True])


def test_sets_without_images_or_without_a_part(gratings):
    with pytest.raises(DataError, match="gratings has no images, train, only X, y") as error:
        select_images(entry(), {"X": np.ones((2, 2)), "y": np.zeros(2, dtype=int)})
    assert "\n" not in str(error.value)
    one_class = {name: a[:8] if name != "names" else a for name, a in gratings.items()}
    with pytest.raises(DataError, match="split by classes leaves no image of gratings for test"):
        select_images(entry(split="classes"), one_class)


def test_file_says_what_it_is_and_holds_the_control(network, gratings, tmp_path):
    extract(gratings, tmp_path / "f.h5")
    artefact = artefacts.read(tmp_path / "f.h5", "features", {"features": "small", "size": 40})
    assert artefact.inputs == {"dataset": "0" * 64}
    assert artefact.parameters["source"] == "substitute for gratings"
    assert artefact.parameters["dataset"] == "gratings"
    kept = select_images(entry(), gratings)
    assert {n: (a.shape, a.dtype.str) for n, a in artefact.arrays.items()} == {
        "X": ((15, 1280), "<f4"),
        "pixels": ((15, 12), "<f4"),
        "y": ((15,), "<i8"),
        "train": ((15,), "|b1"),
        "names": ((5,), "|S9"),
    }
    np.testing.assert_array_equal(artefact.arrays["y"], kept["y"])
    np.testing.assert_array_equal(artefact.arrays["train"], kept["train"])
    np.testing.assert_array_equal(artefact.arrays["pixels"], small_pixels(kept["images"], size=2))


def test_threads_change_no_byte(network, gratings, tmp_path):
    for threads in (1, 2):
        extract(gratings, tmp_path / f"{threads}.h5", threads=threads)
    assert (tmp_path / "1.h5").read_bytes() == (tmp_path / "2.h5").read_bytes()


def test_unreadable_image_is_named(network, gratings, png, tmp_path):
    contents = [png(image) for image in gratings["images"]]
    contents[1] = contents[1][:60]
    with pytest.raises(UnreadableImagesError, match=r"1 of 15 images .*: generated 1 \("):
        extract({**gratings, **join_files(contents)}, tmp_path / "f.h5")
    assert not (tmp_path / "f.h5").exists()


def edited(tmp_path, edit):
    document = load_yaml(ROOT / "config" / "features.yaml")
    edit(document)
    path = tmp_path / "features.yaml"
    path.write_text(yaml.safe_dump(document))
    return load_feature_sets(path, SCHEMA, DATASETS, "d.yaml")


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("dataset", "cifar10", "cub200_quick.dataset: got 'cifar10'; it must be one of cars196, "),
        ("model", "lite3", 'got "lite3"; it must be one of "lite0", "resnet50"'),
        (
            "size",
            31,
            "cub200_quick.size: got 31; it must be a height and width in pixels, at least",
        ),
        ("pixels", 0, "cub200_quick.pixels: got 0"),
        ("split", "half", 'split: got "half"; it must be one of "images", "classes"'),
        ("per_class", {"train": 1}, "cub200_quick.per_class: the key 'test' is missing"),
        ("per_class", {"train": 0, "test": 1}, "per_class.train: got 0; it must be a number, at "),
        ("classes", "all", 'cub200_quick.classes: got "all"; it must be a number, at least 1'),
        ("shuffle", True, "cub200_quick: unknown key 'shuffle'; allowed are classes, dataset"),
    ],
)
def test_bad_entry_names_file_key_value_and_choices(tmp_path, key, value, reason):
    with pytest.raises(ConfigError) as error:
        edited(tmp_path, lambda d: d["cub200_quick"].update({key: value}))
    assert f"{tmp_path / 'features.yaml'}: " in str(error.value)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_name_of_a_data_set_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"got the name 'cub200'; it must be a name that no data"):
        edited(tmp_path, lambda d: d.update(cub200=d["cub200_quick"]))


def test_spec_holds_every_setting_and_the_weights():
    small = entry(classes=3)
    spec = small.spec()
    assert FeatureEntry.from_spec(spec) == small
    assert spec["weights"].startswith("57934424")
    for key, value in (("size", 48), ("pixels", 3), ("classes", None), ("split", "classes")):
        assert FeatureEntry.from_spec(spec | {key: value}).spec() != spec
