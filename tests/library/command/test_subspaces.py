"""The command line on directions of records: sketches for subspaces, and what is decoded."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privclust.metrics import wasserstein_distance
from privclust.privacy import Budget
from privclust.sketches import MomentSketch
from privclust.subspaces import decode
from privclust.synthetic.subspaces import subspace_mixture

X, _, TRUTH = subspace_mixture(3000, 2, 4, 2, np.random.default_rng(0), noise=0.01)
PRIVATE = ("--epsilon", "1", "--delta", "1e-6")
HIDES_NUMBER = (*PRIVATE, "--neighbours", "add_remove")


@pytest.fixture
def run(command_in_folder):
    """Run the command in a folder with x.npy."""
    np.save("x.npy", X)
    return command_in_folder


def sketch(run, *files, to, **more):
    options = [word for name, value in more.items() for word in (f"--{name}", value)]
    return run("sketch", *files, "-o", to, "--subspaces", *options)


def bases_of(text):
    """Subspaces (k, d, q) of what `decode` printed, and the table."""
    table = pd.read_csv(io.StringIO(text))
    vectors = table.filter(regex="^x").to_numpy()
    k = table["subspace"].max()
    return vectors.reshape(k, -1, vectors.shape[1]).transpose(0, 2, 1), table


def test_every_format_gives_the_sketch_of_the_library(run):
    table = pd.DataFrame(X, columns=list("abcd"))
    table.to_csv("x.csv", index=False)
    table.to_parquet("x.parquet")
    for name in ("x.npy", "x.csv", "x.parquet"):
        code, out, err = sketch(run, name, to=f"{name}.h5")
        assert (code, out) == (0, "")
        assert "sketch of 3,000 records" in err
        assert "NOT private" in err
    replace(MomentSketch.of(X), left_out=0).save("library.h5")
    for name in ("x.npy", "x.csv", "x.parquet"):
        assert Path(f"{name}.h5").read_bytes() == Path("library.h5").read_bytes()


def test_devices_are_one(run):
    for device, part in enumerate(np.split(X, [10, 700, 2900])):
        np.save(f"{device}.npy", part)
        assert sketch(run, f"{device}.npy", to=f"{device}.h5")[0] == 0
    sketch(run, "x.npy", to="whole.h5")
    sketch(run, *(f"{device}.npy" for device in range(4)), to="together.h5")
    assert Path("together.h5").read_bytes() == Path("whole.h5").read_bytes()
    options = ("--subspaces", "--clusters", "2", "--dimension", "2", "--seed", "0")
    _, merged, err = run("decode", *(f"{device}.h5" for device in range(4)), *options)
    assert "2 subspaces of dimension 2 from 3,000 records in 4 sketches" in err
    assert merged == run("decode", "whole.h5", *options)[1]


@pytest.mark.parametrize(
    ("options", "chosen"), [(PRIVATE, ("auto", "auto")), (HIDES_NUMBER, ("auto", "2"))]
)
def test_private_subspaces_are_found_and_promised(run, options, chosen):
    code, _, err = run("sketch", "x.npy", "-o", "s.h5", "--subspaces", *options)
    assert code == 0
    assert "(1, 1e-06)-differential privacy" in err
    assert "NOT private" not in err
    assert isinstance(MomentSketch.load("s.h5").n_samples, float)
    for clusters, dimension in (("2", "2"), chosen):
        sizes = ("--clusters", clusters, "--dimension", dimension)
        code, out, err = run("decode", "s.h5", "--subspaces", *sizes, "--seed", "0")
        assert code == 0
        assert "(1, 1e-06)-differential privacy" in err
        bases, table = bases_of(out)
        assert bases.shape == (2, 4, 2)
        np.testing.assert_allclose(bases.transpose(0, 2, 1) @ bases, [np.eye(2)] * 2, atol=1e-9)
        assert wasserstein_distance(bases, TRUTH) < 0.3
        assert table["detected"].eq("yes").all()
        assert table.groupby("subspace")["weight"].first().sum() == pytest.approx(1.0)
    assert list(table) == [
        "subspace",
        "direction",
        "x1",
        "x2",
        "x3",
        "x4",
        "weight",
        "error",
        "detected",
    ]


def test_numbers_are_those_of_the_library(run):
    sketch(run, "x.npy", to="s.h5", epsilon="1", delta="1e-6")
    options = ("--subspaces", "--clusters", "2", "--dimension", "2", "--seed", "7")
    assert run("decode", "s.h5", *options, "-o", "bases.csv")[1] == ""
    bases, table = bases_of(Path("bases.csv").read_text())
    decoded = decode(MomentSketch.load("s.h5"), 2, 2, random_state=np.random.default_rng(7))
    np.testing.assert_array_equal(bases, decoded.subspaces)
    np.testing.assert_array_equal(table["error"], np.repeat(decoded.errors, 2))


@pytest.mark.filterwarnings("default")  # the command prints what users see
def test_what_noise_hides_is_said(run):
    np.save("few.npy", X[:60])
    sketch(run, "few.npy", to="s.h5", epsilon="0.1", delta="1e-6")
    options = ("--subspaces", "--clusters", "2", "--dimension", "2", "--seed", "0")
    _, out, err = run("decode", "s.h5", *options)
    assert "noise" in err
    assert bases_of(out)[1]["detected"].eq("no").any()


@pytest.mark.parametrize("private", [PRIVATE, HIDES_NUMBER])
def test_no_record_decides_whether_there_is_a_result(run, private):
    """One with a missing entry is left out; of one with infinite entries those alone count."""
    seeded = (*private, "--seed-noise", "1")
    rows = {"odd": np.array([[np.nan, 1.0, 2.0], [np.inf, 0.0, -1.0], [0.0, 1.0, 2.0]])}
    rows["read"] = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 2.0]])
    if private is HIDES_NUMBER:
        rows["none"] = np.zeros((0, 3))
    for name, values in rows.items():
        np.save(f"{name}.npy", values)
        options = ("-o", f"{name}.h5", "--subspaces", *seeded)
        assert run("sketch", f"{name}.npy", *options)[0] == 0
    odd, read = (MomentSketch.load(f"{name}.h5") for name in ("odd", "read"))
    assert all((odd.moments[degree] == read.moments[degree]).all() for degree in odd.moments)
    assert odd.left_out.value == pytest.approx(read.left_out.value + 1.0)


def test_seeded_noise_repeats_and_says_that_it_is_no_release(run):
    for name in "ab":
        _, _, err = run(
            "sketch", "x.npy", "-o", f"{name}.h5", "--subspaces", *PRIVATE, "--seed-noise", "3"
        )
        assert "for reproduction, not for release" in err
    assert Path("a.h5").read_bytes() == Path("b.h5").read_bytes()


def test_a_sketch_draws_on_a_ledger(run):
    budget = Budget.open("budget.json", epsilon=1, delta=1e-6)
    options = ("--subspaces", *PRIVATE, "--seed-noise", "1", "--budget", "budget.json")
    assert run("sketch", "x.npy", "-o", "s.h5", *options)[0] == 0
    assert budget.spent == pytest.approx(1)
    code, _, err = run("sketch", "x.npy", "-o", "t.h5", *options)
    assert code == 1
    assert "is left" in err
    assert not Path("t.h5").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("sketch", "x.npy", "-o", "s.h5", "--subspaces", "--frequencies", "9"), "does not go"),
        (("sketch", "x.npy", "-o", "s.h5", "--subspaces", "--like", "a.h5"), "does not go"),
        (("sketch", "x.npy", "-o", "s.h5", "--subspaces", "--epsilon", "1"), "needs a --delta"),
        (
            ("sketch", "x.npy", "-o", "s.h5", "--subspaces", *PRIVATE, "--noise", "laplace"),
            "--noise does not go",
        ),
        (("sketch", "x.npy", "-o", "s.h5", "--degree", "4"), "--degree goes with"),
        (("decode", "s.h5", "--subspaces", "--clusters", "2"), "needs --dimension"),
        (("decode", "s.h5", "--clusters", "2", "--dimension", "1"), "--dimension goes with"),
        (("decode", "s.h5", "--clusters", "2", "--subspaces", "--dimension", "0"), "at least 1"),
    ],
)
def test_misuse_is_one_line_and_code_2(run, arguments, reason):
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert reason in err
    assert not Path("s.h5").exists()


def test_failures_are_one_line_and_code_1(run):
    np.save("wide.npy", np.ones((3, 65)))
    np.save("one.npy", np.ones((3, 1)))
    np.save("copy.npy", X)
    pd.DataFrame(X, columns=list("abcd")).to_csv("copy.csv", index=False)
    sketch(run, "x.npy", to="exact.h5")
    sketch(run, "x.npy", to="private.h5", epsilon="1", delta="1e-6")
    sketch(run, "x.npy", to="degree.h5", degree="4")
    drawn = ("--frequencies", "30", "--variance", "1")
    run("sketch", "x.npy", "-o", "centers.h5", *drawn)
    two = ("--clusters", "2", "--dimension", "2")
    for arguments, reason in (
        (("sketch", "wide.npy", "-o", "t.h5", "--subspaces"), "at most 64 features"),
        (("sketch", "one.npy", "-o", "t.h5", "--subspaces"), "at least 2 features"),
        (("sketch", "x.npy", "copy.npy", "-o", "t.h5", "--subspaces"), "has the same records"),
        (("sketch", "x.npy", "copy.csv", "-o", "t.h5", "--subspaces"), "added twice"),
        (("decode", "exact.h5", "private.h5", "--subspaces", *two), "one is private"),
        (("decode", "exact.h5", "degree.h5", "--subspaces", *two), "degrees differ"),
        (("decode", "centers.h5", "--subspaces", *two), "centers.h5"),
        (("decode", "exact.h5", "--clusters", "2"), "exact.h5"),
        (("decode", "exact.h5", "--subspaces", "--clusters", "2", "--dimension", "4"), "less than"),
    ):
        code, out, err = run(*arguments)
        assert (code, out, err.count("\n")) == (1, "", 1), arguments
        assert reason in err
    assert not Path("t.h5").exists()
