"""Attacks on the commands: what they overwrite, what they tell, and what they answer."""

import gzip
import json
import os
import re
import resource
import time
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

from privclust.core import hdf5
from privclust.preprocessing import TableEncoder
from privclust.sketches import Sketch, draw_frequencies, release

pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")

LARGEST_MODULUS = 1.0 + 2.0**-20  # of one record's share of a sum; features are rounded
COLUMNS = list("abc")
FREQUENCIES = draw_frequencies(3, 20, variance=1.0, random_state=1)
X = np.random.default_rng(0).standard_normal((601, 3))
SECRET = "Mary Smith HIV+"
CLUSTER = ("--bounds", "a=-4:4,b=-4:4,c=-4:4", "--epsilon", "1", "--delta", "1e-6", "-o", "new")
DECODE = ("decode", "s.h5", "--clusters", "2", "-o")


def hidden(*files):
    """The private sketch of files, with the same noise each time."""
    exact = Sketch.of_table(list(files), FREQUENCIES, columns=COLUMNS)
    return release(exact, 1.0, neighbours="add_remove", random_state=7)


@pytest.fixture
def run(command_in_folder):
    """Run the command in a folder with x.csv and the sketch of its declared columns."""
    write("x.csv", X)
    encoder = TableEncoder(dict.fromkeys(COLUMNS, (-4.0, 4.0)))
    sketch = Sketch.of_table("x.csv", FREQUENCIES, encoder=encoder)
    release(sketch, 1.0, random_state=7).save("s.h5")
    return command_in_folder


def refused(answer, *words):
    """Check that an answer is one line with these words, and code 1."""
    code, out, err = answer
    assert (code, out, err.count("\n")) == (1, "", 1), answer
    assert err[:-1].isprintable()
    for word in words:
        assert word in err


def write(name, records):
    """Write records in the format that a name's suffix says."""
    frame = pd.DataFrame(records, columns=COLUMNS)
    frame.to_parquet(name) if name.endswith(".parquet") else frame.to_csv(name, index=False)


FORMATS = ["r.parquet", "r.csv", "r.csv.gz"]


@pytest.mark.attack(
    claim="No command replaces a file unless asked to.",
    before="decode -o replaced a data file without a warning, even a read-only one.",
    now="Refused without --force, before anything is read.",
)
def test_outputs_that_exist_already(run):
    Path("mine").mkdir()
    Path("mine/centers.csv").write_text("mine")
    Path("mine/centers.csv").chmod(0o444)
    Path("nowhere").mkdir()
    Path("nowhere/report.html").symlink_to("none")
    again = "exists already", "--force"
    refused(run(*DECODE, "mine"), "mine/centers.csv", *again)
    refused(run(*DECODE, "nowhere"), *again)
    refused(run("cluster", "x.csv", *CLUSTER[:-1], "mine"), *again)
    refused(run(*DECODE, "x.csv", "--force"), "is not a folder")
    assert Path("mine/centers.csv").read_text() == "mine"
    assert run(*DECODE, "mine", "--force")[0] == 0
    assert Path("mine/centers.csv").read_text().startswith("cluster,weight")


