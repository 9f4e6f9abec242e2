"""Sketches: what they hold, merging, files."""

import dataclasses
import functools
import itertools
import math
import operator
import tracemalloc
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

from privclust.core.hdf5 import FileError
from privclust.kmeans import CompressiveKMeans
from privclust.privacy import Guarantee
from privclust.sketches import FeatureSums, Sketch, _sketch_file, release, scrambled
from privclust_papers.pipeline import artefacts

D, M = 3, 40


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def frequencies(rng):
    return rng.standard_normal((D, M))


@pytest.fixture
def X(rng):
    return rng.standard_normal((500, D))


def merged(sketches):
    return functools.reduce(operator.add, sketches)


def test_values_are_equation_2(X, frequencies):
    sketch = Sketch.of(X, frequencies)
    expected = np.mean(np.exp(1j * (X @ frequencies)), axis=0) / math.sqrt(M)
    np.testing.assert_allclose(sketch.values, expected, atol=1e-11)
    assert (sketch.n_features, sketch.n_frequencies, sketch.n_measurements) == (D, M, M)
    assert (sketch.noise, sketch.noise_variance, sketch.guarantee) == (None, 0.0, None)


def test_masked_values_have_the_whole_ones_as_their_mean(X, frequencies):
    """Mean over 100 seeds of masks; 5 standard errors on 80 numbers: false alarm < 1e-4."""
    whole = Sketch.of(X, frequencies).values
    draws = np.array(
        [Sketch.of(X, frequencies, n_measurements=10, mask_seed=s).values for s in range(100)]
    )
    for part in (np.real, np.imag):
        error = part(draws).std(axis=0, ddof=1) / math.sqrt(len(draws))
        assert (np.abs(part(draws).mean(axis=0) - part(whole)) < 5 * error).all()


def test_masks_are_secret_unless_a_seed_is_given(X, frequencies):
    def sums(seed):
        return Sketch.of(X, frequencies, n_measurements=10, mask_seed=seed).sums

    assert (sums(1) == sums(1)).all()
    assert (sums(1) != sums(2)).any()
    assert (sums(None) != sums(None)).any()


