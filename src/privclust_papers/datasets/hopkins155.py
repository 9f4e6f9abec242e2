"""The Hopkins 155 motion segmentation benchmark: reader, splits, flat layout.

R. Tron and R. Vidal, "A Benchmark for the Comparison of 3-D Motion Segmentation Algorithms",
CVPR 2007. 155 image sequences in which points were tracked on two (120) or three (35) motions.
A sequence ``<name>`` is the MATLAB file ``<name>/<name>_truth.mat``. The download also holds
``dancing``, a sequence of five motions outside of the benchmark, which is left out.
"""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from collections.abc import Iterable
from operator import itemgetter

import numpy as np

from privclust_papers.datasets._archives import content_digest, members
from privclust_papers.datasets._parsing import matlab_variables
from privclust_papers.datasets.registry import DataError, damaged

N_SEQUENCES = {2: 120, 3: 35}
"""Number of the benchmark's sequences by number of motions."""

FAMILIES = ("checkerboard", "traffic", "articulated")

_EXCLUDED = frozenset({"dancing"})
_PART = re.compile(r"_(?:g(?:12|13|23)|[Cc]lip\d+)\Z")
# The benchmark's README.txt says which scenes form which family.
_FAMILY_PATTERNS = {
    "checkerboard": re.compile(r"\d\w*|three-cars"),
    "traffic": re.compile(r"cars\d\w*|truck\d|kanatani[12]"),
    "articulated": re.compile(r"arm|articulated|head|kanatani3|people\d|two_cranes"),
}
_TUNING_STEP = 3
_VARIABLES = {"x": "trajectories", "s": "labels"}


Sequence = tuple[str, str, np.ndarray, np.ndarray]
"""Name, family, trajectories and labels of a sequence of tracked points.

A name is such as ``"1R2RC"``, or ``"1R2RC_g12"`` for only motions 1 and 2 of that scene. The family
is one of `FAMILIES`, or ``"driving"`` in `kt3dmoseg`. Trajectories (2 * n_frames, n_points) are
float64: row ``2 f`` has the horizontal and row ``2 f + 1`` the vertical image coordinates in frame
``f``, normalised so that the image spans [-1, 1] in both. (Estimators take samples as rows: give
them ``trajectories.T``.) Labels (n_points,) are int64: the motion of each point, from 0 on.
"""


def parent_scene(name: str) -> str:
    """Return the scene of a sequence: its name without the suffix of a pair of motions or a clip.

    Examples
    --------
    >>> parent_scene("1R2RCT_A_g13"), parent_scene("1R2RCT_A")
    ('1R2RCT_A', '1R2RCT_A')
    """
    return _PART.sub("", name)


def family_of(name: str) -> str:
    """Return the family of a sequence of the benchmark, or raise a DataError for other names.

    Names of checkerboard scenes spell their motions and start with an object's number; the family
    includes ``three-cars``, toy cars on a table. Traffic and articulated scenes are listed in the
    data set's README.txt.

    Examples
    --------
    >>> family_of("1R2RCT_A_g13"), family_of("cars2_06"), family_of("kanatani3")
    ('checkerboard', 'traffic', 'articulated')
    """
    for family, pattern in _FAMILY_PATTERNS.items():
        if pattern.fullmatch(parent_scene(name)):
            return family
    raise DataError(f"{name}: no sequence of Hopkins 155 has such a name")


def assign_splits(names: Iterable[str]) -> dict[str, str]:
    """Assign each sequence to the tuning split or the report split.

    Scenes are assigned as a whole, since their pairs share trajectories. Parent scenes are sorted
    by name (by code point); those at positions 0, 3, 6, ... are for tuning.

    Examples
    --------
    >>> assign_splits(["b", "a_g12", "a"])
    {'b': 'report', 'a_g12': 'tuning', 'a': 'tuning'}
    """
    names = list(names)
    tuning = set(sorted({parent_scene(name) for name in names})[::_TUNING_STEP])
    return {name: "tuning" if parent_scene(name) in tuning else "report" for name in names}


