"""Generated motion sequences: the declared substitute for Hopkins 155.

Rigid bodies move smoothly before an affine camera, which may move as well, and points on them are
tracked with errors. The trajectories of one rigid motion lie in a subspace of dimension at most 4
(C. Tomasi and T. Kanade, "Shape and Motion from Image Streams under Orthography", IJCV 1992; R.
Tron and R. Vidal, CVPR 2007, Section 2). Planar bodies and pure translations reduce the dimension;
with a moving camera or joints the subspaces of motions intersect.

Counts (sequences, motions, families) equal those of the benchmark; numbers of points and frames
follow the family means in its README.txt. Everything else is random, so that results on these
sequences are not comparable with results on the benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np

from privclust.core.validation import check_real
from privclust_papers.datasets.hopkins155 import Sequence, pack

WIDTH, HEIGHT = 640, 480
"""Size of the image in pixels."""

_HALF_SIZE = np.array([WIDTH / 2, HEIGHT / 2])
_MARGIN = 0.97  # part of the image that contains all noise-free points
_MIN_POINTS = 14  # of one motion
_FRAME_RANGE = (15, 100)
_OTHER_SHARE = {2: (0.15, 0.45), 3: (0.35, 0.55)}  # share of points not on the background


@dataclass(frozen=True)
class _Kind:
    """Number and sizes of the scenes of one family and number of motions.

    Spreads are standard deviations of the logarithm.
    """

    family: str
    n_motions: int
    n_scenes: int
    points: float
    points_spread: float
    frames: float
    frames_spread: float


_KINDS = (
    _Kind("checkerboard", 3, 26, 437, 0.25, 28, 0.18),
    _Kind("traffic", 3, 7, 332, 0.5, 31, 0.4),
    _Kind("traffic", 2, 10, 283, 0.6, 28, 0.3),
    _Kind("articulated", 3, 2, 122, 0.25, 31, 0.05),
    _Kind("articulated", 2, 5, 244, 0.8, 51, 0.45),
)


@dataclass(frozen=True)
class _Body:
    """A rigid body: points in body coordinates, and the pose in every frame (pixels, radians).

    Shapes: points (n, 3); rotations (F, 3, 3); translations (F, 3).
    """

    points: np.ndarray
    rotations: np.ndarray
    translations: np.ndarray


_Scene: TypeAlias = tuple[list[_Body], _Body]  # the bodies, and the camera


def generate(seed: int, noise: float = 0.3) -> dict[str, np.ndarray]:
    """Generate the substitute in the flat layout of `hopkins155.pack`; see `generate_sequences`."""
    return pack(generate_sequences(seed, noise), substitute=True)


def generate_sequences(seed: int, noise: float = 0.3) -> list[Sequence]:
    """Generate 120 sequences of two and 35 of three motions.

    There are 35 scenes of three motions, each also cut into its three pairs of motions
    (``_g12``, ``_g13``, ``_g23``), and 15 scenes of two motions. Names start with ``generated_``.
    `noise` is the standard deviation of the tracking error in each image coordinate, in pixels of a
    640 x 480 image, >= 0; the default is about that of the benchmark.
    """
    check_real("noise", noise, inclusive=True)
    # One stream for the sizes of each kind, and one for each scene.
    n_streams = sum(1 + kind.n_scenes for kind in _KINDS)
    streams = iter(np.random.SeedSequence(seed).spawn(n_streams))
    parts: list[Sequence] = []
    for kind in _KINDS:
        sizes = _sizes(kind, np.random.default_rng(next(streams)))
        for index, (n_points, n_frames) in enumerate(sizes, start=1):
            rng = np.random.default_rng(next(streams))
            x, labels = _scene(kind, n_points, n_frames, noise, rng)
            name = f"generated_{kind.family}_{kind.n_motions}_{index:02d}"
            parts.append((name, kind.family, x, labels))
            if kind.n_motions == 3:
                parts.extend(_pairs(name, kind.family, x, labels))
    return parts


def _sizes(kind: _Kind, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return numbers of points and frames of scenes: evenly spaced quantiles in random order."""
    from scipy.special import ndtri

    # Quantiles in place of draws: with few scenes, drawn means would be far from the benchmark's.
    z = ndtri((np.arange(kind.n_scenes) + 0.5) / kind.n_scenes)

    def spread_out(mean: float, spread: float) -> np.ndarray:
        values = np.exp(spread * z)
        return np.rint(rng.permutation(mean * values / values.mean())).astype(int)

    points = spread_out(kind.points, kind.points_spread)
    frames = np.clip(spread_out(kind.frames, kind.frames_spread), *_FRAME_RANGE)
    return list(zip(points.tolist(), frames.tolist(), strict=True))


