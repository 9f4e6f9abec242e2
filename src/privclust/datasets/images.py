"""Sets of images: their layout as arrays, archives of them, and a generator.

Readers of image sets return, in one dictionary,

===========  ======================  ============================================================
``images``   (n, h, w, 3), uint8     RGB images of one size; or, in one dimension, the bytes of
                                     n encoded files (JPEG, PNG, WebP) behind one another
``offsets``  (n + 1,), int64         where each file begins and ends; only with encoded files
``boxes``    (n, 4), float64         left, top, width and height of what is shown, in pixels of the
                                     encoded image; only where a set has them
``y``        (n,), int64             class, from 0 on
``train``    (n,), bool              the set's own split of images
``names``    (n_classes,), bytes     names of the classes
``files``    (n,), bytes             a name for each image, for messages; may be left out
===========  ======================  ============================================================

and raise a `DataError` if an archive is damaged, incomplete or holds something else.

`ImageList` gives the images of such a dictionary, or of a user's own files, one by one.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.packages import require
from privclust.core.validation import check_integer
from privclust.datasets._archives import empty_files

Image: TypeAlias = np.ndarray | bytes | str | os.PathLike[str]
"""Pixels of type uint8 (h, w, 3), an encoded file's bytes, or its path."""

_MAX_NAMED = 5  # unreadable images that a message names


class UnreadableImagesError(ValueError):
    """Some images cannot be decoded; the message counts and names them.

    Parameters
    ----------
    failures : sequence of (int, str, str)
        Position, name and reason of each.
    n_images : int
        How many images there are.

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


class ImageList(Sequence):
    """Images of any source, decoded when they are asked for.

    Parameters
    ----------
    items : sequence
        Each an array of shape (h, w, 3) and type uint8, the bytes of an encoded file, or the path
        of one. An array of shape (n, h, w, 3) will do.
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
                f"boxes: got shape {self._boxes.shape}; it may be ({len(items)}, 4), a row for "
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
        except Exception as error:  # whatever Pillow makes of damaged bytes
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

    def subset(self, indices: Sequence[int] | np.ndarray) -> ImageList:
        """Return some of the images, with their names and boxes."""
        return ImageList(
            [self._items[i] for i in indices],
            None if self._boxes is None else self._boxes[np.asarray(indices)],
            [self.name(i) for i in indices],
        )

    def digest(self) -> str:
        """Return the SHA-256 over contents and boxes of all images, undecoded.

        A file that cannot be opened counts as an empty one; decoding tells.
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


class _Encoded(Sequence):
    """Files behind one another, as bytes."""

    def __init__(self, content: np.ndarray, offsets: np.ndarray) -> None:
        self._content, self._offsets = content, offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: int) -> bytes:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._content[self._offsets[index] : self._offsets[index + 1]].tobytes()


def encode_text(texts: Sequence[str]) -> np.ndarray:
    """Return texts as an array of UTF-8 bytes, as artefacts store them."""
    return np.char.encode(np.asarray(texts, dtype=str), "utf-8")


def decode_text(texts: Iterable[bytes | str]) -> list[str]:
    """Return stored bytes, or text, as text."""
    return [text.decode() if isinstance(text, bytes) else str(text) for text in texts]


def join_files(contents: Sequence[bytes]) -> dict[str, np.ndarray]:
    """Return encoded files as ``images`` and ``offsets``.

    Examples
    --------
    >>> join_files([b"ab", b"cde"])["offsets"].tolist()
    [0, 2, 5]
    """
    arrays, places = empty_files([len(content) for content in contents])
    for place, content in zip(places, contents, strict=True):
        place[:] = np.frombuffer(content, dtype=np.uint8)
    return arrays


def take_images(arrays: Mapping[str, np.ndarray], indices: np.ndarray) -> dict[str, np.ndarray]:
    """Return some images of a data set, by their positions, in the same layout.

    Names of classes stay, and so do the classes' numbers. All images in their order are not copied.

    Examples
    --------
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


def generate(
    seed: int, n_classes: int = 10, n_images: int = 60, size: int = 32
) -> dict[str, np.ndarray]:
    r"""Generate images of coloured gratings: a substitute that is comparable with no photographs.

    A class has two colours, a frequency and an orientation; its images,

    .. math:: c_1 + (c_2 - c_1) \tfrac12 (1 + \sin(2 \pi f (x \cos t + y \sin t) + p)),

    differ in phase p, in small changes of f, t and the colours, in brightness and in noise.

    The first half of each class's images, of which there are at least 2, is for training; `size`
    is the height and width in pixels, >= 8. The arrays are sorted by class.

    Examples
    --------
    >>> generate(seed=1, n_classes=3, n_images=4)["images"].shape
    (12, 32, 32, 3)
    """
    check_integer("seed", seed, minimum=0)
    check_integer("n_classes", n_classes, minimum=1)
    check_integer("n_images", n_images, minimum=2)
    check_integer("size", size, minimum=8)
    rng = np.random.default_rng(seed)
    images = np.concatenate([_gratings(n_images, size, rng) for _ in range(n_classes)])
    numbers = np.arange(n_classes)
    return {
        "images": images,
        "y": np.repeat(numbers, n_images),
        "train": np.tile(np.arange(n_images) < n_images // 2, n_classes),
        "names": encode_text([f"grating {number}" for number in numbers]),
        "files": encode_text([f"generated {i}" for i in range(len(images))]),
    }


def _gratings(n_images: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a class and its images, (n_images, size, size, 3)."""
    colours = rng.uniform(30.0, 225.0, size=(2, 3))
    frequency, turn = rng.uniform(1.0, size / 6.0), rng.uniform(0.0, np.pi)
    frequencies = frequency * rng.normal(1.0, 0.1, size=(n_images, 1, 1))
    turns = turn + rng.normal(scale=0.15, size=(n_images, 1, 1))
    phases = rng.uniform(0.0, 2.0 * np.pi, size=(n_images, 1, 1))
    down, across = np.mgrid[0:size, 0:size] / size
    along = across * np.cos(turns) + down * np.sin(turns)
    share = 0.5 * (1.0 + np.sin(2.0 * np.pi * frequencies * along + phases))[..., None]
    shifted = colours + rng.normal(scale=20.0, size=(n_images, 2, 3))
    first, second = shifted[:, 0, None, None], shifted[:, 1, None, None]
    values = first + (second - first) * share
    values *= rng.uniform(0.8, 1.2, size=(n_images, 1, 1, 1))
    values += rng.normal(scale=12.0, size=values.shape)
    return np.clip(np.rint(values), 0.0, 255.0).astype(np.uint8)


def _decode(item) -> np.ndarray:
    """Return an image as RGB array of type uint8."""
    if isinstance(item, np.ndarray):
        if item.ndim != 3 or item.shape[2] != 3 or item.dtype != np.uint8 or not item.size:
            raise ValueError(
                f"an array of shape {item.shape} and type {item.dtype}; it may be (h, w, 3), uint8"
            )
        return item
    if not isinstance(item, str | os.PathLike | bytes):
        raise TypeError(f"got {type(item).__name__}; it may be an array, bytes or a path")
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


def _bytes(item) -> bytes:
    """Return the bytes of an encoded image."""
    if isinstance(item, bytes):
        return item
    try:
        return Path(item).read_bytes()
    except (OSError, TypeError):
        return b""
