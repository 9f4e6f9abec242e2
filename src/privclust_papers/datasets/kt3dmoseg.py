"""KT3DMoSeg: points tracked on cars and streets, filmed from moving cars, in short windows.

X. Xu, L.-F. Cheong and Z. Li, "Motion segmentation by exploiting complementary geometric models",
CVPR 2018; from films of KITTI. 22 clips ``<film>_Clip<number>``, each in a MATLAB file
``<clip>_Tracks.mat``. Many tracks are incomplete, but the methods need complete ones. Each clip is
therefore cut to a window by a rule that was fixed before any method was run (`window_of`).
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from operator import itemgetter

import numpy as np

from privclust_papers.datasets._archives import content_digest, read_members
from privclust_papers.datasets._parsing import matlab_variables
from privclust_papers.datasets.hopkins155 import Sequence, pack, parent_scene
from privclust_papers.datasets.motion import generate_sequences
from privclust_papers.datasets.registry import damaged

N_CLIPS = 22
WIDTH, HEIGHT = 1242, 375
"""Size of the image in pixels."""
N_FRAMES = 10
"""Number of frames of a window."""
MIN_TRACKS = 8
"""Least number of complete tracks of a motion."""

_FILES = r"Seq\d+_[Cc]lip\d+_Tracks\.mat"
_END = "_Tracks.mat"
_FAMILY = "driving"
_N_FILMS, _N_TWICE = 14, 5  # generated films, and those with two clips: 19 clips in total


def read(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read a tar archive or folder of the 22 clips into the layout of `hopkins155.pack`.

    Each clip is cut by `window_of`; clips with only one motion left are dropped. 19 of the
    published clips remain, from 14 films (`hopkins155.parent_scene`).

    Raises a DataError if the archive is damaged, does not hold 22 clips, or a clip lacks the struct
    ``Data`` with ``ySparse`` (3, N, F), ``visibleSparse`` (N, F) and ``GtLabel`` (N,).
    """
    files = _clips(path)
    parts = []
    for name, content in sorted(files.items()):
        x, labels = window_of(*_tracks(f"{path}: {name}", content))
        if labels.size and labels.max() > 0:
            parts.append((name.removesuffix(_END), _FAMILY, x, labels))
    return _all_reported(parts)


def content_sha256(path: str | os.PathLike[str]) -> str:
    """Return a checksum of the clips that does not depend on their packaging.

    SHA-256 over the sorted lines ``"<file> <SHA-256 of the file>\\n"``. Arguments: see `read`.
    """
    return content_digest(_clips(path))


def window_of(
    points: np.ndarray, visible: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Cut a clip to the window of 10 frames (all, if it has fewer) with most motions and tracks.

    A track is complete if its point is visible in each frame of the window. Motions with fewer than
    8 complete tracks are dropped. The window has the most remaining motions; ties are resolved by
    the number of their tracks, then by position.

    `points` (2 or more, n_points, n_frames) are image coordinates in pixels, `visible` (n_points,
    n_frames) is bool, and `labels` (n_points,) are any numbers of motions. Returns trajectories and
    labels as in `hopkins155.Sequence`.
    """
    n_frames = min(N_FRAMES, visible.shape[1])
    best: tuple[int, int] = (-1, -1)
    for start in range(visible.shape[1] - n_frames + 1):
        complete = visible[:, start : start + n_frames].all(axis=1)
        motions, counts = np.unique(labels[complete], return_counts=True)
        large = counts >= MIN_TRACKS
        found = int(large.sum()), int(counts[large].sum())
        # Motions first, then tracks; of equal windows the earliest stays.
        if found > best:
            best, first = found, start
            kept = np.flatnonzero(complete & np.isin(labels, motions[large]))
    pixels = points[:2, kept, first : first + n_frames]
    scaled = 2.0 * pixels / np.array([WIDTH, HEIGHT])[:, None, None] - 1.0
    x = scaled.transpose(2, 0, 1).reshape(2 * n_frames, -1)
    return np.ascontiguousarray(x), np.unique(labels[kept], return_inverse=True)[1].astype(np.int64)


def generate(seed: int) -> dict[str, np.ndarray]:
    """Generate the substitute: windows of 19 clips of 14 generated scenes of traffic.

    In the layout of `hopkins155.pack`; scenes are those of `motion.generate_sequences`.
    """
    parts = []
    scenes = (one for one in generate_sequences(seed) if one[0] == parent_scene(one[0]))
    traffic = sorted((one for one in scenes if one[1] == "traffic"), key=itemgetter(0))
    for number, (name, _, x, labels) in enumerate(traffic[:_N_FILMS]):
        parts.append((f"{name}_Clip01", _FAMILY, x[: 2 * N_FRAMES], labels))
        if number < _N_TWICE:
            parts.append((f"{name}_Clip02", _FAMILY, x[-2 * N_FRAMES :], labels))
    return _all_reported(parts, substitute=True)


def _all_reported(sequences: list[Sequence], substitute: bool = False) -> dict[str, np.ndarray]:
    arrays = pack(sequences, substitute)
    # No parameter was tuned on these clips, so that all are reported.
    return arrays | {"split": np.full(len(sequences), b"report")}


def _clips(path: str | os.PathLike[str]) -> Mapping[str, bytes]:
    files = read_members(path, _FILES)
    if len(files) != N_CLIPS:
        raise damaged(path, f"holds {len(files)} clips where KT3DMoSeg has {N_CLIPS}")
    return files


def _tracks(where: str, content: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points, visibility and motions from the bytes of a clip."""
    options = {"squeeze_me": True, "struct_as_record": False}
    (data,) = matlab_variables(where, io.BytesIO(content), {"Data": "tracks"}, **options)
    try:
        points, visible, labels = data.ySparse, data.visibleSparse != 0, data.GtLabel
        shapes = np.shape(points), np.shape(visible), np.shape(labels)
    except AttributeError as error:
        raise damaged(
            where, f"Data may have ySparse, visibleSparse and GtLabel ({error})"
        ) from None
    if len(shapes[0]) != 3 or shapes[0][0] < 2 or shapes[1:] != (shapes[0][1:], shapes[0][1:2]):
        raise damaged(where, f"tracks, visibility and labels have the shapes {shapes}")
    if not np.isfinite(points[:2, visible]).all():
        raise damaged(where, "visible points have coordinates that are not finite")
    return points, visible, labels
