"""``privclust-papers compare``: what it prints, and its exit code."""

import pytest

from privclust_papers.command import main

VERDICTS = "id,verdict\nc1,reproduced\nc2,partly\n"


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        target = tmp_path / name / "targets/fig"
        target.mkdir(parents=True)
        (tmp_path / name / "verdicts.csv").write_text(VERDICTS)
        rows = [f"m{i},{i / 10}\n" for i in range(6)]
        (target / "fig.csv").write_text("method,mean\n" + "".join(rows))
    return tmp_path


def test_equal_runs_give_0(runs, capsys):
    assert main(["compare", "a", "b"]) == 0
    assert capsys.readouterr().out == (
        "a: a, 2 verdicts, 1 targets\n"
        "b: b, 2 verdicts, 1 targets\n\n"
        "verdicts: 0 differ, 2 compared\n"
        "numbers: 0 differ, 6 compared (tolerance 0 of the larger)\n"
        "equal\n"
    )


def test_runs_that_differ_give_1_and_say_where(runs, capsys):
    (runs / "b/verdicts.csv").write_text("id,verdict\nc1,not reproduced\nc3,partly\n")
    table = runs / "b/targets/fig/fig.csv"
    table.write_text(table.read_text().replace("0.", "1."))
    assert main(["compare", "a", "b", "--tolerance", "0.01"]) == 1
    said = capsys.readouterr().out
    assert "  c1: reproduced -> not reproduced\n  c2: only in a\n  c3: only in b\n" in said
    assert "tolerance 0.01 of the larger" in said
    assert "  fig[method=m0].mean: 0.0 -> 1.0\n" in said
    assert "  fig[method=m5].mean: 0.5 -> 1.5\ndifferent\n" in said


def test_a_tolerance_makes_numbers_equal(runs, capsys):
    table = runs / "b/targets/fig/fig.csv"
    table.write_text(table.read_text().replace("0.3", "0.3003"))
    assert main(["compare", "a", "b"]) == 1
    assert main(["compare", "a", "b", "--tolerance", "0.002"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", "nowhere"], "nowhere: there is no such folder or file"),
        (["a", "b", "--tolerance", "-1"], "must be at least 0"),
        (["a"], "the following arguments are required: B"),
    ],
)
def test_what_cannot_be_compared_gives_2(runs, capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        main(["compare", *arguments])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
