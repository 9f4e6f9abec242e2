"""The file of a ledger: one budget, whatever is done to the file."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from privclust.privacy import Budget, BudgetError, Guarantee, Loss, Release
from privclust.privacy import _ledger_file as module
from privclust.privacy.budget import charge

DRAW = """
import sys
from privclust.privacy import Budget, BudgetError, Guarantee, Loss, Release

one = Release("s", "m", "n", "p", Loss(0.5, epsilon=1.0))
ledger, drawn = Budget.open(sys.argv[1]), 0
for _ in range(int(sys.argv[2])):
    try:
        ledger.spend(Guarantee.of([one], "pure", "replace-one"))
        drawn += 1
    except BudgetError:
        pass
print(drawn)
"""


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """A folder of its own for what an account remembers of ledgers."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def ledger(tmp_path):
    """A ledger of epsilon = 9 in a file, with three entries of epsilon = 1."""
    budget = Budget.open(tmp_path / "budget.json", epsilon=9)
    for _ in range(3):
        budget.spend(pure())
    return budget


def pure(epsilon=1.0):
    """What another process draws, too."""
    release = Release("s", "m", "n", "p", Loss(epsilon**2 / 2, epsilon=epsilon))
    return Guarantee.of([release], "pure", "replace-one")


def forget(monkeypatch):
    """Begin as a new process does, which has seen no ledger."""
    monkeypatch.setattr(module, "_SEEN", {})


def refused(budget, match):
    """Every use of a ledger is refused, and the file is left as it is."""
    before = budget.path.read_bytes()
    for use in (
        lambda: Budget.open(budget.path),
        lambda: budget.spend(pure()),
        lambda: budget.spent,
    ):
        with pytest.raises(BudgetError, match=match):
            use()
    assert budget.path.read_bytes() == before


def draw_elsewhere(path, times=1):
    """Draw in another process."""
    return subprocess.Popen(
        [sys.executable, "-c", DRAW, str(path), str(times)], stdout=subprocess.PIPE, text=True
    )


def test_a_hard_link_is_no_second_budget(ledger, tmp_path):
    other = tmp_path / "other.json"
    os.link(ledger.path, other)
    refused(ledger, "hard link")
    with pytest.raises(BudgetError, match="hard link"):
        Budget.open(other)
    other.unlink()
    assert ledger.spent == 3


def test_a_symlink_is_the_file_it_names(ledger, tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(ledger.path)
    linked = Budget.open(link)
    with ledger, linked:
        charge(pure())
    assert (linked.path, linked.spent, link.is_symlink()) == (ledger.path, 4, True)
    assert not (tmp_path / "link.json.lock").exists()


def test_a_file_that_became_a_symlink_is_opened_again(ledger, tmp_path):
    moved = tmp_path / "moved.json"
    ledger.path.rename(moved)
    ledger.path.symlink_to(moved)
    with pytest.raises(BudgetError, match="link"):
        ledger.spend(pure())
    assert Budget.open(ledger.path).path == moved


def test_a_copy_that_is_put_back_is_refused(ledger, tmp_path, monkeypatch):
    shutil.copy(ledger.path, tmp_path / "old.json")
    ledger.spend(pure())
    shutil.copy(tmp_path / "old.json", ledger.path)
    refused(ledger, "older or another copy")
    forget(monkeypatch)
    refused(ledger, "older or another copy")


def test_a_copy_that_another_process_put_back_is_refused(ledger, tmp_path, monkeypatch):
    shutil.copy(ledger.path, tmp_path / "old.json")
    assert draw_elsewhere(ledger.path).communicate(timeout=60)[0] == "1\n"
    assert ledger.spent == 4
    shutil.copy(tmp_path / "old.json", ledger.path)
    forget(monkeypatch)
    refused(ledger, "older or another copy")
    assert draw_elsewhere(ledger.path).communicate(timeout=60)[0] == ""


def test_a_folder_that_is_restored_is_refused(tmp_path, monkeypatch):
    ledger = Budget.open(tmp_path / "data" / "budget.json", epsilon=9)
    ledger.spend(pure())
    shutil.copytree(tmp_path / "data", tmp_path / "backup")
    ledger.spend(pure())
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "backup").rename(tmp_path / "data")
    forget(monkeypatch)
    refused(ledger, "older or another copy")


def test_a_copy_elsewhere_is_no_second_budget(ledger, tmp_path):
    copy = tmp_path / "copy" / "budget.json"
    copy.parent.mkdir()
    shutil.copy(ledger.path, copy)
    Budget.open(copy).spend(pure())
    refused(ledger, "older or another copy")


def test_two_copies_that_are_drawn_on_at_once_are_one_budget(ledger, tmp_path, monkeypatch):
    copy, write = tmp_path / "copy.json", module.write_text
    shutil.copy(ledger.path, copy)

    def write_later(path, text):
        monkeypatch.setattr(module, "write_text", write)
        assert draw_elsewhere(copy).communicate(timeout=60)[0] == "1\n"
        write(path, text)

    monkeypatch.setattr(module, "write_text", write_later)
    with pytest.raises(BudgetError, match="older or another copy"):
        ledger.spend(pure())
    assert Budget.open(copy).spent == 4


def test_copies_of_two_accounts_do_not_pass_for_one(ledger, tmp_path, monkeypatch):
    copy = tmp_path / "copy.json"
    shutil.copy(ledger.path, copy)
    ledger.spend(pure())
    with monkeypatch.context() as other:
        other.setenv("XDG_STATE_HOME", str(tmp_path / "another account"))
        forget(monkeypatch)
        Budget.open(copy).spend(pure())
    forget(monkeypatch)
    shutil.copy(copy, ledger.path)
    refused(ledger, "older or another copy")