def read(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read and check the 155 sequences of the benchmark, into the layout of `pack`.

    The path is an archive or an unpacked directory with files ``<name>/<name>_truth.mat``, below
    any leading folders. Raises a DataError if it is incomplete, ``x`` or ``s`` of a sequence is
    missing or does not match, or there are not 120 sequences of two and 35 of three motions.
    """
    parts = [
        (name, family_of(name), *parse_truth(name, content))
        for name, content in _truth_files(path).items()
    ]
    n_of = Counter(int(labels.max()) + 1 for _, _, _, labels in parts)
    if n_of != N_SEQUENCES:
        counts = ", ".join(f"{n_of[k]} of {k} motions" for k in sorted(n_of))
        raise damaged(
            path,
            f"holds {len(parts)} sequences ({counts}) where the benchmark has 155 "
            "(120 of 2 motions, 35 of 3 motions)",
        )
    return pack(parts)


def content_sha256(path: str | os.PathLike[str]) -> str:
    """Return a checksum of the benchmark that does not depend on its packaging.

    SHA-256 over the sorted lines ``"<name> <SHA-256 of <name>_truth.mat>\\n"`` of all sequences
    except ``dancing``, in UTF-8. The argument is that of `read`.
    """
    return content_digest(_truth_files(path))


def parse_truth(name: str, content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return the trajectories and labels of a sequence from the bytes of ``<name>_truth.mat``.

    The file has variables ``x`` (3 x points x frames) and ``s`` (points x 1). Results are as in
    `Sequence`; labels are the file's 1..K minus 1. Raises a DataError if the file cannot be read,
    ``x`` or ``s`` is missing, misshapen or not finite, or labels are not 1..K.
    """
    x, s = matlab_variables(f"{name}: {name}_truth.mat", io.BytesIO(content), _VARIABLES)
    s = s.ravel()
    if x.ndim != 3 or x.shape[0] != 3 or x.dtype.kind not in "fiu":
        raise damaged(
            name, f"x has shape {x.shape} and type {x.dtype}, not 3 x points x frames of numbers"
        )
    if not np.isfinite(x).all():
        raise damaged(name, "x holds values that are not finite")
    if s.size != x.shape[1]:
        raise damaged(name, f"s has {s.size} labels for {x.shape[1]} points")
    motions = np.unique(s)
    if not np.array_equal(motions, np.arange(1, motions.size + 1)):
        raise damaged(name, f"s holds labels {motions.tolist()}, not all of 1..K")
    # The third coordinate is 1 for all points (homogeneous coordinates).
    trajectories = x[:2].transpose(2, 0, 1).reshape(-1, x.shape[1])
    return np.ascontiguousarray(trajectories, dtype=np.float64), s.astype(np.int64) - 1


def pack(sequences: Iterable[Sequence], substitute: bool = False) -> dict[str, np.ndarray]:
    """Return sequences, sorted by name (by code point), as plain arrays for storage.

    There are the columns ``name``, ``family`` and ``split`` (ASCII bytes of fixed length; for the
    latter see `assign_splits`), ``n_motions`` (int64) and ``substitute`` (bool), each of shape
    (n_sequences,); and for the sequence at index ``i`` ``sequences/<i:03d>/trajectories`` (float64,
    (2 F, P)) and ``sequences/<i:03d>/labels`` (int64, (P,)).
    """
    sequences = sorted(sequences, key=itemgetter(0))
    splits = assign_splits(name for name, *_ in sequences)
    arrays = {
        "name": np.array([name.encode("ascii") for name, *_ in sequences]),
        "family": np.array([family.encode("ascii") for _, family, *_ in sequences]),
        "n_motions": np.array([labels.max() + 1 for *_, labels in sequences], dtype=np.int64),
        "split": np.array([splits[name].encode("ascii") for name, *_ in sequences]),
        "substitute": np.full(len(sequences), substitute),
    }
    for index, (_, _, trajectories, labels) in enumerate(sequences):
        arrays[f"sequences/{index:03d}/trajectories"] = trajectories
        arrays[f"sequences/{index:03d}/labels"] = labels
    return arrays


def _truth_files(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """Return the files ``<name>/<name>_truth.mat`` of the folder with the most of them, by name."""
    trees: dict[str, dict[str, bytes]] = {}
    # \2 is the folder's name: `members` has group 1 around the pattern.
    for member in members(path, r"(?:.*/)?([^/]+)/\2_truth\.mat"):
        folder, name, _ = f"/{member.name}".rsplit("/", 2)
        if name not in _EXCLUDED:
            trees.setdefault(folder, {})[name] = member.read()
    if not trees:
        raise damaged(
            path, "holds no sequence (no <name>/<name>_truth.mat), so it is not Hopkins 155"
        )
    # An archive may have a second, partial copy; of equal folders the first by name is read.
    tree = max(sorted(trees), key=lambda folder: len(trees[folder]))
    return dict(sorted(trees[tree].items()))
