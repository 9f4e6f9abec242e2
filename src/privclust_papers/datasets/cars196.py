"""Cars196 (Stanford Cars): the four official files in one archive, and crops of its training half.

J. Krause, M. Stark, J. Deng and L. Fei-Fei, "3D Object Representations for Fine-Grained
Categorization", workshop 3dRR at ICCV 2013. 16,185 photographs of 196 models, each with a bounding
box of the car. The official files are ``cars_train.tgz``, ``cars_test.tgz``, ``car_devkit.tgz`` and
``cars_test_annos_withlabels.mat``.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from privclust.core.hdf5 import encode_text
from privclust.features.images import empty_files
from privclust_papers.datasets._archives import Member, fill, members
from privclust_papers.datasets._parsing import matlab_variables
from privclust_papers.datasets.registry import damaged

N_IMAGES, N_TRAIN = 16_185, 8_144
N_CLASSES = 196
FILES = ("car_devkit.tgz", "cars_test.tgz", "cars_test_annos_withlabels.mat", "cars_train.tgz")
"""Names of the official files."""

_OFFICIAL = "|".join(re.escape(name) for name in FILES)
_ARCHIVES = {"cars_train.tgz": "cars_train", "cars_test.tgz": "cars_test"}  # of images
_CROPS = r"cars_train\.tar\.gz"
_DEVKIT = r"cars_train_annos\.mat|cars_meta\.mat"


def content_sha256(path: str | os.PathLike[str]) -> str:
    """Return a checksum of the official files that does not depend on their packaging.

    SHA-256 over the sorted lines ``"<name> <MD5>\\n"`` of the four files; the published checksums
    are MD5. Arguments are those of `read`.
    """
    digests = {member.name: member.read(_md5) for member in members(path, _OFFICIAL)}
    _check_official(path, digests)
    lines = (f"{name} {digests[name]}\n" for name in sorted(FILES))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def read(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read a tar archive or folder with the four official files.

    Returns ``images`` (JPEG files), ``offsets``, ``boxes``, ``y``, ``train``, ``names`` and
    ``files`` as `privclust.features.images` describes; 8,144 training images, then 8,041 test
    images.
    """
    contents, sizes = _small_files_and_sizes(path)
    parts = {
        "cars_train": _annotations(
            f"{path}: cars_train_annos.mat", contents["cars_train_annos.mat"]
        ),
        "cars_test": _annotations(
            f"{path}: cars_test_annos_withlabels.mat", contents["cars_test_annos_withlabels.mat"]
        ),
    }
    files = [f"{folder}/{name}" for folder, (names, _, _) in parts.items() for name in names]
    for folder in parts:
        missing = [file for file in files if file.startswith(f"{folder}/") and file not in sizes]
        if missing:
            raise damaged(
                path, f"{len(missing)} images are missing in {folder}.tgz, such as {missing[0]}"
            )
    if len(files) != N_IMAGES:
        raise damaged(path, f"holds {len(files)} images where the data set has {N_IMAGES}")
    n_train = len(parts["cars_train"][0])
    arrays, places = empty_files([sizes[file] for file in files])
    of_files = dict(zip(files, places, strict=True))
    for member in members(path, _OFFICIAL):
        if folder := _ARCHIVES.get(member.name):
            fill(_images(folder, member), of_files)
    return {
        **arrays,
        "boxes": np.concatenate([boxes for _, boxes, _ in parts.values()]),
        "y": np.concatenate([y for _, _, y in parts.values()]),
        "train": np.arange(len(files)) < n_train,
        "names": encode_text(_class_names(path, contents["cars_meta.mat"])),
        "files": encode_text(files),
    }


