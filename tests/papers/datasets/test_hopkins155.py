"""The reader of Hopkins 155, on small archives and on the real one."""

import csv
import zipfile
from collections import Counter

import numpy as np
import pytest

from privclust_papers.datasets import hopkins155
from privclust_papers.datasets.registry import DataError


def test_whole_archive(small_zip, unpack):
    arrays = hopkins155.read(small_zip)
    assert all(array.dtype.kind in "Sibf" for array in arrays.values())
    sequences = unpack(arrays)
    assert Counter(s.n_motions for s in sequences) == {2: 120, 3: 35}
    assert [s.name for s in sequences] == sorted(s.name for s in sequences)
    assert "dancing" not in {s.name for s in sequences}
    assert not any(s.substitute for s in sequences)
    first = sequences[0]
    assert first.trajectories.shape == (10, 6)
    assert first.trajectories.dtype == np.float64
    assert first.labels.dtype == np.int64


def test_rows_are_horizontal_then_vertical_frame_by_frame(make_truth):
    x = np.arange(3 * 4 * 2, dtype=float).reshape(3, 4, 2)
    trajectories, labels = hopkins155.parse_truth("a", make_truth(points=4, frames=2, x=x))
    for frame in range(2):
        np.testing.assert_array_equal(trajectories[2 * frame], x[0, :, frame])
        np.testing.assert_array_equal(trajectories[2 * frame + 1], x[1, :, frame])
    assert labels.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("prefix", ["Hopkins155/", "repository-255cf39/HMWK2/data/Hopkins155/"])
def test_packing_does_not_matter(truths, small_zip, make_zip, tmp_path, prefix):
    extra = [("__MACOSX/arm/._arm_truth.mat", b"junk"), ("other/arm/arm_truth.mat", b"junk")]
    path = make_zip(tmp_path / "a.zip", dict(reversed(truths.items())), prefix, extra)
    assert hopkins155.content_sha256(path) == hopkins155.content_sha256(small_zip)
    assert len(hopkins155.read(path)["name"]) == 155


def test_unpacked_directory(small_zip, tmp_path):
    with zipfile.ZipFile(small_zip) as archive:
        archive.extractall(tmp_path / "deep" / "down")
    assert hopkins155.content_sha256(tmp_path) == hopkins155.content_sha256(small_zip)
    assert len(hopkins155.read(tmp_path)["name"]) == 155


def test_digest_sees_content_and_names_but_not_dancing(truths, small_zip, make_zip, tmp_path):
    digest = hopkins155.content_sha256(small_zip)
    changed = {**truths, "arm": truths["cars1"]}
    assert hopkins155.content_sha256(make_zip(tmp_path / "a.zip", changed)) != digest
    renamed = {**truths, "head": truths["arm"]}
    del renamed["arm"]
    assert hopkins155.content_sha256(make_zip(tmp_path / "b.zip", renamed)) != digest
    without = {name: content for name, content in truths.items() if name != "dancing"}
    assert hopkins155.content_sha256(make_zip(tmp_path / "c.zip", without)) == digest


