"""Looking inside: each kind of violation is found and named; private fits are left alone."""

import functools
import inspect
import pickle
import threading
import warnings
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator

from privclust.core.fixed_point import FixedPoint
from privclust.kmeans import DPLloyd
from privclust.privacy import Guarantee, NoiseWarning, Sensitivity, noise_source
from privclust.privacy.measurements import Exponential, Gaussian, Laplace, SymmetricGaussian
from privclust.privacy.noise import unprotected_generator
from privclust.privacy.sensitivity import Neighbours
from privclust_audit.inside import RecordedRelease, inspect_pair, look_inside
from privclust_audit.inside._changes import change_of
from privclust_audit.inside._recorder import Recorder, recording

X = np.array([[0.25], [0.5], [0.75]])
Y = np.array([[0.25], [0.5], [0.0]])
UNIT = Sensitivity(1.0, "l1", "replace-one", "rows lie in [0, 1]")


class Total(BaseEstimator):
    """A corrected sum of rows in [0, 1], with one fault that a parameter names."""

    def __init__(self, fault="", epsilon=1.0, random_state=0):
        self.fault = fault
        self.epsilon = epsilon
        self.random_state = random_state

    def fit(self, X, y=None):
        rows = np.clip(np.nan_to_num(np.asarray(X, dtype=float)), 0.0, 1.0)
        source = noise_source(self.random_state)
        start = unprotected_generator(source).standard_normal()
        count = 2 if self.fault == "three for two" else 3 if self.fault == "two for three" else 1
        noise = Laplace(UNIT, self.epsilon, count)
        sums = rows.sum(axis=0)[:1]
        whole = FixedPoint.of_exact(np.rint(sums * 2.0**20) / 2.0**20, 20)
        if self.fault == "not clipped":
            whole = FixedPoint.of_exact(np.rint(np.nan_to_num(X).sum(axis=0)[:1]), 0)
        if self.fault == "scale of the data":
            noise = Laplace(UNIT.scaled(float(rows.max()) + 0.1), self.epsilon)
        if self.fault == "shape of the data":
            whole = FixedPoint(np.zeros(int((rows > 0.5).sum()), dtype=np.int64), 0)
        if self.fault == "bits of the data" and rows.max() > 0.6:
            whole = whole.in_bits(30)
        if self.fault == "an error" and rows.max() > 0.6:
            raise ValueError(f"a row is {rows.max()}")
        if self.fault == "always":
            noise.release(whole, source)
            raise ValueError("there is no result")
        if self.fault == "words" and rows.min() >= 0:
            raise ValueError(f"the sum is {sums[0]}")
        self.total_ = noise.release(whole, source)[0] + 0.0 * start
        times = {"three for two": 2, "two for three": 1}.get(self.fault, 0)
        if self.fault == "once more" and rows.max() > 0.6:
            times = 1
        for _ in range(times):
            noise.release(whole, source)
        if self.fault == "another price":
            Laplace(UNIT, 2 * self.epsilon).release(whole, source)
        if self.fault == "an attribute":
            self.largest_ = rows.max()
        if self.fault == "a pickle":
            self._rows = rows
        if self.fault == "labels":
            self.labels_ = rows[:, 0]
        if self.fault == "a generator" and rows.max() > 0.6:
            np.random.default_rng(3)
            self._rng = np.random.default_rng(int(rows.sum() * 8))
        if self.fault == "a warning of noise" and rows.max() > 0.6:
            warnings.warn("hidden", NoiseWarning, stacklevel=2)
        if self.fault == "a warning" and rows.max() > 0.6:
            warnings.warn("rows are clipped", UserWarning, stacklevel=2)
        relation = "replace-one"
        lines = [noise.statement("the sum")]
        self.guarantee_ = Guarantee.of(lines, "pure", relation, seeded=True)
        return self


class Kept(Total):
    _NOT_RELEASED = ("labels_",)

    def __getstate__(self):
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in self._NOT_RELEASED}


FAULTS = [
    ("not clipped", "sensitivity", "l1 change"),
    ("scale of the data", "control flow", "sensitivity differs"),
    ("shape of the data", "control flow", "form"),
    ("bits of the data", "control flow", "2^-"),
    ("once more", "control flow", "on one data set and not on its neighbour"),
    ("an error", "exception", "ValueError on the first data set only"),
    ("words", "exception", "with different messages"),
    ("three for two", "guarantee", "released 3 times, and guarantee_ counts 2"),
    ("two for three", "guarantee", "released 2 times, and guarantee_ counts 3"),
    ("another price", "guarantee", "released 1 times, and guarantee_ counts 0"),
    ("an attribute", "output", "largest_"),
    ("a pickle", "output", "_rows (in pickles)"),
    ("labels", "output", "labels_"),
    ("a generator", "output", "_rng"),
    ("a warning of noise", "output", "NoiseWarning"),
]


