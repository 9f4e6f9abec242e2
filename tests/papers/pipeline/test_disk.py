"""What is said of disks before a run starts."""

import os
from types import SimpleNamespace

import pytest

from privclust_papers.pipeline.disk import (
    DiskError,
    check_path,
    check_profile,
    check_room,
    check_writable,
    copy_if_changed,
)


@pytest.fixture
def closed(monkeypatch, tmp_path):
    """A project of which some folders cannot be written, for one of two reasons."""
    monkeypatch.chdir(tmp_path)

    def close(*folders, flag=0):
        monkeypatch.setattr("os.access", lambda path, mode: os.fspath(path) not in folders)
        monkeypatch.setattr("os.statvfs", lambda path: SimpleNamespace(f_flag=flag))

    return close


def test_missing_folders_can_be_made_in_writable_parents(closed):
    closed()
    check_writable("benchmarks/out", "data", ".snakemake")


def test_all_closed_folders_are_named_once(closed, tmp_path):
    (tmp_path / "data").mkdir()
    closed(".", "data")
    with pytest.raises(DiskError) as error:
        check_writable("benchmarks/out", "data", "logs")
    assert str(error.value) == (
        "the project's folder, data: cannot be written (Permission denied); "
        "make it writable and run again"
    )


def test_a_read_only_disk_is_the_reason(closed):
    closed(".", flag=os.ST_RDONLY)
    with pytest.raises(DiskError, match=r"cannot be written \(Read-only file system\)"):
        check_writable(".snakemake")


@pytest.mark.parametrize(("blocks", "free"), [(100, 11), (0, 0)])
def test_disks_with_room_and_of_unknown_size_will_do(monkeypatch, blocks, free):
    disk = SimpleNamespace(f_blocks=blocks, f_bavail=free, f_frsize=1_000_000)
    monkeypatch.setattr("os.statvfs", lambda path: disk)
    check_room(10)


def test_a_full_disk_is_named_with_what_is_left(monkeypatch):
    disk = SimpleNamespace(f_blocks=100, f_bavail=4, f_frsize=1_000_000)
    monkeypatch.setattr("os.statvfs", lambda path: disk)
    with pytest.raises(DiskError, match=r"4\.0 MB are left on its disk; .* 10 MB at least"):
        check_room(10)


@pytest.mark.parametrize("sign", [" ", "'", '"', "$", "\t", ";", "(", "*", "\\"])
def test_a_path_that_a_shell_takes_apart_is_refused(sign):
    with pytest.raises(DiskError, match=r"the clone has .* splits it: move the project"):
        check_path("the clone", f"/home/me/my{sign}clone")


def test_other_paths_are_taken():
    for path in ("/home/me/clone", "/home/klön/a-b_c.d+e,f=g@h:i%j", "/データ/privclust"):
        check_path("the clone", path)


@pytest.mark.parametrize("option", ["--workflow-profile", "--workflow-prof", "--wo"])
@pytest.mark.parametrize("form", ["{} nosuch", "{}=nosuch"])
@pytest.mark.parametrize("place", ["nosuch", "profiles/nosuch", "workflow/profiles/nosuch"])
def test_a_profile_that_is_nowhere_is_refused(tmp_path, option, form, place):
    form = form.format(option).split()
    places = str(tmp_path), str(tmp_path / "workflow/Snakefile")
    with pytest.raises(DiskError, match="nosuch: there is no such"):
        check_profile(["snakemake", *form, "-n"], *places)
    (tmp_path / place).mkdir(parents=True)
    check_profile(["snakemake", *form, "-n"], *places)
    check_profile(["snakemake", "--workflow-profile", "none"], *places)


def test_a_copy_keeps_its_date_until_its_source_changes(tmp_path):
    source, target = tmp_path / "source", tmp_path / "below" / "target"
    source.write_text("one")
    copy_if_changed(source, target)
    assert target.read_text() == "one"
    os.utime(target, (1, 1))
    copy_if_changed(source, target)
    assert target.stat().st_mtime == 1
    source.write_text("two")
    copy_if_changed(source, target)
    assert target.read_text() == "two"
    assert target.stat().st_mtime > 1
