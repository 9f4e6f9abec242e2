"""The command ``privclust audit``."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from privclust.command import main, output

MODULE = """
import numpy as np

pair = (0.0, 1.0)

class Box:
    pair = staticmethod(lambda: (np.zeros(1), np.ones(1)))

def corrected(data, rng):
    return np.sum(data) + rng.laplace()

def half(data, rng):
    return np.sum(data) + rng.laplace(scale=0.5)

def ragged(data, rng):
    return np.zeros(rng.integers(1, 5))

def fails(data, rng):
    raise KeyError("no such column")

def alone(data):
    return data

def identity(output):
    return output

def three():
    return 1, 2, 3
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command in a folder with a module of its own; return its code and what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(output, "_SECONDS_BETWEEN_LINES", 3600.0)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one not in ("", str(tmp_path))])
    for name in ("attacked", "broken_module"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    Path("attacked.py").write_text(MODULE)
    Path("broken_module.py").write_text("import numpy\nnumpy.no_such_thing\n")

    def command(*arguments):
        try:
            code = main(["audit", *map(str, arguments)])
        except SystemExit as stop:
            code = stop.code
        out, err = capsys.readouterr()
        return code, out, err

    yield command
    for name in ("attacked", "broken_module"):
        sys.modules.pop(name, None)


def test_a_violated_claim_is_exit_code_1_and_a_consistent_one_0(run):
    options = ("--epsilon", "1", "--trials", "4000", "--seed", "0")
    code, out, err = run(
        "attacked:half", *options, "--delta", "0", "--statistic", "attacked:identity"
    )
    assert (code, err) == (1, "")
    assert out.startswith("violated: claimed epsilon 1 and delta 0; at 0.95 confidence")
    assert "identity" in out
    code, out, _ = run("attacked:corrected", *options)
    assert code == 0
    assert out.startswith("consistent")
    assert run("attacked:corrected", *options)[1].split(";")[0] == out.split(";")[0]
    code, out, _ = run("attacked:half", *options, "--delta", "0.9")
    assert (code, out.split(":")[0]) == (0, "cannot tell")


def test_progress_is_shown(run, monkeypatch):
    monkeypatch.setattr(output, "_SECONDS_BETWEEN_LINES", 0.0)
    options = ("--epsilon", "1", "--trials", "20", "--statistic", "attacked:identity")
    _, _, err = run("attacked:half", *options)
    assert "2 of 40 runs\n" in err
    assert err.endswith("40 of 40 runs\n")


def test_data_come_from_files_or_objects(run):
    np.save("one.npy", np.zeros((3, 1)))
    Path("two.csv").write_text("x\n0\n0\n1\n")
    options = ("attacked:half", "--epsilon", "1", "--trials", "4000", "--seed", "0", "--data")
    bounds = {
        run(*options, *data)[1].split("\n")[0]
        for data in (("one.npy", "two.csv"), ("attacked:pair",), ("attacked:Box.pair",))
    }
    assert len(bounds) == 1
    assert bounds.pop().startswith("violated")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("attacked",), "attacked: must be of the form MODULE:NAME"),
        (
            ("attackde:half",),
            "attackde:half: not found (ModuleNotFoundError: No module named 'attackde')",
        ),
        (
            ("attacked.sub:half",),
            "attacked.sub:half: not found (ModuleNotFoundError: No module named 'attacked.sub'",
        ),
        (
            ("attacked:haff",),
            "attacked:haff: not found (AttributeError: module 'attacked' has no attribute 'haff'",
        ),
        (("broken_module:f",), "broken_module:f: not found (AttributeError: module 'numpy' has no"),
        (
            ("attacked:pair",),
            "attacked:pair: must be callable as (data, rng), got tuple of length 2",
        ),
        (("attacked:alone",), "attacked:alone: must be callable as (data, rng), got (data)"),
        (("attacked:ragged",), "outputs vary in shape"),
        (("attacked:fails",), "attacked:fails raised KeyError on data (attacked.py, line 19)"),
        (("attacked:half", "--statistic", "attacked:corrected"), "must be callable as (output)"),
        (("attacked:half", "--data", "one.npy"), "must be MODULE:PAIR, or two files"),
        (("attacked:half", "--data", "one.npy", "two.npy"), "one.npy"),
        (("attacked:half", "--data", "attacked:three"), "attacked:three: must be two data sets"),
        (("operator:add",), "--data FILE FILE, --data MODULE:PAIR, or an attribute 'pair' of"),
        (("attacked:half", "--trials", "3"), "n_trials must be an integer of at least 16"),
        (("attacked:half", "--epsilon", "-1"), "epsilon must be"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(run, arguments, reason):
    code, out, err = run(*arguments[:1], "--epsilon", "1", *arguments[1:])
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert reason in err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("attacked:half",), "--epsilon"),
        (("attacked:half", "--epsilon", "x"), "finite number"),
        (("attacked:half", "--epsilon", "1", "--delta", "1"), "less than 1"),
        (("attacked:half", "--epsilon", "1", "--data", "a", "b", "c"), "MODULE:PAIR or two files"),
    ],
)
def test_misuse_is_code_2(run, arguments, reason):
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert reason in err