@pytest.mark.parametrize(("fault", "kind", "words"), FAULTS)
def test_each_fault_is_named(fault, kind, words):
    data, other = (X, Y) if fault != "not clipped" else (X * 8, Y)
    report = inspect_pair(Total(fault), data, other)
    violation = report.violations[0]
    assert violation.kind == kind
    assert words in str(violation)
    assert "0.75" not in str(violation)
    if kind in ("sensitivity", "control flow", "exception"):
        assert "test_inside.py" in violation.where
        assert violation.where.endswith("in fit")
    result = look_inside(Total(fault), n_pairs=30, n_features=1)
    assert result.verdict == "violated"
    assert kind in {each.violation.kind for each in result.findings}


def test_the_line_of_the_release_is_named():
    lines, first = inspect.getsourcelines(Total)
    (number,) = [first + i for i, line in enumerate(lines) if "self.total_ = noise" in line]
    report = inspect_pair(Total("not clipped"), X * 8, Y)
    assert f"test_inside.py:{number} in fit" in report.violations[0].where


@pytest.mark.parametrize("fault", ["", "a warning"])
def test_a_sound_fit_is_left_alone(fault):
    report = inspect_pair(Total(fault), X, Y)
    assert report.violations == ()
    assert report.changes[0].part == 0.75
    assert report.changes[0].is_exact
    assert any("warnings differ" in remark for remark in report.remarks) == bool(fault)
    assert look_inside(Total(fault), n_pairs=100, n_features=1).verdict == "nothing found"


def test_fits_that_all_end_in_an_error_acquit_nobody():
    """Before, "nothing found": a release was seen, and no pair had a result to compare."""
    result = look_inside(Total("always"), n_pairs=10, n_features=1)
    assert result.n_refused == result.n_pairs == 10
    assert result.verdict == "cannot tell"


def test_what_is_not_released_may_differ():
    assert inspect_pair(Kept("labels"), X, Y).violations == ()


def test_recording_changes_no_result_and_leaves_nothing_behind():
    before = Total().fit(X).total_
    releases = {kind: vars(kind)["release"] for kind in (Laplace, Gaussian, SymmetricGaussian)}
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    with recording(Recorder()) as recorder:
        during = Total().fit(X).total_
        assert vars(Laplace)["release"] is not releases[Laplace]
        with pytest.raises(RuntimeError, match="already"), recording(Recorder()):
            pass
    assert before == during == Total().fit(X).total_
    assert len(recorder.releases) == 1
    assert all(vars(kind)["release"] is original for kind, original in releases.items())
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002


def test_a_replay_releases_what_the_first_run_did():
    with recording(Recorder()) as first:
        total = Total().fit(X).total_
    with recording(Recorder(frozen=first.releases)):
        assert Total().fit(Y).total_ == total
    assert Total().fit(Y).total_ != total


@pytest.mark.parametrize("random_state", [None, 5, np.random.default_rng(5)])
def test_any_source_of_noise(random_state):
    pytest.importorskip("opendp")
    report = inspect_pair(Total(random_state=random_state), X, Y)
    assert report.violations == ()
    assert report.changes[0].part == 0.75


def test_without_noise_the_value_comes_out():
    with recording(Recorder(quiet=True)):
        assert Total().fit(X).total_ == 1.5


def test_symmetric_matrices_are_measured_by_their_coordinates():
    noise = SymmetricGaussian(Sensitivity(1.0, "l2", "replace-one", "by hand"), 1.0)

    def release(X):
        whole = FixedPoint.of_exact(X, 2)
        return noise.release(whole[None], np.random.default_rng(0))

    report = inspect_pair(release, np.zeros((2, 2)), np.array([[0.0, 0.5], [0.5, 0.0]]))
    assert report.changes[0].size == pytest.approx(np.sqrt(0.5))
    assert report.violations == ()


def released(noise, value, weight=1.0):
    return RecordedRelease(0, noise, noise.mechanism, noise.scale, value, weight, value, "here")


