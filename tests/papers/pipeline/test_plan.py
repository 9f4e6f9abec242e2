"""What a run reads: data sets, and features extracted from them."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from privclust_papers.pipeline.experiment import MEMORY_MB
from privclust_papers.pipeline.jobs import Jobs
from privclust_papers.pipeline.plan import changed_settings, load_plan, normalise
from privclust_papers.settings.config import ConfigError, load_yaml

ROOT = Path(__file__).parents[3]
SCHEMAS = ROOT / "workflow" / "schemas"


@pytest.fixture
def plan_of(monkeypatch, tmp_path):
    """Plan a run of one small paper whose first experiment has some settings changed."""
    monkeypatch.chdir(ROOT)

    def plan(changes, quick=(), features=None, effort="quick", features_model=None):
        document = load_yaml("tests/workflow/tiny.yaml")
        experiment = document["experiments"]["mtsc_synthetic"]
        experiment.update(changes)
        experiment["effort"]["quick"].update(quick)
        (tmp_path / "paper.yaml").write_text(yaml.safe_dump(document))
        config = load_yaml("config/config.yaml") | {"papers": [str(tmp_path)], "effort": effort}
        config["features_model"] = features_model
        if features is not None:
            config["features"] = str(tmp_path / "features.yaml")
            (tmp_path / "features.yaml").write_text(yaml.safe_dump(features))
        return load_plan(config, str(SCHEMAS), {})

    return plan


def test_experiment_reads_features_and_they_read_images(plan_of):
    plan = plan_of({"dataset": "cub200_quick"})
    assert sorted(plan.features) == ["cub200_quick"]
    assert sorted(plan.datasets) == ["cub200", "hopkins155"]
    assert plan.experiments["mtsc_synthetic"].dataset == "cub200_quick"


def test_the_papers_network_is_fetched_and_its_stand_in_named(plan_of):
    titles = {}
    for model, fetched in ((None, set()), ("resnet50", {"resnet50"})):
        plan = plan_of({"dataset": "cifar100_quick"}, features_model=model)
        assert set(plan.datasets) == {"cifar100", "hopkins155"} | fetched
        assert plan.features["cifar100_quick"].model == (model or "lite0")
        titles[model] = plan.targets["mtsc_fig1"].title
    notice = "; features of EfficientNet-Lite0 in place of ResNet-50"
    assert titles[None] == titles["resnet50"] + notice


def test_jobs_of_features_read_the_networks_weights(plan_of):
    for model, folder in ((None, []), ("resnet50", "data/raw/resnet50")):
        plan = plan_of({"dataset": "cifar100_quick"}, features_model=model)
        jobs = Jobs(plan, {})
        assert jobs.weights(SimpleNamespace(features="cifar100_quick")) == folder


def test_memory_is_what_the_data_set_needs(plan_of):
    jobs = Jobs(plan_of({"dataset": "cub200_quick"}), {})
    for wildcards in ({"dataset": "cub200"}, {"features": "cub200_quick"}):
        assert jobs.memory(SimpleNamespace(**wildcards), 1) == 2500
        assert jobs.memory(SimpleNamespace(**wildcards), 2) == 5000
    assert jobs.memory(SimpleNamespace(dataset="hopkins155"), 1) == MEMORY_MB
    assert jobs.memory(SimpleNamespace(target="mtsc_fig1"), 1) == MEMORY_MB


def test_images_themselves_need_no_features(plan_of):
    plan = plan_of({"dataset": "cub200"})
    assert not plan.features
    assert sorted(plan.datasets) == ["cub200", "hopkins155"]


def test_effort_names_another_data_set(plan_of):
    settings = {"dataset": "cars196_paper"}, {"dataset": "cars196_quick"}
    assert sorted(plan_of(*settings).features) == ["cars196_quick"]
    assert sorted(plan_of(*settings, effort="paper").features) == ["cars196_paper"]


def test_another_colour_redraws_and_refits_nothing(plan_of):
    before = plan_of({})
    after = plan_of({"methods": {"ssc": {"colour": "black", "line": "dotted"}, "lsr": {}}})
    for name, experiment in before.experiments.items():
        assert after.experiments[name].evaluate_spec() == experiment.evaluate_spec()
    specs = [plan.targets["mtsc_fig1"].spec() for plan in (before, after)]
    looks = [dict(spec.pop("styles")) for spec in specs]
    assert specs[0] == specs[1]
    assert looks[0] == {"ssc": {"colour": "blue", "marker": "s"}, "lsr": {"colour": "sky"}}
    assert looks[1] == {**looks[0], "ssc": {"colour": "black", "marker": "s", "line": "dotted"}}


def test_unknown_data_set_of_an_effort_is_named(plan_of):
    with pytest.raises(ConfigError) as error:
        plan_of({}, {"dataset": "cub200_fast"})
    message = str(error.value)
    assert "experiments.mtsc_synthetic.dataset: got 'cub200_fast'; it must be one of " in message
    assert "cub200, cub200_paper, cub200_quick" in message
    assert "(defined in config/datasets.yaml and config/features.yaml)" in message


def test_features_of_unknown_images_are_refused(plan_of):
    entry = load_yaml("config/features.yaml")["cub200_quick"]
    with pytest.raises(ConfigError, match=r"features\.yaml: birds\.dataset: got 'cub201'"):
        plan_of({}, features={"birds": entry | {"dataset": "cub201"}})


def test_missing_features_file_is_named(monkeypatch):
    monkeypatch.chdir(ROOT)
    config = load_yaml("config/config.yaml") | {"features": "config/none.yaml"}
    with pytest.raises(ConfigError, match=r"config/none\.yaml: cannot be read"):
        load_plan(config, str(SCHEMAS), {})


def test_settings_of_a_run_are_told_without_local_paths():
    path = ROOT / "config/config.yaml"
    config = load_yaml(path)
    assert changed_settings(config, path) == {}
    given = {
        "seed": "7",
        "mirror": "/home/me/my data",
        "papers": ["config/papers/ckm", "/home/me/own"],
        "my_methods": "near/methods.yaml",
        "substitutes": "false",  # changes no result
        "effort": config["effort"],
    }
    told = changed_settings(normalise(config | given), path)
    assert told == {
        "seed": "7",
        "mirror": "/path/to/my data",
        "papers": "[config/papers/ckm, /path/to/own]",
        "my_methods": "near/methods.yaml",
    }
    assert normalise(told)["papers"] == ["config/papers/ckm", "/path/to/own"]


def test_settings_that_the_command_line_took_back_are_told(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("{effort: paper, mirror: data, substitutes: false}")
    config = {"effort": "quick", "mirror": None, "substitutes": True}
    told = {"effort": "quick", "mirror": "null", "substitutes": "true"}
    assert changed_settings(config, path) == told
