"""Gowalla: the official format, the part, the generated stand-in."""

import gzip
import logging

import numpy as np
import pytest

from privclust_papers.datasets import gowalla
from privclust_papers.datasets.fetch import fetch, load
from privclust_papers.datasets.registry import DataError

LINES = (
    "0\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847",
    "0\t2010-10-18T22:17:43Z\t30.2691029532\t-97.7493953705\t420315",
    "1\t2010-10-17T23:42:03Z\t30.2359091167\t-97.7951395833\t22847",  # again
    "",
    "1\t2010-10-16T18:50:42Z\t30.1\t-97.7951395833\t5",
    "2\t2010-10-12T00:21:28Z\t90.5\t10.0\t6",  # not on the globe
    "2\t2010-10-12T00:21:29Z\t5.0\t-180.0001\t6",
    "2\t2010-10-12T00:21:30Z\tnan\t10.0\t6",
    "2\t2010-10-12T00:21:31Z\t-0.0\t0.0\t7",
    "2\t2010-10-12T00:21:32Z\t0.0\t-0.0\t7",
    "3\t2010-10-12T00:21:33Z\t-90\t180\t8",
)
POINTS = [
    [-97.7951395833, 30.1],
    [-97.7951395833, 30.2359091167],
    [-97.7493953705, 30.2691029532],
    [0.0, 0.0],
    [180.0, -90.0],
]


@pytest.fixture
def official(tmp_path):
    def write(lines, end="\n"):
        path = tmp_path / "loc-gowalla_totalCheckins.txt.gz"
        path.write_bytes(gzip.compress("".join(line + end for line in lines).encode()))
        return path

    return write


@pytest.fixture
def part(tmp_path):
    def write(**changes):
        arrays = {
            "lat": np.array([5.0, 2.0, 3.0, 4.0]),
            "lon": np.array([1.0, 2.0, 3.0, -4.0]),
            "source": np.array([1, 12, 6, 2], dtype=np.uint8),
        }
        path = tmp_path / "gowalla_points.npz"
        np.savez(path, **{k: v for k, v in (arrays | changes).items() if v is not None})
        return path

    return write


def _check_layout(points, n=None):
    assert points.dtype == np.float64
    assert points.shape == (len(points) if n is None else n, 2)
    assert (np.abs(points) <= [180, 90]).all()
    pairs = [tuple(row) for row in points.tolist()]
    assert pairs == sorted(set(pairs))
    assert not np.signbit(points[points == 0]).any()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("block", [1, 2, 3, 1 << 18])
def test_official_format(official, monkeypatch, caplog, end, block):
    monkeypatch.setattr(gowalla, "_BLOCK", block)
    with caplog.at_level(logging.INFO, "privclust_papers"):
        arrays = gowalla.read(official(LINES, end))
    assert list(arrays) == ["points"]
    np.testing.assert_array_equal(arrays["points"], POINTS)
    _check_layout(arrays["points"])
    assert "5 distinct locations, 3 check-ins dropped" in caplog.text


def test_many_lines_give_what_a_set_gives(official):
    rng = np.random.default_rng(0)
    pairs = [(f"{a:.2f}", f"{b:.2f}") for a, b in rng.uniform(-95, 95, size=(4000, 2)) / 20]
    lines = [f"1\t2010-10-12T00:21:28Z\t{a}\t{b}\t1" for a, b in pairs * 2]
    expected = sorted({(float(b) + 0.0, float(a) + 0.0) for a, b in pairs})
    np.testing.assert_array_equal(gowalla.read(official(lines))["points"], expected)


@pytest.mark.parametrize(
    "line",
    [
        *("0\t2010-10-19T23:55:27Z\t30.2\t-97.7", "0\t2010-10-19T23:55:27Z\t30.2\t-97.7\t5\t6"),
        *("0\t2010-10-19T23:55:27Z\tnorth\t-97.7\t5", "0\t2010-10-19T23:55:27Z\t30.2\t\t5"),
        "0 2010-10-19T23:55:27Z 30.2 -97.7 5",
    ],
)
def test_bad_line_is_named(official, line):
    with pytest.raises(DataError, match=r"line 12: got b'0.*it must be user, time") as error:
        gowalla.read(official((*LINES, line, LINES[0])))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("lines", [(), ("",), LINES[5:8]])
