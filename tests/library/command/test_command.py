"""The command line: what it writes, what it refuses, and what is left when it is stopped."""

import io
import itertools
import os
import re
import resource
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

from privclust.command import main, output
from privclust.core.hdf5 import FileError
from privclust.privacy import Budget, Neighbours
from privclust.sketches import Sketch, draw_frequencies, estimate_variance, release

DRAWN = ["--frequencies", "30", "--variance", "2.5", "--seed", "1"]
X = np.random.default_rng(0).integers(-1024, 1024, (600, 3)) / 256


@pytest.fixture
def run(command_in_folder):
    """Run the command in a folder with x.npy."""
    np.save("x.npy", X)
    return command_in_folder


def test_every_format_gives_the_sketch_of_the_library(run):
    table = pd.DataFrame(X, columns=list("abc"))
    table.to_csv("x.csv", index=False)
    table.to_parquet("x.parquet")
    with h5py.File("x.h5", "w") as file:
        file["points"], file["other"] = X, X[:, :2]
    for name in ("x.npy", "x.csv", "x.parquet", "x.h5"):
        options = (*DRAWN, *(("--dataset", "points") if name == "x.h5" else ()))
        code, out, err = run("sketch", name, "-o", f"{name}.h5", *options)
        assert (code, out) == (0, "")
        assert "sketch of 600 records, 30 numbers" in err
        assert "NOT private" in err
        found = Sketch.load(f"{name}.h5")
        frequencies = draw_frequencies(3, 30, variance=2.5, random_state=1)
        assert (found.frequencies == frequencies).all()
        assert (found.sums == Sketch.of(X, frequencies).sums).all()
        assert found.guarantee is None


def test_a_folder_is_its_files_and_only_named_columns_are_read(run):
    """The bytes of the library, whatever the files; a shell's pattern is one of ours in quotes."""
    Path("days").mkdir()
    for i, rows in enumerate(np.split(X, 6)):
        table = pd.DataFrame(rows, columns=list("abc")).assign(name="someone")
        table.to_parquet(f"days/{i}.parquet")
        table.to_parquet(f"{i}.parquet")
    Path("days/_SUCCESS").touch()
    table[list("cab")].iloc[:2].to_parquet("public.pq")
    for number, files in enumerate((["days"], ["[0-9].parquet"], ["0.parquet", "[1-5].parquet"])):
        out = f"{number}.h5"
        code, _, err = run("sketch", *files, "-o", out, "--columns", "c, a", *DRAWN)
        assert (code, "sketch of 600 records" in err) == (0, True)
        found = Sketch.load(out)
        expected = Sketch.of(X[:, [2, 0]], found.frequencies)
        assert {k: v.tobytes() for k, v in found.exact.items()} == {
            k: v.tobytes() for k, v in expected.exact.items()
        }
    drawn = ("--frequencies", "30", "--public-sample", "public.pq", "--columns", "c,a")
    assert run("sketch", "days", "-o", "3.h5", *drawn)[0] == 0
    assert Sketch.load("3.h5").n_features == 2
    for arguments, reason in (
        (("days", "--columns", "a,d"), "0.parquet: there is no column 'd' among a, b, c, name"),
        (("days",), "0.parquet: column 'name' holds"),
        (("days", "0.parquet", "--columns", "a"), "has the same records as days/0.parquet"),
        (("x.npy", "--columns", "a"), "x.npy: columns are for files whose columns have names only"),
        (("*.csv",), "*.csv: no file is named so"),
        (("days", "--columns", "a,,b"), "must be names between commas"),
    ):
        code, _, err = run("sketch", *arguments, "-o", "s.h5", *DRAWN)
        assert code in (1, 2)
        assert reason in err
        assert "someone" not in err
    Path("days/7.parquet").write_bytes(b"")
    code, _, err = run("sketch", "days", "--columns", "a", "-o", "s.h5", *DRAWN)
    assert (code, "7.parquet: cannot be read" in err) == (1, True)


