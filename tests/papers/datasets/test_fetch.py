"""Fetching: the mirror, addresses good and bad, the substitute, interruptions."""

import hashlib
import json
import logging
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import replace

import pytest

from privclust_papers.datasets import fetch as fetching
from privclust_papers.datasets.fetch import fetch, load, read_receipt, resolve_mirror, source_of
from privclust_papers.datasets.hopkins155 import content_sha256
from privclust_papers.datasets.registry import DataError, Part, Source
from privclust_papers.settings.config import ConfigError


def read_part(path):
    return {"read": path.name}


QUICK = {"timeout": (0.5, 0.5), "retries": 0}


def _sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def mirror_of(tmp_path):
    def make(content):
        path = tmp_path / "mirror" / "toy" / "toy.zip"
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        return tmp_path / "mirror"

    return make


def _files(directory):
    return sorted(path.name for path in directory.iterdir()) if directory.exists() else []


def _refused(*args, **kwargs):
    with pytest.raises(DataError) as error:
        fetch(*args, **kwargs)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_from_the_mirror(make_dataset, mirror_of, small_zip, tmp_path):
    mirror = mirror_of(small_zip.read_bytes())
    dataset = make_dataset(("toy/toy.zip", _sha256(small_zip)))
    receipt = fetch(dataset, tmp_path / "raw", mirror)
    assert receipt.kind == "mirror"
    assert receipt.sha256 == _sha256(tmp_path / "raw" / "toy.zip")
    assert receipt.bytes == small_zip.stat().st_size
    assert _files(tmp_path / "raw") == ["receipt.json", "toy.zip"]
    assert read_receipt(tmp_path / "raw") == receipt
    arrays, loaded = load(dataset, tmp_path / "raw")
    assert loaded == receipt
    assert len(arrays["name"]) == 155


def test_receipt_is_the_same_anywhere_and_names_no_local_path(
    make_dataset, mirror_of, small_zip, tmp_path
):
    mirror = mirror_of(small_zip.read_bytes())
    dataset = make_dataset(("toy/toy.zip", _sha256(small_zip)))
    texts = set()
    for folder in ("one", "two"):
        fetch(dataset, tmp_path / folder, mirror)
        texts.add((tmp_path / folder / "receipt.json").read_text())
    assert len(texts) == 1
    assert str(tmp_path) not in texts.pop()


def test_other_packing_in_the_mirror_is_accepted(make_dataset, mirror_of, small_zip, tmp_path):
    mirror = mirror_of(small_zip.read_bytes())
    assert fetch(make_dataset(("toy/toy.zip", "0" * 64)), tmp_path / "raw", mirror).kind == "mirror"


@pytest.mark.parametrize("part", [0, 1000, -10])
def test_truncated_file_in_the_mirror_is_an_error(
    make_dataset, mirror_of, small_zip, server, tmp_path, part
):
    mirror = mirror_of(small_zip.read_bytes()[:part])
    dataset = make_dataset(("toy/toy.zip", _sha256(small_zip)), f"{server.url}/good")
    message = _refused(dataset, tmp_path / "raw", mirror)
    assert "toy/toy.zip cannot be used" in message
    assert ("not a zip archive" if part == 0 else "truncated") in message
    assert ".part" not in message
    assert message.endswith("; replace it by a whole copy or remove it")
    assert not server.requests
    assert _files(tmp_path / "raw") == []


def test_wrong_checksum_in_the_mirror_without_a_content_check(
    make_dataset, mirror_of, small_zip, tmp_path
):
    mirror = mirror_of(small_zip.read_bytes())
    dataset = make_dataset(("toy/toy.zip", "0" * 64), content_digest=None, content_sha256=None)
    assert f"its SHA-256 is {_sha256(small_zip)}, not {'0' * 64}" in (
        _refused(dataset, tmp_path / "raw", mirror)
    )


