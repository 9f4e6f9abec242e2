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

from privclust.command import output
from privclust.core import hdf5
from privclust.sketches import Sketch

LARGEST_MODULUS = 1.0 + 2.0**-20  # of one record's share of a sum; features are rounded

DRAWN = ("--frequencies", "20", "--variance", "1", "--seed", "1")
HIDDEN = ("--epsilon", "1", "--neighbours", "add_remove", "--seed-noise", "7")
X = np.random.default_rng(0).standard_normal((601, 3))
SECRET = "Mary Smith HIV+"


@pytest.fixture
def run(command_in_folder):
    """Run the command in a folder with x.npy."""
    np.save("x.npy", X)
    return command_in_folder


def refused(answer, *words):
    """Check that an answer is one line with these words, and code 1."""
    code, out, err = answer
    assert (code, out, err.count("\n")) == (1, "", 1), answer
    assert err[:-1].isprintable()
    for word in words:
        assert word in err


def write(name, records):
    """Write records in the format that a name's suffix says, under a header if it is text."""
    if name.endswith(".npy"):
        np.save(name, records)
    elif name.endswith(".h5"):
        with h5py.File(name, "w") as file:
            file["points"] = records
    else:
        frame = pd.DataFrame(records, columns=list("abc"))
        frame.to_parquet(name) if name.endswith(".parquet") else frame.to_csv(name, index=False)


FORMATS = ["r.npy", "r.h5", "r.parquet", "r.csv", "r.csv.gz"]


@pytest.mark.attack(
    claim="No command replaces a file unless asked to.",
    before="decode -o replaced a data file without a warning, even a read-only one.",
    now="Refused without --force, both before anything is read and before writing.",
)
def test_outputs_that_exist_already(run, monkeypatch):
    assert run("sketch", "x.npy", "-o", "s.h5", *DRAWN)[0] == 0
    Path("mine.csv").write_text("mine")
    Path("mine.csv").chmod(0o444)
    Path("nowhere.h5").symlink_to("none")
    before = Path("s.h5").read_bytes()
    again = "exists already", "--force"
    refused(run("sketch", "x.npy", "-o", "s.h5", *DRAWN), *again)
    refused(run("sketch", "x.npy", "-o", "nowhere.h5", *DRAWN), *again)
    refused(run("decode", "s.h5", "--clusters", "2", "-o", "mine.csv"), *again)
    refused(run("decode", "s.h5", "--clusters", "2", "-o", "/dev/null", "--force"), "is not a file")
    assert (Path("mine.csv").read_text(), Path("s.h5").read_bytes()) == ("mine", before)
    assert run("decode", "s.h5", "--clusters", "2", "-o", "mine.csv", "--force")[0] == 0
    assert Path("mine.csv").read_text().startswith("x1,x2,x3,weight")

    def meanwhile(*arguments, **settings):
        Path("new.h5").write_text("another run's")
        return np.random.default_rng(*arguments, **settings)

    options = (*DRAWN, "--epsilon", "1")
    monkeypatch.setattr("privclust.privacy.noise_source", meanwhile)
    refused(run("sketch", "x.npy", "-o", "new.h5", *options), *again)
    assert Path("new.h5").read_text() == "another run's"


@pytest.mark.attack(
    claim="A file's name states its format.",
    before="sketch -o day2.csv wrote HDF5, and decode -o x.h5 wrote text.",
    now="The suffix of another format is refused.",
)
def test_outputs_with_the_suffix_of_another_format(run):
    run("sketch", "x.npy", "-o", "s.h5", *DRAWN)
    before = sorted(os.listdir())
    for name in ("o.csv", "o.npy", "o.parquet", "o.CSV", "o.csv.gz", "o.json", "o.xlsx"):
        refused(run("sketch", "x.npy", "-o", name, *DRAWN), "written as HDF5")
    for name in ("o.h5", "o.hdf5", "o.npy", "o.parquet", "o.csv.gz", "o.tsv", "o.xlsx"):
        refused(run("decode", "s.h5", "--clusters", "2", "-o", name), "written as CSV")
    assert sorted(os.listdir()) == before


