"""Cars196 (Stanford Cars): the four official files, packed into one archive.

J. Krause, M. Stark, J. Deng and L. Fei-Fei, "3D Object Representations for Fine-Grained
Categorization", workshop 3dRR at ICCV 2013. 16,185 photographs of 196 models, each with a box
around the car. The official files are ``cars_train.tgz``, ``cars_test.tgz``, ``car_devkit.tgz``
and ``cars_test_annos_withlabels.mat``.
"""

from __future__ import annotations

import hashlib
import io
import os
from typing import Any

import numpy as np

from privclust.datasets._parsing import matlab_variables
from privclust.datasets.images import encode_text, join_files, read_members
from privclust.datasets.registry import damaged

N_IMAGES = 16_185
N_CLASSES = 196
FILES = ("car_devkit.tgz", "cars_test.tgz", "cars_test_annos_withlabels.mat", "cars_train.tgz")
"""Names of the official files."""


def content_sha256(path: str | os.PathLike[str]) -> str:
    """Return a checksum of the official files that does not depend on how they are packed.

    SHA-256 over the sorted lines ``"<name> <MD5>\\n"`` of the four files: their MD5 sums are what
    was published. Takes what `read` takes.
    """
    members = _official(path)
    lines = (
        f"{name} {hashlib.md5(members[name], usedforsecurity=False).hexdigest()}\n"
        for name in sorted(FILES)
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def read(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read a tar archive, or a folder, that holds the four official files.

    Returns ``images`` (JPEG files), ``offsets``, ``boxes``, ``y``, ``train``, ``names`` and
    ``files`` as `privclust.datasets.images` describes; 8,144 training images, then 8,041 test
    images.

    Examples
    --------
    >>> read("cars196.tar")["y"].max()  # doctest: +SKIP
    195
    """
    members = _official(path)
    devkit = read_members(
        f"{path}: car_devkit.tgz",
        r"cars_train_annos\.mat|cars_meta\.mat",
        members["car_devkit.tgz"],
    )
    for name in ("cars_train_annos.mat", "cars_meta.mat"):
        if name not in devkit:
            raise damaged(path, f"car_devkit.tgz has no {name}")
    test_annotations = members["cars_test_annos_withlabels.mat"]
    parts = {
        "cars_train": _annotations(f"{path}: cars_train_annos.mat", devkit["cars_train_annos.mat"]),
        "cars_test": _annotations(f"{path}: cars_test_annos_withlabels.mat", test_annotations),
    }
    contents, files = [], []
    for folder, (names, _, _) in parts.items():
        archive = f"{folder}.tgz"
        images = read_members(f"{path}: {archive}", r"[^/]+\.jpg", members[archive])
        missing = [name for name in names if name not in images]
        if missing:
            raise damaged(
                path, f"{len(missing)} images are missing in {archive}, such as {missing[0]}"
            )
        contents += [images[name] for name in names]
        files += [f"{folder}/{name}" for name in names]
    if len(files) != N_IMAGES:
        raise damaged(path, f"holds {len(files)} images where the data set has {N_IMAGES}")
    n_train = len(parts["cars_train"][0])
    return {
        **join_files(contents),
        "boxes": np.concatenate([boxes for _, boxes, _ in parts.values()]),
        "y": np.concatenate([y for _, _, y in parts.values()]),
        "train": np.arange(len(files)) < n_train,
        "names": encode_text(_class_names(path, devkit["cars_meta.mat"])),
        "files": encode_text(files),
    }


def _official(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """Return the four official files."""
    members = read_members(path, "|".join(name.replace(".", r"\.") for name in FILES))
    missing = [name for name in FILES if name not in members]
    if missing:
        raise damaged(path, f"has no {', '.join(missing)}")
    return members


def _annotations(where: str, content: bytes) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return file names, boxes and classes from 0 on."""
    records = np.atleast_1d(_variable(where, content, "annotations"))
    try:
        files = [str(record.fname) for record in records]
        corners = np.array(
            [[r.bbox_x1, r.bbox_y1, r.bbox_x2, r.bbox_y2] for r in records], dtype=np.float64
        )
        y = np.array([int(record.__dict__["class"]) for record in records], dtype=np.int64) - 1
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        expected = "annotations may have fname, class and bbox_x1 to bbox_y2"
        raise damaged(where, f"{expected} ({error!r})") from None
    if not len(y) or y.min() < 0 or y.max() >= N_CLASSES:
        raise damaged(where, f"classes may be 1 to {N_CLASSES}")
    left_top = corners[:, :2] - 1.0  # MATLAB counts pixels from 1
    return files, np.hstack([left_top, corners[:, 2:] - left_top]), y


def _class_names(path: str | os.PathLike[str], content: bytes) -> list[str]:
    """Return the names of the classes."""
    where = f"{path}: cars_meta.mat"
    names = [str(name) for name in np.ravel(_variable(where, content, "class_names"))]
    if len(names) != N_CLASSES:
        raise damaged(where, f"names {len(names)} classes; it may name {N_CLASSES}")
    return names


def _variable(where: str, content: bytes, name: str) -> Any:
    """Return a variable of a MATLAB file, structures as objects."""
    contents = {name: name.replace("_", " ")}
    (variable,) = matlab_variables(
        where, io.BytesIO(content), contents, struct_as_record=False, squeeze_me=True
    )
    return variable
