"""FastLloyd's record and the gas turbines: archives of the official layout, laws, bad files."""

import io
import tarfile
import zipfile

import numpy as np
import pytest

from privclust_papers.datasets import fastlloyd, gas
from privclust_papers.datasets.registry import DataError

READERS = {
    "real": (fastlloyd.read_real, fastlloyd.generate_real),
    "g2": (fastlloyd.read_g2, fastlloyd.generate_g2),
    "scale": (fastlloyd.read_scale, fastlloyd.generate_scale),
}


def file_of(name):
    kind, _, sizes = name.partition("_")
    if kind == "g2":
        return f"g2-{sizes}-50.txt"
    return f"SynthNew_{sizes}_1.txt" if kind == "scale" else f"{name}.txt"


def packed(path, texts):
    with tarfile.open(path, "w:xz") as archive:
        for name, text in texts.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    return path


@pytest.mark.parametrize("kind", READERS)
def test_archives_of_the_published_layout_are_read(tmp_path, kind):
    read, generate = READERS[kind]
    sets = {name: X[:50].round(3) for name, X in generate(1).items()}
    texts = {"other.txt": b"not numbers"}
    for name, X in sets.items():
        lines = "\n".join("  ".join(f"{value:.3f}" for value in row) for row in X)
        head = "x1 x2\n" if kind == "scale" else ""  # skipped, as by the authors' own reader
        texts[file_of(name)] = f"{head}{lines}\n".encode()
    arrays = read(packed(tmp_path / "archive.tar.xz", texts))
    assert set(arrays) == set(sets)
    for name, X in sets.items():
        np.testing.assert_allclose(arrays[name], X)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"birch2.txt": b"1 2\n"}, "has no adult.txt"),
        ({"birch2.txt": b"1 2 3\n", "adult.txt": b"1 2 3 4 5 6\n"}, "line 1: got b'1 2 3'"),
        ({"birch2.txt": b"1 nan\n", "adult.txt": b"1 2 3 4 5 6\n"}, "it must be 2 numbers"),
        ({"birch2.txt": b"\n", "adult.txt": b"1 2 3 4 5 6\n"}, "holds no row"),
    ],
)
def test_bad_files_are_named(tmp_path, texts, message):
    with pytest.raises(DataError, match=message):
        fastlloyd.read_real(packed(tmp_path / "archive.tar.xz", texts))


def test_a_torn_archive_is_named(tmp_path):
    texts = {"birch2.txt": np.random.default_rng(0).bytes(20_000)}
    path = packed(tmp_path / "archive.tar.xz", texts)
    path.write_bytes(path.read_bytes()[:9_000])
    with pytest.raises(DataError, match="not a whole tar archive"):
        fastlloyd.read_real(path)


def test_generated_sets_have_the_published_sizes_and_laws():
    real = fastlloyd.generate_real(3)
    assert real["birch2"].shape == (25_000, 2)
    centers = real["birch2"].reshape(100, 250, 2).mean(axis=1)
    np.testing.assert_allclose(np.diff(centers[:, 0]), 2.0 * np.pi, atol=0.4)
    assert np.abs(centers[:, 1]).max() == pytest.approx(25.0, abs=0.3)
    np.testing.assert_array_equal(real["adult"], fastlloyd.generate_real(3)["adult"])
    two = fastlloyd.generate_g2(3)["g2_64"]
    assert two[:1024].mean() == pytest.approx(500.0, abs=1.0)
    assert two[1024:].std() == pytest.approx(50.0, abs=1.0)
    scale = fastlloyd.generate_scale(3)
    assert [X.shape for X in scale.values()] == [(10_000, d) for _, d in fastlloyd.SCALE]


NAMES = "AT,AP,AH,AFDP,GTEP,TIT,TAT,TEY,CDP,CO,NOX"
ROW = ",".join(map(str, range(1, 12)))


def zipped(path, texts):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    return path


def test_gas_turbines(tmp_path):
    years = {f"folder/gt_{year}.csv": f"{NAMES}\n{ROW}\n\n" for year in gas.YEARS}
    X = gas.read(zipped(tmp_path / "gas.zip", years))["X"]
    np.testing.assert_array_equal(X, [[year, *range(1, 12)] for year in gas.YEARS])
    texts = {name: text.encode() for name, text in years.items()}
    np.testing.assert_array_equal(gas.read(packed(tmp_path / "gas.tar", texts))["X"], X)
    for text, message in [
        ("a,b\n1,2\n", "gt_2011.csv: line 1: has 2 names"),
        (f"{NAMES}\n1,2\n", "gt_2011.csv: line 2: got b'1,2'"),
        (f"{NAMES}\n", "holds no row"),
        ("", "line 1"),
    ]:
        path = zipped(tmp_path / "bad.zip", {**years, "folder/gt_2011.csv": text})
        with pytest.raises(DataError, match=message):
            gas.read(path)
    with pytest.raises(DataError, match=r"has no gt_2011\.csv"):
        gas.read(zipped(tmp_path / "bad.zip", {"gt_2012.csv": ""}))
    whole = zipped(tmp_path / "gas.zip", years).read_bytes()
    for torn, reason in [(whole[:-30], "the archive is truncated"), (b"torn", "not a zip archive")]:
        (tmp_path / "bad.zip").write_bytes(torn)
        with pytest.raises(DataError, match=reason):
            gas.read(tmp_path / "bad.zip")
    assert gas.generate(3)["X"].shape == (gas.N_ROWS, gas.N_FEATURES)
