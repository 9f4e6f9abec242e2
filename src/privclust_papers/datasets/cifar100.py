"""CIFAR-100: reader of the official archive and of contact sheets, into the same arrays.

A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", technical report, University
of Toronto, 2009. 100 classes of 500 training and 100 test images, 32 x 32 pixels.

The official archive holds the images in random order, contact sheets by class. Both are read into
one canonical order: training before test, by class, and within a class by the SHA-256 of the
pixels, which is unrelated to the content. Results therefore do not depend on the source.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping

import numpy as np

from privclust.core.hdf5 import encode_text
from privclust_papers.datasets._archives import read_members
from privclust_papers.datasets._parsing import opened_image
from privclust_papers.datasets.registry import damaged

SIZE = 32
"""Height and width of an image in pixels."""
N_CLASSES = 100
N_IMAGES = {"train": 500, "test": 100}
"""Number of images per class in each split."""

_RECORD = 2 + 3 * SIZE * SIZE  # coarse label, fine label, the three colours
_FILES = r"(?:train|test)\.bin|fine_label_names\.txt|(?:train|test)/\d\d_\w+\.webp"
_SHEET = re.compile(r"(train|test)/(\d\d)_(\w+)\.webp")


def read(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read a tar archive, compressed or not, or a folder of one of two kinds.

    The path holds the official binary version, with ``train.bin``, ``test.bin`` and
    ``fine_label_names.txt``; or contact sheets ``train/<LL>_<name>.webp`` and
    ``test/<LL>_<name>.webp``, one for each fine class LL, with tiles of 32 x 32 pixels. Sheets need
    Pillow. Returns ``images``, ``y`` (fine classes), ``train``, ``names`` and ``files``, see
    `privclust.features.images`; 50,000 training images, then 10,000 test images.
    """
    members = read_members(path, _FILES)
    if "train.bin" in members or "test.bin" in members:
        names, splits = _from_binary(path, members)
    elif members:
        names, splits = _from_sheets(path, members)
    else:
        raise damaged(path, "has neither train.bin and test.bin nor contact sheets")
    images = np.concatenate([_ordered(splits[split]) for split in N_IMAGES])
    y = np.concatenate([np.repeat(np.arange(N_CLASSES), count) for count in N_IMAGES.values()])
    split_of = np.repeat(list(N_IMAGES), [N_CLASSES * count for count in N_IMAGES.values()])
    files = [f"{split_of[i]} {names[label]} {i}" for i, label in enumerate(y)]
    return {
        "images": images.reshape(-1, SIZE, SIZE, 3),
        "y": y,
        "train": split_of == "train",
        "names": encode_text(names),
        "files": encode_text(files),
    }


def content_sha256(path: str | os.PathLike[str]) -> str:
    """Return a checksum of the data set that does not depend on its packaging.

    SHA-256 over all pixels in the order of `read`, then the names of the classes, one per line.
    """
    arrays = read(path)
    sha = hashlib.sha256(arrays["images"].tobytes())
    sha.update(b"".join(name + b"\n" for name in arrays["names"].tolist()))
    return sha.hexdigest()


def _from_binary(
    path: str | os.PathLike[str], members: Mapping[str, bytes]
) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return class names and, by split, pixels by class, (100, n, 3072)."""
    names = members.get("fine_label_names.txt", b"").decode("utf-8", "replace").split()
    if len(names) != N_CLASSES:
        raise damaged(
            path, f"fine_label_names.txt names {len(names)} classes; it may name {N_CLASSES}"
        )
    splits = {}
    for split, count in N_IMAGES.items():
        content = members.get(f"{split}.bin", b"")
        if len(content) != N_CLASSES * count * _RECORD:
            raise damaged(
                path,
                f"{split}.bin has {len(content)} bytes; it must have "
                f"{N_CLASSES * count} records of {_RECORD}",
            )
        records = np.frombuffer(content, dtype=np.uint8).reshape(-1, _RECORD)
        counts = np.bincount(records[:, 1], minlength=N_CLASSES)
        if len(counts) > N_CLASSES or (counts != count).any():
            raise damaged(path, f"{split}.bin has not {count} images of each class")
        by_class = records[np.argsort(records[:, 1], kind="stable"), 2:]
        planes = by_class.reshape(N_CLASSES, count, 3, SIZE * SIZE)
        # The file has one plane per colour; sheets, and all images here, have the colours of a
        # pixel together.
        splits[split] = planes.transpose(0, 1, 3, 2).reshape(N_CLASSES, count, -1)
    return names, splits


def _from_sheets(
    path: str | os.PathLike[str], members: Mapping[str, bytes]
) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return class names and, by split, pixels by class, (100, n, 3072)."""
    sheets = {}
    for member, content in members.items():
        if match := _SHEET.fullmatch(member):
            split, number, name = match.groups()
            sheets[split, int(number)] = (name, _tiles(path, member, content, N_IMAGES[split]))
    missing = [
        f"{split}/{number:02d}_*.webp"
        for split in N_IMAGES
        for number in range(N_CLASSES)
        if (split, number) not in sheets
    ]
    if missing:
        raise damaged(
            path,
            f"{len(missing)} of {2 * N_CLASSES} contact sheets are missing, such as {missing[0]}",
        )
    names = [sheets["train", number][0] for number in range(N_CLASSES)]
    if names != [sheets["test", number][0] for number in range(N_CLASSES)]:
        raise damaged(path, "training and test sheets name other classes")
    return names, {
        split: np.stack([sheets[split, number][1] for number in range(N_CLASSES)])
        for split in N_IMAGES
    }


def _tiles(path: str | os.PathLike[str], member: str, content: bytes, count: int) -> np.ndarray:
    with opened_image(f"{path}: {member}", content) as image:
        sheet = np.asarray(image.convert("RGB"))
    rows, columns = sheet.shape[0] // SIZE, sheet.shape[1] // SIZE
    if rows * columns != count or sheet.shape[:2] != (rows * SIZE, columns * SIZE):
        raise damaged(
            path,
            f"{member} has {sheet.shape[1]} x {sheet.shape[0]} pixels; it must have "
            f"{count} tiles of {SIZE} x {SIZE}",
        )
    # From (tile row, y, tile column, x, colour) to tiles in reading order.
    tiles = sheet.reshape(rows, SIZE, columns, SIZE, 3).transpose(0, 2, 1, 3, 4)
    return tiles.reshape(count, -1)


def _ordered(by_class: np.ndarray) -> np.ndarray:
    """Return the images of each class sorted by SHA-256, (n, 3072)."""
    parts = []
    for images in by_class:
        digests = [hashlib.sha256(image.tobytes()).digest() for image in images]
        parts.append(images[sorted(range(len(images)), key=digests.__getitem__)])
    return np.concatenate(parts)
