"""Numerical sensitivities: suprema that are known, bounds that are wrong, domains that are kept."""

import math

import numpy as np
import pytest

from privclust_audit.black_box import add_remove, numerical_sensitivity, replace_one


def ball(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1.0)


def box(rows):
    return np.clip(rows, 0.0, 1.0)


def draw_ball(rng):
    return ball(rng.normal(size=(6, 3)))


def draw_box(rng):
    return rng.random((6, 3))


def ball_record(rng):
    return ball(rng.normal(size=3))


def box_record(rng):
    return rng.random(3)


def moments(X):
    return np.concatenate([X.sum(axis=0), (X.T @ X).ravel()])


def phases(X):
    """Sum of e^(i x) over records, at one frequency a feature."""
    return np.exp(8j * X).sum(axis=0)


CASES = [
    # opposite points of the ball
    ("sum, ball, replace", lambda X: X.sum(axis=0), "ball", replace_one, "l2", 2.0),
    ("sum, ball, remove", lambda X: X.sum(axis=0), "ball", add_remove, "l2", 1.0),
    # opposite corners of the box
    ("sum, box, l1", lambda X: X.sum(axis=0), "box", replace_one, "l1", 3.0),
    ("sum, box, l2", lambda X: X.sum(axis=0), "box", replace_one, "l2", math.sqrt(3)),
    ("sum, box, linf", lambda X: X.sum(axis=0), "box", replace_one, "linf", 1.0),
    # |x - y|^2 + |xx' - yy'|^2 = 4 - 2c - 2c^2 for unit vectors with inner product c: 9/2, c = -1/2
    ("moments", moments, "ball", replace_one, "l2", math.sqrt(4.5)),
    # Re and Im apart: 2 sqrt 2 a feature, phases pi/4 and 5pi/4
    ("phases, l1", phases, "box", replace_one, "l1", 6 * math.sqrt(2)),
]


@pytest.mark.parametrize(
    ("function", "domain", "relation", "norm", "truth"), [c[1:] for c in CASES]
)
def test_known_suprema_are_approached_and_not_exceeded(function, domain, relation, norm, truth):
    draw, record, project = {
        "ball": (draw_ball, ball_record, ball),
        "box": (draw_box, box_record, box),
    }[domain]
    found = numerical_sensitivity(
        function, draw, relation(record), norm, 4000, truth, project=project, random_state=0
    )
    assert not found.exceeded
    assert 0.999 * truth < found.largest <= truth * (1 + 1e-9)
    wrong = numerical_sensitivity(
        function, draw, relation(record), norm, 2000, 0.9 * truth, project=project, random_state=0
    )
    assert wrong.exceeded
    # the pair shows it, and is a pair of neighbours in the domain
    for one in (found.data, found.neighbour):
        np.testing.assert_allclose(project(one), one, atol=1e-12)
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    difference = np.ravel(function(found.data) - function(found.neighbour))
    parts = np.concatenate([difference.real, difference.imag])
    assert np.linalg.norm(parts, order) == pytest.approx(found.largest)
    if relation is replace_one:
        assert (found.data != found.neighbour).any(axis=1).sum() == 1
    else:
        assert abs(len(found.data) - len(found.neighbour)) == 1


def test_other_records_matter():
    """A sum over the nearest to the median moves further where all records lie on its border."""

    def function(X):
        return (X[:, 0] > np.median(X[:, 0])).astype(float)

    found = numerical_sensitivity(
        function, draw_box, replace_one(box_record), "l1", 2000, 1.0, project=box, random_state=0
    )
    assert found.exceeded


def test_climbing_finds_more_than_drawing_at_random():
    """The l1 norm of a record in ten dimensions: the corner of a box is rare."""

    def draw(rng):
        return rng.random((2, 10))

    def run(project):
        change = replace_one(lambda rng: rng.random(10))
        return numerical_sensitivity(
            lambda X: X.sum(axis=0), draw, change, "l1", 4000, 10.0, project=project, random_state=1
        ).largest

    assert run(box) > 9.99
    assert run(None) < 9.0