def test_private_sketch_says_what_it_promises(run):
    code, _, err = run("sketch", "x.npy", "-o", "s.h5", *DRAWN, "--epsilon", "0.5")
    assert code == 0
    assert "0.5-differential privacy (replace-one neighbours)" in err
    assert "NOT private" not in err
    assert "seeded" not in err
    first = Sketch.load("s.h5")
    assert (first.guarantee.definition, first.guarantee.seeded) == ("pure", False)
    run("sketch", "x.npy", "-o", "s.h5", *DRAWN, "--epsilon", "0.5", "--force")
    assert (Sketch.load("s.h5").sums != first.sums).all()
    options = ("--force", "--delta", "1e-6", "--noise", "gaussian", "--neighbours", "add_remove")
    code, _, err = run("sketch", "x.npy", "-o", "s.h5", *DRAWN, "--epsilon", "0.5", *options)
    assert code == 0
    assert "(0.5, 1e-06)-differential privacy (add-remove neighbours)" in err
    assert Sketch.load("s.h5").noise.mechanism == "gaussian"


def test_seeded_noise_repeats_and_says_that_it_is_no_release(run):
    options = (*DRAWN, "--epsilon", "1", "--measurements", "7", "--seed-noise", "5")
    _, _, err = run("sketch", "x.npy", "-o", "a.h5", *options, "--threads", "1")
    assert "for reproduction, not for release" in err
    run("sketch", "x.npy", "-o", "b.h5", *options, "--threads", "2")
    assert Path("a.h5").read_bytes() == Path("b.h5").read_bytes()
    assert Sketch.load("a.h5").n_measurements == 7


def test_noise_is_not_that_of_the_frequencies_of_the_same_seed(run):
    run("sketch", "x.npy", "-o", "exact.h5", *DRAWN)
    run("sketch", "x.npy", "-o", "s.h5", *DRAWN, "--epsilon", "1", "--seed-noise", "1")
    noisy = Sketch.load("s.h5")
    same = np.random.default_rng(1).laplace(scale=noisy.noise.scale, size=60)
    noise = (noisy.sums - Sketch.load("exact.h5").sums).view(float)
    assert np.abs(noise - same).max() > noisy.noise.scale


def test_ten_devices_are_one(run):
    run("sketch", "x.npy", "-o", "whole.h5", *DRAWN)
    edges = [0, 10, 60, 100, 101, 200, 300, 333, 444, 500, 600]
    for device in range(10):
        np.save(f"{device}.npy", X[edges[device] : edges[device + 1]])
        assert run("sketch", f"{device}.npy", "-o", f"{device}.h5", "--like", "whole.h5")[0] == 0
    parts = [Sketch.load(f"{device}.h5") for device in range(10)]
    merged = sum(parts[1:], start=parts[0])
    merged.save("merged.h5")
    assert Path("merged.h5").read_bytes() == Path("whole.h5").read_bytes()
    names = [f"{device}.npy" for device in range(10)]
    run("sketch", *names, "-o", "together.h5", "--like", "whole.h5")
    assert Path("together.h5").read_bytes() == Path("whole.h5").read_bytes()


@pytest.mark.slow
def test_processes_sketch_parts_at_the_same_time(run):
    """Private parts, made at the same time; noise of the sum within 6 deviations."""
    run("sketch", "x.npy", "-o", "whole.h5", *DRAWN)
    processes = []
    for device, part in enumerate(np.split(X, 2)):
        np.save(f"{device}.npy", part)
        arguments = ["sketch", f"{device}.npy", "-o", f"{device}.h5", "--like", "whole.h5"]
        command = [sys.executable, "-m", "privclust.command", *arguments, "--epsilon", "2"]
        processes.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
    assert [process.wait() for process in processes] == [0] * 2
    parts = [Sketch.load(f"{device}.h5") for device in range(2)]
    merged, whole = sum(parts[1:], start=parts[0]), Sketch.load("whole.h5")
    left_out = merged.left_out
    assert merged.n_samples == pytest.approx(600, abs=6 * left_out.deviation)
    assert merged.noise.n_parts == 2
    assert merged.guarantee.epsilon == pytest.approx(2.0)
    deviations = (merged.sums - whole.sums).view(float) / np.sqrt(merged.noise_variance)
    assert np.abs(deviations).max() < 6
    assert np.abs(deviations).mean() > 0.3


def test_like_takes_frequencies_and_measurements(run):
    run("sketch", "x.npy", "-o", "a.h5", *DRAWN, "--measurements", "4")
    run("sketch", "x.npy", "-o", "b.h5", "--like", "a.h5", "--epsilon", "1")
    run("sketch", "x.npy", "-o", "c.h5", "--like", "a.h5", "--measurements", "5")
    a, b, c = (Sketch.load(f"{name}.h5") for name in "abc")
    assert a.key == b.key == c.key
    assert [a.n_measurements, b.n_measurements, c.n_measurements] == [4, 4, 5]


