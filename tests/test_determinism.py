"""The benchmark of determinism: it sees what differs, and says which change it comes from."""

import importlib
import importlib.util
import inspect
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from privclust_papers.pipeline import artefacts

ROOT = Path(__file__).parents[1]
N_TASKS = 7
PAPER = "experiments:\n  drawn:\n    effort: {quick: {trials: 7, block: 4}}\n"


def benchmark(name):
    """Return a benchmark as a module."""
    folder = ROOT / "benchmarks"
    sys.path.insert(0, str(folder))  # where it finds what it imports
    try:
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


@pytest.fixture(scope="module")
def determinism():
    """The benchmark of runs that are cut otherwise."""
    return benchmark("determinism")


@pytest.fixture(scope="module")
def unchanged():
    """The benchmark of one revision against another."""
    return benchmark("unchanged")


def test_every_private_estimator_is_fitted_with_seeds():
    source = (ROOT / "benchmarks/seeded_fits.py").read_text()
    private = set()
    for package in ("kmeans", "mixtures", "subspaces", "embedding", "segmentation"):
        module = importlib.import_module(f"privclust.{package}")
        for name in module.__all__:
            thing = getattr(module, name)
            documented = (
                (thing.__doc__ or "").partition("Attributes\n")[2].partition("Examples\n")[0]
            )
            if inspect.isclass(thing) and hasattr(thing, "fit") and "guarantee_ :" in documented:
                private.add(name)
    assert len(private) >= 11
    assert {name for name in private if not re.search(rf"yield {name}\(", source)} == set()


def write_results(folder, block, offset=0.0, fits=lambda task: 0.0, costs="1", verdict="holds"):
    """Write what a run leaves: data, blocks of fits, metrics, a figure, what takes no part."""
    artefacts.write(folder / "data/prepared/given.h5", "dataset", {"X": np.eye(2) + offset}, {})
    made = folder / "results/quick/paper/drawn"
    for number, start in enumerate(range(0, N_TASKS, block)):
        tasks = range(start, min(start + block, N_TASKS))
        for batch, methods in (("one", ("a", "b")), ("two", ("c",))):
            arrays = {
                f"{method}/{task - start:05d}/rows": np.arange(3.0) + task + fits(task)
                for task in tasks
                for method in methods
            }
            artefacts.write(made / f"fit/{batch}/block_{number:04d}.h5", "fit", arrays, {})
        shard = {"sums": np.arange(float(block))}
        artefacts.write(made / f"shared/block_{number:04d}/shard_0000.h5", "shared", shard, {})
    artefacts.write(made / "metrics.h5", "metrics", {"error": np.arange(N_TASKS)}, {})
    (made / "costs.tsv").write_text(costs)
    (folder / "results/quick/targets/audit_epsilon").mkdir(parents=True)
    target = folder / "results/quick/targets/audit_epsilon/audit_epsilon"
    target.with_suffix(".csv").write_text(f"verdict,cpu_seconds\n{verdict},{costs}\n")
    target.with_suffix(".svg").write_text(f"{verdict} {costs}")
    section = f'<section class="target" aria-labelledby="audit_epsilon">{costs}</section>'
    (folder / "results/quick/index.html").write_text(f"<main>{section}<p>1 claim</p></main>")
    (folder / "results/quick/verdicts.csv").write_text("claim\n")


@pytest.fixture(scope="module")
def put_results(tmp_path_factory):
    """A function that does what `write_results` does, of copies of what was written before."""
    written = {}

    def put(folder, block, offset):
        if (block, offset) not in written:
            written[block, offset] = tmp_path_factory.mktemp("written")
            write_results(written[block, offset], block, offset=offset)
        shutil.copytree(written[block, offset], folder, dirs_exist_ok=True)

    return put


def differences(determinism, expected, found):
    """What is said to differ where blocks may differ, and where they may not."""
    return [determinism.difference(expected, found, cut_alike) for cut_alike in (False, True)]