@pytest.mark.attack(
    claim="add_remove hides whether a record is present.",
    before="1 row gave a file; 0 rows gave 'no records' and no file. The two were distinguishable "
    "in every run.",
    now="Both give a sketch of the same form and print the same lines, except for noisy numbers.",
)
@pytest.mark.parametrize("name", FORMATS)
def test_one_record_against_none(run, name):
    seen = []
    for n in (1, 0):
        write(name, X[:n])
        code, out, err = run("sketch", name, "-o", f"{n}.h5", *DRAWN, *HIDDEN)
        sketch = Sketch.load(f"{n}.h5")
        noisy = f"{sketch.n_samples:,.1f}"
        seen.append((code, out, err.replace(f"{n}.h5", "").replace(noisy, "N"), sketch))
    assert seen[0][:3] == seen[1][:3]
    assert seen[0][0] == 0
    assert seen[0][3].guarantee == seen[1][3].guarantee
    assert abs(seen[0][3].n_samples - seen[1][3].n_samples - 1) < 1e-9  # the same noise
    assert run("decode", "0.h5", "--clusters", "2", "--seed", "0")[0] == 0


@pytest.mark.attack(
    claim="add_remove hides whether a record is present.",
    before="Two files with one record or none gave 'holds the same as', 'no records' or a sketch.",
    now="A file without records cannot be distinguished from one with a record. A file named "
    "twice is refused, whatever it contains.",
)
@pytest.mark.parametrize("name", FORMATS)
def test_one_record_against_none_in_one_of_two_files(run, name):
    answers = []
    for n in (1, 0):
        write(f"a{name}", X[:0])
        write(f"b{name}", X[:n])
        code, _, err = run("sketch", f"a{name}", f"b{name}", "-o", f"{n}.h5", *DRAWN, *HIDDEN)
        answers.append((code, re.sub(r"[\d,.-]+ records|\d\.h5", "", err)))
        twice = "sketch", f"b{name}", f"b{name}", "-o", f"twice{n}.h5", *DRAWN, *HIDDEN
        refused(run(*twice), "name each file once")
    assert answers[0] == answers[1]
    assert answers[0][0] == 0


@pytest.mark.attack(
    claim="add_remove keeps the number of records secret.",
    before="The terminal showed '1,572,864 of 4,000,001 records read' next to a noisy 3,999,041.0.",
    now="The exact number is not printed, logged or stored.",
)
@pytest.mark.parametrize("terminal", [False, True])
def test_the_number_of_records_in_messages_and_files(run, monkeypatch, terminal):
    monkeypatch.setattr(output, "_SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal, raising=False)
    _, _, err = run("sketch", "x.npy", "-o", "public.h5", *DRAWN)
    assert "601" in err
    _, _, err = run("sketch", "x.npy", "-o", "s.h5", *DRAWN, *HIDDEN)
    assert not re.search(r"\b60[12]\b", err)
    with h5py.File("s.h5") as file:
        header = json.loads(bytes(file.attrs["header"]))
        assert set(file) == {"frequencies", "sums"}
    assert header["parameters"]["n_samples"] != 601
    assert not re.search(r"\b60[12]\b", json.dumps(header))


@pytest.mark.attack(
    claim="With add_remove, no record decides whether there is a result.",
    before="One NaN, infinity, 1e308 or text raised an error that named its row and value.",
    now="The record is left out or clipped. Its contribution stays within the sensitivity.",
)
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.7e308])
def test_one_record_with_unusual_numbers(run, name, value):
    lines = []
    for n, records in enumerate((X, np.vstack([X[:300], [[0.5, value, 1.0]], X[300:]]))):
        write(name, records)
        code, _, err = run("sketch", name, "-o", f"{n}.h5", *DRAWN, *HIDDEN)
        assert code == 0
        lines.append(re.sub(r"[\d,.]+ (records|± [\d,]+)|\d\.h5", "", err))
    assert lines[0] == lines[1]
    without, with_it = Sketch.load("0.h5"), Sketch.load("1.h5")
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
def test_one_line_of_a_csv_against_all_others(run, line):
    text = "a,b,c\n" + "".join(",".join(map(repr, map(float, row))) + "\n" for row in X[:20])
    for place, content in enumerate((text, f"a,b,c\n{line}\n" + text[6:], f"{text}{line}\n")):
        Path("r.csv").write_text(content, errors="surrogateescape")
        code, _, err = run("sketch", "r.csv", "-o", f"{place}.h5", *DRAWN, *HIDDEN)
        assert code == 0
        assert SECRET not in err
    sums = [Sketch.load(f"{place}.h5").sums for place in range(3)]
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
        for options in ((), HIDDEN):
            _, _, err = run("sketch", name, "-o", f"{name}.{len(options)}.h5", *DRAWN, *options)
            for part in (*SECRET.split(), "Ma", "pickle"):
                assert part not in err, err
            assert "Traceback" not in err


