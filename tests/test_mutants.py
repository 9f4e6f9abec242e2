"""`make mutants`: the faults that it plants, the sample that it draws, and its verdicts."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def mutants():
    """The script, as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        spec = importlib.util.spec_from_file_location("mutants", ROOT / "benchmarks/mutants.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def suite(mutants):
    """All tests of the project, and what they import."""
    return mutants.Suite()


def planted(mutants, name, text):
    """All faults of a module, with the text."""
    places = mutants.Places(text)
    return list(filter(None, (places.planted(name, place) for place in places.found)))


def faults(mutants, code):
    """The lines that faults make of a line of a function."""
    return [fault.after for fault, _ in planted(mutants, "m.py", f"def f(a, b):\n    {code}\n")]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("return a < b", ["return a <= b"]),
        ("return a is not b", ["return a is b"]),
        ("return a and b", ["return a or b"]),
        ("return not a", ["return a"]),
        ("return -a", ["return a"]),
        ("return a * b", ["return a / b"]),
        ("return 3", ["return 4"]),
        ("return a % b", ["return a * b"]),
        ("return 0.5", ["return 0.4"]),
        ("return True", ["return False"]),
        ("return min(a, b)", ["return max(a, b)"]),
        ("return range(a)", ["return range((a) - 1)"]),
        ("return a[b:]", ["return a[(b) + 1:]"]),
        ("return f(a, b=b)", ["return f(a)"]),
        ("return f(a=a, b=b)", ["return f(b=b)", "return f(a=a)"]),
        ("f(a)", ["pass"]),
        ("a += b", ["pass"]),
        ("if a: return b", ["if not (a): return b", "if False: return b"]),
        ("raise ValueError(f'{a + 1}')", []),
        ("'''The sum, a + b, or 1.'''", []),
    ],
)
def test_one_place_is_changed_at_a_time(mutants, code, expected):
    assert sorted(faults(mutants, code)) == sorted(expected)


def test_a_seed_draws_the_same_sample_and_a_larger_one_goes_on(mutants):
    files = sorted((ROOT / "src/privclust/metrics").glob("*.py"))
    first, again, other = (mutants.drawn(files, 20, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert mutants.drawn(files, 8, 1) == first[:8]
    assert len({text for _, text in first}) == 20
    for fault, text in first:
        assert text != (ROOT / "src" / fault.file).read_bytes()


def test_tests_that_are_near_to_the_module_come_first(suite):
    own, room, others = suite.stages("privclust/metrics/segmentation.py")
    assert own == ["tests/library/metrics/test_segmentation.py"]
    assert "tests/library/metrics/test_mixtures.py" in room
    assert "tests/test_docstrings.py::test_examples[metrics]" in room
    assert not {*own, *room}.intersection(others)
    assert any(test.startswith("tests/papers/mtsc/") for test in others)
    own, room, _ = suite.stages("privclust_papers/report/comparison.py")
    assert own == []
    assert "tests/papers/report/test_verdicts.py" in room[:2]


MODULE = """
def clipped(values, low, high):
    found = []
    while len(found) < len(values):
        found += [min(max(values[len(found)], low), high)]
    return found
"""
TESTS = """
import os
from toy.room.clip import clipped

def test_that_always_fails():
    assert os.path.exists("nowhere")

def test_values_between_and_outside():
    assert clipped([-5, 1, 5], 0, 3) == [0, 1, 3]
"""


@pytest.fixture
def copy(mutants, monkeypatch, tmp_path):
    """A project of one function in place of this one."""

    def toy(folder, with_kernels):
        for name, text in (("src/toy/room/clip.py", MODULE), ("tests/test_clip.py", TESTS)):
            (folder / name).parent.mkdir(parents=True)
            (folder / name).write_text(text)
        (folder / "pytest.ini").touch()

    monkeypatch.setattr(mutants, "copy_project", toy)
    options = ["--timeout=3" if "timeout=" in one else one for one in mutants.OPTIONS]
    monkeypatch.setattr(mutants, "OPTIONS", [*options, "-pno:cacheprovider"])
    return mutants.Copy(tmp_path)


def test_faults_are_killed_by_tests_that_pass_without_them(mutants, copy):
    name = "toy/room/clip.py"
    tests, path = ["tests/test_clip.py"], copy.folder / "src" / name
    killed = {
        fault.after: copy.killed_by(fault, text, [tests])
        for fault, text in planted(mutants, name, MODULE)
        if fault.after == "pass" or "min(min" in fault.after
    }
    one = "tests/test_clip.py::test_values_between_and_outside"
    assert list(killed.values()) == [one, one]  # the loop without an end as well
    assert path.read_text() == MODULE
    harmless = MODULE.replace(
        "min(max(values[len(found)], low), high)", "sorted((low, X, high))[1]"
    )
    harmless = harmless.replace("X", "values[len(found)]").encode()
    fault = mutants.Fault(name, "clipped", "", "")
    assert copy.killed_by(fault, harmless, [tests, []], 60.0) is None
    assert copy.broken == {"tests/test_clip.py::test_that_always_fails"}


def test_rates_leave_out_equivalent_faults(mutants, monkeypatch, tmp_path):
    made = [mutants.Fault("m.py", "f", "a", f"b{i}") for i in range(12)]
    listed = tmp_path / "equivalent.csv"
    rows = ["file,function,before,after,reason", "m.py,f,a,b10,none", "m.py,f,a,b0,none"]
    listed.write_text("\n".join(rows) + "\n")
    monkeypatch.setattr(mutants, "EQUIVALENT", listed)
    judged = {fault: None if fault in made[9:] else "a test" for fault in made[:11]}
    counts, survivors = mutants.table({"room": [(fault, b"") for fault in made]}, judged)
    # the twelfth is not tried yet; 9 of 10: [.555, .9975] by tables of Clopper and Pearson
    assert "| room | 11 | 1 | 9 | 1 | 90% [55%, 100%] |" in counts
    assert survivors == [made[9]]


def test_the_script_goes_on_where_it_stopped(mutants, suite, monkeypatch, tmp_path, capsys):
    """Two calls with one room: the second tries only the faults that the first did not."""
    (tmp_path / "benchmarks").mkdir()
    tried = []
    monkeypatch.setattr(mutants, "Copy", lambda folder: mutants)
    monkeypatch.setattr(
        mutants, "killed_by", lambda fault, *how: tried.append(fault) or "a test", raising=False
    )
    monkeypatch.setattr(mutants, "Suite", lambda: suite)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    for each in (2, 3):
        arguments = ["mutants.py", "--rooms", "privclust/metrics", "--each", str(each)]
        monkeypatch.setattr("sys.argv", arguments)
        mutants.main()
    assert len(tried) == len(set(tried)) == 3
    assert "| privclust/metrics | 3 | 0 | 3 | 0 | 100% [29%, 100%] |" in capsys.readouterr().out