def test_one_unit_in_the_last_place_is_seen():
    noise = Gaussian(Sensitivity(3.0, "l2", "replace-one", "by hand"), 1.0)
    whole = np.array([2, 2, 1], dtype=np.int64) << 50
    for extra in (0, 1):
        other = FixedPoint(np.array([0, 0, -extra]), 50)
        change = change_of(released(noise, FixedPoint(whole, 50)), released(noise, other), None)
        assert bool(change.problem) == bool(extra)
    for extra in (0.0, 2.0**-40):
        values = np.array([2.0, 2.0, 1.0 + extra]), np.zeros(3)
        change = change_of(*(released(noise, value) for value in values), None)
        assert bool(change.problem) == bool(extra)
        assert not change.is_exact


def test_changes_agree_with_rational_arithmetic():
    rng = np.random.default_rng(0)
    for norm, noise in (("l1", Laplace), ("l2", Gaussian)):
        for _ in range(200):
            ones, others = rng.integers(-(2**40), 2**40, (2, 5))
            moved = [
                abs(Fraction(int(a) - int(b), 2**30)) for a, b in zip(ones, others, strict=True)
            ]
            exact = sum(moved) if norm == "l1" else sum(each**2 for each in moved)
            bound = float(exact) if norm == "l1" else float(exact) ** 0.5
            is_above = exact > Fraction(bound) ** (1 if norm == "l1" else 2)
            made = noise(Sensitivity(bound, norm, "replace-one", "by hand"), 1.0)
            pair = (released(made, FixedPoint(one, 30)) for one in (ones, others))
            assert bool(change_of(*pair, None).problem) == is_above


def test_more_entries_than_a_price_is_for():
    noise = Laplace(Sensitivity(4.0, "l1", "replace-one", "by hand"), 1.0, entries=4.0)
    for value, is_dearer in ((np.ones(4), False), (np.array([3.0, 1.0, 0.0, 0.0]), True)):
        change = change_of(released(noise, value), released(noise, np.zeros(4)), None)
        assert change.kind == ("price" if is_dearer else "")


def test_scores_of_the_exponential_mechanism():
    bound = Sensitivity(1.0, "range", "add-remove", "by hand")
    pair = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    for one_sided in (False, True):
        noise = Exponential(bound, 1.0, one_sided=one_sided)
        change = change_of(*(released(noise, scores) for scores in pair), Neighbours.ADD_REMOVE)
        assert bool(change.problem) == one_sided


def test_a_replacement_is_two_steps_of_what_is_stated_for_one():
    noise = Laplace(Sensitivity(1.0, "l1", "add-remove", "by hand"), 1.0)
    pair = released(noise, np.array([2.0])), released(noise, np.zeros(1))
    assert change_of(*pair, Neighbours.ADD_REMOVE).problem
    assert not change_of(*pair, Neighbours.REPLACE_ONE).problem


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, -0.0),
        (np.float32(1), np.float64(1)),
        (np.array([1.0, np.nan]), np.array([np.nan, 1.0])),
        ({"a": [1, (2, {3})]}, {"a": [1, (2, {4})]}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (SimpleNamespace(x=1), SimpleNamespace(x=2)),
        (np.array([{"a": 1}]), np.array([{"a": 2}])),
        (np.random.default_rng(0), np.random.default_rng(1)),
        (FixedPoint(np.ones(1, int), 3), FixedPoint(np.ones(1, int), 4)),
        ([1], [1, 1]),
        (np.zeros(2), np.zeros(3)),
        (min, max),
        (1, True),
    ],
)
def test_outputs_are_compared_to_the_last_bit(one, other):
    assert kinds_of_violations(one, other) == {"output"}
    assert not kinds_of_violations(one, pickle.loads(pickle.dumps(one)))


def kinds_of_violations(one, other):
    """What is found of a fit that gives one output on X and the other on Y."""
    report = inspect_pair(lambda rows: one if rows.max() > 0.6 else other, X, Y)
    return {violation.kind for violation in report.violations}


def test_loops_in_an_output_end():
    one, other = SimpleNamespace(x=1), SimpleNamespace(x=1)
    one.me, other.me = one, other
    assert not kinds_of_violations(one, other)


def test_releases_of_other_threads_are_recorded():
    def fit(X):
        thread = threading.Thread(target=lambda: Total().fit(X))
        thread.start()
        thread.join()
        return 0

    assert len(inspect_pair(fit, X, Y).changes) == 1


# --- code without measurements -----------------------------------------------------------------


def sound_by_numpy(X):
    rng = np.random.default_rng()
    return np.nan_to_num(X).clip(0, 1).sum(axis=0) + rng.laplace(scale=2.0, size=X.shape[1])


def scale_of_the_data(X):
    rng = np.random.default_rng(5)
    return np.nan_to_num(X).clip(0, 1).sum() + rng.laplace(scale=1.0 + abs(np.nan_to_num(X)).max())