def read_crops(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read the 8,144 training images, cropped to their boxes and reduced in size.

    The path is a tar archive or folder with ``cars_train_annos.mat`` and ``cars_meta.mat`` of the
    official kit, and ``cars_train.tar.gz``. Returns arrays as `read`, without ``boxes``.
    """
    contents: dict[str, bytes] = {}
    sizes: dict[str, int] = {}
    for member in members(path, rf"{_CROPS}|{_DEVKIT}"):
        if member.name.endswith(".mat"):
            contents[member.name] = member.read()
        else:
            sizes |= {image.name: image.size for image in _images("cars_train", member)}
    _check_kit(path, contents)
    where = f"{path}: cars_train_annos.mat"
    names, _, y = _annotations(where, contents["cars_train_annos.mat"])
    files = [f"cars_train/{name}" for name in names]
    if len(files) != N_TRAIN or not sizes.keys() >= set(files):
        n_images = len(sizes.keys() & set(files))
        raise damaged(path, f"holds {n_images} images where the training half has {N_TRAIN}")
    arrays, places = empty_files([sizes[file] for file in files])
    for member in members(path, _CROPS):
        fill(_images("cars_train", member), dict(zip(files, places, strict=True)))
    return {
        **arrays,
        "y": y,
        "train": np.ones(len(files), dtype=bool),
        "names": encode_text(_class_names(path, contents["cars_meta.mat"])),
        "files": encode_text(files),
    }


def _small_files_and_sizes(path: str | os.PathLike[str]) -> tuple[dict[str, bytes], dict[str, int]]:
    """Return the files with annotations and names, and the sizes of images by their paths."""
    seen: set[str] = set()
    contents: dict[str, bytes] = {}
    sizes: dict[str, int] = {}
    for member in members(path, _OFFICIAL):
        seen.add(member.name)
        if folder := _ARCHIVES.get(member.name):
            sizes |= {image.name: image.size for image in _images(folder, member)}
        elif member.name == "car_devkit.tgz":
            contents |= {inner.name: inner.read() for inner in member.members(_DEVKIT)}
        else:
            contents[member.name] = member.read()
    _check_official(path, seen)
    _check_kit(path, contents, "car_devkit.tgz ")
    return contents, sizes


def _images(folder: str, archive: Member) -> Iterator[Member]:
    for image in archive.members(r"[^/]+\.jpg"):
        yield replace(image, name=f"{folder}/{image.name}")


def _check_official(path: str | os.PathLike[str], names: Collection[str]) -> None:
    missing = [name for name in FILES if name not in names]
    if missing:
        raise damaged(path, f"has no {', '.join(missing)}")


def _check_kit(path: str | os.PathLike[str], contents: Collection[str], of: str = "") -> None:
    for name in ("cars_train_annos.mat", "cars_meta.mat"):
        if name not in contents:
            raise damaged(path, f"{of}has no {name}")


def _md5(file: Any) -> str:
    digest = partial(hashlib.md5, usedforsecurity=False)
    return hashlib.file_digest(file, digest).hexdigest()


def _annotations(where: str, content: bytes) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return file names, boxes and classes from 0 on."""
    records = np.atleast_1d(_variable(where, content, "annotations"))
    try:
        files = [str(record.fname) for record in records]
        corners = np.array(
            [[r.bbox_x1, r.bbox_y1, r.bbox_x2, r.bbox_y2] for r in records], dtype=np.float64
        )
        # `class` is a keyword, which cannot follow a dot.
        y = np.array([int(record.__dict__["class"]) for record in records], dtype=np.int64) - 1
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        expected = "annotations may have fname, class and bbox_x1 to bbox_y2"
        raise damaged(where, f"{expected} ({error!r})") from None
    if not len(y) or y.min() < 0 or y.max() >= N_CLASSES:
        raise damaged(where, f"classes must be 1 to {N_CLASSES}")
    left_top = corners[:, :2] - 1.0  # MATLAB counts pixels from 1
    return files, np.hstack([left_top, corners[:, 2:] - left_top]), y


def _class_names(path: str | os.PathLike[str], content: bytes) -> list[str]:
    where = f"{path}: cars_meta.mat"
    names = [str(name) for name in np.ravel(_variable(where, content, "class_names"))]
    if len(names) != N_CLASSES:
        raise damaged(where, f"names {len(names)} classes; it may name {N_CLASSES}")
    return names


def _variable(where: str, content: bytes, name: str) -> Any:
    contents = {name: name.replace("_", " ")}
    (variable,) = matlab_variables(
        where, io.BytesIO(content), contents, struct_as_record=False, squeeze_me=True
    )
    return variable
