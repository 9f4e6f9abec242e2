"""A recorded draw of NumPy is an array like any other, until it is added to a value."""

import copy
import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privclust_audit.inside import inspect_pair

X = np.array([[0.25], [0.5], [0.75]])
Y = np.array([[0.25], [0.5], [0.0]])


def assigned(noise):
    noise[..., 0] = 2.0
    return noise


def mirrored(noise):
    noise[0, 1] = noise[1, 0]
    return noise


def in_place(change):
    def changed(noise):
        change(noise)
        return noise

    return changed


def by_base(noise):
    np.asarray(noise)[...] = 1.0
    return noise


def reshaped(noise):
    with warnings.catch_warnings():  # of NumPy 2.5
        warnings.simplefilter("ignore", DeprecationWarning)
        noise.shape = (-1, 1)
    return noise


def entries(noise):
    whole = np.zeros(noise.shape)
    whole[...] = noise
    return whole


# a draw is read-only, so that these raise an error
CHANGES = {
    "assigned": assigned,
    "mirrored": mirrored,
    "filled": in_place(lambda noise: noise.fill(3.0)),
    "sorted": in_place(lambda noise: noise.sort()),
    "by its base": by_base,
    "by copyto": in_place(lambda noise: np.copyto(noise, 1.0)),
    "by putmask": in_place(lambda noise: np.putmask(noise, noise > 0, 0.5)),
    "by add.at": in_place(lambda noise: np.add.at(noise, 0, 1.0)),
    "clipped": in_place(lambda noise: np.clip(noise, -0.01, 0.01, out=noise)),
    "scaled by entries": in_place(lambda noise: noise.__setitem__(..., noise[...] * 1e-6)),
    "shuffled in place": in_place(lambda noise: np.random.default_rng(1).shuffle(noise)),
    "dot into it": lambda noise: np.dot(np.eye(2), np.ones((2, 2)), out=noise),
    "into itself": lambda noise: np.fmax(np.zeros(noise.shape), noise, out=noise),
}
OPERATIONS = {
    "stored": lambda noise: noise,
    "in a list": lambda noise: [noise, (noise,)],
    "in an object": lambda noise: vars(SimpleNamespace(noise_=noise)),
    "is an array": lambda noise: isinstance(noise, np.ndarray),
    "reshaped in place": reshaped,
    "shuffled": lambda noise: np.random.default_rng(1).permutation(noise),
    "int": int,
    "float": float,
    "complex": complex,
    "bool": bool,
    "not": lambda noise: not noise,
    "format": lambda noise: f"{noise:.2f}",
    "str": str,
    "index": lambda noise: [1, 2, 3][noise],
    "less": lambda noise: noise < 0.1,
    "at most a list": lambda noise: noise <= [0.1] * 3,
    "equal": lambda noise: noise == noise[..., 0],
    "hash": hash,
    "len": len,
    "list": list,
    "reversed": lambda noise: list(reversed(noise)),
    "tolist": lambda noise: noise.tolist(),
    "contains": lambda noise: 0.0 in noise,
    "entry": lambda noise: noise[0],
    "mask": lambda noise: noise[noise > 0],
    "unpacked": lambda noise: max(*noise),
    "array": np.array,
    "as bytes": lambda noise: bytes(memoryview(noise)),
    "sum": np.sum,
    "mean": lambda noise: noise.mean(axis=0),
    "square": lambda noise: noise**2,
    "absolute": abs,
    "matrix product": lambda noise: noise @ noise,
    "norm": np.linalg.norm,
    "where": lambda noise: np.where(noise > 0, noise, 0.0),
    "concatenate": lambda noise: np.concatenate([noise, np.zeros_like(noise)]),
    "outer": lambda noise: np.multiply.outer(noise, noise),
    "into another": lambda noise: np.abs(noise, out=np.empty_like(noise)),
    "set as entries": entries,
    "copy": copy.copy,
    "deepcopy": lambda noise: copy.deepcopy({"noise": noise}),
    "pickle": lambda noise: pickle.loads(pickle.dumps(noise)),
    "reshape": lambda noise: noise.reshape(-1),
    "transpose": lambda noise: noise.T,
    "astype": lambda noise: noise.astype(np.float32),
    "attributes": lambda noise: (noise.shape, noise.ndim, noise.size, noise.dtype.str),
}


