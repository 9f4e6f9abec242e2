"""Attacks on the audit itself: runs that say nothing of a mechanism must convict or acquit none."""

import numpy as np
import pytest

from privclust.command import main
from privclust.privacy.audit import audit_mechanism, replace_one, search_pair

SECRET = "Mary Smith HIV+"
NOT_CLAIMED = "no verdict on a mechanism from runs that say nothing of it"


def noised_sum(data, rng):
    """Sound for epsilon = 1 where one record in [0, 1] is replaced."""
    return np.sum(data) + rng.laplace()


def audit(mechanism, *pair, n_trials=400, **options):
    """Audit a claim of epsilon = 1 on a pair, by default two numbers."""
    return audit_mechanism(mechanism, *(pair or (0.0, 1.0)), 1.0, 0.0, n_trials, **options)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run ``privclust audit`` on a sound mechanism and two files, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "sound_mechanism.py").write_text(
        "import numpy as np\ndef total(data, rng): return np.sum(data) + rng.laplace()\n"
    )

    def command(first, second, *options):
        np.save("first.npy", first)
        np.save("second.npy", second)
        files = ("--data", "first.npy", "second.npy")
        claim = ("--epsilon", "1", "--trials", "400", "--seed", "0")
        code = main(["audit", "sound_mechanism:total", *claim, *files, *options])
        return code, *capsys.readouterr()

    return command


@pytest.mark.attack(
    claim=NOT_CLAIMED,
    before="files of 10,000 and 5,000 rows: a sound mechanism 'violated', epsilon >= 5.597",
    now="an error with both files' names and rows, no verdict",
)
def test_files_of_different_length_convict_nobody(run):
    rows = np.full((10_000, 1), 0.5)
    code, out, err = run(rows, rows[:5000])
    assert (code, out) == (1, "")
    assert "first.npy and second.npy are no neighbours: they have 10,000 and 5,000 rows" in err
    # one row fewer is a neighbour by one relation, and none by the other
    assert "no replace-one neighbours" in run(rows, rows[1:], "--neighbours", "replace_one")[2]
    assert "violated" not in run(rows, rows[1:], "--neighbours", "add_remove")[1]
    assert run(rows, rows[:5000], "--neighbours", "other")[1].startswith("violated")


@pytest.mark.attack(
    claim=NOT_CLAIMED,
    before="two files of which 100 rows differ: a sound mechanism 'violated'",
    now="an error that names the files and says that more than one record differs",
)
def test_files_that_differ_in_many_rows_convict_nobody(run):
    rows = np.zeros((200, 1))
    code, out, err = run(rows, np.repeat([0.0, 1.0], 100)[:, None])
    assert (code, out) == (1, "")
    assert "row by row, more than one record differs" in err
    assert "columns" in run(rows, np.zeros((200, 2)))[2]
    one = rows.copy()
    one[7] = 1.0
    assert "violated" not in run(rows, one)[1]


@pytest.mark.attack(
    claim=NOT_CLAIMED,
    before="a file beside a copy of it: 'more private than claimed', exit code 0",
    now="an error that says that they are equal, for files, objects and found pairs",
)
def test_equal_data_sets_acquit_nobody(run):
    rows = np.arange(30.0).reshape(10, 3)
    code, out, err = run(rows, rows.copy())
    assert (code, out) == (1, "")
    assert "first.npy and second.npy are equal" in err
    assert "are equal" in run(rows, rows, "--neighbours", "other")[2]
    for pair in ((rows, rows), (rows, rows.copy()), (0, 0.0)):
        with pytest.raises(ValueError, match="data and neighbour are equal"):
            audit(noised_sum, *pair)
    change = replace_one(lambda rng: np.zeros(1))
    with pytest.raises(ValueError, match="data and neighbour are equal"):
        search_pair(
            noised_sum, lambda rng: (rows[:2] * 0, change(rows[:2, :1] * 0, rng)[:, [0, 0, 0]]),
            1.0, 0.0, 3, 40, random_state=0,
        )  # fmt: skip