def _scene(
    kind: _Kind, n_points: int, n_frames: int, noise: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return normalised trajectories (2 F, P) and labels (P,) of a scene, in random order."""
    counts = _points_per_motion(kind.n_motions, n_points, rng)
    make = {"checkerboard": _checkerboard, "traffic": _traffic, "articulated": _articulated}
    bodies, camera = make[kind.family](counts, n_frames, rng)
    pixels = np.concatenate([_project(body, camera) for body in bodies], axis=2)
    # The range of each image coordinate is centred, then shrunk into the image if too large.
    pixels -= (pixels.max(axis=(0, 2), keepdims=True) + pixels.min(axis=(0, 2), keepdims=True)) / 2
    excess = (np.abs(pixels) / _HALF_SIZE[:, None]).max() / _MARGIN
    pixels /= max(excess, 1.0)
    pixels += rng.normal(scale=noise, size=pixels.shape)
    x = (pixels / _HALF_SIZE[:, None]).reshape(2 * n_frames, -1)
    order = rng.permutation(x.shape[1])
    return np.ascontiguousarray(x[:, order]), np.repeat(np.arange(kind.n_motions), counts)[order]


def _points_per_motion(n_motions: int, n_points: int, rng: np.random.Generator) -> np.ndarray:
    """Return numbers of points of the moving bodies and, last and largest, of the background."""
    others = rng.uniform(*_OTHER_SHARE[n_motions])
    parts = rng.uniform(0.5, 1.5, size=n_motions - 1)
    counts = np.rint(n_points * others * parts / parts.sum()).astype(np.int64)
    counts = np.maximum(counts, _MIN_POINTS)
    return np.append(counts, max(n_points - counts.sum(), _MIN_POINTS))


def _pairs(name: str, family: str, x: np.ndarray, labels: np.ndarray) -> Iterator[Sequence]:
    for first, second in combinations(range(3), 2):
        in_pair = (labels == first) | (labels == second)
        pair = (labels[in_pair] == second).astype(np.int64)
        yield f"{name}_g{first + 1}{second + 1}", family, np.ascontiguousarray(x[:, in_pair]), pair


def _checkerboard(counts: np.ndarray, n_frames: int, rng: np.random.Generator) -> _Scene:
    """Draw objects that rotate, translate or both, a background, and a camera that may move."""
    bodies = []
    for count in counts[:-1]:
        turns, shifts = ((True, False), (False, True), (True, True))[rng.integers(3)]
        bodies.append(_free_body(_box(count, rng), n_frames, turns, shifts, rng))
    bodies.append(_still(_background(counts[-1], rng.random() < 0.2, rng), n_frames))
    moves = rng.random() < 0.8
    return bodies, _camera(n_frames, 0.25 if moves else 0.0, 60.0 if moves else 0.0, rng)


def _traffic(counts: np.ndarray, n_frames: int, rng: np.random.Generator) -> _Scene:
    """Draw vehicles, often flat, on straight or curved paths, and a hand-held camera."""
    bodies = []
    for count in counts[:-1]:
        points = _box(count, rng, flat=rng.random() < 0.5)
        path = np.linspace(0.0, rng.uniform(60.0, 200.0), n_frames)[:, None]
        heading = rng.uniform(0.0, 2.0 * np.pi)
        direction = np.array([np.cos(heading), 0.2 * np.sin(heading), np.sin(heading)])
        turn = np.zeros((n_frames, 3))
        if rng.random() < 0.5:
            turn[:, 1] = _smooth(n_frames, 1, rng.uniform(0.2, 0.6), rng)[:, 0]
        bodies.append(_Body(points, _rotations(turn), _place(rng) + path * direction))
    bodies.append(_still(_background(counts[-1], rng.random() < 0.5, rng), n_frames))
    return bodies, _camera(n_frames, 0.06, 25.0, rng)


def _articulated(counts: np.ndarray, n_frames: int, rng: np.random.Generator) -> _Scene:
    """Draw a chain of bodies, each rotating about a joint with the last, and a fixed camera."""
    bodies = [_free_body(_box(counts[0], rng), n_frames, True, True, rng)]
    for count in counts[1:]:
        last = bodies[-1]
        joint = last.points[rng.integers(len(last.points))]
        points = _box(count, rng)
        anchor = points[rng.integers(len(points))]
        bend = _rotations(_smooth(n_frames, 3, rng.uniform(0.3, 0.8), rng))
        rotations = last.rotations @ bend
        # The anchor of the new body is at the joint of the last one in every frame.
        translations = last.translations + last.rotations @ joint - rotations @ anchor
        bodies.append(_Body(points, rotations, translations))
    return bodies, _camera(n_frames, 0.0, 0.0, rng)


def _free_body(
    points: np.ndarray, n_frames: int, turns: bool, shifts: bool, rng: np.random.Generator
) -> _Body:
    """Draw a body in the scene that rotates about its centre, translates, or both."""
    angle = rng.uniform(0.3, 0.8) if turns else 0.0
    distance = rng.uniform(50.0, 150.0) if shifts else 0.0
    rotations = _rotations(_smooth(n_frames, 3, angle, rng))
    return _Body(points, rotations, _place(rng) + _smooth(n_frames, 3, distance, rng))


def _still(points: np.ndarray, n_frames: int) -> _Body:
    return _Body(points, np.tile(np.eye(3), (n_frames, 1, 1)), np.zeros((n_frames, 3)))


def _camera(n_frames: int, angle: float, distance: float, rng: np.random.Generator) -> _Body:
    rotations = _rotations(_smooth(n_frames, 3, angle, rng))
    return _Body(np.empty((0, 3)), rotations, _smooth(n_frames, 3, distance, rng))


def _box(count: int, rng: np.random.Generator, flat: bool = False) -> np.ndarray:
    """Draw points (count, 3) in a box of random size and orientation, or on one of its faces."""
    size = rng.uniform(35.0, 90.0, size=3)
    if flat:
        size[2] = 0.0
    turn = _rotations(rng.uniform(-1.0, 1.0, size=(1, 3)))[0]
    return (rng.uniform(-1.0, 1.0, size=(count, 3)) * size) @ turn.T


def _background(count: int, flat: bool, rng: np.random.Generator) -> np.ndarray:
    """Draw points (count, 3) all over the image, on a plane or at varying depth."""
    points = rng.uniform(-1.0, 1.0, size=(count, 3)) * [280.0, 200.0, 150.0]
    if flat:
        points[:, 2] = points[:, :2] @ rng.uniform(-0.5, 0.5, size=2)
    return points


def _place(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(-1.0, 1.0, size=3) * [180.0, 120.0, 80.0]


def _smooth(n_frames: int, n_axes: int, largest: float, rng: np.random.Generator) -> np.ndarray:
    """Draw a smooth curve (n_frames, n_axes) that starts at 0, up to the distance `largest`."""
    order = np.arange(1, 4)
    phase = rng.uniform(0.0, 2.0 * np.pi, size=(3, n_axes))
    weight = rng.normal(size=(3, n_axes)) / order[:, None] ** 2
    time = np.linspace(0.0, 1.0, n_frames)[:, None, None]
    curve = (weight * np.sin(np.pi * order[:, None] * time + phase)).sum(axis=1)
    curve -= curve[0]
    return curve * (largest / np.linalg.norm(curve, axis=1).max())


def _rotations(vectors: np.ndarray) -> np.ndarray:
    """Return rotation matrices (n, 3, 3) of rotation vectors (n, 3), by Rodrigues' formula."""
    angle = np.linalg.norm(vectors, axis=1)[:, None, None]
    x, y, z = vectors.T
    zero = np.zeros_like(x)
    cross = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)
    sine = np.sinc(angle / np.pi)  # sin(angle) / angle
    # (1 - cos a) / a^2 = sinc^2(a / 2) / 2, without the cancellation at small angles.
    half = np.sinc(angle / (2.0 * np.pi))
    return np.eye(3) + sine * cross + 0.5 * half**2 * (cross @ cross)


def _project(body: _Body, camera: _Body) -> np.ndarray:
    """Return coordinates (F, 2, n) of a body's points, in pixels from the image centre."""
    rotations = camera.rotations @ body.rotations
    shift = np.einsum("fij,fj->fi", camera.rotations, body.translations) + camera.translations
    # An affine camera drops the depth and does not divide by it.
    return (rotations @ body.points.T + shift[:, :, None])[:, :2]