def test_variance_may_come_from_a_public_sample(run):
    np.save("public.npy", X[:200] * 3)
    arguments = ("--frequencies", "5", "--public-sample", "public.npy", "--seed", "2")
    code, _, err = run("sketch", "x.npy", "-o", "s.h5", *arguments)
    assert code == 0
    variance = estimate_variance(X[:200] * 3, random_state=2)
    assert f"public sample: {variance:.6g}" in err
    expected = draw_frequencies(3, 5, variance=variance, random_state=2)
    assert (Sketch.load("s.h5").frequencies == expected).all()
    np.save("public.npy", X[:, :2])
    code, _, err = run("sketch", "x.npy", "-o", "t.h5", *arguments)
    assert (code, "public.npy: has 2 columns" in err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "COMMAND"),
        (("sketch",), "FILE"),
        (("sketch", "x.npy", "-o", "s.h5"), "--frequencies M is needed"),
        (("sketch", "x.npy", "-o", "s.h5", "--frequencies", "3"), "would reveal the private"),
        (
            ("sketch", "x.npy", "-o", "s.h5", *DRAWN, "--public-sample", "x.npy"),
            "one of --variance",
        ),
        (("sketch", "x.npy", "-o", "s.h5", "--like", "a.h5", "--law", "gaussian"), "--law does"),
        (("sketch", "x.npy", "-o", "s.h5", *DRAWN, "--measurements", "31"), "at most"),
        (("sketch", "x.npy", "-o", "s.h5", *DRAWN, "--delta", "0.1"), "--delta needs --epsilon"),
        (("sketch", "x.npy", "-o", "s.h5", *DRAWN, "--epsilon", "0"), "greater than 0"),
        (("sketch", "x.npy", "-o", "s.h5", *DRAWN, "--epsilon", "nan"), "finite"),
        (("sketch", "x.npy", "-o", "s.h5", *DRAWN, "--epsilon", "1", "--delta", "1"), "than 1"),
        (
            ("sketch", "x.npy", "-o", "s.h5", *DRAWN, "--epsilon", "1", "--noise", "gaussian"),
            "needs a --delta",
        ),
        (("sketch", "x.npy", "-o", "s.h5", "--frequencies", "0"), "at least 1"),
        (("sketch", "x.npy", "-o", "s.h5", "--seed", "-1"), "--seed"),
        (("decode", "s.h5"), "--clusters"),
        (("decode", "s.h5", "./s.h5", "--clusters", "2"), "named twice"),
        (("decode", "s.h5", "--clusters", "2", "--bounds", "1", "-1.5"), "LOW must be less"),
        (("decode", "s.h5", "--clusters", "2", "--errors", "--subspaces"), "always gives errors"),
    ],
)
def test_misuse_is_one_line_and_code_2(run, arguments, reason):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert reason in err
    assert not Path("s.h5").exists()


