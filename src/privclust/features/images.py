"""Sets of images: their layout as arrays, and images one by one.

Readers of image sets return, in one dictionary,

===========  ======================  ============================================================
``images``   (n, h, w, 3), uint8     RGB images of one size; or, in one dimension, the bytes of
                                     n encoded files (JPEG, PNG, WebP), concatenated
``offsets``  (n + 1,), int64         where each file begins and ends; only with encoded files
``boxes``    (n, 4), float64         left, top, width and height of the object, in pixels of the
                                     encoded image; only where a set has them
``y``        (n,), int64             class, from 0 on
``train``    (n,), bool              the set's own split of images
``names``    (n_classes,), bytes     names of the classes
``files``    (n,), bytes             a name for each image, for messages; may be left out
===========  ======================  ============================================================

and raise a `DataError` if an archive is damaged, incomplete or has other content.

`ImageList` gives the images of such a dictionary, or of a user's own files, one by one.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.hdf5 import decode_text
from privclust.core.packages import require

Image: TypeAlias = np.ndarray | bytes | str | os.PathLike[str]
"""Pixels of type uint8 (h, w, 3), an encoded file's bytes, or its path."""

_MAX_NAMED = 5  # most unreadable images that a message names


class UnreadableImagesError(ValueError):
    """Some images cannot be decoded; the message counts and names them.

    Parameters
    ----------
    failures : sequence of (int, str, str)
        Position, name and reason of each.
    n_images : int
        Number of images.

    Attributes
    ----------
    failures : tuple of (int, str, str)
        As given.
    """

    def __init__(self, failures: Sequence[tuple[int, str, str]], n_images: int) -> None:
        self.failures = tuple(failures)
        named = "; ".join(f"{name} ({reason})" for _, name, reason in self.failures[:_MAX_NAMED])
        more = len(self.failures) - _MAX_NAMED
        super().__init__(
            f"{len(self.failures)} of {n_images} images cannot be read: {named}"
            + (f"; and {more} more" if more > 0 else "")
        )


class ImageList(Sequence[Any]):
    """Images of any source, decoded on request.

    Parameters
    ----------
    items : sequence
        Each an array of shape (h, w, 3) and type uint8, the bytes of an encoded file, or the path
        of one. Or an array of shape (n, h, w, 3).
    boxes : array-like of shape (n, 4), optional
        Left, top, width and height in pixels: each image is cropped to its box, rounded outwards.
    names : sequence of str, optional
        Names for messages; by default paths, else ``"image 0"`` and so on.

    Raises
    ------
    ValueError
        If there are no images, or boxes or names do not fit their number.

    Examples
    --------
    >>> images = ImageList(np.zeros((2, 32, 32, 3), dtype=np.uint8))
    >>> len(images), images[1].shape, images.name(1)
    (2, (32, 32, 3), 'image 1')
    """

    def __init__(
        self,
        items: Sequence[Image] | np.ndarray,
        boxes: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self._items = items
        if not len(items):
            raise ValueError("images: got none; give one or more")
        if names is not None and len(names) != len(items):
            raise ValueError(f"names: got {len(names)} for {len(items)} images")
        self._names = names
        self._boxes = None if boxes is None else np.asarray(boxes, dtype=np.float64)
        if self._boxes is not None and self._boxes.shape != (len(items), 4):
            raise ValueError(
                f"boxes: got shape {self._boxes.shape}; it must be ({len(items)}, 4), a row for "
                "each image"
            )

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> ImageList:
        """Return the images of a data set, in the layout that this module describes."""
        images, offsets = arrays["images"], arrays.get("offsets")
        items = images if offsets is None else _Encoded(images, offsets)
        names = decode_text(arrays["files"]) if "files" in arrays else None
        return cls(items, arrays.get("boxes"), names)

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._items)

    def __getitem__(self, index: int) -> np.ndarray:
        """Decode one image, (h, w, 3) of type uint8, cropped to its box.

        Raises an UnreadableImagesError if it cannot be decoded.
        """
        item = self._items[index]
        try:
            image = _decode(item)
            return image if self._boxes is None else _crop(image, self._boxes[index])
        except ImportError:
            raise
        except Exception as error:  # Pillow raises any type for damaged bytes
            reason = " ".join(str(error).split()) or type(error).__name__
            failure = (index, self.name(index), reason)
            raise UnreadableImagesError([failure], len(self)) from error

    def name(self, index: int) -> str:
        """Return the name of an image for messages."""
        if self._names is not None:
            return str(self._names[index])
        item = self._items[index]
        return os.fspath(item) if isinstance(item, str | os.PathLike) else f"image {index}"

    def unreadable(self) -> list[tuple[int, str, str]]:
        """Decode every image and return position, name and reason of those that cannot be."""
        failures = []
        for index in range(len(self)):
            try:
                self[index]
            except UnreadableImagesError as error:
                failures += error.failures
        return failures

    def digest(self) -> str:
        """Return the SHA-256 over contents and boxes of all images, undecoded.

        A file that cannot be opened counts as empty, and fails at decoding.
        """
        sha = hashlib.sha256()
        for item in self._items:
            is_array = isinstance(item, np.ndarray)
            content = item.tobytes() if is_array else _bytes(item)
            sha.update(f"{item.shape if is_array else len(content)}\n".encode())
            sha.update(content)
        if self._boxes is not None:
            sha.update(self._boxes.tobytes())
        return sha.hexdigest()