@pytest.mark.attack(
    claim=NOT_CLAIMED,
    before="a mechanism that returns NaN always: 'more private than claimed', exit code 0",
    now="an error that names the mechanism",
)
@pytest.mark.parametrize("value", [np.nan, np.full((2, 3), np.nan), complex("nan")])
def test_nothing_but_nan_acquits_nobody(value):
    def broken(data, rng):
        return value

    message = r"mechanism .*broken returned nothing but NaN in all 400 runs on each data set"
    for statistic in (None, np.sum):
        with pytest.raises(ValueError, match=message):
            audit(broken, statistic=statistic)
    broken.many = lambda data, rng, n: np.stack([np.asarray(value)] * n)
    with pytest.raises(ValueError, match=message):
        audit(broken)


@pytest.mark.attack(
    claim="NaN is an output like any other",
    before="held already: NaN on one data set alone is seen, NaN by chance on both convicts nobody",
    now="the same; a statistic that returns it is refused, with the number of outputs",
)
def test_nan_in_some_runs_is_an_output():
    assert audit(lambda data, rng: np.nan if data else rng.random()).verdict == "violated"
    rng = np.random.default_rng(0)
    seldom = audit(lambda data, _: np.nan if rng.random() < 0.5 else data + rng.laplace())
    assert seldom.verdict != "violated"
    with pytest.raises(ValueError, match=r"statistic float returned NaN for 100 of 100 outputs"):
        audit(lambda data, rng: np.nan if data else 0.0, statistic=float, n_trials=200)


@pytest.mark.attack(
    claim="an error names the mechanism that raised and holds no cell of the data",
    before="the mechanism's own message, cell and all, and not whose it was",
    now="mechanism, kind of error, data set, file and line; what to do",
)
def test_a_mechanism_that_raises_is_named_without_its_words():
    def failing(data, rng):
        if data:
            raise RuntimeError(f"no number: {SECRET}")
        return 0.0

    with pytest.raises(
        ValueError, match=r"mechanism .*failing raised RuntimeError on neighbour"
    ) as e:
        audit(failing)
    assert "test_audit.py, line" in str(e.value)
    assert SECRET not in str(e.value)
    assert isinstance(e.value.__cause__, RuntimeError)


@pytest.mark.attack(
    claim=NOT_CLAIMED,
    before="a mechanism that returns one constant: 'more private than claimed'",
    now="'cannot tell': what is released was not audited; without noise, the seed is asked for",
)
def test_a_constant_is_called_one():
    constant = audit(lambda data, rng: 5.0)
    assert constant.verdict == "cannot tell"
    assert "one constant output" in constant.advice
    assert "more private" not in str(constant)
    assert "one constant output" in audit(lambda data, rng: np.inf).advice
    fixed = audit(lambda data, rng: data + np.random.default_rng(7).laplace())
    assert fixed.verdict == "violated"
    assert "check that nothing fixes its seed" in str(fixed)
    assert audit(noised_sum, n_trials=4000).advice == ""


@pytest.mark.attack(
    claim=NOT_CLAIMED,
    before="in Python, arrays of 1,000 and 500 rows: a sound mechanism 'violated'",
    now="an error where the relation of the claim is given",
)
def test_arrays_that_are_no_neighbours_convict_nobody():
    rows = np.full((1000, 1), 0.5)
    for relation in ("replace_one", "add_remove"):
        with pytest.raises(ValueError, match=r"data and neighbour are no .*1,000 and 500 rows"):
            audit(noised_sum, rows, rows[:500], neighbours=relation)
    with pytest.raises(ValueError, match="must be arrays"):
        audit(noised_sum, 0.0, 1.0, neighbours="replace_one")
    assert audit(noised_sum, rows, rows[1:], neighbours="add_remove").verdict != "violated"
