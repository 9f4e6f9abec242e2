"""CUB-200-2011: the official archive, and all photographs cropped and reduced in size.

C. Wah, S. Branson, P. Welinder, P. Perona and S. Belongie, "The Caltech-UCSD Birds-200-2011
Dataset", technical report CNS-TR-2011-001, California Institute of Technology, 2011. 11,788
photographs of 200 species, each with a bounding box of the bird.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from privclust.core.hdf5 import encode_text
from privclust.features.images import empty_files
from privclust_papers.datasets._archives import Member, fill, members, numbered_lines
from privclust_papers.datasets.registry import damaged

N_IMAGES = 11_788
N_CLASSES = 200

_IMAGES = r"images/[^/]+/[^/]+\.jpg"
_TABLES = r"(?:images|image_class_labels|train_test_split|bounding_boxes|classes)\.txt"
_CROPS = r"images\.tar\.gz"


def read(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read the official ``CUB_200_2011.tgz``, another tar archive of it, or its unpacked folder.

    Returns ``images`` (JPEG files), ``offsets``, ``boxes``, ``y``, ``train``, ``names`` and
    ``files`` as `privclust.features.images` describes; 11,788 images in the order of
    ``images.txt``. The archive is read twice, so that memory is limited to the images.
    """
    texts, sizes = {}, {}
    for member in _files(path, f"{_IMAGES}|{_TABLES}"):
        if member.name.endswith(".txt"):
            texts[member.name] = member.read()
        else:
            sizes[member.name] = member.size
    files = numbered_lines(path, "images.txt", texts, 1)
    tables = {
        "image_class_labels.txt": numbered_lines(path, "image_class_labels.txt", texts, 1),
        "train_test_split.txt": numbered_lines(path, "train_test_split.txt", texts, 1),
        "bounding_boxes.txt": numbered_lines(path, "bounding_boxes.txt", texts, 4),
    }
    classes = numbered_lines(path, "classes.txt", texts, 1)
    if sorted(classes) != list(range(1, N_CLASSES + 1)):
        raise damaged(path, f"classes.txt may number the classes 1 to {N_CLASSES}")
    if len(files) != N_IMAGES:
        raise damaged(path, f"lists {len(files)} images where the data set has {N_IMAGES}")
    for number, (file,) in files.items():
        if f"images/{file}" not in sizes:
            raise damaged(path, f"has no images/{file}, which images.txt lists")
        for name, table in tables.items():
            if number not in table:
                raise damaged(path, f"{name} has no line for image {number}")
    labels, splits, boxes = tables.values()
    try:
        y = np.array([int(labels[number][0]) for number in files]) - 1
        train = np.array([int(splits[number][0]) for number in files]) == 1
        corners = np.array([[float(value) for value in boxes[number]] for number in files])
    except ValueError as error:
        raise damaged(path, f"labels, split and boxes must be numbers ({error})") from None
    if y.min() < 0 or y.max() >= N_CLASSES:
        raise damaged(path, f"image_class_labels.txt may give 1 to {N_CLASSES}")
    names = [file for (file,) in files.values()]
    images = [f"images/{name}" for name in names]
    arrays, places = empty_files([sizes[image] for image in images])
    fill(_files(path, _IMAGES), dict(zip(images, places, strict=True)))
    return {
        **arrays,
        "boxes": corners,
        "y": y.astype(np.int64),
        "train": train,
        "names": encode_text([classes[number][0] for number in sorted(classes)]),
        "files": encode_text(names),
    }


def read_crops(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read all 11,788 photographs, cropped to their boxes and reduced in size.

    The path is a tar archive or folder with the official lists and ``images.tar.gz``, which holds
    ``images/<class>/<file>.jpg``. Returns arrays as `read`, without ``boxes``, since those of
    ``bounding_boxes.txt`` are in pixels of the originals.
    """
    arrays = read(path)
    del arrays["boxes"]
    return arrays


def _files(path: str | os.PathLike[str], pattern: str) -> Iterator[Member]:
    for member in members(path, f"{pattern}|{_CROPS}"):
        if member.name.endswith(".tar.gz"):
            yield from member.members(_IMAGES)
        else:
            yield member
