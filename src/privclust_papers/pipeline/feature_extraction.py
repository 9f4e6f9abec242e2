"""Features of an entry of config/features.yaml, from prepared images to a file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust.core import hdf5
from privclust.features import extract_features, small_pixels, weights_sha256
from privclust.features.images import ImageList, take_images
from privclust_papers.datasets.registry import DataError
from privclust_papers.pipeline.feature_sets import FeatureEntry

_CROP = 0.875  # part of an image's shorter side that `extract_features` keeps


def extract_set(
    entry: FeatureEntry,
    arrays: Mapping[str, np.ndarray],
    path: str | os.PathLike[str],
    *,
    source: str,
    inputs: Mapping[str, str],
    threads: int,
    weights: str | os.PathLike[str] | None = None,
) -> None:
    """Extract the features of a feature set and write them as an artefact, an ``.h5`` file.

    `arrays` is the prepared set of images, see `privclust.features.images`; `source` is its source,
    which may be a substitute; `inputs` has the digest of the prepared set, by role; `weights` is
    the file of the network's weights, unless they are in a package. The arrays are ``X``, ``y``,
    ``train``, ``names``, and ``pixels``, raw pixels as a control; bytes do not depend on the number
    of threads. Raises a DataError if the set has no images, or the entry leaves none for training
    or test.
    """
    selected = select_images(entry, arrays)
    images = ImageList.from_arrays(selected)
    model: Any = entry.model
    X = extract_features(
        images, model=model, weights=weights, size=entry.size, threads=threads, progress=True
    )
    kept = [name for name in ("y", "train", "names") if name in selected]
    labels: dict[str, np.ndarray] = {name: selected[name] for name in kept}
    about = {
        "features": entry.name,
        "dataset": entry.dataset,
        "split": entry.split,
        "per_class": entry.per_class,
        "classes": entry.classes,
        "source": source,
        "model": entry.model,
        "weights": weights_sha256(entry.model),
        "size": entry.size,
        "crop": _CROP,
        "pixels": entry.pixels,
        "images": images.digest(),
        "labels": _digest(labels),
    }
    pixels = small_pixels(images, entry.pixels)
    stored: dict[str, np.ndarray] = {"X": X, **labels, "pixels": pixels}
    hdf5.write(path, "features", stored, about, inputs)


def _digest(labels: Mapping[str, np.ndarray]) -> str:
    sha = hashlib.sha256()
    for name in sorted(labels):
        sha.update(f"{name} {labels[name].dtype.str} {labels[name].shape}\n".encode())
        sha.update(labels[name].tobytes())
    return sha.hexdigest()


def select_images(entry: FeatureEntry, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the images of an entry, in the set's order, with the entry's split.

    The selection is deterministic: the first images of each class, and the first classes of each
    split. Classes keep their numbers. Arrays, result and errors are as in `extract_set`.
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
        classes = np.unique(y)
        train = np.isin(y, classes[: (len(classes) + 1) // 2])
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