def test_failures_are_one_line_and_code_1_and_write_nothing(run):
    Path("bare.csv").write_text("1,2,3\n4,5,6\n")
    Path("damaged.h5").write_bytes(b"\x89HDF no")
    Path("header.csv").write_text("a,b,c\n")
    np.save("wide.npy", np.ones((2, 5)))
    np.save("huge.npy", np.full((2, 3), 1e308))
    Path("folder").mkdir()
    run("sketch", "x.npy", "-o", "r5.h5", *DRAWN, "--measurements", "5")
    Path("again.npy").write_bytes(Path("x.npy").read_bytes())
    os.link("x.npy", "linked.npy")
    sample = ("--frequencies", "3", "--public-sample")
    before = sorted(os.listdir())
    for arguments, reason in (
        (("none.npy", "-o", "s.h5", *DRAWN), "none.npy: there is no such file"),
        (("x.npy", "bare.csv", "-o", "s.h5", *DRAWN), "bare.csv: its first line holds numbers"),
        (("x.npy", "wide.npy", "-o", "s.h5", *DRAWN), "wide.npy: has 5 columns"),
        (
            ("huge.npy", "-o", "s.h5", "--frequencies", "3", "--variance", "1e-6"),
            "huge.npy: column 1 has an entry too large for the frequencies",
        ),
        (("header.csv", "-o", "s.h5", *DRAWN), "header.csv: no records"),
        (("x.npy", "-o", "s.h5", "--like", "damaged.h5"), "damaged.h5: not a whole artefact"),
        (("x.npy", "-o", "s.h5", "--like", "none.h5"), "none.h5: there is no such file"),
        (("x.npy", "-o", "s.h5", "--like", "r5.h5", "--measurements", "31"), "at most"),
        (("x.npy", "-o", "x.npy", *DRAWN), "is one of the inputs"),
        (("x.npy", "x.npy", "-o", "s.h5", *DRAWN), "x.npy: is the same file as x.npy"),
        (("x.npy", "linked.npy", "-o", "s.h5", *DRAWN), "name each file once"),
        (("x.npy", "again.npy", "-o", "s.h5", *DRAWN), "again.npy: has the same records as x.npy"),
        (("x.npy", "-o", "folder", *DRAWN), "is a directory"),
        (("x.npy", "-o", "wide.npy/s.h5", *DRAWN), "cannot be written"),
    ):
        code, out, err = run("sketch", *arguments)
        assert (code, out) == (1, "")
        assert err.count("\n") == 1
        assert reason in err
        assert "Traceback" not in err
        assert sorted(os.listdir()) == before
    code, _, err = run("sketch", "x.npy", "-o", "s.h5", *sample, "again.npy")
    assert (code, "x.npy: has the same records as again.npy" in err) == (1, True)
    assert sorted(os.listdir()) == before


def test_columns_of_the_sample_are_checked_before_all_files_are_read(run):
    """Otherwise a second line would announce the reading."""
    np.save("x.npy", np.ones((9, 2)))
    np.save("wide.npy", np.ones((9, 5)))
    drawn = ("--frequencies", "20", "--epsilon", "1", "--public-sample", "wide.npy")
    code, _, err = run("sketch", "x.npy", "-o", "s.h5", *drawn)
    assert (code, err) == (1, "privclust: error: wide.npy: has 5 columns, the records 2\n")
    frame = pd.DataFrame(np.ones((9, 2)), columns=["a", "b"])
    frame.to_csv("ab.csv", index=False)
    frame[["b", "a"]].to_csv("ba.csv", index=False)
    code, _, err = run("sketch", "ab.csv", "-o", "s.h5", *drawn[:-1], "ba.csv")
    assert (code, "ba.csv: column 1 has another name than in ab.csv" in err) == (1, True)


def test_missing_noise_is_told_before_reading(run, monkeypatch):
    """Without OpenDP nothing is read: the file named does not even exist."""
    monkeypatch.setattr("privclust.privacy.noise.find_spec", lambda name: None)
    code, _, err = run("sketch", "none.npy", "-o", "s.h5", *DRAWN, "--epsilon", "1")
    assert code == 1
    assert "pip install 'opendp" in err
    assert "pip install '.[secure]'" in err


