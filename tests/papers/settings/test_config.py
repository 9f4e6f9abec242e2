import contextlib
from pathlib import Path

import pandas as pd
import pytest
import yaml

from privclust_papers.pipeline.plan import CLAIMS, PRINTED, load_plan
from privclust_papers.settings.config import ConfigError, load_validated, load_yaml

ROOT = Path(__file__).parents[3]
SCHEMAS = ROOT / "workflow" / "schemas"

# which quick effort may cut
SIZES = ("cost", "n", "n_gallery", "n_placed", "n_rows", "n_samples", "n_sweeps")


@pytest.fixture
def config(monkeypatch):
    monkeypatch.chdir(ROOT)
    return load_yaml("config/config.yaml")


@pytest.fixture(scope="module")
def plans():
    """What each effort plans of all papers; tests must leave it as it is."""
    with contextlib.chdir(ROOT):
        config = load_yaml("config/config.yaml")
        efforts = ("quick", "paper")
        return {name: load_plan(config | {"effort": name}, str(SCHEMAS), {}) for name in efforts}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("effort", "fast", 'config: effort: got "fast"; it must be one of "quick", "paper"'),
        ("seed", -1, "config: seed: got -1; it must be at least 0"),
        ("seed", "x", 'config: seed: got "x"; it must be of type integer'),
        ("papers", [], "config: papers: got []; it must be a list of at least 1 entries"),
        ("efort", "quick", "unknown key 'efort'; allowed are"),
        ("mirror", "/no/such/folder", "/no/such/folder"),
        ("papers", ["config/papers/none"], "config/papers/none/paper.yaml: cannot be read"),
    ],
)
def test_bad_config_names_key_value_and_choices(config, key, value, message):
    config[key] = value
    with pytest.raises(ConfigError) as caught:
        load_plan(config, str(SCHEMAS), {})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "a is given twice"),
        ("a: {b: 1, b: 2}\n", "b is given twice"),
        ("!!map abc\n", "expected a mapping"),
        ("[" * 30_000, "nested too deeply"),
        ("{a: " * 30_000, "nested too deeply"),
    ],
    ids=["repeated", "repeated within", "no mapping", "deep lists", "deep mappings"],
)
def test_what_is_no_document(tmp_path, monkeypatch, compiled, text, message):
    """Also with a PyYAML that was built without libyaml."""
    if not compiled:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    path = tmp_path / "a.yaml"
    path.write_text("a: 1\nb: {a: 2}\n")
    assert load_yaml(path) == {"a": 1, "b": {"a": 2}}
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_yaml(path)


SYNTHETIC = "experiments mtsc_synthetic"


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ("methods", None, "the key 'methods' is missing"),
        ("methods ssc class", "SSC", "a dotted path such as"),
        ("methods ssc class", "no.Way", "methods.ssc.class: no.Way: no module of that name"),
        (
            "methods ssc class",
            "privclust.segmentation.SCC",
            "methods.ssc.class: privclust.segmentation.SCC: the module has no such name",
        ),
        ("methods ssc", None, "got 'ssc'; it must be one of"),
        (
            "targets mtsc_fig1 experiments",
            ["none"],
            "mtsc_fig1.experiments: got 'none'; it must be",
        ),
        (
            "experiments mtsc_hopkins155 dataset",
            "none",
            "got 'none'; it must be one of cars196, cars196_paper, cars196_quick",
        ),
        (
            "methods ssc colour",
            "crimson",
            'methods.ssc.colour: got "crimson"; it must be one of "vermillion", "blue"',
        ),
        (f"{SYNTHETIC} effort quick trials", 0, "trials: got 0; it must be"),
        (f"{SYNTHETIC} share", "nowhere.share", "share: nowhere.share: no module of that name"),
        (f"{SYNTHETIC} reference", "none", "mtsc_synthetic.reference: got 'none'; it must be one"),
        (f"{SYNTHETIC} effort quick shards", 0, "shards: got 0; it must be"),
        (f"{SYNTHETIC} effort quick memory_mb", "1G", 'memory_mb: got "1G"; it must be'),
        (
            f"{SYNTHETIC} metrics",
            {"odd": "nowhere.odd"},
            "experiments.mtsc_synthetic.metrics.odd: nowhere.odd: no module of that name",
        ),
    ],
)
def test_bad_paper_config_names_key_value_and_choices(config, tmp_path, where, value, message):
    """None takes a key away."""
    document = entry = load_yaml(ROOT / "config/papers/mtsc/paper.yaml")
    *way, key = where.split()
    for step in way:
        entry = entry[step]
    entry.update({key: value})
    if value is None:
        del entry[key]
    (tmp_path / "paper.yaml").write_text(yaml.safe_dump(document))
    config["papers"] = [str(tmp_path)]
    with pytest.raises(ConfigError) as caught:
        load_plan(config, str(SCHEMAS), {})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_name_may_stand_in_one_paper_only(config):
    config["papers"] = ["config/papers/mtsc"] * 2
    with pytest.raises(ConfigError, match="is already used in another paper's file"):
        load_plan(config, str(SCHEMAS), {})