def total_of(rows):
    return float(rows.clip(0.0, 1.0).sum())


@pytest.mark.parametrize("name", OPERATIONS)
@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 100),
    shape=st.sampled_from([(), (3,), (2, 2)]),
    sampler=st.sampled_from(["laplace", "normal", "standard_normal", "exponential"]),
)
def test_a_recorded_draw_does_what_an_array_does(name, seed, shape, sampler):
    """Any result or error is as without a record, and the draw is recorded afterwards."""

    def fit(rows):
        noise = getattr(np.random.default_rng(seed), sampler)(size=shape)
        try:
            kept = OPERATIONS[name](noise)
        except (TypeError, ValueError, IndexError) as error:
            kept = type(error).__name__
        return copy.deepcopy(kept), total_of(rows) + noise, kept

    report = inspect_pair(fit, X, Y, samplers=True)
    assert report.violations == ()
    np.testing.assert_equal(report.runs[0].output, fit(X))
    assert [change.size for change in report.changes] == [0.75]
    assert report.verdict == "nothing found"


@pytest.mark.parametrize("name", CHANGES)
def test_a_recorded_draw_cannot_be_changed(name):
    """Noise that was changed has another distribution, and an entry may be exact."""

    def fit(rows, rng):
        return rows.sum() + CHANGES[name](rng.laplace(size=(2, 2)))

    fit(X, np.random.default_rng(0))
    report = inspect_pair(fit, X, Y, samplers=True, epsilon=1.0)
    assert isinstance(report.runs[0].error, ValueError)
    assert (report.verdict, report.violations) == ("cannot tell", ())


def added_in_part(rows, rng):
    total = np.array([rows.sum(), rows.sum()])
    np.add(total, rng.laplace(size=2), out=total, where=[True, False])
    return total


def test_noise_on_some_entries_is_not_followed():
    report = inspect_pair(added_in_part, X, Y, samplers=True, epsilon=1.0)
    assert report.verdict == "cannot tell"
    assert "added to nothing" in report.remarks[0]


def imaginary(rows, rng):
    return 1j * rows.sum() + rng.laplace(size=1)


def test_a_sum_with_a_complex_number_has_an_exact_part():
    assert inspect_pair(imaginary, X, Y, samplers=True, epsilon=1.0).verdict == "cannot tell"


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_releases_without_noise_keep_sign_and_kind(sign, kind):
    def fit(rows, rng):
        noise = rng.standard_normal(1, dtype=kind)
        value = rows.sum(axis=0).astype(kind)
        return noise - value if sign < 0 else value - noise

    (output,) = inspect_pair(fit, X, Y, samplers=True, quiet=True).runs[0].output
    assert output == sign * 1.5
    assert output.dtype == kind
    (release,) = inspect_pair(fit, X, Y, samplers=True).runs[0].releases
    assert release.released == pytest.approx(release.value + release.noise, rel=1e-6)


def keeping(rows):
    noise = np.random.laplace(size=2)  # noqa: NPY002
    return {"noise_": noise, "sum_": rows.sum(axis=0) + noise}


def added_in_place(rows, rng):
    total = rows.sum(axis=0)
    total += rng.laplace(size=1)
    return total


def test_a_kept_draw_is_compared_by_its_numbers():
    report = inspect_pair(keeping, X, Y, samplers=True)
    assert report.verdict == "nothing found"
    assert len(report.changes) == 1


def test_the_value_is_that_before_noise_in_place():
    report = inspect_pair(added_in_place, X, Y, samplers=True, quiet=True)
    (release,) = report.runs[0].releases
    assert release.value == 1.5
    assert report.runs[0].output == 1.5
    (release,) = inspect_pair(added_in_place, X, Y, samplers=True).runs[0].releases
    assert release.released == release.value + release.noise


