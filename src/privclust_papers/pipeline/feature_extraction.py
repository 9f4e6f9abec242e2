"""The features of one entry of config/features.yaml, from the prepared images to a file."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from privclust.core import hdf5
from privclust.features import FeatureSet, cache_features, load_features, save_features
from privclust.features.images import take_images
from privclust_papers.datasets.registry import DataError, damaged
from privclust_papers.pipeline.feature_sets import FeatureEntry, GivenFeatures


def extract_set(
    entry: FeatureEntry,
    arrays: Mapping[str, np.ndarray],
    path: str | os.PathLike[str],
    *,
    source: str,
    inputs: Mapping[str, str],
    threads: int,
    weights: str | os.PathLike[str] | None = None,
) -> FeatureSet:
    """Extract the features of a feature set and write them as an artefact, an ``.h5`` file.

    `arrays` is the prepared set of images, as `privclust.features.images` describes, `source` where
    they come from, as the prepared set says: a substitute stays one; `inputs` has the digest of the
    prepared set, by role; `weights` is the file of the network's, where no package has it. What a
    killed job had extracted is kept beside the file and used again. The number of threads changes
    no byte of the result, which has ``pixels`` and ``train``. Raises a DataError if the set holds
    no images, or the entry leaves none for training or for test.
    """
    return cache_features(
        select_images(entry, arrays),
        path,
        model=entry.model,
        weights=weights,
        size=entry.size,
        pixels=entry.pixels,
        threads=threads,
        about={**entry.about(), "source": source},
        inputs=inputs,
    )


def select_images(entry: FeatureEntry, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the images that an entry names, in the set's order, with the entry's split.

    Nothing is drawn: the first images of each class and the first classes of each split are
    taken. Classes keep their numbers. Arrays, the result and errors are as of `extract_set`.
    """
    missing = [name for name in ("images", "y", "train") if name not in arrays]
    if missing:
        raise DataError(
            f"features {entry.name}: the data set {entry.dataset} has no {', '.join(missing)}, "
            f"only {', '.join(sorted(arrays))}",
            "name a set of images in config/features.yaml",
        )
    y, train = arrays["y"], arrays["train"]
    if entry.split == "classes":
        train = _first_classes(y)
    indices = []
    for part, members in (("train", np.flatnonzero(train)), ("test", np.flatnonzero(~train))):
        if not len(members):
            raise DataError(
                f"features {entry.name}: the split by {entry.split} leaves no image of "
                f"{entry.dataset} for {part}"
            )
        for label in np.unique(y[members])[: entry.classes]:
            indices.append(members[y[members] == label][: entry.per_class[part]])
    return take_images({**arrays, "train": train}, np.sort(np.concatenate(indices)))


def take_given(entry: GivenFeatures, path: str | os.PathLike[str]) -> FeatureSet:
    """Read a user's own features and write them as an artefact, an ``.h5`` file.

    A DataError says that the file cannot be used, or leaves no sample for training or for test.
    """
    try:
        features = load_features(entry.file)
    except hdf5.FileError as error:  # which would have what is made here deleted
        where = f"features {entry.name}: {entry.file}"
        raise damaged(where, "an artefact, but damaged or not of features") from error
    except ValueError as error:
        raise DataError(f"features {entry.name}: {error}") from None
    train = _first_classes(features.y) if entry.split == "classes" else features.train
    if train is None:
        raise DataError(
            f"features {entry.name}: {entry.file} has no array train",
            "add one truth value a sample, or take split: classes",
        )
    if train.all() or not train.any():
        raise DataError(f"features {entry.name}: {entry.file} has samples of one part only")
    about = {**entry.spec(), "source": entry.name}
    save_features(
        path,
        features.X,
        features.y,
        train=train,
        names=features.names,
        pixels=features.pixels,
        about=about,
    )
    return load_features(path)


def _first_classes(y: np.ndarray) -> np.ndarray:
    classes = np.unique(y)
    return np.isin(y, classes[: (len(classes) + 1) // 2])
