"""The reader of KT3DMoSeg, on small clips and on the real ones."""

import io
import tarfile

import numpy as np
import pytest

from privclust_papers.datasets import kt3dmoseg
from privclust_papers.datasets.registry import DataError

N_POINTS, N_FRAMES = 24, 12


def clip_bytes(seed=0, **fields):
    """Return the bytes of a clip with three motions of eight tracks, all of them complete."""
    from scipy.io import savemat

    points = np.ones((3, N_POINTS, N_FRAMES))
    points[:2] = np.random.default_rng(seed).uniform(0.0, 300.0, (2, N_POINTS, N_FRAMES))
    data = {
        "ySparse": points,
        "visibleSparse": np.ones((N_POINTS, N_FRAMES), np.uint8),
        "GtLabel": np.repeat([1, 2, 5], 8),
        **fields,
    }
    buffer = io.BytesIO()
    savemat(buffer, {"Data": {k: v for k, v in data.items() if v is not None}})
    return buffer.getvalue()


def write_tar(path, clips, prefix="repository-72779e1/Data/"):
    with tarfile.open(path, "w") as archive:
        for name, content in {**clips, "SeqList.mat": b"names"}.items():
            member = tarfile.TarInfo(prefix + name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.fixture
def clips():
    return {f"Seq{i // 2:03d}_Clip{i % 2 + 1:02d}_Tracks.mat": clip_bytes(i) for i in range(22)}


def test_clips_of_one_film_share_a_scene(clips, tmp_path, unpack):
    sequences = unpack(kt3dmoseg.read(write_tar(tmp_path / "a.tar", clips)))
    assert len(sequences) == 22
    assert len({s.parent for s in sequences}) == 11
    assert {s.split for s in sequences} == {"report"}
    assert {(s.n_motions, s.trajectories.shape) for s in sequences} == {(3, (20, 24))}
    assert not any(s.substitute for s in sequences)


def test_packing_does_not_change_the_digest(clips, tmp_path):
    one = write_tar(tmp_path / "a.tar", clips)
    other = write_tar(tmp_path / "b.tar", dict(reversed(clips.items())), prefix="")
    assert kt3dmoseg.content_sha256(one) == kt3dmoseg.content_sha256(other)
    changed = {**clips, min(clips): clip_bytes(99)}
    other = write_tar(tmp_path / "c.tar", changed)
    assert kt3dmoseg.content_sha256(one) != kt3dmoseg.content_sha256(other)


def test_window_has_most_motions_then_most_tracks_then_is_first():
    rng = np.random.default_rng(1)
    for _ in range(20):
        points = rng.uniform(0.0, 300.0, (3, 60, 14))
        visible = rng.random((60, 14)) < 0.97
        labels = rng.integers(0, 4, 60)
        best = None
        for start in range(5):
            whole = visible[:, start : start + 10].all(axis=1)
            counts = [n for n in np.bincount(labels[whole], minlength=4) if n >= 8]
            if best is None or (len(counts), sum(counts)) > best[0]:
                best = (len(counts), sum(counts)), start
        x, kept = kt3dmoseg.window_of(points, visible, labels)
        (n_motions, n_tracks), start = best
        assert (len(np.unique(kept)), len(kept)) == (n_motions, n_tracks)
        first = x[0] / 2.0 * 1242 + 621  # the horizontal coordinate of the first frame
        assert np.isin(np.round(first, 6), np.round(points[0, :, start], 6)).all()


def test_image_spans_minus_one_to_one():
    points = np.zeros((2, 16, 3))
    points[0, 8:], points[1, 8:] = 1242.0, 375.0
    x, labels = kt3dmoseg.window_of(points, np.ones((16, 3), bool), np.repeat([4, 2], 8))
    assert x.shape == (6, 16)
    assert set(x[:, :8].ravel()) == {-1.0}
    assert set(x[:, 8:].ravel()) == {1.0}
    assert labels.tolist() == [1] * 8 + [0] * 8


def test_clip_of_one_motion_is_left_out(clips, tmp_path, unpack):
    hidden = np.ones((N_POINTS, N_FRAMES), np.uint8)
    hidden[1:20, 6] = 0
    clips[min(clips)] = clip_bytes(visibleSparse=hidden)
    assert len(unpack(kt3dmoseg.read(write_tar(tmp_path / "a.tar", clips)))) == 21


def test_missing_clip(clips, tmp_path):
    del clips[min(clips)]
    with pytest.raises(DataError, match="holds 21 clips where KT3DMoSeg has 22"):
        kt3dmoseg.read(write_tar(tmp_path / "a.tar", clips))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"GtLabel": None}, "may have ySparse, visibleSparse and GtLabel"),
        ({"GtLabel": np.ones(7)}, "have the shapes"),
        ({"ySparse": np.ones((3, 5))}, "have the shapes"),
        ({"ySparse": np.full((3, N_POINTS, N_FRAMES), np.nan)}, "not finite"),
    ],
)
def test_wrong_clip_is_named(clips, tmp_path, fields, expected):
    clips[min(clips)] = clip_bytes(**fields)
    with pytest.raises(DataError, match=expected) as error:
        kt3dmoseg.read(write_tar(tmp_path / "a.tar", clips))
    assert min(clips) in str(error.value)


def test_substitute_has_as_many_clips_and_films(unpack):
    sequences = unpack(kt3dmoseg.generate(3))
    assert (len(sequences), len({s.parent for s in sequences})) == (19, 14)
    assert all(s.substitute and len(s.trajectories) == 20 for s in sequences)


def test_real_clips_are_those_of_the_rule(mirror, project_datasets, unpack):
    if not (mirror / "kt3dmoseg").is_dir():
        pytest.skip("the mirror has no kt3dmoseg/")
    sequences = unpack(kt3dmoseg.read(mirror / "kt3dmoseg"))
    assert (len(sequences), len({s.parent for s in sequences})) == (19, 14)
    digest = kt3dmoseg.content_sha256(mirror / "kt3dmoseg")
    assert digest == project_datasets["kt3dmoseg"].content_sha256
