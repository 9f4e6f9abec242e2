"""The generated motion sequences that stand in for Hopkins 155."""

from collections import Counter

import numpy as np
import pytest

from privclust_papers.datasets import motion


@pytest.fixture(scope="module")
def sequences(unpack):
    return unpack(motion.generate(seed=3))


@pytest.fixture(scope="module")
def exact(unpack):
    return unpack(motion.generate(seed=3, noise=0.0))


def test_counts_are_the_benchmarks(sequences):
    assert Counter((s.n_motions, s.family) for s in sequences) == {
        (2, "checkerboard"): 78,
        (2, "traffic"): 31,
        (2, "articulated"): 11,
        (3, "checkerboard"): 26,
        (3, "traffic"): 7,
        (3, "articulated"): 2,
    }
    assert sum("_g" in s.name.removeprefix("generated_") for s in sequences) == 105
    assert len({s.parent for s in sequences}) == 50


@pytest.mark.parametrize(
    ("family", "motions", "points", "frames"),
    [  # means of the benchmark's README.txt
        ("checkerboard", 2, 291, 28),
        ("checkerboard", 3, 437, 28),
        ("traffic", 2, 241, 30),
        ("traffic", 3, 332, 31),
        ("articulated", 2, 155, 40),
        ("articulated", 3, 122, 31),
    ],
)
def test_sizes_follow_the_benchmark(sequences, family, motions, points, frames):
    chosen = [s for s in sequences if (s.family, s.n_motions) == (family, motions)]
    assert np.mean([s.labels.size for s in chosen]) == pytest.approx(points, rel=0.05)
    assert np.mean([len(s.trajectories) / 2 for s in chosen]) == pytest.approx(frames, rel=0.05)


def test_everything_is_marked_as_generated(sequences):
    assert all(s.substitute and s.name.startswith("generated_") for s in sequences)


def test_same_seed_same_bytes_other_seed_other_data():
    one, two = motion.generate(3), motion.generate(3)
    assert one.keys() == two.keys()
    assert all(one[key].tobytes() == two[key].tobytes() for key in one)
    other = motion.generate(4)
    assert other["sequences/000/trajectories"].tobytes() != (
        one["sequences/000/trajectories"].tobytes()
    )


def test_pairs_hold_the_parents_trajectories(sequences):
    by_name = {s.name: s for s in sequences}
    parent = by_name["generated_traffic_3_01"]
    pair = by_name["generated_traffic_3_01_g13"]
    np.testing.assert_array_equal(
        pair.trajectories[:, pair.labels == 1], parent.trajectories[:, parent.labels == 2]
    )


def test_one_motion_has_rank_at_most_four_without_noise(exact):
    ranks, shared = Counter(), 0
    for s in exact:
        parts = [s.trajectories[:, s.labels == k] for k in range(s.n_motions)]
        own = [int(np.linalg.matrix_rank(part, tol=1e-8)) for part in parts]
        ranks.update(own)
        shared += np.linalg.matrix_rank(s.trajectories, tol=1e-8) < sum(own)
    assert set(ranks) == {2, 3, 4}
    assert ranks[4] > ranks[3] > 20  # degenerate motions are there, and fewer
    assert 40 < shared < 115  # so are motions whose subspaces meet


def test_noise_is_that_of_a_tracker(sequences, exact):
    for noisy, clean in zip(sequences[:30], exact[:30], strict=True):
        error = noisy.trajectories - clean.trajectories
        assert np.std(error[0::2]) * 320 == pytest.approx(0.3, rel=0.1)
        assert np.std(error[1::2]) * 240 == pytest.approx(0.3, rel=0.1)


def test_points_stay_in_the_image(sequences):
    assert max(np.abs(s.trajectories).max() for s in sequences) < 1
    assert min(np.bincount(s.labels, minlength=s.n_motions).min() for s in sequences) >= 14


@pytest.mark.parametrize("noise", [-1.0, np.nan, np.inf])
def test_wrong_noise(noise):
    with pytest.raises(ValueError, match="noise must be a finite number at least 0"):
        motion.generate(1, noise)
