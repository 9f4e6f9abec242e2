"""The search for the worst pair."""

import numpy as np
import pytest
from scipy import stats

from privclust_audit.black_box import add_remove, move_one, replace_one, search_pair


def mechanism(data, rng):
    return mechanism.many(data, rng, 1)[0]


mechanism.many = lambda data, rng, n: data.sum() + rng.laplace(size=n)


def identity(output):
    return output


identity.many = lambda outputs: outputs


def propose(rng):
    """Records in [0, 1]: the sum moves by at most 1 between neighbours."""
    data = rng.random(4)
    neighbour = data.copy()
    neighbour[0] = rng.random()
    return data, neighbour


def test_the_worst_pair_is_found_and_audited_on_fresh_runs():
    moves = []

    def recorded(rng):
        data, neighbour = propose(rng)
        moves.append(abs(data.sum() - neighbour.sum()))
        return data, neighbour

    found = search_pair(mechanism, recorded, 1.0, 0.0, 40, 20_000, identity, 0)
    moved = abs(found.data.sum() - found.neighbour.sum())
    assert moved in sorted(moves)[-4:]
    assert found.n_pairs == len(moves) == 40
    assert found.audit.verdict == "consistent"
    assert found.audit.epsilon_lower_bound < moved
    assert found.audit.n_trials == 20_000


def test_one_pair_is_audited_without_a_search():
    found = search_pair(mechanism, propose, 1.0, 0.0, 1, 100, identity, 0)
    assert (found.n_pairs, found.screened_epsilon) == (1, 0.0)


def test_the_search_repeats():
    first, second = (
        search_pair(mechanism, propose, 1.0, 0.0, 8, 400, identity, 3) for _ in range(2)
    )
    assert (first.data == second.data).all()
    assert first.audit.epsilon_event == second.audit.epsilon_event


def test_bad_proposals_are_named():
    with pytest.raises(ValueError, match=r"propose.* must return two data sets, got 3"):
        search_pair(mechanism, lambda rng: 3, 1.0, 0.0, 2, 100, identity)
    with pytest.raises(ValueError, match=r"move.* must return two data sets, got 3"):
        search_pair(mechanism, propose, 1.0, 0.0, 8, 100, identity, move=lambda pair, rng: 3)
    with pytest.raises(ValueError, match="n_pairs must be"):
        search_pair(mechanism, propose, 1.0, 0.0, 0, 100, identity)


def box_record(rng):
    return rng.random(6)


def box(row):
    return np.clip(row, 0.0, 1.0)


def box_pair(rng):
    data = rng.random((2, 6))
    return data, replace_one(box_record)(data, rng)


class Needle:
    """Laplace noise of scale 1 on a sum over records of 4 e^(-3 r), r the distance to one point.

    A loss above 2.5 takes a record with r < 0.16: 8 in 100,000 of the cube.
    """

    def __init__(self):
        self.n_runs = 0

    @staticmethod
    def loss(pair):
        first, second = (np.exp(-3 * np.linalg.norm(one - 0.3, axis=1)).sum() for one in pair)
        return 4 * abs(first - second)

    def __call__(self, data, rng):
        return self.many(data, rng, 1)[0]

    def many(self, data, rng, n):
        self.n_runs += n
        return self.loss((data, np.empty((0, 6)))) + rng.laplace(size=n)


@pytest.mark.system
def test_a_guided_search_finds_what_random_ones_miss():
    guided, random = Needle(), Needle()
    move = move_one(box_record, box)
    found = search_pair(guided, box_pair, 2.5, 0.0, 128, 8000, identity, 0, move=move)
    assert found.audit.verdict == "violated"
    assert found.audit.epsilon_lower_bound < Needle.loss((found.data, found.neighbour))
    missed = search_pair(random, box_pair, 2.5, 0.0, 512, 60_000, identity, 0)
    assert missed.audit.verdict != "violated"
    assert guided.n_runs < random.n_runs
    assert (found.data != found.neighbour).any(axis=1).sum() == 1
    for one in (found.data, found.neighbour):
        assert one.shape == (2, 6)
        np.testing.assert_array_equal(one, box(one))


def test_a_guided_search_counts_its_pairs_and_repeats():
    def run():
        return search_pair(
            Needle(), box_pair, 1.0, 0.0, 16, 400, identity, 5, move=move_one(box_record, box)
        )

    first, second = run(), run()
    # 16 pairs: 2 stay with 12 near them, 2 with 11, 2 with 10, ... 2 with 6, then 1 with 6, ... 0
    assert first.n_pairs == 16 + sum(range(6, 13)) + sum(range(1, 7))
    assert first.n_pairs == second.n_pairs
    np.testing.assert_array_equal(first.data, second.data)


def test_guided_searches_rarely_convict_sound_mechanisms():
    """The claim is tight on every pair, so that the search can but pick the luckiest."""
    rng = np.random.default_rng(11)

    def pair(rng):
        return np.zeros(1), np.ones(1)

    def move(pair, rng):
        return pair[1], pair[0]

    found = [
        search_pair(mechanism, pair, 1.0, 0.0, 6, 400, identity, rng, move=move).audit
        for _ in range(50)
    ]
    convicted = sum(audit.verdict == "violated" for audit in found)
    assert convicted <= stats.binom.isf(1e-4, 50, 0.05)
    assert np.median([audit.epsilon_lower_bound for audit in found]) > 0.3


@pytest.mark.parametrize("change", [replace_one, add_remove])
@pytest.mark.parametrize("project", [None, box])
def test_moves_keep_neighbours_neighbours_and_reach_every_row(change, project):
    rng = np.random.default_rng(0)
    move = move_one(box_record, project)
    data = rng.random((3, 6))
    pair = data, change(box_record)(data, rng)
    before = [one.copy() for one in pair]
    changed, distances = set(), []
    for _ in range(300):
        moved = move(pair, rng)
        assert [one.shape for one in moved] == [one.shape for one in pair]
        for k in (0, 1):
            rows = np.flatnonzero((moved[k] != pair[k]).any(axis=1))
            assert rows.size <= 1
            changed.update((k, row) for row in rows)
            distances.extend(np.linalg.norm(moved[k] - pair[k], axis=1)[rows])
            np.testing.assert_array_equal(moved[k], box(moved[k]))
        if change is replace_one:
            assert (moved[0] != moved[1]).any(axis=1).sum() <= 1
        else:
            longer, shorter = sorted(moved, key=len, reverse=True)
            assert all((row == longer).all(axis=1).any() for row in shorter)
    assert changed == {(k, row) for k in (0, 1) for row in range(len(pair[k]))}
    assert (min(distances) < 0.01) == (project is not None)
    assert max(distances) > 0.5
    for one, old in zip(pair, before, strict=True):
        np.testing.assert_array_equal(one, old)


def test_a_move_of_what_is_no_pair_of_rows_is_refused():
    move, rng = move_one(box_record), np.random.default_rng(0)
    for pair in ((1.0, 2.0), (np.zeros((3, 6)), np.ones((3, 6)))):
        with pytest.raises(ValueError, match=r"pairs of arrays .* that differ in one row"):
            move(pair, rng)
    same = np.ones((2, 6))  # two equal data sets may have come of a discrete domain
    assert (move((same, same), rng)[0] >= 0).all()
