"""Features of a data set, extracted once and stored."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from privclust.core import hdf5
from privclust.core.progress import progress_over
from privclust.core.validation import check_integer
from privclust.features._extract import (
    CROP,
    Settings,
    check_settings,
    run_network,
    small_pixels,
)
from privclust.features._store import (
    KIND,
    FeatureSet,
    check_suffix,
    features_of,
    save_features,
    whole_labels,
)
from privclust.features._weights import weights_sha256
from privclust.features.images import ImageList, UnreadableImagesError

log = logging.getLogger(__name__)


def cache_features(
    arrays: Mapping[str, np.ndarray],
    path: str | os.PathLike[str],
    *,
    model: str = "lite0",
    weights: str | os.PathLike[str] | None = None,
    size: int = 224,
    batch: int = 16,
    threads: int | None = None,
    pixels: int | None = None,
    shard: int = 512,
    skip_unreadable: bool = False,
    about: Mapping[str, Any] | None = None,
    inputs: Mapping[str, str] | None = None,
) -> FeatureSet:
    """Return the features of a data set, from a file if they were extracted before.

    Features are written in shards to a folder ``.<name>.shards`` next to the file, so that an
    interrupted run continues where it stopped. Progress is shown by a bar on a terminal, otherwise
    by lines in the log.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        A data set in the layout of `privclust.features.images`: ``images`` and ``y``, and, if it
        has them, ``offsets``, ``boxes``, ``train``, ``names`` and ``files``.
    path : path-like
        A ``.h5`` file, written as an artefact; its folder is made if needed.
    model, weights, size, batch, threads
        As in `extract_features`.
    pixels : int or None, default=None
        Height and width of small images whose raw pixels are kept too, in [0, 1]; >= 1. None keeps
        none.
    shard : int, default=512
        Images extracted between two writes, >= 1. Does not change the result.
    skip_unreadable : bool, default=False
        Whether images that cannot be decoded are left out, with their labels. The log and the
        result's ``about["skipped"]`` name them.
    about : mapping, optional
        Further JSON values about the images to store in the file.
    inputs : mapping of str to str, optional
        Digest of each artefact with the images, by role.

    Returns
    -------
    FeatureSet
        ``X`` is float32 with the columns of `extract_features`; ``pixels``, if requested, is
        float32 with 3 * pixels ** 2 columns.

    Raises
    ------
    ValueError
        If a parameter is out of range or arrays do not fit one another.
    WeightsError
        If the file of the weights is not the published one.
    UnreadableImagesError
        If images cannot be decoded and may not be skipped, or none can be.
    FileError
        If the file is damaged, or contains features of other images or settings.
    ImportError
        If a package is missing; the message names it.

    Examples
    --------
    >>> from privclust.synthetic.images import generate
    >>> cache_features(generate(seed=1), "features.h5", size=96).X.shape  # doctest: +SKIP
    (600, 1280)
    """
    settings = check_settings(model, size, batch, threads, weights)
    check_integer("shard", shard, minimum=1)
    if pixels is not None:
        check_integer("pixels", pixels, minimum=1)
    path = check_suffix(path)
    images = ImageList.from_arrays(arrays)
    labels = _labels(arrays, len(images))
    parameters: dict[str, Any] = {
        **(about or {}),
        "model": model,
        "weights": weights_sha256(model),
        "size": int(size),
        "crop": CROP,
        "pixels": pixels,
        "images": images.digest(),
        "labels": _digest(labels),
    }
    if path.exists():
        artefact = hdf5.read(path, KIND, parameters, remedy=hdf5.RUN_AGAIN)
        if skip_unreadable or not artefact.parameters["skipped"]:
            return features_of(artefact, path)
    readable, parameters["skipped"] = _readable(images, skip_unreadable)
    folder = path.parent / f".{path.name}.shards"
    starts = range(0, len(readable), shard)
    what = f"features by {model}, {shard} images at a time"
    parts = [
        _shard(folder, images, readable[start : start + shard], settings, parameters)
        for start in progress_over(starts, len(starts), what)
    ]
    content: dict[str, Any] = {
        name: np.concatenate([part[name] for part in parts]) for name in parts[0]
    }
    for name, value in labels.items():
        content[name] = value if name == "names" else value[readable]
    save_features(path, **content, about=parameters, inputs=inputs)
    shutil.rmtree(folder, ignore_errors=True)
    return features_of(hdf5.read(path, KIND), path)


def _labels(arrays: Mapping[str, np.ndarray], n_images: int) -> dict[str, np.ndarray]:
    if "y" not in arrays:
        raise ValueError(f"arrays: has no y, only {', '.join(sorted(arrays))}")
    labels = {name: np.asarray(arrays[name]) for name in ("y", "train", "names") if name in arrays}
    labels["y"] = whole_labels(labels["y"], n_images, "arrays: ")
    if "train" in labels and labels["train"].shape != (n_images,):
        raise ValueError(f"train: got shape {labels['train'].shape}; it must be ({n_images},)")
    return labels


def _digest(labels: Mapping[str, np.ndarray]) -> str:
    sha = hashlib.sha256()
    for name in sorted(labels):
        sha.update(f"{name} {labels[name].dtype.str} {labels[name].shape}\n".encode())
        sha.update(labels[name].tobytes())
    return sha.hexdigest()


def _readable(images: ImageList, skip: bool) -> tuple[np.ndarray, list[str]]:
    """Return the positions of readable images and the names of the others, if skipped."""
    failures = images.unreadable()
    if failures and (not skip or len(failures) == len(images)):
        raise UnreadableImagesError(failures, len(images))
    if failures:
        log.warning("skipped: %s", UnreadableImagesError(failures, len(images)))
    left_out = {position for position, _, _ in failures}
    readable = [i for i in range(len(images)) if i not in left_out]
    return np.array(readable), [name for _, name, _ in failures]


def _shard(
    folder: Path,
    images: ImageList,
    positions: np.ndarray,
    settings: Settings,
    parameters: Mapping[str, Any],
) -> dict[str, np.ndarray]:
    """Return the features of some images, from their shard if it is complete."""
    file = folder / f"{positions[0]:08d}.h5"
    parameters = {**parameters, "first": int(positions[0]), "last": int(positions[-1])}
    try:
        return hdf5.read(file, "features_shard", parameters).arrays
    except hdf5.FileError as error:
        if file.exists():
            log.info("extracted again: %s", error)
    images = images.subset(positions)
    arrays = {"X": run_network(images, range(0, len(images), settings.batch), settings)}
    if parameters["pixels"] is not None:
        arrays["pixels"] = small_pixels(images, parameters["pixels"])
    hdf5.write(file, "features_shard", arrays, parameters)
    return arrays
