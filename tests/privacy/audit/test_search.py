"""The search for the worst pair."""

import pytest

from privclust.privacy.audit import search_pair


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
    with pytest.raises(ValueError, match="n_pairs must be"):
        search_pair(mechanism, propose, 1.0, 0.0, 0, 100, identity)