@pytest.mark.parametrize("n_measurements", [M, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_in_any_order_are_the_whole_to_the_byte(
    tmp_path, X, frequencies, n_measurements, dtype
):
    X = X.astype(dtype)
    kwargs = {"n_measurements": n_measurements, "mask_seed": 3}

    def sketched(start, stop):
        sums = FeatureSums(frequencies, first_record=start, **kwargs)
        return Sketch.from_feature_sums(sums.add(X[start:stop]))

    whole = Sketch.of(X, frequencies, **kwargs)
    edges = [0, 1, 30, 31, 100, 180, 200, 333, 334, 499, 500]
    parts = [sketched(a, b) for a, b in itertools.pairwise(edges)]
    ahead, back = merged(parts), merged(parts[5:][::-1] + parts[:5])
    for i, sketch in enumerate((whole, ahead, back)):
        sketch.save(tmp_path / f"{i}.h5")
    first = (tmp_path / "0.h5").read_bytes()
    assert (tmp_path / "1.h5").read_bytes() == first
    assert (tmp_path / "2.h5").read_bytes() == first
    assert ahead.n_samples == 500


def test_parts_of_equal_size_are_averaged(X, frequencies):
    """Eq. (5), with noise."""
    parts = [
        release(Sketch.of(part, frequencies), 1.0, random_state=i)
        for i, part in enumerate(np.split(X, 5))
    ]
    np.testing.assert_allclose(
        merged(parts).values, np.mean([part.values for part in parts], axis=0), rtol=1e-12
    )


def test_parts_of_other_sizes_are_weighted(X, frequencies):
    parts = [
        release(Sketch.of(part, frequencies), 1.0, random_state=i)
        for i, part in enumerate(np.split(X, [100, 150]))
    ]
    weighted = (100 * parts[0].values + 50 * parts[1].values + 350 * parts[2].values) / 500
    np.testing.assert_allclose(merged(parts).values, weighted, rtol=1e-12)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_noise_variance_of_merged_parts(X, rng, noise):
    """6,000 numbers; the variance of a variance is at most 2.7 / 6000: 5 deviations are 11 %."""
    frequencies = rng.standard_normal((D, 3000))
    exact = [Sketch.of(part, frequencies) for part in np.split(X, 5)]
    noisy = merged(
        release(part, 1.0, 1e-6, noise=noise, random_state=i) for i, part in enumerate(exact)
    )
    assert noisy.noise.n_parts == 5
    difference = (noisy.sums - merged(exact).sums).view(np.float64)
    assert np.mean(difference**2) == pytest.approx(noisy.noise_variance, rel=0.11)


def test_merging_keeps_the_guarantee(X, frequencies):
    one, two = (
        release(Sketch.of(part, frequencies), 0.7, random_state=1) for part in np.split(X, 2)
    )
    both = one + two
    assert both.guarantee.epsilon == pytest.approx(0.7)
    assert both.guarantee.seeded
    assert any("assigned to parts in advance" in caveat for caveat in both.guarantee.caveats)


def test_what_does_not_fit_is_refused_and_says_why(X, frequencies):
    def plain(frequencies=frequencies, r=None):
        return Sketch.of(X, frequencies, n_measurements=r, mask_seed=0)

    def private(epsilon=1.0, delta=0.0, **kwargs):
        return release(plain(), epsilon, delta, random_state=0, **kwargs)

    other = frequencies.copy()
    other[0, 0] = np.nextafter(other[0, 0], 9)
    for one, two, reason in (
        (plain(), plain(frequencies[:, 1:]), "frequencies differ: draw them once"),
        (plain(), plain(other), "frequencies differ: draw them once"),
        (plain(), plain(r=5), "measurements"),
        (plain(), private(), "one is private"),
        (private(), private(2.0), r"\((1, 0\) and \(2|2, 0\) and \(1), 0\)"),
        (private(), private(neighbours="add_remove"), "relations"),
        (private(delta=1e-6, noise="laplace"), private(delta=1e-6, noise="gaussian"), "delta"),
        (private(1, 1e-6), private(1, 1e-7), "delta"),
        (
            scrambled(plain(), 1.0, random_state=0),
            scrambled(plain(), 2.0, random_state=0),
            "epsilon",
        ),
    ):
        for a, b in ((one, two), (two, one)):
            with pytest.raises(ValueError, match=f"cannot be merged: .*{reason}"):
                a + b
    with pytest.raises(TypeError):
        plain() + 1


def test_no_records_have_no_values_but_merge(X, frequencies):
    empty = Sketch.of(X[:0], frequencies)
    with pytest.raises(ValueError, match="only if there are records; their number is 0"):
        _ = empty.values
    whole = Sketch.of(X, frequencies)
    assert ((empty + whole).values == whole.values).all()
    with pytest.raises(ValueError, match="only if there are records"):
        _ = (empty + empty).values


def test_a_noised_count_below_one_has_no_values(X, frequencies):
    noisy = release(Sketch.of(X, frequencies), 1.0, neighbours="add_remove", random_state=0)
    low = dataclasses.replace(noisy, n_samples=-3.25)
    with pytest.raises(ValueError, match=r"with noise, is -3\.25"):
        _ = low.values
    assert (low + noisy).n_samples == pytest.approx(noisy.n_samples - 3.25)


def test_a_sketch_does_not_change(X, frequencies):
    sums = FeatureSums(frequencies).add(X)
    sketch = Sketch.from_feature_sums(sums)
    before = sketch.sums.copy()
    sums.add(X)
    assert (sketch.sums == before).all()
    assert sketch + Sketch.of(X, frequencies) is not sketch
    assert (Sketch.of(X, frequencies) + sketch).sums[0] == sums.values[0]
    for array in (sketch.sums, sketch.frequencies):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        sketch.n_samples = 1


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_private_file_round_trip_holds_nothing_but_the_release(
    tmp_path, X, frequencies, neighbours
):
    exact = Sketch.of(X, frequencies, n_measurements=5)
    sketch = release(exact, 1.0, 1e-6, neighbours=neighbours, random_state=0)
    sketch = sketch + sketch
    sketch.save(tmp_path / "p.h5")
    found = Sketch.load(tmp_path / "p.h5")
    assert (found.sums == sketch.sums).all()
    assert found.key == sketch.key
    for name in ("n_samples", "n_measurements", "noise", "guarantee", "exact"):
        assert getattr(found, name) == getattr(sketch, name)
    assert type(found.n_samples) is type(sketch.n_samples)
    with h5py.File(tmp_path / "p.h5") as file:
        assert set(file) == {"frequencies", "sums"}
        assert str(exact.n_samples) not in file.attrs["header"].decode() or (
            neighbours == "replace_one"
        )


def test_file_of_exact_sums_goes_on_exactly(tmp_path, X, frequencies):
    for name, part in (("a", X[:123]), ("b", X[123:])):
        Sketch.of(part, frequencies).save(tmp_path / name)
    both = Sketch.load(tmp_path / "a") + Sketch.load(tmp_path / "b")
    assert (both.sums == Sketch.of(X, frequencies).sums).all()


def test_damaged_and_other_files_are_refused(tmp_path, X, frequencies):
    path = tmp_path / "s.h5"
    release(Sketch.of(X, frequencies), 1.0, random_state=0).save(path)
    content = path.read_bytes()
    for i in range(len(content) // 2, len(content), 97):
        path.write_bytes(content[:i])
        with pytest.raises(FileError):
            Sketch.load(path)
    artefacts.write(path, "dataset", {"points": X}, {})
    with pytest.raises(FileError, match="not a 'sketch'"):
        Sketch.load(path)
    with pytest.raises(FileNotFoundError, match=r"none\.h5: there is no such file"):
        Sketch.load(tmp_path / "none.h5")


def test_what_save_writes_load_reads_up_to_its_limit(tmp_path, X, frequencies, monkeypatch):
    """The limit is that of arrays in memory: 8 m (d + 4) bytes and the count, exact; else d + 2."""
    exact = Sketch.of(X, frequencies)
    for sketch, n_bytes in ((exact, 8 * M * (D + 4) + 8), (release(exact, 1.0), 8 * M * (D + 2))):
        monkeypatch.setattr(_sketch_file, "MOST_BYTES", n_bytes)
        sketch.save(tmp_path / "s.h5")
        assert (Sketch.load(tmp_path / "s.h5").sums == sketch.sums).all()
        monkeypatch.setattr(_sketch_file, "MOST_BYTES", n_bytes - 1)
        with pytest.raises(FileError, match=f"its arrays are larger than {n_bytes - 1} bytes"):
            Sketch.load(tmp_path / "s.h5")
        with pytest.raises(ValueError, match=f"may hold {n_bytes - 1} bytes, this takes {n_bytes}"):
            sketch.save(tmp_path / "t.h5")


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
@pytest.mark.parametrize(("epsilon", "is_part"), [(1e-4, False), (0.3, True), (50.0, True)])
@pytest.mark.filterwarnings("ignore::privclust.privacy.WeakGuaranteeWarning")
@pytest.mark.filterwarnings("ignore::privclust.privacy.NoiseWarning")
def test_honest_guarantees_are_read_in_every_sense(
    tmp_path, X, frequencies, noise, neighbours, epsilon, is_part
):
    """That of a fit has nine parts of the budget of ten, and a pilot the tenth."""
    how = {"noise": noise, "neighbours": neighbours, "random_state": 0}
    if is_part:
        how |= {"epsilon": epsilon, "delta": 1e-6, "last_round": False, "n_frequencies": M}
        sketch = CompressiveKMeans(1, bounds=(-5.0, 5.0), **how).fit(X).sketch_
    else:
        sketch = release(Sketch.of(X, frequencies, n_measurements=7), epsilon, 1e-6, **how)
    both = sketch + sketch
    in_sense = functools.partial(
        Guarantee.of, sketch.guarantee.releases, relation=neighbours, seeded=True
    )
    for guarantee in (
        sketch.guarantee,
        both.guarantee,
        in_sense("zcdp"),
        in_sense("cdp"),
        in_sense("approximate", delta=1e-3),
        sketch.guarantee.compose(both.guarantee.part("pilot")),
    ):
        dataclasses.replace(sketch, guarantee=guarantee).save(tmp_path / "s.h5")
        assert Sketch.load(tmp_path / "s.h5").guarantee == guarantee


def test_arguments_are_checked(X, frequencies):
    sums = np.zeros(M)
    noisy = release(Sketch.of(X, frequencies), 1.0, random_state=0)
    for arguments, reason in (
        ((frequencies, sums[1:], 3), "sums must be"),
        ((frequencies, np.full(M, np.nan), 3), "finite"),
        ((frequencies, sums, 2.5, M, None, None, {}), "n_samples"),
        ((frequencies, sums, -1, M, None, None, {}), "n_samples"),
        ((frequencies, sums, 3), "either exact"),
        ((frequencies, sums, 3, M + 1), "at most the number of frequencies"),
        ((frequencies, sums, 3, M, noisy.noise), "neither"),
        ((frequencies, sums, math.nan, M, noisy.noise, noisy.guarantee), "n_samples"),
        ((frequencies, sums, 3, M, noisy.noise, noisy.guarantee, {}), "either exact"),
    ):
        with pytest.raises(ValueError, match=reason):
            Sketch(*arguments)
    with pytest.raises(ValueError, match="mechanism"):
        dataclasses.replace(noisy.noise, mechanism="gamma")
    for scale in (0, -3.0, math.nan, math.inf, 1e151, "x", None, True):
        with pytest.raises(ValueError, match="scale must be"):
            dataclasses.replace(noisy.noise, scale=scale)


@pytest.mark.parametrize("dtype", ["f2", ">f4", "i4", ">f8", "u1", "f4"])
def test_rows_may_have_any_type_and_container(dtype, X, frequencies, tmp_path):
    whole = np.abs(np.round(X)).astype(dtype)
    plain = whole.astype(np.float32 if whole.dtype.kind == "f" and dtype != ">f8" else np.float64)
    expected = Sketch.of(plain, frequencies).sums.tobytes()
    np.save(tmp_path / "x.npy", whole)
    memory_map = np.load(tmp_path / "x.npy", mmap_mode="r")
    for rows in (whole, np.asfortranarray(whole), memory_map):
        assert Sketch.of(rows, frequencies).sums.tobytes() == expected
    in_double = Sketch.of(whole.astype(float), frequencies).sums.tobytes()
    for rows in (whole.tolist(), pd.DataFrame(whole.astype("f8"), index=range(5, len(X) + 5))):
        assert Sketch.of(rows, frequencies).sums.tobytes() == in_double
    empty = Sketch.of(whole[:0], frequencies)
    assert (empty.n_samples, empty.sums.any()) == (0, False)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (np.zeros((5, 2)), r"must have shape \(n_samples, 3\)"),
        (np.zeros(3), r"must have shape \(n_samples, 3\).*got \(3,\)"),
        (np.full((5, 3), "1"), "X holds text, not numbers"),
        (np.full((5, 3), 1j), "X must hold real numbers"),
        (np.diag([1.0, np.nan, 1.0]), "which row 1 is not"),
        (np.diag([1.0, 1.0, np.inf]), "which row 2 is not"),
        (iter([np.zeros((5, 3))]), r"an array or a list of rows.*parts are added up by \+"),
        ("rows.csv", "got 'str': Sketch.of_table reads files"),
        (Path("rows.csv"), "Sketch.of_table reads files"),
        (3, "got 'int'"),
    ],
)
def test_what_has_no_rows_is_refused(rows, reason, frequencies):
    with pytest.raises(ValueError, match=reason):
        Sketch.of(rows, frequencies)


def test_a_memory_map_is_read_in_parts(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((400_000, 8)))  # 26 megabytes
    rows, frequencies = np.load(tmp_path / "x.npy", mmap_mode="r"), np.ones((8, 2))
    Sketch.of(rows[:9], frequencies)  # what is imported or kept is not counted
    tracemalloc.start()
    Sketch.of(rows, frequencies)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 9e6