def private_divisor(X):
    rng = np.random.default_rng(5)
    return (np.nan_to_num(X).clip(0, 1).sum() + rng.normal()) / len(X)


def noise_only_if(X):
    total = np.nan_to_num(X).clip(0, 1).sum()
    return float(total + 3.0 * np.random.default_rng().standard_normal()) if total > 1 else 0.0


def beside(X):
    total = np.nan_to_num(X).clip(0, 1).sum(axis=0)
    total += np.random.laplace(size=X.shape[1])  # noqa: NPY002
    return total, len(np.unique(X))


def with_a_generator(X, rng):
    return np.nan_to_num(X).clip(0, 1).sum(axis=0) - 2.0 * rng.laplace(size=X.shape[1])


def one_sided(X):
    return np.random.default_rng().exponential(2.0, X.shape[1]) + np.nan_to_num(X).clip(0, 1).sum(0)


def by_location(X):
    return np.random.default_rng().normal(np.nan_to_num(X).clip(0, 1).sum(axis=0), 2.0)


def lost_draw(X):
    noise = np.random.default_rng().laplace(size=3)
    return float(np.max(noise)) + X.sum()


@pytest.mark.parametrize("subject", [sound_by_numpy, with_a_generator, one_sided, by_location])
def test_sound_code_of_others(subject):
    result = look_inside(subject, n_pairs=80)
    assert result.verdict == "nothing found"
    (site,) = result.sites.values()
    assert not site.is_stated
    # two entries move by 1 each, at a scale of 2; sums of floats are rounded
    assert 0.4 < site.part <= 1.0 + 1e-12


@pytest.mark.parametrize(
    ("subject", "kind"),
    [(scale_of_the_data, "control flow"), (noise_only_if, "control flow"), (beside, "output")],
)
def test_faults_of_others(subject, kind):
    result = look_inside(subject, n_pairs=80)
    assert kind in {each.violation.kind for each in result.findings}
    assert all("test_inside.py" in where for where in result.sites)


def test_a_private_divisor_of_others():
    result = look_inside(private_divisor, n_pairs=80, neighbours="add_remove")
    assert {"output", "exception"} & {each.violation.kind for each in result.findings}


def rows_with_noise(scales, data, rng):
    return rng.laplace(np.asarray(data, dtype=float), scales)


def with_a_claim(mechanism, data, neighbour, epsilon, delta=0.0, **settings):
    pair = np.array(data, dtype=float), np.array(neighbour, dtype=float)
    claim = {"samplers": True, "epsilon": epsilon, "delta": delta}
    return inspect_pair(mechanism, *pair, **claim, **settings)


@pytest.mark.parametrize(("epsilon", "verdict"), [(2.6, "nothing found"), (2.59, "violated")])
def test_changes_are_added_up_in_units_of_their_noise(epsilon, verdict):
    mechanism = functools.partial(rows_with_noise, [0.5, 10.0, 2.0])
    report = with_a_claim(mechanism, [0, 0, 0], [1, 1, 1], epsilon)
    assert report.verdict == verdict
    assert report.cost == pytest.approx(2.0 + 0.1 + 0.5)
    assert {one.kind for one in report.violations} == ({"claim"} if epsilon < 2.6 else set())


def test_normal_noise_is_held_against_its_curve():
    def mechanism(data, rng):
        return data + rng.normal(scale=3.0, size=2) / 2.0

    length = np.hypot(1.0, 2.0) / 1.5
    delta = stats.norm.cdf(length / 2 - 1 / length) - np.e * stats.norm.cdf(
        -length / 2 - 1 / length
    )
    verdicts = [
        with_a_claim(mechanism, [0, 0], [1, 2], 1.0, factor * delta).verdict
        for factor in (1.001, 0.999)
    ]
    assert verdicts == ["nothing found", "violated"]
    assert with_a_claim(mechanism, [0, 0], [1, 2], 50.0, 0.0).verdict == "violated"


def test_what_is_not_told_may_cost_less():
    def largest(data, rng):
        return rng.laplace(data, 2.0).max()

    report = with_a_claim(largest, [0, 0, 0], [1, 1, 1], 1.0)  # which is true
    assert report.verdict == "cannot tell"
    assert "1.5 where 1 is claimed, if all" in report.remarks[0]


def test_one_number_of_noise_counts_for_one_release():
    def shared(data, rng):
        return data - 2.0 * rng.laplace(size=1)

    assert with_a_claim(shared, [0, 0], [2, 2], 1.0).verdict == "nothing found"
    (violation,) = with_a_claim(shared, [0, 0], [2, 0], 5.0).violations
    assert violation.kind == "noise"


