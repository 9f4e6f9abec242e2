"""A run that is stopped after it has spent, or that has no room for what it would release."""

import os
import resource
import signal
from pathlib import Path

import numpy as np
import pytest

from privclust.command import main
from privclust.kmeans import CompressiveKMeans
from privclust.privacy import Budget

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")
NUMBERS = ["centers.csv", "clusters.json", "guarantee.json", "guarantee.txt"]
HOW = ("--epsilon", "1", "--delta", "1e-6", "--seed", "0", "--budget", "ledger.json", "-o", "out")


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Work in an empty folder, with a table and a ledger; yield the column's declaration."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # may be ignored
    monkeypatch.chdir(tmp_path)
    Budget.open("ledger.json", epsilon=4.0, delta=1e-5)
    rng = np.random.default_rng(0)
    rows = rng.choice([-0.5, 0.5], (400, 1)) + 0.05 * rng.standard_normal((400, 1))
    np.savetxt("t.csv", rows, fmt="%.4f", header="x", comments="")
    yield ["--bounds", "x=-1:1"]
    signal.signal(signal.SIGINT, before)


def spent():
    """Return the epsilon that the ledger has charged."""
    return Budget.open("ledger.json").spent


@pytest.mark.attack(
    claim="A run that is stopped after its release says that the budget is spent, and what it "
    "wrote.",
    before="SIGTERM while the picture was drawn: 'nothing was written', and four files with the "
    "released numbers, without a report. Whoever believed it would have spent again.",
    now="One line names the files; the report is there, without the picture.",
)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(
    "place",
    ["command._clustering.missing_remarks"]
    + [f"report.written.{name}" for name in ("picture", "_report", "write_text")],
)
def test_stopped_while_files_are_written(table, monkeypatch, capsys, number, code, place):
    def stopped(*_, **__):
        os.kill(os.getpid(), number)

    monkeypatch.setattr(f"privclust.{place}", stopped)
    assert main(["cluster", "t.csv", *table, "--clusters", "2", *HOW]) == code
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert "the budget is spent; " in line
    assert spent()
    written = sorted(os.listdir("out"))
    assert all(name in line for name in written)
    assert ("nothing was written" in line) == (not written)
    assert set(NUMBERS) <= set(written) or not place.endswith(("picture", "_report"))
    assert ("report.html" in written) == ("picture" in place)


@pytest.mark.attack(
    claim="A run that is stopped during its fit does not say that nothing was spent.",
    before="'interrupted; nothing was written', which is true, and silent on the ledger.",
    now="The line says that the budget may be spent.",
)
def test_stopped_in_the_fit(table, monkeypatch, capsys):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(CompressiveKMeans, "fit", stopped)
    how = ["--clusters", "2", "--method", "sketch", *HOW]
    assert main(["cluster", "t.csv", *table, *how]) == 130
    assert "nothing was written; the budget may be spent" in capsys.readouterr().err


@pytest.mark.attack(
    claim="Room for all files is tried before a budget is spent, in proportion to the report.",
    before="1 MiB was tried for reports of any size, and one file for seven. With 1.3 MB left, "
    "the budget was spent, and there was no report; it had 100 columns and 20 clusters.",
    now="The trial file grows with columns and clusters, and each name is tried.",
)
def test_room_for_a_large_report(table, capsys):
    """A limit on the size of files stands for a disk with little room."""
    wide = [part for j in range(100) for part in ("--bounds", f"x{j}=-1:1")]
    Path("wide.csv").write_text(",".join(f"x{j}" for j in range(100)) + "\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, hard))
    try:
        code = main(["cluster", "wide.csv", *wide, "--clusters", "60", *HOW])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == 1
    assert "cannot be written" in capsys.readouterr().err
    assert not spent()
    assert os.listdir("out") == []