def test_a_draw_and_its_multiples_keep_their_kind_of_number():
    def fit(rows):
        rng = np.random.default_rng(0)
        noise = rng.standard_normal(2, dtype=np.float32)
        return noise, 2.0 * rng.laplace(size=1), 1j * rng.normal(size=1), rows.sum() + noise

    np.testing.assert_equal(inspect_pair(fit, X, Y, samplers=True).runs[0].output, fit(X))
    draw, *_ = inspect_pair(fit, X, Y, samplers=True).runs[0].output
    assert draw.dtype == np.float32


def test_constant_noise_is_named_if_a_fit_asks_for_its_truth():
    def fit(rows, rng):
        noise = np.random.default_rng(7).laplace()
        return rows.sum() + noise if noise else 0.0

    (violation,) = inspect_pair(fit, X, Y, samplers=True).violations
    assert violation.kind == "noise"


@pytest.mark.parametrize("form", [np.asarray, np.float64, lambda count: [count], lambda c: (c,)])
def test_a_location_that_is_zero_is_a_value(form):
    def count(rows):
        return np.random.default_rng().laplace(form(float((rows > 0.6).sum())), 1.0)

    for pair in ((X, Y), (Y, X)):
        report = inspect_pair(count, *pair, samplers=True, epsilon=1.0)
        assert report.verdict == "nothing found"
        assert report.cost == 1.0


@pytest.mark.parametrize("count", [int, float])
@pytest.mark.parametrize("pair", [(X, Y), (Y, X)])
def test_a_location_that_is_pythons_zero_is_no_violation(count, pair):
    """The same line makes a release of one data set, and noise alone of its neighbour."""

    def fit(rows):
        return np.random.default_rng().laplace(count((rows > 0.6).sum()), 1.0)

    report = inspect_pair(fit, *pair, samplers=True, epsilon=1.0)
    assert report.verdict == "cannot tell"
    assert "_Draw" not in str(report.remarks)


def by_bins(rows):
    counts = np.histogram(rows, [0.0, 0.3, 0.6, 0.9])[0]
    return [np.random.default_rng().laplace(int(count), 1.0) for count in counts]


def rounded(rows):
    return round(np.random.default_rng().laplace(int((rows > 0.6).sum()), 1.0), 2)


@pytest.mark.parametrize("fit", [by_bins, rounded])
@pytest.mark.parametrize("pair", [(X, Y), (Y, X)])
def test_releases_after_pythons_zero_are_not_paired(fit, pair):
    """Those of other bins would be compared, or an error of the array would be one of the fit."""
    report = inspect_pair(fit, *pair, samplers=True, epsilon=2.0)
    assert (report.verdict, report.violations) == ("cannot tell", ())


def test_a_branch_without_a_release_is_a_violation():
    """Noise without a location is no value, so that the release is missing in one run."""

    def fit(rows):
        noise = np.random.default_rng().laplace(size=1)
        return rows.sum() + noise if rows.max() > 0.6 else noise

    assert inspect_pair(fit, Y, X, samplers=True, epsilon=2.0).verdict == "violated"


def test_one_number_of_noise_for_two_entries_is_found():
    def fit(rows, rng):
        return rng.laplace(size=1) * np.ones(2) + np.array([rows.sum(), 0.0])

    kinds = {each.kind for each in inspect_pair(fit, X, Y, samplers=True, epsilon=1.0).violations}
    assert "noise" in kinds


def test_a_draw_without_a_size_is_an_array():
    """Its sum with a value is a number, but the draw alone has no `__round__`."""

    def fit(rows, rng):
        return round(float(rows.sum() + rng.laplace()), 3)

    report = inspect_pair(fit, X, Y, samplers=True)
    assert (report.verdict, report.runs[0].error) == ("nothing found", None)
    rounded = inspect_pair(lambda rows, rng: round(rng.laplace()), X, Y, samplers=True)
    assert rounded.verdict == "cannot tell"
    assert isinstance(rounded.runs[0].error, TypeError)


def test_children_of_a_generator_are_recorded():
    def fit(rows, rng):
        first, second = rng.spawn(2)
        return rows.sum() + first.laplace(), rows.sum() + second.laplace()

    report = inspect_pair(fit, X, Y, samplers=True, epsilon=1.5)
    assert report.verdict == "nothing found"
    assert report.cost == 1.5