@pytest.mark.attack(
    claim="A command answers any input.",
    before="decode waited for a pipe for ever, called a text file a damaged artefact, and printed "
    "the time of day.",
    now="One line says what kind of file it is.",
)
def test_inputs_that_are_no_files_or_other_files(run, tmp_path):
    run("sketch", "x.npy", "-o", "s.h5", *DRAWN)
    os.mkfifo("pipe.npy")
    os.mkfifo("pipe.h5")
    Path("folder.npy").mkdir()
    Path("centers.csv").write_text("x1,x2\n1,2\n")
    with h5py.File("records.h5", "w") as file:
        file["points"] = X
    to_sketch = ("-o", "t.h5", "--like", "s.h5")
    refused(run("sketch", "pipe.npy", *to_sketch), "pipe.npy: is a pipe or a device")
    refused(run("sketch", "folder.npy", *to_sketch), "folder.npy: is a directory")
    refused(run("sketch", "x.npy", "-o", "t.h5", "--like", "pipe.h5"), "pipe.h5: is a pipe")
    refused(run("decode", "pipe.h5", "--clusters", "2"), "pipe.h5: is a pipe")
    refused(run("decode", ".", "--clusters", "2"), ".: is a directory")
    refused(run("decode", "centers.csv", "--clusters", "2"), "is no HDF5 file, as a 'sketch' is")
    refused(run("decode", "records.h5", "--clusters", "2"), "records.h5: not a whole artefact")
    if os.geteuid() == 0:  # whom permissions do not stop
        tmp_path.chmod(0o755)
        for folder in tmp_path.parents:
            if folder.name.startswith("pytest-"):
                folder.chmod(0o755)
    Path("x.npy").chmod(0)
    Path("s.h5").chmod(0)
    user = os.geteuid()
    os.chmod(".", 0o777)
    os.seteuid(65534 if user == 0 else user)
    try:
        answers = run("sketch", "x.npy", *to_sketch), run("decode", "s.h5", "--clusters", "2")
    finally:
        os.seteuid(user)
    refused(answers[0], "x.npy: cannot be read (Permission denied)")
    refused(answers[1], "s.h5: cannot be read (Permission denied)")


@pytest.mark.attack(
    claim="No file and no name controls the terminal.",
    before="Escape sequences in caveats, headers and names were printed unchanged.",
    now="They are printed as \\x1b or refused.",
)
def test_escape_sequences_on_the_terminal(run):
    evil = "\x1b]0;owned\x07\x1b[2J"
    os.rename("x.npy", f"{evil}.npy")
    code, _, err = run("sketch", f"{evil}.npy", "-o", f"{evil}.h5", *DRAWN, "--epsilon", "1")
    assert code == 0
    assert "\x1b" not in err
    assert "\\x1b]0;owned" in err
    Path("x.csv").write_text(f"a{evil},b{evil}\n{evil},2\n")
    refused(run("sketch", "x.csv", "-o", "t.h5", *DRAWN))
    with h5py.File("x.h5", "w") as file:
        file[f"a{evil}"], file[f"b{evil}"] = X, X
    refused(run("sketch", "x.h5", "-o", "t.h5", *DRAWN))
    pd.DataFrame({f"a{evil}": ["x"]}).to_parquet("x.parquet")
    refused(run("sketch", "x.parquet", "-o", "t.h5", *DRAWN))
    with h5py.File(f"{evil}.h5", "r+") as file:
        header = json.loads(bytes(file.attrs["header"]))
        header["parameters"]["guarantee"]["caveats"].append(evil)
        text = json.dumps(header)
        arrays = {name: file[name][()] for name in file}
        file.attrs["header"] = np.bytes_(text.encode())
        file.attrs["digest"] = np.bytes_(hdf5._digest(text, arrays).encode())
    refused(run("decode", f"{evil}.h5", "--clusters", "2"), "cannot be")


