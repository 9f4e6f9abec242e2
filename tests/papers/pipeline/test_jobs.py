"""What the workflow's rules are told: inputs, what decides a job, and gaps on the way."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from privclust_papers.pipeline import layout
from privclust_papers.pipeline.jobs import Jobs
from privclust_papers.pipeline.plan import CLAIMS, load_plan
from privclust_papers.settings.config import load_yaml

ROOT = Path(__file__).parents[3]
FOLDER = "results/quick/mtsc"
SHARED = f"{FOLDER}/shared_sums"


def of(**wildcards):
    return SimpleNamespace(**wildcards)


@pytest.fixture
def jobs_of(monkeypatch, tmp_path):
    """Answers on a run of a small paper, in an empty folder."""
    monkeypatch.syspath_prepend(ROOT / "tests/workflow")

    def jobs(name="tiny", change=None, effort="quick", mirror=None):
        monkeypatch.chdir(ROOT)
        document = load_yaml(f"tests/workflow/{name}.yaml")
        for experiment in document["experiments"].values():
            experiment.update(change or {})
        (tmp_path / "paper.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
        config = load_yaml("config/config.yaml") | {
            "papers": [str(tmp_path)],
            "effort": effort,
            "mirror": mirror,
        }
        found = Jobs(load_plan(config, "workflow/schemas", {}), {"seed": "7"})
        (tmp_path / "run").mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / "run")
        return found

    return jobs


def write(*files):
    for file in map(Path, files):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")


def stages(jobs, name):
    """All files of an experiment, in the order of their making."""
    return list(filter(None, jobs._stages(name)))


def test_rules_ask_for_what_is_answered(jobs_of):
    jobs = jobs_of()
    files = [ROOT / "workflow/Snakefile", *(ROOT / "workflow/rules").glob("*.smk")]
    text = "\n".join(file.read_text() for file in files)
    asked = set(re.findall(r"\bJOBS[.](\w+)", text))
    assert len(asked) > 30
    assert all(hasattr(jobs, name) for name in asked)
    assert {name for name in vars(Jobs) if not name.startswith("_")} <= asked | {"data_file"}
    outputs = set(re.findall(r"\blayout[.](\w+)", text))
    assert all(hasattr(layout, name) for name in outputs)


def test_wildcards_are_names_of_the_run(jobs_of):
    allowed = jobs_of().wildcard_constraints()
    assert allowed == {
        "effort": "quick",
        "dataset": "hopkins155",
        "features": "none",
        "paper": "mtsc",
        "experiment": "mtsc_heat_map|mtsc_synthetic",
        "batch": "lsr|ssc",
        "target": "mtsc_fig1|mtsc_fig2",
        "block": r"\d{4}",
        "shard": r"\d{4}",
    }
    assert jobs_of(effort="paper").wildcard_constraints()["effort"] == "paper"


def test_memory_and_time_double_at_each_attempt(jobs_of):
    jobs = jobs_of("sharing")
    shared = of(experiment="shared_sums")
    assert [jobs.memory(shared, attempt) for attempt in (1, 2, 3)] == [2000, 4000, 8000]
    assert jobs.memory(of(dataset="s1"), 1) == 1500
    assert [jobs.runtime(shared, attempt) for attempt in (1, 2, 3)] == [30, 60, 120]


def test_data_go_from_raw_to_what_an_experiment_reads(jobs_of):
    jobs = jobs_of(change={"dataset": "cub200_quick"})
    images = ["data/raw/cub200", "data/prepared/cub200.h5"]
    assert jobs._data_stages("cub200") == images
    assert jobs._data_stages("cub200_quick") == [*images, "data/features/cub200_quick.h5"]
    assert jobs.dataset(of(experiment="mtsc_synthetic")) == "data/features/cub200_quick.h5"
    assert jobs.images(of(features="cub200_quick")) == "data/prepared/cub200.h5"
    assert json.loads(jobs.features_spec(of(features="cub200_quick")))["dataset"] == "cub200"
    assert jobs_of().dataset(of(experiment="mtsc_synthetic")) == []


def test_a_file_in_the_mirror_decides_a_fetch(jobs_of, tmp_path):
    specs = []
    for name in ("near", "far"):
        mirror = tmp_path / name
        mirror.mkdir()
        jobs = jobs_of(mirror=str(mirror))
        specs.append(jobs.fetch_spec(of(dataset="hopkins155")))
    assert specs[0] == specs[1]
    assert str(tmp_path) not in specs[0]
    dataset = jobs.plan.datasets["hopkins155"]
    (location, *_) = (s.location for s in dataset.sources if s.kind == "mirror")
    write(mirror / location)
    after = json.loads(jobs.fetch_spec(of(dataset="hopkins155")))
    assert after["in_mirror"] == [location]
    assert {**after, "in_mirror": []} == json.loads(specs[0])


def test_code_of_data_is_that_of_its_reader_and_substitute(jobs_of):
    jobs = jobs_of()
    for code in (jobs.fetch_code, jobs.prepare_code):
        names = {Path(path).name for path in code(of(dataset="hopkins155"))}
        assert "hopkins155.py" in names
        assert "mtsc.py" not in names
    spec = json.loads(jobs.prepare_spec(of(dataset="hopkins155")))
    assert spec["reader"].startswith("privclust_papers.datasets.hopkins155.")
    assert spec["substitute"]["generator"]


def test_fits_are_in_order_of_blocks_and_batches(jobs_of):
    jobs = jobs_of()
    synthetic = of(effort="quick", paper="mtsc", experiment="mtsc_synthetic")
    expected = [
        f"{FOLDER}/mtsc_synthetic/fit/{batch}/block_{number:04d}"
        for number in range(2)  # 8 tasks, 5 in a block
        for batch in ("lsr", "ssc")
    ]
    assert jobs.fits(synthetic) == [f"{name}.h5" for name in expected]
    assert jobs.fit_costs(synthetic) == [f"{name}.tsv" for name in expected]


def test_a_fit_reads_the_shards_of_its_block(jobs_of):
    wildcards = of(experiment="shared_sums", block="0001", shard="0001", batch="lean")
    jobs = jobs_of("sharing")
    shards = [f"{SHARED}/shared/block_0001/shard_{number:04d}.h5" for number in (0, 1)]
    assert jobs.shards(wildcards) == shards
    spec = json.loads(jobs.share_spec(wildcards))
    assert (spec["shard"], spec["n_shards"]) == (1, 2)
    assert [Path(path).name for path in jobs.share_code(wildcards)] == ["sums.py"]
    assert jobs_of().shards(of(experiment="mtsc_synthetic", block="0000")) == []


def test_code_and_spec_of_fits_are_of_one_batch(jobs_of):
    jobs = jobs_of()
    codes, specs = {}, {}
    for batch in ("lsr", "ssc"):
        wildcards = of(experiment="mtsc_synthetic", batch=batch, block="0001")
        codes[batch] = {Path(path).name for path in jobs.fit_code(wildcards)}
        specs[batch] = json.loads(jobs.fit_spec(wildcards))
        assert jobs.fit_methods(wildcards) == batch
    assert {"_lsr.py"} == codes["lsr"] & {"_lsr.py", "_ssc.py", "mtsc.py"}
    assert "_ssc.py" in codes["ssc"]
    assert [method["name"] for method in specs["ssc"]["methods"]] == ["ssc"]
    assert len(specs["ssc"]["instances"]) == 3  # the last block of two


def test_evaluation_depends_on_metrics_and_on_no_method(jobs_of):
    jobs, wildcards = jobs_of(), of(experiment="mtsc_synthetic")
    code = {Path(path).name for path in jobs.evaluate_code(wildcards)}
    assert not code & {"_lsr.py", "_ssc.py"}
    assert any(path.endswith("metrics/segmentation.py") for path in jobs.evaluate_code(wildcards))
    assert json.loads(jobs.evaluate_spec(wildcards))["experiment"] == "mtsc_synthetic"
    assert json.loads(jobs.evaluate_spec(wildcards))["labels"] == {"ssc": "SSC", "lsr": "LSR"}


def test_evaluation_depends_on_metrics_that_the_config_names(jobs_of):
    name, wildcards = "privclust.metrics.retrieval.hit_ranks", of(experiment="mtsc_synthetic")
    without = jobs_of().evaluate_code(wildcards)
    found = jobs_of(change={"metrics": {"rank": name}}).evaluate_code(wildcards)
    (added,) = set(found) - set(without)
    assert added.endswith("metrics/retrieval.py")


def test_a_drawing_reads_the_tables_of_its_experiments(jobs_of):
    jobs, wildcards = jobs_of(), of(target="mtsc_fig2")
    assert jobs.drawn_from(layout.TRIALS)(wildcards) == [f"{FOLDER}/mtsc_heat_map/trials.csv"]
    assert jobs.drawn_from(layout.COSTS)(wildcards) == [f"{FOLDER}/mtsc_heat_map/costs.tsv"]
    assert any(path.endswith("mtsc/figures.py") for path in jobs.draw_code(wildcards))
    assert json.loads(jobs.draw_spec(wildcards))["experiments"] == ["mtsc_heat_map"]
    files = [f"results/quick/targets/mtsc_fig2/mtsc_fig2.{s}" for s in ("svg", "png", "csv")]
    assert jobs.drawings(["mtsc_fig2"]) == files


def test_a_report_names_a_target_by_title_and_place(jobs_of):
    jobs, wildcards = jobs_of(), of(target="mtsc_fig2")
    target, paper = jobs.plan.targets["mtsc_fig2"], jobs.plan.papers["mtsc"]["title"]
    assert jobs.labels(wildcards) == {
        "target": "mtsc_fig2",
        "title": target.title,
        "in the paper": f"{paper}: Figure 2",
    }
    jobs.plan.targets["mtsc_fig2"] = replace(target, title="{x}", where="{y}", ours=True)
    labels = jobs.labels(wildcards)
    assert labels["title"] == "(x)"
    assert labels["in the paper"] == f"our own evidence, for {paper}: (y)"


def test_rules_have_the_names_of_targets_and_papers(jobs_of):
    jobs = jobs_of()
    named = jobs.named_rules()
    assert named["mtsc_fig1"] == ["mtsc_fig1"]
    assert named["mtsc"] == ["mtsc_fig1", "mtsc_fig2"]
    assert named.keys() == {*jobs.plan.targets, *jobs.plan.papers}


def test_the_page_and_the_verdicts_read_all_tables(jobs_of):
    jobs = jobs_of()
    trials = [f"{FOLDER}/{name}/trials.csv" for name in ("mtsc_synthetic", "mtsc_heat_map")]
    assert jobs.of_experiments(layout.TRIALS) == trials
    both = jobs.of_experiments(layout.METRICS, layout.TRIALS)
    assert both[1::2] == trials
    tables = [f"results/quick/targets/{name}/{name}.csv" for name in ("mtsc_fig1", "mtsc_fig2")]
    assert jobs.of_targets(layout.TABLE) == tables
    assert json.loads(jobs.verdicts_spec(of())) == {
        "experiments": ["mtsc_synthetic", "mtsc_heat_map"],
        "papers": [],
        "own_targets": [],
        "quantities": {"mtsc": {}},
        "kinds": {"mtsc": {}},
    }
    page = json.loads(jobs.page_spec(of()))
    assert page["changed"] == {"seed": "7"}
    assert page["effort"] == "quick"
    assert page["experiments"]["mtsc_synthetic"]["n_points"] == 4
    assert page["datasets"]["hopkins155"]["substitutes"]
    assert page["citation"] is None
    assert page["papers"][0]["results"] == ""
    write("docs/results/mtsc.md")
    Path("CITATION.cff").write_text("title: it\ndate-released: 2026-01-02\n")
    page = json.loads(jobs.page_spec(of()))
    assert page["citation"] == {"title": "it", "date-released": "2026-01-02"}
    assert page["papers"][0]["results"] == "docs/results/mtsc.md"
    assert (jobs.page, jobs.verdicts) == ("results/quick/index.html", "results/quick/verdicts.csv")


def test_claims_and_printed_values_stand_beside_the_papers(jobs_of, tmp_path):
    write(tmp_path / "printed.csv", tmp_path / "claims.yaml")
    jobs = jobs_of()
    assert jobs.printed_values(of(target="mtsc_fig1")) == [str(tmp_path / "printed.csv")]
    assert jobs.plan.beside(CLAIMS) == {"mtsc": str(tmp_path / "claims.yaml")}
    assert json.loads(jobs.verdicts_spec(of()))["papers"] == ["mtsc"]


def test_nothing_is_missing_where_nothing_or_all_is_there(jobs_of):
    jobs = jobs_of("sharing")
    assert jobs.gaps(of()) == jobs.gaps_behind(["shared_figure"])(of()) == []
    for files in stages(jobs, "shared_sums"):
        write(*files)
    write(*jobs.drawings(["shared_figure"]), jobs.verdicts, jobs.page)
    assert jobs.gaps(of()) == jobs.gaps_behind(["shared_figure"])(of()) == []


@pytest.mark.parametrize("stage", range(4))
def test_what_is_missing_before_what_is_there_is_a_gap(jobs_of, stage):
    jobs = jobs_of()
    made = stages(jobs, "mtsc_heat_map")
    for files in made[: stage + 1]:
        write(*files)
    for other in range(stage + 1):
        for file in made[other]:
            Path(file).unlink()
            expected = [file] if other < stage else []  # the run makes the last ones anyway
            assert jobs.gaps_behind(["mtsc_fig2"])(of()) == expected
            assert jobs.gaps_behind(["mtsc_fig1"])(of()) == []
            write(file)


def test_gaps_are_seen_from_drawings_and_from_the_page(jobs_of):
    jobs = jobs_of("sharing")
    for files in stages(jobs, "shared_sums"):
        write(*files)
    shard = f"{SHARED}/shared/block_0001/shard_0000.h5"
    write(jobs.page)
    expected = sorted([*jobs.drawings(["shared_figure"]), jobs.verdicts, shard])
    Path(shard).unlink()
    assert jobs.gaps(of()) == expected  # seen from the page
    assert jobs.gaps_behind(["shared_figure"])(of()) == [shard]  # seen from the fits


def test_gaps_of_an_earlier_stage_are_found(jobs_of):
    jobs = jobs_of()
    figure = jobs.drawings(["mtsc_fig1"])[0]
    write(figure)
    missing = {file for files in stages(jobs, "mtsc_synthetic") for file in files}
    assert set(jobs.gaps_behind(["mtsc_fig1", "mtsc_fig2"])(of())) == missing
    assert figure not in jobs.gaps(of())