def test_blocks_and_costs_make_no_difference(determinism, tmp_path):
    write_results(tmp_path / "a", 4, costs="1")
    write_results(tmp_path / "b", 2, costs="2")
    write_results(tmp_path / "c", 4, costs="3")
    expected, halved, again = (determinism.results(tmp_path / name) for name in "abc")
    made = "results/quick/paper/drawn"
    named = f"12 differ, such as cut: {made}/fit/one/block_0000.h5"
    assert differences(determinism, expected, halved) == ["same", named]
    assert differences(determinism, expected, again) == ["same", "same"]
    arrays = {f"drawn/{m}/{task}/rows" for m in "abc" for task in range(N_TASKS)}
    table = "results/quick/targets/audit_epsilon/audit_epsilon.csv"
    files = {"data/prepared/given.h5", f"{made}/metrics.h5", table}
    parts = ("fit/one/block_{}", "fit/two/block_{}", "shared/block_{}/shard_0000")
    cut = {f"cut: {made}/{p.format(f'{n:04d}')}.h5" for p in parts for n in (0, 1)}
    files |= {"results/quick/verdicts.csv", "results/quick/index.html"}
    assert set(expected) == arrays | files | cut


def test_the_page_is_compared_but_for_costs(determinism, tmp_path):
    write_results(tmp_path, 4)
    page = tmp_path / "results/quick/index.html"
    assert determinism.comparable(page) == b"<main><p>1 claim</p></main>"


def test_a_change_of_one_bit_between_revisions_is_seen(unchanged, tmp_path):
    write_results(tmp_path / "a", 4)
    write_results(tmp_path / "b", 2, costs="2")
    expected, other_blocks = (unchanged.outcomes(tmp_path / name) for name in "ab")
    assert unchanged.difference(expected, other_blocks, cut_alike=True) == "same"
    assert len(expected) == 3 * N_TASKS + 5  # fits; data, metrics, a table, verdicts, the page
    write_results(tmp_path / "c", 4, offset=1e-15)
    moved = unchanged.outcomes(tmp_path / "c")
    named = "1 differ, such as data/prepared/given.h5/X"
    assert unchanged.difference(expected, moved, cut_alike=True) == named


def test_what_differs_is_named(determinism, tmp_path):
    write_results(tmp_path / "a", 4)
    expected = determinism.results(tmp_path / "a")
    write_results(tmp_path / "b", 4, offset=1e-15)
    found = determinism.results(tmp_path / "b")
    named = "1 differ, such as data/prepared/given.h5"
    assert differences(determinism, expected, found) == [named, named]
    write_results(tmp_path / "c", 2, fits=lambda task: 1e-15 if task == 5 else 0.0)
    found = determinism.results(tmp_path / "c")
    assert differences(determinism, expected, found)[0] == "3 differ, such as drawn/a/5/rows"
    write_results(tmp_path / "d", 4, verdict="violated")
    found = determinism.results(tmp_path / "d")
    table = "results/quick/targets/audit_epsilon/audit_epsilon.csv"
    assert differences(determinism, expected, found) == [f"1 differ, such as {table}"] * 2
    (tmp_path / "a/results/quick/verdicts.csv").unlink()
    less = determinism.results(tmp_path / "a")
    named = "1 differ, such as results/quick/verdicts.csv"
    assert differences(determinism, expected, less) == [named, named]
    assert differences(determinism, less, expected) == [named, named]


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        ((), "same"),
        (("1 core",), "1 core: 1 differ, such as data/prepared/given.h5"),
        (("half blocks",), "half blocks: 1 differ, such as data/prepared/given.h5"),
        (("new environment",), "new environment: 1 differ, such as data/prepared/given.h5"),
        (
            ("1 core", "new environment"),
            "1 core: 1 differ, such as data/prepared/given.h5; "
            "new environment: 1 differ, such as data/prepared/given.h5",
        ),
        (("together",), "all at once: 1 differ, such as data/prepared/given.h5"),
        (
            ("each run",),
            "; ".join(
                f"{change}: 1 differ, such as data/prepared/given.h5"
                for change in ("again", "1 core", "half blocks", "new environment")
            ),
        ),
    ],
)
def test_the_change_that_makes_a_difference_is_found(
    determinism, put_results, tmp_path, monkeypatch, faults, expected
):
    runs = []

    def copy_project(folder):
        (folder / "config/papers/paper").mkdir(parents=True)
        (folder / "config/papers/paper/paper.yaml").write_text(PAPER)

    def run_workflow(folder, *options, python):
        settings = (folder / "config/papers/paper/paper.yaml").read_text()
        block = int(re.search(r"block: (\d+)", settings)[1])
        seen = {
            "1 core": options[:2] == ("--cores", "1"),
            "half blocks": block == 2,
            "new environment": python == "another",
        }
        seen |= {"together": all(seen.values()), "each run": True}
        runs.append(folder)
        by_run = len(runs) if "each run" in faults else 1
        put_results(folder, block, sum(seen[fault] for fault in faults) * by_run)

    monkeypatch.setattr(determinism, "copy_project", copy_project)
    monkeypatch.setattr(determinism, "run_workflow", run_workflow)
    monkeypatch.setattr(determinism, "new_environment", lambda scratch: "another")
    row = determinism.compare(tmp_path, "paper", changed=True)
    together = "1 core, half blocks, new environment"
    sizes = {"files": "5", "arrays of fits": "21", "files of blocks": "6"}
    assert row == {**sizes, together: expected}
    assert len(set(runs)) == len(runs) == (2 if expected == "same" else 6)