def test_it_works_as_a_process(tmp_path):
    (tmp_path / "attacked.py").write_text(MODULE)
    arguments = ["attacked:half", "--epsilon", "1", "--trials", "2000", "--seed", "0"]
    command = [sys.executable, "-m", "privclust.command", "audit", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split(":")[0]) == (1, "violated")


def test_an_audit_stops_when_it_has_seen_enough(run):
    options = ("--epsilon", "1", "--trials", "100000", "--seed", "0", "--stopping", "anytime")
    code, out, _ = run("attacked:half", *options, "--statistic", "attacked:identity")
    assert code == 1
    assert "stopped at the conviction after" in out
    code, out, _ = run(
        "attacked:corrected", *options, "--closeness", "0.5", "--statistic", "attacked:identity"
    )
    assert code == 0
    assert "stopped close to the claim after" in out
    code, _, err = run("attacked:corrected", *options, "--closeness", "2")
    assert code == 1
    assert "closeness must be at most 1" in err


# --- looking inside ----------------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"
MENDED = """
import numpy as np
from sklearn.base import BaseEstimator
from privclust.core.fixed_point import FixedPoint
from privclust.privacy import Guarantee, Sensitivity, noise_source
from privclust.privacy.measurements import Laplace

HALF = Laplace(Sensitivity(1.0, "l1", "add_remove", "ages up to 100, in centuries"), epsilon=0.5)
rows = np.array([[30.0], [55.0], [80.0]])

class MeanAge(BaseEstimator):
    def fit(self, X, y=None):
        units = np.rint(np.clip(np.nan_to_num(X), 0, 100) / 100 * 2**30).astype(np.int64)
        total = HALF.release(FixedPoint(units.sum(), 30), noise_source(None))
        count = HALF.release(float(len(X)), noise_source(None))
        self.mean_ = 100 * total / max(count, 1.0)
        lines = [HALF.statement("sum of ages"), HALF.statement("number of people")]
        self.guarantee_ = Guarantee.of(lines, "pure", "add_remove")
        return self
"""


def without_numbers(text):
    return re.sub(r"\d[\d.]*(e-?\d+)?", "#", text)


def test_the_example_of_the_page_is_found_out(run):
    pytest.importorskip("opendp")
    section = PAGE.read_text().partition("## Looking inside\n")[2].partition("\n## ")[0]
    module, _, printed = (part.partition("```")[0] for part in section.split("```")[1::2])
    Path("mine.py").write_text(module.removeprefix("python\n"))
    code, out, _ = run("--inside", "mine:MeanAge", "--features", "1")
    sys.modules.pop("mine")
    assert code == 1
    assert "mine.py:12 in fit" in out
    told = without_numbers(printed.removeprefix("console\n"))  # sums are rounded by the processor
    assert without_numbers(out).startswith(told)


def test_the_mended_example_is_left_alone(run):
    pytest.importorskip("opendp")
    Path("attacked.py").write_text(MENDED)
    np.save("rows.npy", np.array([[30.0], [55.0], [80.0]]))
    for options in (("--features", "1"), ("--data", "rows.npy"), ("--data", "attacked:rows")):
        code, out, err = run("attacked:MeanAge", "--inside", "--pairs", "60", *options)
        assert (code, err) == (0, "")
        assert out.startswith("nothing found: 60 pairs")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--data", "a", "b"), "--data takes MODULE:ARRAY or one file with --inside"),
        (("--neighbours", "other"), "--neighbours must be replace_one or add_remove"),
        (("--pairs", "0"), "at least 1"),
    ],
)
def test_a_look_inside_refuses_other_options(run, arguments, reason):
    code, out, err = run("attacked:alone", "--inside", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert reason in err