@pytest.mark.attack(
    claim="add_remove hides whether a record is present.",
    before="1 row gave a file; 0 rows gave 'no records' and no file. The two were distinguishable "
    "in every run.",
    now="Both give a sketch of the same form, also in one of two files, except for noisy numbers.",
)
@pytest.mark.parametrize("name", FORMATS)
def test_one_record_against_none(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    write(f"a{name}", X[:0])
    seen = []
    for n in (1, 0):
        write(name, X[:n])
        for number, files in enumerate(((name,), (f"a{name}", name))):
            seen.append(hidden(*files))
            seen[-1].save(f"{n}{number}.h5")
    for one, none in zip(seen[:2], seen[2:], strict=True):
        assert one.guarantee == none.guarantee
        assert abs(one.n_samples - none.n_samples - 1) < 1e-9  # the same noise
    with pytest.raises(ValueError, match="named twice"):
        Sketch.of_table([name, name], FREQUENCIES)


@pytest.mark.attack(
    claim="add_remove keeps the number of records secret.",
    before="The terminal showed '1,572,864 of 4,000,001 records read' next to a noisy 3,999,041.0.",
    now="The exact number is not printed, logged or stored.",
)
def test_the_number_of_records_in_messages_and_files(run):
    code, out, err = run("cluster", "x.csv", *CLUSTER, "--neighbours", "add_remove")
    assert (code, out) == (0, "")
    exact = r"(?<![\d.])60[12](\.0)?(?![\d.])"  # not the first digits of a noisy number
    assert not re.search(exact, err)
    with h5py.File("new/sketch.h5") as file:
        header = json.loads(bytes(file.attrs["header"]))
    assert header["parameters"]["n_samples"] != 601
    assert not re.search(exact, json.dumps(header))


@pytest.mark.attack(
    claim="With add_remove, no record decides whether there is a result.",
    before="One NaN, infinity, 1e308 or text raised an error that named its row and value.",
    now="The record is left out or clipped. Its contribution stays within the sensitivity.",
)
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.7e308])
def test_one_record_with_unusual_numbers(tmp_path, monkeypatch, name, value):
    monkeypatch.chdir(tmp_path)
    sketches = []
    for records in (X, np.vstack([X[:300], [[0.5, value, 1.0]], X[300:]])):
        write(name, records)
        sketches.append(hidden(name))
    without, with_it = sketches
    assert np.abs(with_it.sums - without.sums).max() <= LARGEST_MODULUS + 1e-9  # the same noise
    if np.isnan(value):
        assert (without.sums == with_it.sums).all()
        assert with_it.left_out.value == pytest.approx(without.left_out.value + 1.0)


@pytest.mark.attack(
    claim="With add_remove, no line of a CSV file changes how other lines are read.",
    before="A text, a single quote, an additional field or a byte that is not UTF-8 ended in an "
    "error.",
    now="Each line is one record, whatever it contains.",
)
@pytest.mark.parametrize(
    "line", [SECRET, '"1,2,3', "1,2,3,4", "1", ",,", "\udcff,1,2", "1;2;3", "2026-01-31,1,2"]
)
def test_one_line_of_a_csv_against_all_others(tmp_path, line):
    text = "a,b,c\n" + "".join(",".join(map(repr, map(float, row))) + "\n" for row in X[:20])
    sums = []
    for content in (text, f"a,b,c\n{line}\n" + text[6:], f"{text}{line}\n"):
        (tmp_path / "r.csv").write_text(content, errors="surrogateescape")
        sums.append(hidden(tmp_path / "r.csv").sums)
    assert np.abs(sums[1] - sums[0]).max() <= LARGEST_MODULUS + 1e-9
    np.testing.assert_allclose(sums[1], sums[2], atol=1e-9)  # wherever the line stands


def secret_files():
    """Write files that cannot be read, all with the same secret; return their names."""
    texts = {
        "cell.csv": f"a,b,c\n1,2,3\n1,2,{SECRET}\n",
        "first.csv": f"1,2,{SECRET}\n1,2,3\n",
        "header.csv": f"{SECRET},{SECRET},x\n{SECRET},1,2\n",
        "missing.csv": f"{SECRET},{SECRET},x\n1,,2\n",
        "ragged.csv": f"a,b,c\n1,2,3\n1,2,3,{SECRET}\n",
        "quote.csv": f'a,b,c\n1,2,3\n"{SECRET}\n',
        "semicolons.csv": f"{SECRET};{SECRET};x\n1;2;3\n",
        "text.npy": f"{SECRET}\n",
        "packed.csv.gz": f"{SECRET}\n",
        "text.h5": f"{SECRET}\n",
        "text.parquet": f"{SECRET}\n",
        "empty.csv": "",
    }
    for name, text in texts.items():
        Path(name).write_text(text)
    Path("bytes.csv").write_bytes(f"a,b,c\n1,2,{SECRET}\xff\n".encode("latin-1"))
    with gzip.open("half.csv.gz", "wt") as file:
        file.write(f"a,b,c\n1,2,{SECRET}\n" * 999)
    Path("half.csv.gz").write_bytes(Path("half.csv.gz").read_bytes()[:-20])
    np.save("text_array.npy", np.array([[SECRET] * 3]))
    np.save("objects.npy", np.array([[SECRET, 1, 2]], dtype=object), allow_pickle=True)
    pd.DataFrame({"a": [SECRET], "b": [1.0], "c": [1.0]}).to_parquet("text_column.parquet")
    named = ["bytes.csv", "half.csv.gz", "text_array.npy", "objects.npy", "text_column.parquet"]
    return [*texts, *named]


