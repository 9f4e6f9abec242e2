"""Gowalla check-in locations: readers of the whole data set and of a part, and a generator.

E. Cho, S. A. Myers and J. Leskovec, "Friendship and Mobility: User Movement in Location-Based
Social Networks", KDD 2011; published by the Stanford Network Analysis Project (SNAP) as
``loc-gowalla_totalCheckins.txt.gz``. M. Park et al., "Practical Privacy for Expectation
Maximization", cluster its 1,256,384 distinct locations (footnote 9). The number that this reader
finds in the official file has not been compared with theirs.

All three return ``{"points": array}`` in degrees. The points are within `RADIUS` of (0, 0), a
public bound, by which experiments scale them to norm at most 1.
"""

from __future__ import annotations

import gzip
import io
import logging
import math
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator

import numpy as np

from privclust_papers.datasets._parsing import wrong_line
from privclust_papers.datasets.registry import damaged

RADIUS = math.hypot(180.0, 90.0)
"""Largest norm of (longitude, latitude) on the globe, in degrees; independent of the data."""

_SAMPLE_BITS = 3  # of `source`: users world-wide; the others over-represent some places
_BLOCK = 1 << 19  # check-ins per block before duplicates are dropped
_READ_AHEAD = 1 << 20
_DECIMALS = 10  # as in the official file

# Longitude and latitude of city centres, and their unnormalised shares: three regions of unequal
# weight, like Gowalla's users.
_CITIES = (
    (-97.74, 30.27, 10.0),  # Austin
    (-122.42, 37.77, 8.0),  # San Francisco
    (-74.01, 40.71, 8.0),  # New York
    (-118.24, 34.05, 6.0),  # Los Angeles
    (-96.80, 32.78, 6.0),  # Dallas
    (-87.63, 41.88, 4.0),  # Chicago
    (-122.33, 47.61, 4.0),  # Seattle
    (-84.39, 33.75, 3.0),  # Atlanta
    (-81.38, 28.54, 3.0),  # Orlando
    (-79.38, 43.65, 3.0),  # Toronto
    (18.07, 59.33, 9.0),  # Stockholm
    (11.97, 57.71, 5.0),  # Gothenburg
    (10.75, 59.91, 5.0),  # Oslo
    (-0.13, 51.51, 5.0),  # London
    (13.40, 52.52, 4.0),  # Berlin
    (11.58, 48.14, 3.0),  # Munich
    (4.90, 52.37, 3.0),  # Amsterdam
    (2.35, 48.86, 2.0),  # Paris
    (100.50, 13.76, 2.0),  # Bangkok
    (139.69, 35.69, 1.5),  # Tokyo
    (101.69, 3.14, 1.0),  # Kuala Lumpur
    (151.21, -33.87, 1.0),  # Sydney
    (-46.63, -23.55, 1.0),  # Sao Paulo
    (46.68, 24.71, 1.0),  # Riyadh
)
# Share of a city's points and their spread in degrees: the town, its surroundings, its region.
_RINGS = ((0.6, 0.08), (0.25, 0.5), (0.15, 2.0))

log = logging.getLogger(__name__)


def read(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read the distinct locations of ``loc-gowalla_totalCheckins.txt.gz``, the official check-ins.

    A line holds user, time, latitude, longitude and location, separated by tabs. The file is read
    as a stream. Check-ins with coordinates outside of the globe are dropped and counted in the log;
    empty lines are skipped.

    Returns ``points``, shape (n, 2), float64: longitude in [-180, 180] and latitude in [-90, 90],
    in degrees; rows are distinct, sorted by longitude, then latitude.
    """
    try:
        with gzip.open(path) as stream:
            lines = io.BufferedReader(stream, _READ_AHEAD)
            return _distinct(_blocks(lines, path), path)
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, f"not a whole gzip file ({error})") from error


def read_part(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read ``gowalla_points.npz``, all locations of about 3,000 users, world-wide.

    The file holds ``lat`` and ``lon`` in degrees and a bit mask ``source`` of the origin of each
    point; bits 1 and 2 are the samples of users that are used. In a sample of users, popular places
    are over-represented: results are not comparable with those on the whole data set. Returns
    ``points`` as `read`.
    """
    try:
        # NumPy leaves a path open that is not a whole archive.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            longitude, latitude, source = (archive[name] for name in ("lon", "lat", "source"))
        is_sampled = (source & _SAMPLE_BITS) > 0
        # Points as complex numbers: `np.unique` sorts them by longitude, then latitude, and faster
        # than rows.
        points = longitude[is_sampled] + 1j * latitude[is_sampled]
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise damaged(path, f"not a whole npz archive ({error})") from error
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise damaged(
            path, f"not an archive of equally long arrays lat, lon and source ({error})"
        ) from error
    return _distinct([points], path)


def generate(seed: int, n_points: int = 101_920) -> dict[str, np.ndarray]:
    """Generate points around well-known cities: a substitute for Gowalla that is not comparable.

    Each city has points in the town, around it and in its region (Gaussian rings of 0.08, 0.5 and
    2 degrees). Cities are mostly in North America and Europe, like Gowalla's users. `n_points`, the
    number of distinct points, is by default that of `read_part`.
    """
    rng = np.random.default_rng(seed)
    cities = np.array(_CITIES)
    rings = np.array(_RINGS)
    points = np.empty(0, dtype=complex)
    while len(points) < n_points:  # more than one round only if two points coincide
        missing = n_points - len(points)
        city = rng.choice(len(cities), size=missing, p=cities[:, 2] / cities[:, 2].sum())
        spread = rings[rng.choice(len(rings), size=missing, p=rings[:, 0]), 1]
        drawn = cities[city, :2] + spread[:, None] * rng.standard_normal((missing, 2))
        drawn = np.round(drawn, _DECIMALS)
        points = np.unique(np.concatenate([points, drawn[:, 0] + 1j * drawn[:, 1]]))
    return {"points": _columns(points)}


def _blocks(lines: Iterable[bytes], path: str | os.PathLike[str]) -> Iterator[np.ndarray]:
    """Yield blocks of longitude + i latitude of the check-ins."""
    block: list[complex] = []
    for number, line in enumerate(lines, start=1):
        try:
            # A wrong number of fields is a ValueError, too.
            _, _, latitude, longitude, _ = line.split(b"\t")
            block.append(complex(float(longitude), float(latitude)))
        except ValueError:
            if line.strip():
                expected = "user, time, latitude, longitude and location, separated by tabs"
                raise wrong_line(path, number, line, expected) from None
        if len(block) == _BLOCK:
            yield np.array(block)
            block.clear()
    yield np.array(block, dtype=complex)


def _distinct(blocks: Iterable[np.ndarray], path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the distinct points on the globe of all blocks, sorted."""
    points = np.empty(0, dtype=complex)
    n_dropped = 0
    for block in blocks:
        on_globe = (np.abs(block.real) <= 180) & (np.abs(block.imag) <= 90)  # false for NaN
        n_dropped += int((~on_globe).sum())
        added = block[on_globe] + 0.0  # turns -0 into 0
        points = np.unique(np.concatenate([points, added]))
    if not len(points):
        raise damaged(path, "no check-in has a location")
    log.info("%s: %d distinct locations, %d check-ins dropped", path, len(points), n_dropped)
    return {"points": _columns(points)}


def _columns(points: np.ndarray) -> np.ndarray:
    return np.column_stack([points.real, points.imag])