def test_other_contents_in_the_mirror(make_dataset, mirror_of, truths, make_zip, tmp_path):
    other = make_zip(tmp_path / "o.zip", {"arm": truths["arm"]})
    message = _refused(make_dataset("toy/toy.zip"), tmp_path / "raw", mirror_of(other.read_bytes()))
    assert "it holds other data or only a part" in message


def test_folder_in_the_files_place_in_the_mirror(make_dataset, tmp_path):
    (tmp_path / "mirror" / "toy" / "toy.zip").mkdir(parents=True)
    message = _refused(make_dataset("toy/toy.zip"), tmp_path / "raw", tmp_path / "mirror")
    assert "cannot be used: Is a directory" in message


def test_mirror_without_the_file_goes_on_to_the_address(make_dataset, server, tmp_path):
    dataset = make_dataset("toy/toy.zip", f"{server.url}/good")
    (tmp_path / "mirror").mkdir()
    receipt = fetch(dataset, tmp_path / "raw", tmp_path / "mirror", **QUICK)
    assert (receipt.kind, receipt.location) == ("url", f"{server.url}/good")
    assert load(dataset, tmp_path / "raw")[1] == receipt


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("404", "the server answers 404 Not Found"),
        ("500", "the server answers 503 Service Unavailable"),
        ("short", "the connection broke off"),
        ("cut", "the download is not the data set: the archive is truncated"),
        ("html", "the download is not the data set: not a zip archive (it starts with b'<htm')"),
        ("silent", "the server sent nothing for 0.5 s"),
        ("slow", "the connection broke off"),
    ],
)
def test_bad_answer_is_passed_over_and_named(make_dataset, server, tmp_path, path, reason):
    bad, good = f"{server.url}/{path}", f"{server.url}/good"
    message = _refused(make_dataset(bad), tmp_path / "raw", allow_substitutes=False, **QUICK)
    assert f"({bad}): {reason}" in message
    assert _files(tmp_path / "raw") == []
    assert fetch(make_dataset(bad, good), tmp_path / "raw", **QUICK).location == good


def test_passing_server_error_is_tried_again(make_dataset, server, tmp_path):
    receipt = fetch(make_dataset(f"{server.url}/flaky"), tmp_path / "raw", retries=1)
    assert receipt.kind == "url"
    assert server.requests == ["/flaky", "/flaky"]


def test_missing_file_is_not_asked_for_again(make_dataset, server, tmp_path):
    fetch(make_dataset(f"{server.url}/404"), tmp_path / "raw", retries=3)
    assert server.requests == ["/404"]