@pytest.mark.attack(
    claim="Messages contain no cell of the data.",
    before="One message said: row 2, column 3 is 'Mary Smith HIV+'. For text in .npy files, "
    "another advised loading a pickle.",
    now="Messages name only places and kinds, for all formats.",
)
def test_cells_in_messages(run):
    for name in secret_files():
        *_, err = run("cluster", name, *CLUSTER, "--force")
        *_, of_audit = run("audit", "operator:add", "--epsilon", "1", "--data", name, name)
        messages = [err, of_audit]
        try:
            Sketch.of_table(name, FREQUENCIES)
        except (ValueError, FileNotFoundError) as error:
            messages.append(str(error))
        for part in (*SECRET.split(), "Ma", "pickle", "Traceback"):
            assert not any(part in message for message in messages), messages


@pytest.mark.attack(
    claim="A command answers any input.",
    before="decode waited for a pipe for ever, called a text file a damaged artefact, and printed "
    "the time of day.",
    now="One line says what kind of file it is.",
)
def test_inputs_that_are_no_files_or_other_files(run, tmp_path):
    os.mkfifo("pipe.csv")
    os.mkfifo("pipe.h5")
    Path("folder.csv").mkdir()
    with h5py.File("records.h5", "w") as file:
        file["points"] = X
    to_new = ("--clusters", "2", "-o", "other")
    refused(run("cluster", "pipe.csv", *CLUSTER), "pipe.csv: is a pipe or a device")
    refused(run("cluster", "folder.csv", *CLUSTER), "folder.csv: is a directory")
    refused(run("decode", "pipe.h5", *to_new), "pipe.h5: is a pipe")
    refused(run("decode", ".", *to_new), ".: is a directory")
    refused(run("decode", "x.csv", *to_new), "is no HDF5 file, as a 'sketch' is")
    refused(run("decode", "records.h5", *to_new), "records.h5: not a whole artefact")
    if os.geteuid() == 0:  # whom permissions do not stop
        tmp_path.chmod(0o755)
        for folder in tmp_path.parents:
            if folder.name.startswith("pytest-"):
                folder.chmod(0o755)
    Path("x.csv").chmod(0)
    Path("s.h5").chmod(0)
    user = os.geteuid()
    os.chmod(".", 0o777)
    os.seteuid(65534 if user == 0 else user)
    try:
        answers = run("cluster", "x.csv", *CLUSTER), run(*DECODE, "new")
    finally:
        os.seteuid(user)
    refused(answers[0], "x.csv: cannot be read (Permission denied)")
    refused(answers[1], "s.h5: cannot be read (Permission denied)")


