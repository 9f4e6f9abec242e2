"""Oxford Flowers-17, made smaller: photographs that stand in for fine-grained sets.

M.-E. Nilsback and A. Zisserman, "A Visual Vocabulary for Flower Classification", CVPR 2006. 1,360
photographs of 17 species, 80 of each. No result on it is comparable with one on Cars196 or
CUB-200-2011, whose place it may take.
"""

from __future__ import annotations

import csv
import os

import numpy as np

from privclust.core.hdf5 import encode_text
from privclust.features.images import join_files
from privclust_papers.datasets._archives import read_members
from privclust_papers.datasets.registry import damaged

N_CLASSES = 17
_FILES = r"images/[^/]+\.jpg|labels\.csv"


def read(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read a tar archive, compressed or not, or a folder.

    It holds ``labels.csv`` (columns ``file`` and ``class``, from 1 on) and the files it names below
    ``images``. Returns ``images`` (JPEG files), ``offsets``, ``y``, ``train``, ``names`` and
    ``files`` as `privclust.features.images` describes, in the order of ``labels.csv``. The set's
    own splits are not in it: the first half of each class is called training.

    Examples
    --------
    >>> read("flowers17.tar")["y"].shape  # doctest: +SKIP
    (1360,)
    """
    members = read_members(path, _FILES)
    if "labels.csv" not in members:
        raise damaged(path, "has no labels.csv")
    rows = list(csv.DictReader(members["labels.csv"].decode("utf-8", "replace").splitlines()))
    try:
        files = [row["file"] for row in rows]
        y = np.array([int(row["class"]) for row in rows], dtype=np.int64) - 1
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(
            path, f"labels.csv may have the columns file and class, a whole number ({error!r})"
        ) from None
    missing = [file for file in files if f"images/{file}" not in members]
    if missing:
        raise damaged(
            path, f"{len(missing)} images of labels.csv are missing, such as {missing[0]}"
        )
    if not np.array_equal(np.unique(y), np.arange(N_CLASSES)):
        raise damaged(path, f"labels.csv may name the classes 1 to {N_CLASSES}")
    return {
        **join_files([members[f"images/{file}"] for file in files]),
        "y": y,
        "train": _first_halves(y),
        "names": encode_text([f"flower {number + 1}" for number in range(N_CLASSES)]),
        "files": encode_text(files),
    }


def _first_halves(y: np.ndarray) -> np.ndarray:
    """Return True for the first half of each class's images."""
    first = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        first[members[: len(members) // 2]] = True
    return first