def search(function, d, n_trials, seed, project=box):
    """The largest change of a number by replacing one of two records of the unit cube."""
    return numerical_sensitivity(
        function,
        lambda rng: rng.random((2, d)),
        replace_one(lambda rng: rng.random(d)),
        "l1",
        n_trials,
        1.0,
        project=project,
        random_state=seed,
    ).largest


@pytest.mark.parametrize("seed", range(3))
def test_plateaus_are_crossed(seed):
    """Most steps change nothing: the sum of a record in eighths, rounded down, from 0 to 32."""
    assert search(lambda X: np.floor(8 * X.sum(axis=1)).sum(), 4, 6000, seed) == 32


def test_steps_stay_within_the_domain_without_gain():
    """A step is at most the extent of what was drawn, times a normal number: 1 + 6 at most."""
    proposed = []

    def recorded(row):
        proposed.append(np.abs(row).max())
        return box(row)

    assert search(lambda X: 0.0, 3, 6000, 0, recorded) == 0
    assert 1 < max(proposed) < 7


@pytest.mark.parametrize("seed", range(3))
def test_climbs_leave_local_optima(seed):
    """A needle of height 2 and width 0.08, and a wide hill of height 1 that leads away from it.

    Far from both the larger of the two is 0 but for 10^-8, so that the largest change is 2.
    """

    def hills(X):
        needle = 2 * np.exp(-((np.linalg.norm(X - 0.8, axis=1) / 0.08) ** 2))
        hill = 1 - np.linalg.norm(X - 0.2, axis=1)
        return np.maximum(needle, hill).sum()

    assert search(hills, 3, 6000, seed) == pytest.approx(2, rel=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_the_highest_of_many_equal_looking_peaks_is_found(seed):
    """Six peaks along each axis; both ends lie inside, so that no border helps."""
    grid = np.linspace(0, 1, 1_000_001)
    wave = grid + 0.4 * np.cos(40 * grid)
    found = search(lambda X: (X + 0.4 * np.cos(40 * X)).sum(), 2, 12_000, seed)
    assert found == pytest.approx(2 * np.ptp(wave), rel=1e-3)


def test_data_sets_need_not_be_arrays():
    def change(data, rng):
        return data | {"age": int(rng.integers(0, 120))}

    found = numerical_sensitivity(
        lambda data: data["age"],
        lambda rng: {"age": int(rng.integers(0, 120)), "name": "x"},
        change,
        "l2",
        3000,
        100,
        random_state=0,
    )
    assert found.exceeded
    assert 100 < found.largest <= 119
    assert found.n_trials == 3000


def test_changes_leave_the_data_alone_and_reach_every_row():
    rng = np.random.default_rng(0)
    data = np.zeros((4, 2))
    replaced, lengths = set(), set()
    for _ in range(200):
        neighbour = replace_one(lambda rng: np.ones(2))(data, rng)
        replaced.update(np.flatnonzero(neighbour.any(axis=1)).tolist())
        lengths.add(len(add_remove(lambda rng: np.ones(2))(data, rng)))
    assert replaced == {0, 1, 2, 3}
    assert lengths == {3, 5}
    assert not data.any()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"norm": "l3"}, "norm must be one of l1, l2, linf, got 'l3'"),
        ({"n_trials": 1}, "n_trials must be an integer of at least 2"),
        ({"bound": 0.0}, "bound must be"),
        ({"function": lambda X: np.nan}, "must return finite numbers"),
        ({"function": lambda X: X[: int(X[0, 0] * 5)]}, "must return one shape"),
    ],
)
def test_bad_parameters_are_named(changes, reason):
    arguments = {
        "function": np.sum,
        "draw": draw_box,
        "change": replace_one(box_record),
        "norm": "l1",
        "n_trials": 100,
        "bound": 1.0,
        "random_state": 0,
    }
    with pytest.raises(ValueError, match=reason):
        numerical_sensitivity(**arguments | changes)
