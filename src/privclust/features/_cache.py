"""Features of a data set, extracted once and stored."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust.core import hdf5
from privclust.core.validation import check_integer
from privclust.features._extract import (
    CROP,
    check_settings,
    readable,
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
from privclust.features.images import ImageList


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
    about: Mapping[str, Any] | None = None,
    inputs: Mapping[str, str] | None = None,
) -> FeatureSet:
    """Return the features of a data set, from a file if they were extracted before.

    Progress is shown by a bar on a terminal, otherwise by lines in the log.

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
        If images cannot be decoded.
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
    if not path.exists():
        images = readable(images)
        content: dict[str, Any] = {"X": run_network(images, settings, progress=True), **labels}
        if pixels is not None:
            content["pixels"] = small_pixels(images, pixels)
        save_features(path, **content, about=parameters, inputs=inputs)
    found = hdf5.read(path, KIND, parameters, remedy=hdf5.RUN_AGAIN)
    return features_of(found, path)


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