def test_the_state_folder_is_not_needed_within_one_process(ledger, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    shutil.copy(ledger.path, tmp_path / "old.json")
    with pytest.warns(UserWarning, match="XDG_STATE_HOME"):
        ledger.spend(pure())
    shutil.copy(tmp_path / "old.json", ledger.path)
    refused(ledger, "older or another copy")


def test_a_moved_ledger_stays_usable(ledger, tmp_path, monkeypatch):
    moved = tmp_path / "elsewhere" / "renamed.json"
    moved.parent.mkdir()
    ledger.path.rename(moved)
    Budget.open(moved).spend(pure())
    forget(monkeypatch)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another account"))
    again = Budget.open(moved)
    again.spend(pure())
    assert again.spent == 5


def test_entries_of_another_account_are_taken(ledger, tmp_path, monkeypatch):
    forget(monkeypatch)
    with monkeypatch.context() as other:
        other.setenv("XDG_STATE_HOME", str(tmp_path / "another account"))
        ledger.spend(pure())
        forget(monkeypatch)
    assert ledger.spent == 4


def test_a_run_that_stopped_before_its_note_loses_nothing(ledger, state, monkeypatch):
    (note,) = state.glob("privclust/ledgers/*[!k]")
    before = note.read_text()
    ledger.spend(pure())
    note.write_text(before)
    forget(monkeypatch)
    assert ledger.spent == 4
    assert note.read_text().startswith("4 ")


def test_a_note_that_cannot_be_read_is_refused(ledger, state, monkeypatch):
    (note,) = state.glob("privclust/ledgers/*[!k]")
    note.write_text("")
    forget(monkeypatch)
    refused(ledger, "cannot be read")
    note.unlink()
    assert ledger.spent == 3


def chain_of(content):
    """Write the digests of changed entries anew, as somebody would who knows the format."""
    chain = [module._digest(module._head(content))]
    for number, entry in enumerate(content["entries"], 1):
        entry |= {"number": number, "previous": chain[-1]}
        chain.append(module._digest(entry))
    content |= {"count": len(content["entries"]), "sha256": chain[-1]}


def cheaper(content, entry):
    content["entries"][entry]["guarantee"]["releases"][0]["loss"]["epsilon"] = 0.1


CHANGES = {
    "an edited entry": lambda content: cheaper(content, 1),
    "the last entry edited": lambda content: cheaper(content, -1),
    "a removed entry": lambda content: content["entries"].pop(1),
    "the last entry removed": lambda content: content["entries"].pop(),
    "all entries removed": lambda content: content["entries"].clear(),
    "entries exchanged": lambda content: content["entries"].reverse(),
    "an entry again": lambda content: content["entries"].append(content["entries"][-1]),
    "a greater limit": lambda content: content.update(epsilon=99),
    "another ledger's name": lambda content: content.update(id="0" * 32),
    "a path as its name": lambda content: content.update(id="../" * 10 + "0" * 2),
    "another counter": lambda content: content["entries"][0].update(number=2),
    "a smaller count": lambda content: (content["entries"].pop(), content.update(count=2)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_file_is_refused(ledger, change):
    content = json.loads(ledger.path.read_text())
    change(content)
    ledger.path.write_text(json.dumps(content))
    refused(ledger, "damaged.*nothing more is released")


def test_a_removed_last_entry_is_named(ledger):
    content = json.loads(ledger.path.read_text())
    content["entries"].pop()
    ledger.path.write_text(json.dumps(content))
    refused(ledger, "it holds 2 entries, and its count is 3")


def test_a_chain_that_was_written_anew_is_refused(ledger, monkeypatch):
    content = json.loads(ledger.path.read_text())
    cheaper(content, 1)
    chain_of(content)
    ledger.path.write_text(json.dumps(content))
    forget(monkeypatch)
    refused(ledger, "older or another copy")


def test_the_older_format_says_what_to_do(ledger, tmp_path):
    entries = [entry.as_dict() for entry in ledger.entries]
    content = {"format": "privclust budget 1", "epsilon": 9, "entries": entries, "sha256": "0"}
    ledger.path.write_text(json.dumps(content))
    refused(ledger, "older format.*begin a new ledger")
    new = Budget.open(tmp_path / "new.json", epsilon=9)
    for entry in json.loads(ledger.path.read_text())["entries"]:  # as the message says
        new.spend(Guarantee.from_dict(entry))
    assert new.spent == 3


def test_entries_are_chained(ledger):
    content = json.loads(ledger.path.read_text())
    assert (content["format"], content["count"]) == ("privclust budget 2", 3)
    assert [entry["number"] for entry in content["entries"]] == [1, 2, 3]
    assert content["entries"][2]["previous"] == module._digest(content["entries"][1])
    assert content["sha256"] == module._digest(content["entries"][2])


def test_two_processes_lose_no_entry(ledger):
    runs = [draw_elsewhere(ledger.path, 3) for _ in range(2)]
    assert [run.communicate(timeout=60)[0] for run in runs] == ["3\n", "3\n"]
    assert ledger.spent == 9


def test_a_write_that_fails_leaves_the_file_whole(ledger, monkeypatch):
    def full(path, text):
        raise OSError("no space left on device")

    before = ledger.path.read_bytes()
    monkeypatch.setattr(module, "write_text", full)
    with pytest.raises(OSError, match="no space"):
        ledger.spend(pure())
    monkeypatch.undo()
    assert ledger.path.read_bytes() == before
    assert ledger.spent == 3