def _message(path):
    with pytest.raises(DataError) as error:
        hopkins155.read(path)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_truncated_archive(small_zip, tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(small_zip.read_bytes()[:-3000])
    assert "archive is truncated" in _message(path)
    assert _message(path).endswith("; replace the file by a whole copy")


def test_damaged_archive(small_zip, tmp_path):
    content = bytearray(small_zip.read_bytes())
    content[200:260] = bytes(60)
    path = tmp_path / "a.zip"
    path.write_bytes(content)
    assert "the archive is damaged" in _message(path)


@pytest.mark.parametrize("content", [b"", b"<html>Moved</html>"])
def test_not_an_archive(tmp_path, content):
    path = tmp_path / "a.zip"
    path.write_bytes(content)
    assert f"not a zip archive (it starts with {content[:4]!r})" in _message(path)


def test_no_such_file(tmp_path):
    assert "no such file; fetch the data set first" in _message(tmp_path / "a.zip")


def test_file_that_may_not_be_read(monkeypatch, tmp_path):
    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("privclust_papers.datasets._archives.open", refused, raising=False)
    assert _message(tmp_path / "a.zip").endswith("a.zip: cannot be read (Permission denied)")


@pytest.mark.parametrize("place", [6, 8], ids=["flags", "compression"])  # in a header of a member
@pytest.mark.parametrize("value", [1, 0x20, 99])
def test_damaged_header(small_zip, tmp_path, place, value):
    content = bytearray(small_zip.read_bytes())
    start = content.index(b"PK\x01\x02")  # of the directory
    content[start + place + 2] = content[place] = value
    path = tmp_path / "a.zip"
    path.write_bytes(content)
    assert "the archive is damaged" in _message(path)


def test_of_two_copies_the_first_by_name_is_read(truths, make_zip, tmp_path):
    digests = []
    for copies in (("a", "b"), ("b", "a")):
        files = [
            (f"{folder}/{name}/{name}_truth.mat", content + folder.encode())
            for folder in copies
            for name, content in truths.items()
        ]
        digests.append(hopkins155.content_sha256(make_zip(tmp_path / "two.zip", {}, extra=files)))
    assert digests[0] == digests[1]


def test_other_archive(make_zip, tmp_path):
    path = make_zip(tmp_path / "a.zip", {}, extra=[("readme.txt", "hello")])
    assert "holds no sequence" in _message(path)


def test_missing_sequences(truths, make_zip, tmp_path):
    some = dict(list(truths.items())[20:])
    message = _message(make_zip(tmp_path / "a.zip", some))
    assert "holds 135 sequences (100 of 2 motions, 35 of 3 motions)" in message
    assert "155 (120 of 2 motions, 35 of 3 motions)" in message


def test_unknown_name(truths, make_zip, tmp_path):
    message = _message(make_zip(tmp_path / "a.zip", {**truths, "boats": truths["arm"]}))
    assert message == "boats: no sequence of Hopkins 155 has such a name"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"s": None}, "has no variable s"),
        ({"x": None}, "has no variable x"),
        ({"x": np.full((3, 6, 5), np.nan)}, "not finite"),
        ({"x": np.full((3, 6, 5), np.inf)}, "not finite"),
        ({"x": np.zeros((6, 5))}, "x has shape (6, 5)"),
        ({"x": np.zeros((2, 6, 5))}, "x has shape (2, 6, 5)"),
        ({"x": "text"}, "x has shape"),
        ({"s": np.ones((4, 1))}, "s has 4 labels for 6 points"),
        ({"s": np.array([0, 1, 1, 0, 1, 0])}, "labels [0, 1], not all of 1..K"),
        ({"s": np.array([1, 3, 1, 3, 1, 3])}, "labels [1, 3], not all of 1..K"),
        ({"s": np.array([1, 1.5, 2, 1, 2, 1])}, "labels [1.0, 1.5, 2.0], not all of 1..K"),
    ],
)
def test_wrong_sequence_is_named(truths, make_truth, make_zip, tmp_path, variables, expected):
    path = make_zip(tmp_path / "a.zip", {**truths, "arm": make_truth(**variables)})
    message = _message(path)
    assert message.startswith("arm: ")
    assert expected in message
    assert message.endswith("; replace the file by a whole copy")


def test_unreadable_matlab_file(truths, make_zip, tmp_path):
    for content in (b"", b"junk" * 100, truths["arm"][:300]):
        message = _message(make_zip(tmp_path / "a.zip", {**truths, "arm": content}))
        assert message.startswith("arm: arm_truth.mat: ")
        assert message.count("replace the file by a whole copy") == 1


def test_splits_divide_scenes_not_sequences():
    names = [f"{scene}{pair}" for scene in "edcba" for pair in ("", "_g12", "_g13", "_g23")]
    splits = hopkins155.assign_splits(names)
    assert {name[0] for name, split in splits.items() if split == "tuning"} == {"a", "d"}
    assert {name[0] for name, split in splits.items() if split == "report"} == {"b", "c", "e"}


def test_real_data_are_the_benchmark(mirror, unpack):
    sequences = unpack(hopkins155.read(mirror / "hopkins155" / "Hopkins155.zip"))
    with (mirror / "hopkins155" / "sequences.csv").open() as file:
        rows = {row["name"]: row for row in csv.DictReader(file) if row["name"] != "dancing"}
    assert [s.name for s in sequences] == sorted(rows)
    for s in sequences:
        row = rows[s.name]
        assert s.family == row["family"]
        assert s.n_motions == int(row["motions"])
        assert s.trajectories.shape == (2 * int(row["frames"]), int(row["points"]))
        assert np.bincount(s.labels).tolist() == [int(n) for n in row["points_per_motion"].split()]
        for motion in range(s.n_motions):
            energy = np.linalg.svd(s.trajectories[:, s.labels == motion], compute_uv=False) ** 2
            assert energy[4:].sum() <= 6e-4 * energy.sum()


def test_real_datas_roles(mirror, unpack):
    sequences = unpack(hopkins155.read(mirror / "hopkins155" / "Hopkins155.zip"))
    assert len({s.parent for s in sequences}) == 50
    assert len({s.parent for s in sequences if s.split == "tuning"}) == 17
    for family in hopkins155.FAMILIES:
        assert {s.split for s in sequences if s.family == family} == {"tuning", "report"}
