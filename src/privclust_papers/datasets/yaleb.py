"""Extended Yale Face Database B: reader, and generator of a substitute.

A. Georghiades, P. Belhumeur and D. Kriegman, "From Few to Many: Illumination Cone Models for Face
Recognition under Variable Lighting and Pose", TPAMI 23(6), 2001; cropped by K.-C. Lee, J. Ho and
D. Kriegman, "Acquiring Linear Subspaces for Face Recognition under Variable Lighting", TPAMI 27(5),
2005. Frontal faces of 38 people under up to 64 lightings, at 48 x 42 pixels as in the literature on
subspace clustering.
"""

from __future__ import annotations

import os

import numpy as np

from privclust_papers.datasets._parsing import matlab_variables
from privclust_papers.datasets.registry import damaged

HEIGHT, WIDTH = 48, 42
"""Size of an image in pixels."""

# fmt: off
N_IMAGES = np.array([64] * 10 + [60, 59, 60, 63, 62, 63, 63] + [64] * 21)
"""Number of images of each of the 38 people: 64 minus images marked bad by the authors."""
# fmt: on
N_IMAGES.flags.writeable = False

_VARIABLES = {"EYALEB_DATA": "images", "EYALEB_LABEL": "labels"}
_N_WAVES = 12  # of a generated surface
_STEEPNESS = 0.6  # slopes that its waves add to the face's common shape
_DARKEST = 0.35  # albedo, of at most 1
_WIDEST_LIGHT = 1.2  # angle to the camera's axis, in radians
_NOISE = 2.0  # grey levels
# Low-order weights of the Lambertian kernel in spherical harmonics of order 0, 1 and 2.
_KERNEL = np.repeat([np.pi, 2.0 * np.pi / 3.0, np.pi / 4.0], [1, 3, 5])


def read(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read ``ExtendedYaleB.mat``, MATLAB 5.

    The file has ``EYALEB_DATA`` (2016, n), uint8, with an image of 48 x 42 pixels per column, in
    column-major order, and ``EYALEB_LABEL``, n numbers from 1 on.

    Returns ``images``, shape (n, 2016), uint8, where image i is ``images[i].reshape(42, 48).T``;
    ``labels``, shape (n,), int64, the person, from 0 on. The published file has n = 2,414 and 38
    people.
    """
    images, labels = matlab_variables(str(path), path, _VARIABLES)
    n_pixels = HEIGHT * WIDTH
    if images.ndim != 2 or len(images) != n_pixels or images.dtype != np.uint8:
        raise damaged(
            path,
            f"EYALEB_DATA has shape {images.shape} and type {images.dtype}; it must have "
            f"{n_pixels} rows of type uint8",
        )
    labels = labels.ravel()
    n_images = images.shape[1]
    if labels.size != n_images or labels.dtype.kind not in "iu" or not n_images or labels.min() < 1:
        raise damaged(
            path,
            f"EYALEB_LABEL has {labels.size} values of type {labels.dtype}; it must have "
            f"one whole number of at least 1 for each of the {n_images} images",
        )
    people, numbers = np.unique(labels, return_inverse=True)
    if len(people) != people[-1]:
        raise damaged(
            path,
            f"EYALEB_LABEL names {len(people)} people up to number {people[-1]}; "
            "it may leave no number out",
        )
    return {"images": np.ascontiguousarray(images.T), "labels": numbers.astype(np.int64)}


def generate(seed: int) -> dict[str, np.ndarray]:
    r"""Generate a set of the same size and kind: a substitute that is not comparable.

    A person is a smooth surface with an albedo, lit from random directions. Pixels are those of a
    convex Lambertian object in the nine-dimensional approximation of R. Basri and D. Jacobs,
    "Lambertian Reflectance and Linear Subspaces", TPAMI 25(2), 2003,

    .. math:: \text{albedo} \sum_{j=1}^{9} a_j\, Y_j(\text{light})\, Y_j(\text{normal})

    with the spherical harmonics :math:`Y_j` of order at most 2, scaled to at most 255, with noise
    of 2 grey levels, and clipped to 0 .. 255. Numbers of images are those of the published set.
    """
    rng = np.random.default_rng(seed)
    images = [_person(int(count), rng) for count in N_IMAGES]
    return {
        "images": np.concatenate(images),
        "labels": np.repeat(np.arange(len(N_IMAGES)), N_IMAGES),
    }


def _person(n_images: int, rng: np.random.Generator) -> np.ndarray:
    across, down = np.meshgrid(
        np.linspace(-1.0, 1.0, WIDTH), np.linspace(-1.0, 1.0, HEIGHT), indexing="ij"
    )  # pixels column by column
    slope_x, slope_y = across.copy(), 0.8 * down  # of an oval common to all faces
    albedo = np.zeros_like(across)
    for _ in range(_N_WAVES):
        frequency = rng.normal(scale=4.0, size=2)
        phase = frequency[0] * across + frequency[1] * down + rng.uniform(0.0, 2.0 * np.pi)
        wave = rng.normal(scale=_STEEPNESS / np.sqrt(_N_WAVES)) * np.cos(phase)
        # The slope of a wave is proportional to its frequency; 4 is the frequencies' scale.
        slope_x += frequency[0] / 4.0 * wave
        slope_y += frequency[1] / 4.0 * wave
        albedo += rng.normal() * np.sin(phase)
    normals = np.stack([slope_x, slope_y, np.ones_like(across)], axis=-1).reshape(-1, 3)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    albedo = _DARKEST + (1.0 - _DARKEST) / (1.0 + np.exp(-albedo.ravel()))
    shaded = _harmonics(_directions(n_images, rng)) * _KERNEL @ _harmonics(normals).T * albedo
    grey = 255.0 * shaded / shaded.max() + rng.normal(scale=_NOISE, size=shaded.shape)
    return np.clip(np.rint(grey), 0.0, 255.0).astype(np.uint8)


def _directions(count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw unit vectors towards lights, uniform in a cap around the camera's axis."""
    # Areas of a sphere between two heights are proportional to their difference (Archimedes).
    height = rng.uniform(np.cos(_WIDEST_LIGHT), 1.0, size=count)
    turn = rng.uniform(0.0, 2.0 * np.pi, size=count)
    radius = np.sqrt(1.0 - height**2)
    return np.stack([radius * np.cos(turn), radius * np.sin(turn), height], axis=1)


def _harmonics(directions: np.ndarray) -> np.ndarray:
    """Return the nine real spherical harmonics of order at most 2 at unit vectors, (n, 9)."""
    x, y, z = directions.T
    values = [
        np.full(len(x), np.sqrt(1.0 / 4.0)),
        *(np.sqrt(3.0 / 4.0) * part for part in (x, y, z)),
        *(np.sqrt(15.0 / 4.0) * part for part in (x * y, x * z, y * z)),
        np.sqrt(5.0 / 16.0) * (3.0 * z**2 - 1.0),
        np.sqrt(15.0 / 16.0) * (x**2 - y**2),
    ]
    return np.stack(values, axis=1) / np.sqrt(np.pi)