class _Encoded(Sequence[bytes]):
    """The bytes of each of the files that are stored one after another in an array."""

    def __init__(self, content: np.ndarray, offsets: np.ndarray) -> None:
        self._content, self._offsets = content, offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: int) -> bytes:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._content[self._offsets[index] : self._offsets[index + 1]].tobytes()


def empty_files(sizes: Sequence[int]) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """Return ``images`` and ``offsets`` for files of given sizes, and the slice of each file."""
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    images = np.empty(offsets[-1], dtype=np.uint8)
    return {"images": images, "offsets": offsets}, np.split(images, offsets[1:-1])


def take_images(arrays: Mapping[str, np.ndarray], indices: np.ndarray) -> dict[str, np.ndarray]:
    """Return some images of a data set, by their positions, in the same layout.

    Names and numbers of classes are unchanged. All images in their order are not copied.

    Examples
    --------
    >>> from privclust.synthetic.images import generate
    >>> arrays = generate(seed=1, n_classes=2, n_images=4)
    >>> take_images(arrays, np.array([1, 6]))["y"].tolist()
    [0, 1]
    """
    of_images = [name for name in ("boxes", "y", "train", "files") if name in arrays]
    subset = {name: value for name, value in arrays.items() if name == "names"}
    subset |= {name: arrays[name][indices] for name in of_images}
    if "offsets" not in arrays:
        return subset | {"images": arrays["images"][indices]}
    images, offsets = arrays["images"], arrays["offsets"]
    if np.array_equal(indices, np.arange(len(offsets) - 1)):
        return subset | {"images": images, "offsets": offsets}
    taken, places = empty_files(np.diff(offsets)[indices])
    for place, index in zip(places, indices, strict=True):
        place[:] = images[offsets[index] : offsets[index + 1]]
    return subset | taken


def _decode(item: Any) -> np.ndarray:
    if isinstance(item, np.ndarray):
        if item.ndim != 3 or item.shape[2] != 3 or item.dtype != np.uint8 or not item.size:
            raise ValueError(
                f"an array of shape {item.shape} and type {item.dtype}; it must be (h, w, 3), uint8"
            )
        return item
    if not isinstance(item, str | os.PathLike | bytes):
        raise TypeError(f"got {type(item).__name__}; it must be an array, bytes or a path")
    source = io.BytesIO(item) if isinstance(item, bytes) else item
    pillow = require("PIL.Image", "images")
    try:
        with pillow.open(source) as image:
            return np.asarray(image.convert("RGB"))
    except require("PIL", "images").UnidentifiedImageError:
        raise ValueError("not an image of a known format") from None


def _crop(image: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Return the part of an image in a box, as far as the box lies in it."""
    left, top, width, height = box
    first = np.floor([top, left]).clip(min=0).astype(int)
    last = np.ceil([top + height, left + width]).astype(int)
    part = image[first[0] : last[0], first[1] : last[1]]
    if not part.size:
        raise ValueError(f"its box {box.tolist()} lies outside its {image.shape[:2]} pixels")
    return part


def _bytes(item: Any) -> bytes:
    if isinstance(item, bytes):
        return item
    try:
        return Path(item).read_bytes()
    except (OSError, TypeError):
        return b""