def test_substitute_is_named_loudly(make_dataset, tmp_path, caplog):
    dataset = make_dataset("toy/toy.zip", "http://127.0.0.1:9/x")
    receipt = fetch(dataset, tmp_path / "raw", **QUICK)
    assert receipt.is_substitute
    assert receipt.source == "generated, not comparable."
    assert (receipt.file, receipt.sha256, receipt.bytes) == (None, None, None)
    assert _files(tmp_path / "raw") == ["receipt.json"]
    (warning,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert "A SUBSTITUTE IS USED: generated, not comparable." in warning
    assert "127.0.0.1 refuses the connection" in warning
    arrays, loaded = load(dataset, tmp_path / "raw")
    assert loaded.is_substitute
    assert arrays["name"][0].startswith(b"generated_")


def test_nothing_to_be_had_says_what_was_tried_and_what_to_do(make_dataset, tmp_path):
    dataset = make_dataset("toy/toy.zip", "http://127.0.0.1:9/x")
    message = _refused(dataset, tmp_path / "raw", allow_substitutes=False, **QUICK)
    assert "toy is not available" in message
    assert "no mirror directory is set" in message
    assert "(http://127.0.0.1:9/x): 127.0.0.1 refuses the connection" in message
    assert "put toy.zip into a mirror directory at toy/toy.zip" in message
    assert "PRIVCLUST_DATA_MIRROR" in message
    assert message.endswith(", or try again later, or allow substitutes (`substitutes: true`)")
    without = replace(dataset, substitute=None)
    assert "substitute" not in _refused(without, tmp_path / "raw", **QUICK)


def test_substitute_removes_what_was_there(make_dataset, mirror_of, small_zip, tmp_path):
    mirror = mirror_of(small_zip.read_bytes())
    fetch(make_dataset("toy/toy.zip"), tmp_path / "raw", mirror)
    assert fetch(make_dataset("toy/toy.zip"), tmp_path / "raw").is_substitute
    assert _files(tmp_path / "raw") == ["receipt.json"]


@pytest.fixture
def with_part(make_dataset, truths, make_zip, mirror_of, tmp_path):
    """A data set of which the mirror has only a part, and the mirror."""
    path = make_zip(tmp_path / "part.zip", {"arm": truths["arm"]})
    part = Part("part.zip", f"{__name__}.read_part")
    source = Source("mirror", "toy/toy.zip", "a part, not comparable.", _sha256(path), part=part)
    dataset = make_dataset("toy/whole.zip", "http://127.0.0.1:9/x")
    dataset = replace(dataset, sources=(*dataset.sources, source))
    return dataset, mirror_of(path.read_bytes())


def test_a_part_is_a_substitute_before_the_generated_one(with_part, tmp_path, caplog):
    dataset, mirror = with_part
    receipt = fetch(dataset, tmp_path / "raw", mirror, **QUICK)
    assert (receipt.kind, receipt.file) == ("substitute", "part.zip")
    assert receipt.source == "a part, not comparable."
    assert _files(tmp_path / "raw") == ["part.zip", "receipt.json"]
    (warning,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert "A SUBSTITUTE IS USED: a part, not comparable." in warning
    assert "127.0.0.1 refuses the connection" in warning
    arrays, loaded = load(dataset, tmp_path / "raw")
    assert loaded == receipt
    assert arrays == {"read": "part.zip"}
    assert source_of(dataset, receipt) == f"substitute for {dataset.name}"
    parts = [replace(s, part=s.part and replace(s.part, orders=True)) for s in dataset.sources]
    with_orders = replace(dataset, sources=tuple(parts))
    assert source_of(with_orders, receipt) == f"part of {dataset.name}"
    (tmp_path / "raw" / "part.zip").write_bytes(b"other")
    with pytest.raises(DataError, match=r"part\.zip: missing or changed"):
        load(dataset, tmp_path / "raw")
    with pytest.raises(DataError, match=r"toy/toy\.zip is not a substitute that is declared"):
        load(replace(dataset, sources=dataset.sources[:-1]), tmp_path / "raw")


def test_part_gives_way_to_the_whole_and_back(with_part, small_zip, tmp_path):
    dataset, mirror = with_part
    fetch(dataset, tmp_path / "raw", mirror, **QUICK)
    (mirror / "toy" / "whole.zip").write_bytes(small_zip.read_bytes())
    assert fetch(dataset, tmp_path / "raw", mirror, **QUICK).kind == "mirror"
    assert _files(tmp_path / "raw") == ["receipt.json", "toy.zip"]
    (mirror / "toy" / "whole.zip").unlink()
    assert fetch(dataset, tmp_path / "raw", mirror, **QUICK).is_substitute
    assert _files(tmp_path / "raw") == ["part.zip", "receipt.json"]
    (mirror / "toy" / "toy.zip").unlink()
    assert fetch(dataset, tmp_path / "raw", mirror, **QUICK).file is None
    assert _files(tmp_path / "raw") == ["receipt.json"]


def test_part_is_not_taken_where_substitutes_are_not_allowed(with_part, tmp_path):
    dataset, mirror = with_part
    for changed in (dataset, replace(dataset, substitute=None)):
        message = _refused(changed, tmp_path / "raw", mirror, allow_substitutes=False, **QUICK)
        assert "toy is not available" in message
        assert "at toy/toy.zip" not in message
        assert message.endswith(", or try again later, or allow substitutes (`substitutes: true`)")


def test_a_wrong_part_in_the_mirror_is_an_error(with_part, small_zip, tmp_path):
    dataset, mirror = with_part
    (mirror / "toy" / "toy.zip").write_bytes(small_zip.read_bytes())
    message = _refused(dataset, tmp_path / "raw", mirror, **QUICK)
    assert f"its SHA-256 is {_sha256(small_zip)}, not" in message


FOLDER = {"b/two.txt": b"2", "a.txt": b"one", "b/a/deep.bin": bytes(600), "empty": b""}


@pytest.fixture
def with_folder(make_dataset, tmp_path):
    """A data set whose only source is a folder of the mirror, and the mirror."""

    def make(mirror, files, sha256="0" * 64):
        for name, content in files.items():
            path = tmp_path / mirror / "toy" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        source = Source("mirror", "toy/", "a folder", sha256)
        dataset = make_dataset(content_digest=None, content_sha256=None, substitute=None)
        return replace(dataset, file="toy.tar", sources=(source,)), tmp_path / mirror

    return make


FOLDER_SHA256 = "2c1960a08249ad8677ed70e3d44b5664be34152b1c95389727255dc5d1769e2f"


def test_folder_of_the_mirror_becomes_one_archive(with_folder, tmp_path):
    dataset, mirror = with_folder("one", FOLDER, FOLDER_SHA256)
    receipt = fetch(dataset, tmp_path / "raw", mirror)
    assert (receipt.kind, receipt.location, receipt.file) == ("mirror", "toy/", "toy.tar")
    with tarfile.open(tmp_path / "raw" / "toy.tar") as archive:
        found = {m.name: archive.extractfile(m).read() for m in archive.getmembers()}
    assert found == FOLDER
    assert list(found) == sorted(FOLDER)


def test_an_archive_depends_on_names_and_contents_only(with_folder, tmp_path):
    notes = {"SOURCE.md": b"a note", "SHA256SUMS": b"", "b/.hidden": b"", "README.md": b"read"}
    later = dict(reversed((FOLDER | notes).items()))
    dataset, mirror = with_folder("two", later, FOLDER_SHA256)
    (mirror / "toy" / "a.txt").chmod(0o600)
    (mirror / "toy" / "none").mkdir()
    assert fetch(dataset, tmp_path / "raw", mirror).sha256 == FOLDER_SHA256


@pytest.mark.parametrize(
    "changes", [{"a.txt": b"One"}, {"c.txt": b""}, {"b/a/deep.bin": bytes(599)}]
)
def test_changed_folder_is_an_error(with_folder, tmp_path, changes):
    dataset, mirror = with_folder("one", FOLDER | changes, FOLDER_SHA256)
    message = _refused(dataset, tmp_path / "raw", mirror)
    assert "the mirror's folder" in message
    assert f"not {FOLDER_SHA256}" in message
    assert not _files(tmp_path / "raw")


def test_folder_that_is_not_in_the_mirror(with_folder, tmp_path):
    dataset, mirror = with_folder("one", {})
    mirror.mkdir()
    message = _refused(dataset, tmp_path / "raw", mirror)
    assert "a folder (toy/): not in the mirror directory" in message
    assert "put the files of toy into a mirror directory at toy/" in message
    (mirror / "toy").write_bytes(b"a file")
    assert "not in the mirror directory" in _refused(dataset, tmp_path / "raw", mirror)


def test_published_md5_is_taken_where_there_is_no_other(
    make_dataset, mirror_of, small_zip, tmp_path
):
    mirror = mirror_of(small_zip.read_bytes())
    md5 = hashlib.md5(small_zip.read_bytes()).hexdigest()
    dataset = make_dataset(content_digest=None, content_sha256=None)
    source = Source("mirror", "toy/toy.zip", "a source", md5=md5)
    assert fetch(replace(dataset, sources=(source,)), tmp_path / "raw", mirror).kind == "mirror"
    wrong = replace(dataset, sources=(replace(source, md5="0" * 32),))
    assert f"its MD5 is {md5}, not {'0' * 32}" in _refused(wrong, tmp_path / "raw", mirror)


def test_wrong_dotted_path_is_no_sources_fault(make_dataset, server, tmp_path):
    dataset = make_dataset(f"{server.url}/good", content_digest="math.nothing")
    with pytest.raises(ConfigError, match=r"math\.nothing: cannot be imported"):
        fetch(dataset, tmp_path / "raw", **QUICK)


def test_folder_that_cannot_be_written(make_dataset, mirror_of, small_zip, server, tmp_path):
    (tmp_path / "raw").write_text("a file")
    mirror = mirror_of(small_zip.read_bytes())
    for dataset, where in (
        (make_dataset("toy/toy.zip"), mirror),
        (make_dataset(f"{server.url}/good"), None),
        (make_dataset("toy/toy.zip"), None),
    ):
        assert "writing to" in _refused(dataset, tmp_path / "raw", where, **QUICK)


def test_a_killed_download_leaves_nothing_accepted(make_dataset, server, tmp_path):
    program = (
        "import sys; from privclust_papers.datasets.fetch import fetch;"
        "from privclust_papers.datasets.registry import *;"
        "fetch(Dataset('toy','t','t','c',None,'toy.zip','math.sqrt',None,None,"
        "(Source('url',sys.argv[1],'s','0'*64),),None), sys.argv[2], retries=0)"
    )
    raw = tmp_path / "raw"
    process = subprocess.Popen([sys.executable, "-c", program, f"{server.url}/slow", str(raw)])
    deadline = time.monotonic() + 20
    while not server.requests and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert server.requests
    assert _files(raw)
    assert all(name.startswith(".") and name.endswith(".part") for name in _files(raw))
    with pytest.raises(DataError, match=r"no receipt; delete the folder .*raw and run again$"):
        load(make_dataset("toy/toy.zip"), raw)


def test_an_interruption_leaves_no_receipt(
    make_dataset, mirror_of, small_zip, tmp_path, monkeypatch
):
    mirror = mirror_of(small_zip.read_bytes())
    dataset = make_dataset("toy/toy.zip")
    fetch(dataset, tmp_path / "raw", mirror)

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(fetching, "_write_receipt", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch(dataset, tmp_path / "raw", mirror)
    assert _files(tmp_path / "raw") == ["toy.zip"]


def test_changed_file_is_not_loaded(make_dataset, mirror_of, small_zip, tmp_path):
    dataset = make_dataset("toy/toy.zip")
    fetch(dataset, tmp_path / "raw", mirror_of(small_zip.read_bytes()))
    (tmp_path / "raw" / "toy.zip").write_bytes(b"other")
    with pytest.raises(DataError, match=r"since it was fetched; delete the folder .*raw and run"):
        load(dataset, tmp_path / "raw")
    (tmp_path / "raw" / "toy.zip").unlink()
    with pytest.raises(DataError, match="missing or changed"):
        load(dataset, tmp_path / "raw")


def test_verified_file_that_its_reader_cannot_read(make_dataset, mirror_of, truths, tmp_path):
    good = truths["arm"]
    mirror = mirror_of(good)
    sha256 = hashlib.sha256(good).hexdigest()
    dataset = make_dataset(("toy/toy.zip", sha256), content_digest=None, content_sha256=None)
    fetch(dataset, tmp_path / "raw", mirror)
    with pytest.raises(DataError) as error:
        load(dataset, tmp_path / "raw")
    message = str(error.value)
    assert message.startswith(f"{tmp_path / 'raw' / 'toy.zip'}: not a zip archive")
    assert message.endswith(
        "; its checksum is right, so another copy would be the same: correct in "
        "config/datasets.yaml the reader of toy, privclust_papers.datasets.hopkins155.read, "
        "or the checksum"
    )
    assert "replace" not in message


def test_an_unreadable_part_is_named_with_its_file(
    make_dataset, mirror_of, truths, make_truth, make_zip, tmp_path
):
    path = make_zip(tmp_path / "a.zip", {**truths, "arm": make_truth(s=None)})
    dataset = make_dataset("toy/toy.zip", content_sha256=content_sha256(path))
    fetch(dataset, tmp_path / "raw", mirror_of(path.read_bytes()))
    with pytest.raises(DataError, match=r"raw/toy\.zip: arm: arm_truth\.mat: has no .*checksum"):
        load(dataset, tmp_path / "raw")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"a": 1}', "\x00"])
def test_damaged_receipt(make_dataset, tmp_path, text):
    (tmp_path / "receipt.json").write_text(text)
    with pytest.raises(DataError, match="not a receipt"):
        load(make_dataset("toy/toy.zip"), tmp_path)


def test_receipt_of_something_else(make_dataset, tmp_path):
    dataset = make_dataset("toy/toy.zip")
    fetch(dataset, tmp_path)
    with pytest.raises(DataError, match="holds toy, not other"):
        load(replace(dataset, name="other"), tmp_path)
    receipt = json.loads((tmp_path / "receipt.json").read_text())
    (tmp_path / "receipt.json").write_text(json.dumps({**receipt, "location": "a.b"}))
    with pytest.raises(DataError, match=r"a\.b is not a substitute that is declared for toy"):
        load(dataset, tmp_path)


def test_the_configured_mirror_is_first(tmp_path):
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        folder.mkdir()
    a, b, c = folders
    assert resolve_mirror(str(a), {"PRIVCLUST_DATA_MIRROR": str(b)}, c) == a
    assert resolve_mirror(None, {"PRIVCLUST_DATA_MIRROR": str(b)}, c) == b
    assert resolve_mirror("", {"PRIVCLUST_DATA_MIRROR": ""}, c) == c
    assert resolve_mirror(None, {}, tmp_path / "none") is None
    assert resolve_mirror(None, {}, None) is None


def test_named_mirror_that_is_not_there(tmp_path):
    missing = str(tmp_path / "none")
    with pytest.raises(DataError, match=r"mirror in the configuration is .*not a directory"):
        resolve_mirror(missing, {}, tmp_path)
    with pytest.raises(DataError, match=r"PRIVCLUST_DATA_MIRROR is .*not a directory"):
        resolve_mirror(None, {"PRIVCLUST_DATA_MIRROR": missing}, tmp_path)


def test_real_data_come_from_the_mirror(project_datasets, mirror, tmp_path):
    dataset = project_datasets["hopkins155"]
    receipt = fetch(dataset, tmp_path, mirror, allow_substitutes=False)
    assert receipt.sha256 == dataset.sources[0].sha256
    assert content_sha256(tmp_path / dataset.file) == dataset.content_sha256


def test_md5_of_a_record_is_asked_for_and_verifies_the_file(
    make_dataset, server, small_zip, tmp_path
):
    md5 = hashlib.md5(small_zip.read_bytes()).hexdigest()
    url = f"{server.url}/good"

    def of(checksum):
        source = Source("url", url, "a source", record=f"{server.url}/record/{checksum}")
        plain = {"content_digest": None, "content_sha256": None, "substitute": None}
        return make_dataset(**plain, sources=(source,))

    assert fetch(of(f"md5:{md5}"), tmp_path / "raw", **QUICK).location == url
    assert load(of(f"md5:{md5}"), tmp_path / "raw")[1].sha256 == _sha256(small_zip)
    message = _refused(of(f"md5:{'0' * 32}"), tmp_path / "other", **QUICK)
    assert f"its MD5 is {md5}, not {'0' * 32}" in message
    message = _refused(of("sha1:0"), tmp_path / "other", **QUICK)
    assert "publishes no MD5 of good" in message