def test_full_disk_leaves_the_file_as_it_was(run):
    run("sketch", "x.npy", "-o", "s.h5", *DRAWN)
    before = Path("s.h5").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, hard))
    try:
        code, _, err = run("sketch", "x.npy", "-o", "s.h5", *DRAWN, "--epsilon", "1", "--force")
        new = run("sketch", "x.npy", "-o", "new.h5", *DRAWN)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == new[0] == 1
    assert err == "privclust: error: s.h5: cannot be written (File too large)\n"
    assert Path("s.h5").read_bytes() == before
    assert sorted(os.listdir()) == ["s.h5", "x.npy"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_stopped_run_leaves_nothing_that_loads(run, tmp_path, number, code):
    """A sparse file of ten thousand million zeros is being read when the signal comes."""
    np.lib.format.open_memmap("endless.npy", mode="w+", dtype=np.float32, shape=(10**10, 1))
    program = (
        "import sys; from privclust.command import output, main;"
        "output._SECONDS_BETWEEN_LINES = 0.0; sys.exit(main(sys.argv[1:]))"
    )
    arguments = ["sketch", "endless.npy", "-o", "s.h5", *DRAWN, "--epsilon", "1"]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        # tests that run in a shell's background would hand down that Ctrl-C is ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert "of 10,000,000,000 records read" in process.stderr.readline()
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err
    if number != signal.SIGKILL:
        assert err.endswith("nothing was written\n")
        assert sorted(os.listdir()) == ["endless.npy", "x.npy"]
    for path in tmp_path.iterdir():
        with pytest.raises(FileError):
            Sketch.load(path)


def test_progress_is_lines_in_a_log_and_a_bar_on_a_terminal(run, monkeypatch):
    monkeypatch.setattr(output, "_SECONDS_BETWEEN_LINES", 0.0)
    np.save("y.npy", X[::-1])
    _, _, err = run("sketch", "x.npy", "y.npy", "-o", "s.h5", *DRAWN)
    assert "600 of 1,200 records read\n1,200 of 1,200 records read\n" in err
    pytest.importorskip("tqdm")
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    run("sketch", "x.npy", "-o", "t.h5", *DRAWN)
    assert "100%|" in terminal.getvalue()
    assert "records read" not in terminal.getvalue()


def test_nothing_slow_is_imported_before_arguments():
    program = (
        "import sys; from privclust.command import main\n"
        "try: main(['sketch', '--help'])\n"
        "except SystemExit: print(set(sys.modules) & {'numpy', 'numba', 'h5py', 'sklearn', 'tqdm'})"
    )
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert time.monotonic() - start < 30
    assert done.stdout.splitlines()[-1] == "set()"


def test_choices_are_those_of_the_library():
    frequencies = draw_frequencies(3, 5, variance=2.5, random_state=0)
    with pytest.raises(ValueError, match="law must be") as no_law:
        draw_frequencies(3, 5, variance=2.5, law="x")
    with pytest.raises(ValueError, match="noise must be") as no_noise:
        release(Sketch.of(X, frequencies), 1.0, noise="x")
    laws, noises = (re.findall(r"\w+(?=,)", str(one.value)) for one in (no_law, no_noise))
    assert (len(laws), len(noises)) == (4, 3)
    with pytest.raises(SystemExit):
        main(["sketch", "x", "-o", "y", "--noise", "x"])
    for option, known in (
        ("--law", laws),
        ("--noise", noises),
        ("--neighbours", ["replace_one", "add_remove", *Neighbours]),
    ):
        for value in known:
            code = main(
                [
                    "sketch",
                    "none.npy",
                    "-o",
                    "y",
                    *DRAWN,
                    "--epsilon",
                    "1",
                    "--delta",
                    "0.1",
                    option,
                    value,
                ]
            )
            assert code == 1  # understood; it is the file that is missing


def test_the_command_is_installed_under_its_name():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"privclust": "privclust.command:main"}


def test_decode_merges_and_writes_centers(run):
    rng = np.random.default_rng(0)
    centers = np.array([[-4.0, 0, 0], [4, 0, 0], [0, 5, 0]])
    points = (centers[:, None] + 0.3 * rng.standard_normal((3, 2000, 3))).reshape(-1, 3)
    rng.shuffle(points)
    drawn = ("--frequencies", "120", "--variance", "0.1", "--seed", "1")
    np.save("a.npy", points[:1000])
    np.save("b.npy", points[1000:])
    run("sketch", "a.npy", "-o", "a.h5", *drawn)
    run("sketch", "b.npy", "-o", "b.h5", "--like", "a.h5")
    options = ("--clusters", "3", "--bounds", "-6", "6", "--seed", "0")
    code, out, err = run("decode", "a.h5", "b.h5", *options)
    assert code == 0
    assert "3 centers from 6,000 records in 2 sketches" in err
    assert "NOT private" in err
    found = pd.read_csv(io.StringIO(out))
    assert list(found) == ["x1", "x2", "x3", "weight"]
    assert found["weight"].sum() == pytest.approx(1, abs=0.05)
    distances = np.linalg.norm(found.to_numpy()[:, None, :3] - centers, axis=-1)
    assert distances.min(axis=0).max() < 0.2
    assert run("decode", "a.h5", "b.h5", *options, "-o", "centers.csv")[1] == ""
    assert Path("centers.csv").read_text() == out
    code, out, _ = run("decode", "a.h5", "b.h5", *options, "--errors")
    header, first, *_ = out.splitlines()
    assert header == (
        "x1,x2,x3,weight,x1_error,x2_error,x3_error,weight_error,x1_spread,x2_spread,x3_spread,"
        "x1_spread_error,x2_spread_error,x3_spread_error,reliable"
    )
    *cells, is_reliable = first.split(",")
    assert all(0.0 < float(error) < 1.0 for error in cells[4:])
    np.testing.assert_allclose([float(spread) for spread in cells[8:11]], 0.3, rtol=0.1)
    assert is_reliable == "yes"
    code, out, err = run("decode", "a.h5", "b.h5", "--clusters", "auto", *options[2:])
    assert code == 0
    assert "3 centers from 6,000 records" in err
    assert len(pd.read_csv(io.StringIO(out))) == 3