@pytest.mark.attack(
    claim="Impossible requests are refused before any work is done.",
    before="10^9 frequencies asked for 22 GB; k = 10^6 ran for 8 minutes with 7 GB and did not "
    "end.",
    now="Within a second, one line names the largest possible value.",
)
def test_requests_beyond_any_machine(run):
    run("sketch", "x.npy", "-o", "s.h5", *DRAWN)
    start = time.perf_counter()
    options = ("--frequencies", "1000000000", "--variance", "1")
    refused(run("sketch", "x.npy", "-o", "t.h5", *options), "must be at most 19173961")
    refused(run("decode", "s.h5", "--clusters", "1000000"), "cannot tell more than 10 clusters")
    refused(run("decode", "s.h5", "--clusters", "11"), "--clusters 11", "ask for fewer")
    assert time.perf_counter() - start < 1.0


@pytest.mark.attack(
    claim="A message names the file that it is about.",
    before="For sketches with different epsilon, the message showed two lists of losses; for a "
    "full disk, it named no file.",
    now="The message names both files with their guarantees, or the file that was not written.",
)
def test_messages_without_the_name_of_a_file(run):
    for name, epsilon in (("a", 1), ("b", 2)):
        run("sketch", "x.npy", "-o", f"{name}.h5", *DRAWN, "--epsilon", epsilon)
    refused(
        run("decode", "a.h5", "b.h5", "--clusters", "2"),
        "a.h5 and b.h5: sketches cannot be merged: one gives 1-differential privacy",
        "the other 2-differential privacy",
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
    try:
        answer = run("decode", "a.h5", "--clusters", "2", "-o", "centers.csv")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    refused(answer, "centers.csv: cannot be written (File too large)")
    assert not Path("centers.csv").exists()


@pytest.mark.attack(
    claim="Tables with other delimiters, with dates or with an index get a helpful message.",
    before="Semicolons gave: \"row 1, column 1 is '1;2', not a number\".",
    now="The message names the delimiter found; --delimiter reads it.",
)
def test_tables_of_other_programs(run):
    semicolons = "a;b;c\n" + "".join(";".join(map(repr, map(float, row))) + "\n" for row in X)
    Path("r.csv").write_text(semicolons)
    refused(run("sketch", "r.csv", "-o", "t.h5", *DRAWN), "semicolons", "--delimiter ';'")
    run("sketch", "x.npy", "-o", "s.h5", *DRAWN)
    for given, delimiter in (("tab", "\t"), (";", ";"), ("|", "|")):
        Path("r.csv").write_text(semicolons.replace(";", delimiter))
        options = ("--delimiter", given, "--force")
        assert run("sketch", "r.csv", "-o", "t.h5", *DRAWN, *options)[0] == 0
        assert Path("t.h5").read_bytes() == Path("s.h5").read_bytes()
    assert run("sketch", "r.csv", "-o", "u.h5", *DRAWN, "--delimiter", "ab")[0] == 2
    pd.DataFrame(X[:, :2]).to_csv("i.csv", header=["a", "b"])
    refused(run("sketch", "i.csv", "-o", "u.h5", *DRAWN), "has no name", "index=False")
    days = pd.DataFrame({"day": pd.date_range("2026-01-01", periods=3), "x": 1.0})
    for name in ("d.csv", "d.parquet"):
        days.to_csv(name, index=False) if name == "d.csv" else days.to_parquet(name)
        words = "dates" if name == "d.csv" else "turn times into numbers"
        refused(run("sketch", name, "-o", "u.h5", *DRAWN), words)


@pytest.mark.attack(
    claim="No file's records are added up twice.",
    before="The same records in another format, or a copy of a sketch, were added twice.",
    now="Both are refused, and so is a public sample with the records of a private file: the same "
    "rows in the same order, as floats of 64 bits. Parts of a file, rounded numbers and several "
    "files in one are not found.",
)
def test_the_same_records_or_sums_in_another_file(run):
    for name in FORMATS:
        write(name, X)
    options = (*DRAWN, "--epsilon", "1", "--seed-noise", "7")
    for name in FORMATS[1:]:
        refused(run("sketch", "x.npy", name, "-o", "o.h5", *options), "has the same records as")
    drawn = ("--frequencies", "20", "--public-sample", "r.csv.gz", "--epsilon", "1")
    code, _, err = run("sketch", "x.npy", "-o", "o.h5", *drawn, "--seed-noise", "7")
    assert (code, "name a public sample" in err) == (1, True)
    assert not Path("o.h5").exists()
    run("sketch", "x.npy", "-o", "a.h5", *options)
    Path("b.h5").write_bytes(Path("a.h5").read_bytes())
    refused(run("decode", "a.h5", "b.h5", "--clusters", "2"), "hold the same sums")


@pytest.mark.attack(
    claim="No file's records are added up twice, whichever forms its format has for a number.",
    before="A copy in text was accepted if the array had a NaN from 0/0, or a zero with a sign.",
    now="NaN and zero have one form when records are compared.",
)
def test_the_same_records_with_other_forms_of_numbers(run):
    records = X.astype(np.float32).astype(float)
    records[0] = [-0.0, -np.nan, 0.0]
    write("odd.npy", records)
    write("odd.csv", np.where(np.isnan(records), np.nan, records) + 0.0)
    np.save("single.npy", records.astype(np.float32))
    for name in ("odd.csv", "single.npy"):
        refused(run("sketch", "odd.npy", name, "-o", "o.h5", *DRAWN), "has the same records as")


@pytest.mark.attack(
    claim="With groups, a message does not tell that two private files have the same records.",
    before="With a public sample, equal records of other persons were refused as twins.",
    now="They are accepted: only the public sample is compared with the files.",
)
def test_persons_with_the_same_records(run):
    for name in ("a.csv", "b.csv", "pub.csv"):
        frame = pd.DataFrame(X + (name == "pub.csv"), columns=list("abc"))
        frame.assign(who=[f"{name}{i}" for i in range(len(X))]).to_csv(name, index=False)
    drawn = ("--columns", "a,b,c", "--frequencies", "20", "--public-sample", "pub.csv")
    terms = ("--groups", "who", "--epsilon", "1", "--seed", "3", "--seed-noise", "7")
    code, _, err = run("sketch", "a.csv", "b.csv", "-o", "o.h5", *drawn, *terms)
    assert code == 0, err


@pytest.mark.attack(
    claim="If the public sample contains the private records, no statistic of it is printed.",
    before="The variance, or their largest difference, was printed before the sample was refused.",
    now="It is refused first, in any format. The variance is printed after all files are read.",
)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    "records", [X, 1e-200 * X, 1e-150 * X, 1e-40 * X, 1e200 * X, np.full((9, 3), np.nan)]
)
def test_a_public_sample_that_is_private(run, records, grouped):
    frame = pd.DataFrame(records, columns=list("abc")).assign(who=np.arange(len(records)) // 3)
    for name in ("x.csv", "copy.csv", "other.csv.gz"):
        frame.to_csv(name, index=False)
    columns = ("--columns", "a,b,c", *(("--groups", "who") if grouped else ()))
    drawn = ("--frequencies", "20", "--seed", "3", "--epsilon", "1", "--seed-noise", "7")
    for sample in ("x.csv", "copy.csv", "other.csv.gz"):
        with_sample = (*drawn, "--public-sample", sample, *columns)
        code, out, err = run("sketch", "x.csv", "-o", "s.h5", *with_sample)
        assert (code, out, "name a public sample" in err) == (1, "", True), err
        assert not re.search("estimated|largest|no records|magnitude", err)
        assert not Path("s.h5").exists()


@pytest.mark.attack(
    claim="Refusals are worded by privclust.",
    before="--epsilon 1e-300 printed OpenDP's text: 'scale (inf) must be finite'.",
    now="The message says that noise of that scale is not representable because epsilon is too "
    "small.",
)
def test_an_epsilon_with_noise_beyond_floats(run):
    refused(run("sketch", "x.npy", "-o", "o.h5", *DRAWN, "--epsilon", "1e-300"), "epsilon is too")


@pytest.mark.attack(
    claim="All files of one sketch have the same columns.",
    before="Columns in another order were added up without a warning.",
    now="An error names the file and the column's position. It quotes no name, because a name may "
    "be a record.",
)
def test_columns_in_another_order_are_refused(run):
    frame = pd.DataFrame(X, columns=["income", "age", "visits"])
    frame[:300].to_csv("one.csv", index=False)
    swapped = frame[300:][["age", "income", "visits"]]
    swapped.to_csv("two.csv", index=False)
    answer = run("sketch", "one.csv", "two.csv", "-o", "s.h5", *DRAWN, *HIDDEN)
    refused(answer, "two.csv: column 1 has another name than in one.csv")
    assert "age" not in answer[2]
    swapped.to_parquet("two.parquet")
    answer = run("sketch", "one.csv", "two.parquet", "-o", "s.h5", *DRAWN, *HIDDEN)
    refused(answer, "two.parquet: column 1")
    frame[300:].to_csv("two.csv", index=False)
    assert run("sketch", "one.csv", "two.csv", "-o", "s.h5", *DRAWN, *HIDDEN)[0] == 0
