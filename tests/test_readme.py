"""Python and commands of the README and of the pages it leads to run; what it counts is so."""

import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from privclust.metrics import segmentation_error, wasserstein_distance
from privclust_papers.report.verdicts import (
    CONSISTENT,
    NOT_REPRODUCED,
    OURS,
    PARTLY,
    REPRODUCED,
)

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
TEXT = README.read_text()
FLAT = " ".join(TEXT.split())
EXAMPLES = ROOT / "docs/examples.md"  # those of the other kinds of data
PYTHON = re.compile(r"```python\n(.*?)```", re.S)


def check_kmeans(found):
    centers = np.sort(found["model"].cluster_centers_, axis=0)
    assert np.abs(centers - np.array([[-3.0], [0.0], [3.0]])).max() < 0.2
    assert found["model"].guarantee_.epsilon <= 0.5


def check_mixture(found):
    assert found["synthetic"].shape == (1000, 2)
    gaps = np.linalg.norm(found["mixture"].means_[:, None] - found["cities"], axis=2).min(axis=0)
    assert gaps.max() < 1.0  # degrees; the cities are 8 and more apart
    assert found["mixture"].guarantee_.epsilon <= 1.0


def check_subspaces(found):
    planes = found["planes"]
    assert wasserstein_distance(found["true"], planes.subspaces_) < 0.05  # at random about 2.6
    assert segmentation_error(found["y"], planes.labels_) < 0.02
    assert planes.guarantee_.epsilon <= 1.0
    assert planes.guarantee_.definition == "approximate"  # not "asymptotic", not "none"


def check_retrieval(found):
    X, y, model, server = found["X"], found["y"], found["model"], found["server"]
    gallery = y[1::4]
    assert len(found["nearest"]) == 8
    assert found["released"].shape == (1, 4)  # all that leaves the client
    assert model.guarantee_.epsilon <= 10.0
    others = np.tile(np.arange(3, len(y), 4), 16)  # neither public nor in the gallery
    places = server.locate(np.concatenate([model.release(X[i : i + 1]) for i in others]))
    distances = np.linalg.norm(places[:, None] - server.gallery_, axis=2)
    nearest = np.argsort(distances, axis=1)[:, :8]
    right = gallery[nearest] == y[others, None]
    assert np.bincount(gallery).tolist() == [10] * 5  # chance is a fifth
    assert 0.4 < np.mean(right) < 0.6  # the page: about half


CHECKS = {
    "CompressiveKMeans": check_kmeans,
    "AdaptiveGaussianMixture": check_mixture,
    "MomentSubspaceClustering": check_subspaces,
    "RetrievalServer": check_retrieval,
}


def blocks(page):
    return PYTHON.findall(page.read_text(encoding="utf-8"))


def test_readme_and_examples_have_one_of_each_kind():
    found = blocks(README) + blocks(EXAMPLES)
    assert len(blocks(README)) == 1
    assert [[name for name in CHECKS if f"{name}(" in block] for block in found] == [
        [name] for name in CHECKS
    ]


@pytest.mark.parametrize("name", CHECKS)
def test_an_example_does_what_it_says(name, capsys):
    pytest.importorskip("opendp", reason="noise for release needs the extra privclust[secure]")
    if name == "RetrievalServer":
        pytest.importorskip("onnxruntime", reason="features need the extra privclust[images]")
    (page, block), *others = (
        (page, block)
        for page in (README, EXAMPLES)
        for block in blocks(page)
        if f"{name}(" in block
    )
    assert not others
    found = {}
    exec(compile(block, str(page), "exec"), found)
    if page == README:
        (printed,) = re.findall(r"```text\n(.*?)```", TEXT, re.S)
        assert capsys.readouterr().out == printed
    CHECKS[name](found)


def cells_of(text, link, n_cells):
    """Return the cells of each row of a table that begins with a link to a page of results."""
    rows = re.findall(
        rf"^\| \[.*?\]\({link}(\w+)[.]md\).*? \|((?: [^|]* \|){{{n_cells}}})$", text, re.M
    )
    return {paper: [cell.strip() for cell in cells.split("|")[:-1]] for paper, cells in rows}


def test_the_readme_counts_verdicts_as_the_pages_have_them():
    columns = REPRODUCED, CONSISTENT, PARTLY, NOT_REPRODUCED, "undecided", "not yet judged"
    assert f"| statements | {' | '.join(columns)} |" in TEXT
    counted = {}
    for paper in ("ckm", "dpsc", "dpem", "privatemail", "mtsc"):
        page = (ROOT / f"docs/results/{paper}.md").read_text(encoding="utf-8")
        table = page.split("| statement | verdict | expected, and how it is judged | found |")[1]
        rows = [line.split(" | ")[:2] for line in table.split("\n\n")[0].splitlines()[2:]]
        words = [word.strip("*") for name, word in rows if not name.startswith("| ↳")]
        words = [word for word in words if word != "no verdict"]
        cells = [sum(word == column for word in words) for column in columns]
        cells[4] += len(words) - sum(cells)  # the other verdicts that decide nothing
        counted[paper] = [str(cell) for cell in (len(words), *cells)]
    assert cells_of(TEXT, "docs/results/", 7) == counted


def test_the_readme_counts_rows_as_the_results_do():
    table = pd.read_csv(ROOT / "docs/results/frontier/verdicts.csv")
    rows = table[(table["target"] == "frontier_tab1") & (table["of"] == OURS)]
    assert (rows["verdict"] == REPRODUCED).all()
    assert f"We ran an earlier version of `CompressiveKMeans` on {len(rows)} of them." in FLAT
    assert "Its error is lower than every printed private one on each" in FLAT
    assert f"The other {34 - len(rows) - 3} were not available" in FLAT  # three were run later