def test_the_same_sketches_in_any_order_give_the_same_clusters(run):
    """Without a seed. Sums of noisy sums depend on their order, in the last digit."""
    points = np.random.default_rng(0).uniform(-1.0, 1.0, (3000, 2))
    drawn = ("--frequencies", "60", "--variance", "0.1", "--seed", "1")
    private = ("--epsilon", "1", "--delta", "1e-6")
    for name, part in zip("abc", np.split(points, 3), strict=True):
        np.save(f"{name}.npy", part)
        like = drawn if name == "a" else ("--like", "a.h5")
        assert run("sketch", f"{name}.npy", "-o", f"{name}.h5", *like, *private)[0] == 0
    found = set()
    for names in itertools.permutations(("a.h5", "b.h5", "c.h5")):
        code, out, _ = run("decode", *names, "--clusters", "4", "--errors")
        assert code == 0
        found.add(out)
    assert len(found) == 1
    assert run("decode", "a.h5", "b.h5", "c.h5", "--clusters", "4", "--seed", "5")[1] not in found


def test_decode_repeats_the_guarantee_and_refuses_merges(run):
    run("sketch", "x.npy", "-o", "a.h5", *DRAWN, "--epsilon", "3")
    run("sketch", "x.npy", "-o", "b.h5", "--like", "a.h5")
    run("sketch", "x.npy", "-o", "c.h5", *DRAWN[:-1], "2")
    code, _, err = run("decode", "a.h5", "--clusters", "2", "--seed", "0")
    assert code == 0
    assert "3-differential privacy" in err
    for other, reason in (("b.h5", "private"), ("c.h5", "frequencies")):
        code, out, err = run("decode", "a.h5", other, "--clusters", "2", "-o", "centers.csv")
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert reason in err
    assert not Path("centers.csv").exists()


@pytest.mark.filterwarnings("default")  # the command prints what users see
def test_warnings_are_one_line_without_a_place_in_the_code(run):
    run("sketch", "x.npy", "-o", "s.h5", *DRAWN)
    code, out, err = run("decode", "s.h5", "--clusters", "8", "--seed", "0")
    assert code == 0
    assert out.count("\n") == 9
    assert err.splitlines()[0].startswith("privclust: warning: 8 clusters with 3 features each")
    assert ".py" not in err