def test_profiles_for_slurm_are_compared_alone(determinism, tmp_path, monkeypatch):
    def run(scratch, paper, changes):
        assert changes == ()
        return {"a.h5": "1", "cut: b.h5": "2", "drawn/a/0/rows": "2"}

    def run_on_slurm(scratch, paper, cluster):
        assert cluster == "a cluster"
        yield "slurm", {"a.h5": "1", "cut: b.h5": "2", "drawn/a/0/rows": "2"}
        yield "cluster-generic", {"a.h5": "1", "cut: b.h5": "3", "drawn/a/0/rows": "2"}

    monkeypatch.setattr(determinism, "run_changed", run)
    monkeypatch.setattr(determinism, "run_on_slurm", run_on_slurm)
    assert determinism.compare(tmp_path, "paper", changed=False, cluster="a cluster") == {
        "files": "1",
        "arrays of fits": "1",
        "files of blocks": "1",
        "profile slurm": "same",
        "profile cluster-generic": "1 differ, such as cut: b.h5",
    }


def test_rows_of_other_papers_stay(determinism, tmp_path, monkeypatch):
    document = tmp_path / "document.md"
    document.write_text(
        "Before\n\n<!-- determinism -->\n\n| paper | files | changed | profile slurm |\n"
        "| --- | --- | --- | --- |\n| dpem | 3 |  | same |\n| mtsc | 4 | same |  |\n\n"
        "<!-- end of determinism -->\nAfter\n"
    )
    monkeypatch.setattr(
        determinism, "compare", lambda *_: {"files": "5", "changed": "1 differ, such as x"}
    )
    monkeypatch.setattr(sys, "argv", ["", "--papers", "mtsc", "ckm", "--into", str(document)])
    determinism.main()
    assert document.read_text() == (
        "Before\n\n<!-- determinism -->\n\n| paper | files | changed | profile slurm |\n"
        "| --- | --- | --- | --- |\n| ckm | 5 | 1 differ, such as x |  |\n"
        "| dpem | 3 |  | same |\n| mtsc | 5 | 1 differ, such as x |  |\n\n"
        "<!-- end of determinism -->\nAfter\n"
    )


def test_a_document_without_marks_ends_it_at_once(determinism, tmp_path, monkeypatch):
    (tmp_path / "document.md").write_text("no marks\n")
    monkeypatch.setattr(determinism, "compare", lambda *_: pytest.fail("ran"))
    monkeypatch.setattr(sys, "argv", ["", "--into", str(tmp_path / "document.md")])
    with pytest.raises(SystemExit, match="has no mark <!-- determinism -->"):
        determinism.main()