def test_the_readme_compares_as_the_results_do():
    table = pd.read_csv(ROOT / "docs/results/frontier/frontier_tab1.csv")
    ours, without = (
        table[table["method"] == method].set_index("set") for method in ("compressive", "lloyd")
    )
    printed = ours[["PE", "HDPE", "Google LSH", "FastLloyd", "diffprivlib", "ICML17"]]
    assert printed.notna().any().all()
    assert (ours["mean"] < printed.min(axis=1)).all()
    factors = ours["mean"] / without["mean"]
    n_near = f"{(factors <= 1.02).sum()} of the {len(factors)} data sets"
    near = f"on {n_near}, the error of that earlier version is at most 2 % above that of k-means"
    assert near in FLAT
    assert f"On the hardest one it is larger by a factor of {factors.max():.2f}." in FLAT
    later = (ROOT / "docs/results/frontier_details.md").read_text(encoding="utf-8")
    hardest, iris = (
        float(re.search(rf"^\| {name} \| PrivateKMeans \| (\S+)", later, re.MULTILINE)[1])
        / without.loc[name, "mean"]
        for name in (factors.idxmax(), "iris")
    )
    assert f"The present version lowers this to {hardest:.2f}," in FLAT
    assert f"raises the factor on iris from {factors['iris']:.2f} to {iris:.2f}" in FLAT


def test_the_readme_counts_faults_as_the_audit_does():
    page = (ROOT / "docs/audit_quality.md").read_text(encoding="utf-8")
    counts = (
        r"^Found: (\d+ of \d+) from outputs alone.* Of (\d+) private mechanisms, convicted: none"
    )
    ((found, private),) = re.findall(counts, page, re.M)
    stated = f"the audit finds {found} known faults, and accuses none of {private} private"
    assert stated in FLAT


def test_the_readme_alone_counts_the_papers():
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    not_reproduced = "audit", "frontier"  # ours, and a table that ours is held against
    files = [
        ROOT / folder / "paper.yaml"
        for folder in config["papers"]
        if Path(folder).name not in not_reproduced
    ]
    papers = [yaml.safe_load(file.read_text()) for file in files]
    promises = [[m.get("promise") for m in paper["methods"].values()] for paper in papers]
    n_private = sum("private" in found for found in promises)
    numbers = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    first = TEXT.split("\n\n")[1].replace("\n", " ")
    assert f" {numbers[len(papers)]} papers on " in first
    assert f" {numbers[n_private]} of these papers are on differential privacy" in first
    counted = re.compile(rf"\b({'|'.join(numbers[2:])})\s+papers\b", re.IGNORECASE)
    elsewhere = ["pyproject.toml", "CITATION.cff", "CHANGELOG.md", "CONTRIBUTING.md"]
    files = [ROOT / name for name in elsewhere]
    for folder, suffix in (("docs", "md"), ("src", "py"), ("src", "j2"), ("config", "md")):
        files += (ROOT / folder).rglob(f"*.{suffix}")
    assert [file for file in files if counted.search(file.read_text())] == []
    assert len(counted.findall(TEXT)) == 1


def test_the_readme_is_read_in_a_minute():
    assert len(TEXT.splitlines()) <= 130
    assert "not for fewer than about 1,000 rows" in FLAT


def test_what_the_readme_links_to_is_there():
    links = re.findall(r"\]\(([^)]*)\)", TEXT)
    assert len(links) > 10
    for link in links:
        name, _, anchor = link.partition("#")
        text = (ROOT / name).read_bytes().decode(errors="ignore")
        headings = re.findall(r"^#+ (.*)$", text, re.M)
        assert not anchor or anchor in {heading.lower().replace(" ", "-") for heading in headings}


def test_the_readmes_command_leads_to_a_report(command_in_folder):
    pytest.importorskip("opendp", reason="noise for release needs the extra privclust[secure]")
    rng = np.random.default_rng(0)
    customer = rng.integers(0, 5000, 20_000)
    is_old = (rng.random(5000) < 0.4)[customer]
    age, income = np.where(is_old, 68, 33), np.where(is_old, 30_000, 90_000)
    table = {"age": age + rng.normal(0, 5, 20_000), "income": income + rng.normal(0, 9e3, 20_000)}
    pd.DataFrame({"customer": customer, **table}).to_csv("customers.csv", index=False)
    (line,) = re.findall(r"^privclust cluster .*$", TEXT, re.M)
    code, _, err = command_in_folder(*shlex.split(line)[1:])
    assert code == 0, err
    centers = pd.read_csv("out/centers.csv").sort_values("age")
    expected = [[33, 90_000], [68, 30_000]]
    off = np.abs(centers[["age", "income"]].to_numpy() - expected)
    # noise is drawn anew: six stated errors, exceeded by chance in one run of 10^8
    errors = centers[["age error", "income error"]].to_numpy()
    assert (off < 6 * errors).all()
    assert (errors < 0.03 * np.array(expected)).all()  # three per cent is still a useful center
    assert "one group" in Path("out/report.html").read_text()


def test_the_audit_of_the_readme_convicts_half_the_noise(command_in_folder, monkeypatch):
    (line,) = re.findall(r"^privclust audit .*$", TEXT, re.M)
    Path("mymodule.py").write_text(
        "pair = (0.0, 1.0)\n\n\n"
        "def mechanism(data, rng):\n    return data + rng.laplace(scale=0.5)\n"
    )
    monkeypatch.setattr(sys, "path", list(sys.path))  # of which the audit adds the folder
    code, out, err = command_in_folder(*shlex.split(line)[1:], "--seed", "0")
    sys.modules.pop("mymodule", None)
    assert code == 1, err
    assert "violated" in out + err