def test_file_without_a_location(official, lines):
    with pytest.raises(DataError, match="no check-in has a location"):
        gowalla.read(official(lines))


def test_file_that_is_not_whole(official, tmp_path):
    path = official(LINES)
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    for content in (whole[:-20], whole[:-5], b"<html>Moved</html>", bytes(flipped)):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"not a whole gzip file|got b"):
            gowalla.read(path)
    with pytest.raises(DataError, match="No such file"):
        gowalla.read(tmp_path / "none.gz")


def test_part_takes_the_samples_of_users_only(part):
    points = gowalla.read_part(part())["points"]
    np.testing.assert_array_equal(points, [[-4.0, 4.0], [1.0, 5.0], [3.0, 3.0]])


@pytest.mark.parametrize(
    "changes",
    [
        {"lat": None},
        {"source": None},
        {"lat": np.zeros(3)},
        {"lat": np.zeros((4, 2))},
        {"source": np.ones(4)},
        {"source": np.ones(3, dtype=np.uint8)},
        {"lon": np.array(["a", "b", "c", "d"])},
        {"lon": np.array([None] * 4)},
    ],
)
def test_other_arrays_are_not_the_part(part, changes):
    with pytest.raises(DataError, match="not an archive of equally long arrays lat, lon and sour"):
        gowalla.read_part(part(**changes))


def test_part_without_points(part):
    with pytest.raises(DataError, match="no check-in has a location"):
        gowalla.read_part(part(source=np.zeros(4, dtype=np.uint8)))


def test_part_that_is_not_whole(part, tmp_path):
    path = part()
    for content in (path.read_bytes()[:-30], b"PK\x03\x04", b"", b"text"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"gowalla_points\.npz: not a"):
            gowalla.read_part(path)
    with pytest.raises(DataError, match="No such file"):
        gowalla.read_part(tmp_path / "none.npz")


def test_generated_points_are_clustered_and_as_many_as_asked():
    points = gowalla.generate(seed=3)["points"]
    _check_layout(points, 101_920)
    longitude = points[:, 0]
    america = ((longitude > -130) & (longitude < -65)).mean()
    europe = ((longitude > -10) & (longitude < 30)).mean()
    assert america > europe > 1 - america - europe > 0.02
    grid = np.unique(points.round(0), axis=0, return_counts=True)[1]
    assert np.sort(grid)[-40:].sum() > 0.7 * len(points)  # 40 of 64,800 cells of one degree


def test_radius_is_the_corner_of_the_globe():
    assert np.linalg.norm([180, 90]) == pytest.approx(gowalla.RADIUS)


def test_part_in_the_mirror_is_fetched_as_a_substitute(project_datasets, mirror, tmp_path):
    dataset = project_datasets["gowalla"]
    if not (mirror / "gowalla" / "gowalla_points.npz").exists():
        pytest.skip("no gowalla/gowalla_points.npz in the mirror")
    if (mirror / "gowalla" / dataset.file).exists():
        pytest.skip("the mirror has the official file, which goes before the part")
    receipt = fetch(dataset, tmp_path, mirror, timeout=(0.01, 0.01), retries=0)
    assert receipt.kind == "substitute"
    arrays, _ = load(dataset, tmp_path)
    _check_layout(arrays["points"], 101_920)


def test_official_file_in_the_mirror(project_datasets, mirror):
    path = mirror / "gowalla" / project_datasets["gowalla"].file
    if not path.exists():
        pytest.skip(f"no gowalla/{path.name} in the mirror")
    points = gowalla.read(path)["points"]
    _check_layout(points)
    assert len(points) == pytest.approx(1_256_384, rel=0.01)  # the paper's count