def test_a_full_standard_output_is_one_line_and_code_1(run):
    run("sketch", "x.npy", "-o", "s.h5", *DRAWN)
    command = [sys.executable, "-m", "privclust.command", "decode", "s.h5", "--clusters", "2"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    message = "the standard output: cannot be written (No space left on device)"
    assert (done.returncode, done.stderr) == (1, f"privclust: error: {message}\n")


def test_a_sketch_draws_on_a_ledger(run):
    private = (*DRAWN, "--epsilon", "1", "--seed-noise", "1", "--budget", "budget.json")
    code, _, err = run("sketch", "x.npy", "-o", "s.h5", *private)
    assert code == 1
    assert "no such ledger" in err
    budget = Budget.open("budget.json", epsilon=1)
    code, _, err = run("sketch", "x.npy", "-o", "s.h5", *DRAWN, "--budget", "budget.json")
    assert code == 2
    assert "--budget needs --epsilon" in err

    assert run("sketch", "x.npy", "-o", "s.h5", *private)[0] == 0
    assert budget.spent == 1
    code, _, err = run("sketch", "x.npy", "-o", "t.h5", *private)
    assert code == 1
    assert "0 is left, the fit asks for 1" in err
    assert not Path("t.h5").exists()
    Path("budget.json").write_text("")
    code, _, err = run("sketch", "x.npy", "-o", "t.h5", *private)
    assert code == 1
    assert "damaged" in err


def test_plan_prints_lines_for_each_epsilon(run):
    options = ("--features", "3", "--clusters", "3", "--delta", "1e-6", "--trials", "2")
    code, out, err = run("plan", "--n", "200000", "--epsilon", "0.1", "1", "--seed", "0", *options)
    assert code == 0
    lines = out.splitlines()
    told = "round clusters", "skewed clusters", "budget"
    starts = [f"epsilon {epsilon}, {what}" for epsilon in ("0.1", "1") for what in told]
    assert [line.partition(":")[0] for line in lines] == starts
    assert ["times that without privacy" in line for line in lines] == [True, True, False] * 2
    assert all(line.endswith("% of clusters marked") for line in lines[:2])
    assert "10 % for pilot: sums of features, 50 % for sums, counts and spreads" in lines[2]
    of = "2 simulated fits of CompressiveKMeans for each shape, 50,000 rows each, noise as of all"
    assert of in err
    options_of_table = ("--n", "200000", "--epsilon", "1", "--seed", "0", *options)
    code, out, err = run("plan", *options_of_table, "--columns", "4")
    assert code == 0
    assert "epsilon 1, 2 % of the whole budget for counts of missing" in out.splitlines()[3]
    assert re.search(r"noise of \d\d rows \(standard deviation\) on each count", out)
    code, out, err = run("plan", "--n", "3", "--epsilon", "1", *options)
    assert (code, out) == (2, "")
    assert "--clusters must be less than --n" in err


@pytest.mark.parametrize(
    ("options", "method"),
    [
        (("--features", "2", "--delta", "1e-6"), "TreeKMeans"),
        (("--features", "2"), "CompressiveKMeans"),
        (("--features", "2", "--delta", "1e-6", "--method", "DPLloyd"), "DPLloyd"),
    ],
)
def test_plan_simulates_the_method_that_cluster_chooses(run, options, method):
    task = ("--n", "2000", "--clusters", "2", "--epsilon", "1", "--trials", "1", "--seed", "0")
    code, _, err = run("plan", *task, *options)
    assert code == 0
    assert f"1 simulated fits of {method} for each shape" in err


def test_plan_compares_methods(run):
    options = ("--features", "2", "--clusters", "3", "--delta", "1e-6", "--trials", "2")
    task = ("plan", "--n", "5000", "--epsilon", "1", "--seed", "0", *options)
    code, out, err = run(*task, "--method", "all", "--smallest", "0.2")
    assert code == 0
    of_methods, least, skewed = out.splitlines()[:4], out.splitlines()[4], out.splitlines()[5:10]
    names = [line.partition(":")[0].split(", ")[1] for line in of_methods]
    assert names == ["CompressiveKMeans", "TreeKMeans", "DPLloyd", "EUGkM"]
    medians = [float(line.split("error ")[1].split()[0]) for line in of_methods]
    assert f"the least error: {names[medians.index(min(medians))]}" in least
    assert all(line.startswith("epsilon 1, ") and "skewed" in line for line in skewed)
    assert "epsilon 1, TreeKMeans, budget: 84 % for counts of cells" in out
    assert "2 simulated fits of each method" in err
    wide = ("--n", "1000000", "--features", "40", "--clusters", "3", "--trials", "1")
    budget = ("--epsilon", "0.1", "--delta", "1e-6")
    code, out, err = run("plan", *wide, *budget, "--method", "all", "--seed", "0")
    assert code == 0
    assert "epsilon 0.1, EUGkM, round clusters: not possible: the grid needs" in out
    assert "epsilon 0.1, round clusters, the least error: CompressiveKMeans" in out
    code, out, err = run(*task, "--smallest", "0.4")
    assert (code, out) == (2, "")
    assert "--smallest must be at most one over --clusters" in err


def test_of_a_center_that_noise_hides_no_error_is_told(run):
    np.savetxt("one.csv", [[0.1, 0.2]], delimiter=",", header="a,b", comments="")
    options = ("--frequencies", "20", "--variance", "1", "--epsilon", "0.1", "--seed-noise", "1")
    assert run("sketch", "one.csv", "--seed", "1", *options, "-o", "one.h5")[0] == 0
    code, out, _ = run("decode", "one.h5", "--clusters", "2", "--errors", "--seed", "1")
    header, *rows = (line.split(",") for line in out.splitlines())
    assert (code, header[-2:]) == (0, ["reliable", "detected"])
    assert {tuple(row[-2:]) for row in rows} == {("no", "no")}
    errors = [header.index(name) for name in header if name.endswith("_error")]
    assert len(errors) == 5  # of two coordinates, the weight and two spreads
    assert {row[place] for row in rows for place in errors} == {""}