def test_noise_of_another_generator_than_the_given_one():
    def known(data, rng):
        return data + np.random.default_rng(7).laplace(size=2) + 0.0 * rng.random()

    def own(data, rng):
        return data + np.random.default_rng().laplace(size=2)

    kinds = [one.kind for one in with_a_claim(known, [0, 0], [1, 0], 1.0).violations]
    assert kinds == ["noise"]
    assert with_a_claim(own, [0, 0], [1, 0], 1.0).verdict == "nothing found"


def test_noise_with_a_law_of_the_data_decides_nothing():
    def response(data, rng):
        return bool(rng.random() < data[0])

    def chosen(data, rng):
        return int(rng.choice(2, p=[data[0], 1 - data[0]]))

    for mechanism in (response, chosen):
        for seed in range(10):
            report = with_a_claim(mechanism, [0.1], [0.9], 9.0, random_state=seed)
            assert report.verdict == "cannot tell"


def test_without_noise_what_a_sampler_releases_is_its_value():
    def above(data, rng):
        return data.sum() > rng.laplace(np.array([0.5]), 1e6)

    verdicts = [with_a_claim(above, [0], [1], 9.0, quiet=quiet).verdict for quiet in (False, True)]
    assert verdicts == ["nothing found", "violated"]


def test_a_search_holds_code_of_others_against_a_claim():
    verdicts = [look_inside(sound_by_numpy, n_pairs=40, epsilon=e).verdict for e in (1.0, 0.5)]
    assert verdicts == ["nothing found", "violated"]


def test_a_draw_that_met_no_value_acquits_nobody():
    result = look_inside(lost_draw, n_pairs=20)
    assert result.verdict == "cannot tell"


def test_samplers_are_seen_within_a_look_alone():
    look_inside(sound_by_numpy, n_pairs=4)
    assert type(np.random.default_rng()) is np.random.Generator
    assert type(np.random.default_rng().laplace(size=2)) is np.ndarray


# --- the search --------------------------------------------------------------------------------


class Corner(BaseEstimator):
    """Moves by more than is stated in one corner of the square alone: uphill leads there."""

    def __init__(self, bounds=(0.0, 1.0), random_state=0):
        self.bounds = bounds
        self.random_state = random_state

    def fit(self, X, y=None):
        rows = np.nan_to_num(np.asarray(X), posinf=1.0, neginf=0.0).clip(0.0, 1.0)
        peak = np.exp(-40 * ((rows - [0.83, 0.61]) ** 2).sum(axis=1)).sum()
        self.peak_ = Laplace(UNIT.scaled(0.9), 1.0).release(peak, noise_source(self.random_state))
        return self


class Far(Corner):
    """Moves by more than is stated if its bounds are far from the origin."""

    def fit(self, X, y=None):
        low, high = (np.broadcast_to(bound, 2) for bound in self.bounds)
        parts = np.nan_to_num((np.asarray(X) - low) / (high - low)).clip(0.0, 1.0)[:, 0]
        total = parts.sum() * (1.0 if np.abs(low).max() < 1e3 else 2.0)
        self.total_ = Laplace(UNIT, 1.0).release(total, noise_source(self.random_state))
        return self


def test_bounds_far_from_the_origin_are_tried():
    findings = look_inside(Far(), n_pairs=300).findings
    assert [list(each.parameters) for each in findings] == [["bounds"]]


def test_the_search_goes_uphill():
    result = look_inside(Corner(), n_pairs=400, random_state=0)
    assert result.verdict == "violated"
    assert result.findings[0].situation.endswith("moved uphill")


def test_a_search_can_be_repeated():
    results = [str(look_inside(DPLloyd(2, bounds=(0, 1)), n_pairs=40)) for _ in range(2)]
    assert results[0] == results[1]


def test_rows_that_are_given_are_used():
    rows = np.array([[0.1, 0.2], [0.3, 0.4], [0.9, 0.8]])
    seen = []

    def mean(X):
        seen.append(X)
        return sound_by_numpy(X)

    look_inside(mean, rows, n_pairs=12)
    assert any(len(X) == 3 and np.array_equal(X, rows) for X in seen)
    assert all(X.shape[1] == 2 for X in seen)


@pytest.mark.parametrize(
    ("settings", "words"), [({"n_pairs": 0}, "n_pairs"), ({"n_features": 0}, "n_features")]
)
def test_bad_settings(settings, words):
    with pytest.raises(ValueError, match=words):
        look_inside(Total(), **settings)


def test_a_subject_that_is_none():
    with pytest.raises(ValueError, match="an estimator or a callable"):
        look_inside(3)
