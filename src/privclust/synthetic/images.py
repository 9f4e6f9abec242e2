"""Images of coloured gratings, in the layout of `privclust.features.images`."""

from __future__ import annotations

import numpy as np

from privclust.core.hdf5 import encode_text
from privclust.core.validation import check_integer


def generate(
    seed: int, n_classes: int = 10, n_images: int = 60, size: int = 32
) -> dict[str, np.ndarray]:
    r"""Generate images of coloured gratings: a substitute, not comparable with photographs.

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
    # shapes broadcast to (n_images, size, size), then a last axis for the three channels
    down, across = np.mgrid[0:size, 0:size] / size
    along = across * np.cos(turns) + down * np.sin(turns)
    share = 0.5 * (1.0 + np.sin(2.0 * np.pi * frequencies * along + phases))[..., None]
    shifted = colours + rng.normal(scale=20.0, size=(n_images, 2, 3))
    first, second = shifted[:, 0, None, None], shifted[:, 1, None, None]
    values = first + (second - first) * share
    values *= rng.uniform(0.8, 1.2, size=(n_images, 1, 1, 1))
    values += rng.normal(scale=12.0, size=values.shape)
    return np.clip(np.rint(values), 0.0, 255.0).astype(np.uint8)