def test_every_claim_names_a_target_and_methods_that_exist(plans, monkeypatch):
    monkeypatch.chdir(ROOT)
    plan = plans["paper"]
    files = plan.beside(CLAIMS)
    assert files.keys() == plan.papers.keys()
    claims = {
        paper: load_validated(file, SCHEMAS / "claims.schema.yaml") for paper, file in files.items()
    }
    ids = [claim["id"] for own in claims.values() for claim in own]
    deciding = {c.get("under") for own in claims.values() for c in own if c.get("decides")}
    assert {c["id"] for own in claims.values() for c in own if "check" not in c} == deciding
    assert len(set(ids)) == len(ids)
    for paper, claim in ((paper, claim) for paper, own in claims.items() for claim in own):
        assert plan.targets[claim["target"]].paper == paper
        row = claim.get("under")
        assert row is None or any(row == own["id"] and "under" not in own for own in claims[paper])
        assert "decides" not in claim or row
        check = claim.get("check", {})
        if "experiment" in check:
            experiment = plan.experiments[check["experiment"]]
            assert {check["method"], *check.get("against", [])} <= set(experiment.methods)


def test_every_printed_number_names_an_experiment_and_a_method(plans, monkeypatch):
    monkeypatch.chdir(ROOT)
    plan = plans["quick"]
    for paper, path in plan.beside(PRINTED).items():
        for row in pd.read_csv(path, dtype=str).to_dict("records"):
            assert plan.targets[row["target"]].paper == paper
            assert row["experiment"] in plan.targets[row["target"]].experiments
            assert row["method"] in plan.experiments[row["experiment"]].methods
            float(row["value"])


def test_quick_effort_keeps_methods_and_points(plans):
    quick, paper = plans["quick"], plans["paper"]
    left_out = set(paper.targets) - set(quick.targets)
    assert all(paper.targets[name].ours for name in left_out)
    for name, fast in quick.experiments.items():
        experiment = paper.experiments[name]
        assert fast.methods.keys() == experiment.methods.keys()
        for axis in {key for point in experiment.points for key in point}:
            values = {point[axis] for point in experiment.points}
            kept = {point[axis] for point in fast.points}
            if axis in SIZES and len(values) == len(kept) == 1:
                assert kept.pop() <= values.pop()  # a size, which may be cut, and no axis
                continue
            assert kept <= values
            assert len(kept) >= min(3, len(values))


def test_files_that_are_no_config_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read"):
        load_yaml(tmp_path / "none.yaml")
    path = tmp_path / "t.yaml"
    path.write_text("a: [1")
    with pytest.raises(ConfigError, match="not YAML"):
        load_yaml(path)


def test_a_key_that_is_given_twice_is_refused(tmp_path):
    path = tmp_path / "twice.yaml"
    path.write_text("- {of: paper, a: &a {b: 1, c: 2}}\n- of: paper\n  id: 3\n  of: ours\n")
    with pytest.raises(ConfigError, match=r"twice.yaml: not YAML \(of is given twice.*line 2"):
        load_yaml(path)
    path.write_text("x: &x {a: 1, b: 2}\ny: &y {<<: *x, b: 3}\nz: {<<: *y, b: 4}\n")
    assert load_yaml(path)["z"] == {"a": 1, "b": 4}