@pytest.mark.attack(
    claim="No file and no name controls the terminal.",
    before="Escape sequences in caveats, headers and names were printed unchanged.",
    now="They are printed as \\x1b or refused.",
)
def test_escape_sequences_on_the_terminal(run):
    evil = "\x1b]0;owned\x07\x1b[2J"
    os.rename("s.h5", f"{evil}.h5")
    code, _, err = run("decode", f"{evil}.h5", "-o", evil, "--clusters", "2")
    assert code == 0
    assert "\x1b" not in err
    assert "\\x1b]0;owned" in err
    Path("x.csv").write_text(f"a{evil},b{evil}\n{evil},2\n")
    refused(run("cluster", "x.csv", *CLUSTER))
    pd.DataFrame({f"a{evil}": ["x"]}).to_parquet("x.parquet")
    refused(run("cluster", "x.parquet", *CLUSTER))
    with h5py.File(f"{evil}.h5", "r+") as file:
        header = json.loads(bytes(file.attrs["header"]))
        header["parameters"]["guarantee"]["caveats"].append(evil)
        text = json.dumps(header)
        arrays = {name: file[name][()] for name in file}
        file.attrs["header"] = np.bytes_(text.encode())
        file.attrs["digest"] = np.bytes_(hdf5._digest(text, arrays).encode())
    refused(run("decode", f"{evil}.h5", "-o", "new"), "cannot be")


@pytest.mark.attack(
    claim="Impossible requests are refused before any work is done.",
    before="k = 10^6 ran for 8 minutes with 7 GB and did not end.",
    now="Within a second, one line names the largest possible value.",
)
def test_requests_beyond_any_machine(run):
    start = time.perf_counter()
    many = ("decode", "s.h5", "-o", "new", "--clusters")
    refused(run(*many, "1000000"), "cannot tell more than 10 clusters")
    refused(run(*many, "11"), "--clusters 11", "ask for fewer")
    assert time.perf_counter() - start < 1.0


@pytest.mark.attack(
    claim="A message names the file that it is about.",
    before="For a full disk, the message named no file.",
    now="The message names the file that was not written.",
)
def test_messages_without_the_name_of_a_file(run):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
    try:
        answer = run(*DECODE, "new")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    refused(answer, "new/centers.csv: cannot be written (File too large)")
    assert os.listdir("new") == []


@pytest.mark.attack(
    claim="Tables with other delimiters, with dates or with an index get a helpful message.",
    before="Semicolons gave: \"row 1, column 1 is '1;2', not a number\".",
    now="The message names the delimiter found; --delimiter reads it.",
)
def test_tables_of_other_programs(run):
    semicolons = "a;b;c\n" + "".join(";".join(map(repr, map(float, row))) + "\n" for row in X)
    Path("r.csv").write_text(semicolons)
    check = ("--bounds", "a=-4:4,b=-4:4,c=-4:4", "--check")
    refused(run("cluster", "r.csv", *check), "semicolons", "--delimiter ';'")
    usual = run("cluster", "x.csv", *check)
    for given, delimiter in (("tab", "\t"), (";", ";"), ("|", "|")):
        Path("r.csv").write_text(semicolons.replace(";", delimiter))
        assert run("cluster", "r.csv", *check, "--delimiter", given) == usual
    assert run("cluster", "r.csv", *check, "--delimiter", "ab")[0] == 2
    pd.DataFrame(X[:, :2]).to_csv("i.csv", header=["a", "b"])
    with pytest.raises(ValueError, match=r"has no name.*index=False"):
        Sketch.of_table("i.csv", FREQUENCIES)
    days = pd.DataFrame({"day": pd.date_range("2026-01-01", periods=3), "x": 1.0})
    days.to_parquet("d.parquet")
    with pytest.raises(ValueError, match="turn times into numbers"):
        Sketch.of_table("d.parquet", FREQUENCIES[:2])


@pytest.mark.attack(
    claim="Refusals are worded by privclust.",
    before="--epsilon 1e-300 printed OpenDP's text: 'scale (inf) must be finite'.",
    now="The message says that noise of that scale is not representable because epsilon is too "
    "small.",
)
def test_an_epsilon_with_noise_beyond_floats(run):
    options = ("--bounds", "a=-4:4", "--epsilon", "1e-300", "--delta", "0", "-o", "new")
    code, _, err = run("cluster", "x.csv", *options)
    assert (code, "epsilon is too small" in err) == (1, True)
    assert "finite" not in err
