"""A user's own methods: what they become in the plan, and what is said of wrong ones."""

import sys
from pathlib import Path

import pytest
import yaml

from privclust_papers.pipeline.plan import load_plan
from privclust_papers.settings.config import ConfigError, load_yaml

ROOT = Path(__file__).parents[3]
CLASSES = """
class Fits:
    def fit(self, X, y=None):
        return self

class Bare:
    pass

a_function = len
"""
METHOD = {"label": "mine", "class": "own_classes.Fits", "targets": {"ckm_fig3": {}}}


@pytest.fixture
def plan_of(monkeypatch, tmp_path):
    """Plan a run of two papers and the audit with methods of one's own."""
    monkeypatch.chdir(ROOT)
    (tmp_path / "own_classes.py").write_text(CLASSES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_classes", raising=False)

    def plan(methods=None, **changes):
        papers = [f"config/papers/{paper}" for paper in ("ckm", "dpem", "audit")]
        config = load_yaml("config/config.yaml") | {"papers": papers} | changes
        config["my_methods"] = str(tmp_path / "my_methods.yaml")
        Path(config["my_methods"]).write_text(yaml.safe_dump({"methods": methods or {}}))
        return load_plan(config, "workflow/schemas", {})

    return plan


def test_files_as_they_come_add_nothing():
    config = load_yaml(ROOT / "config/config.yaml")
    assert load_yaml(ROOT / config["my_methods"]) == {"methods": {}}


def test_a_method_joins_the_experiments_of_its_targets_alone(plan_of):
    before = plan_of()
    after = plan_of({"mine": {**METHOD, "targets": {"ckm_fig3": {"params": {"x": 1}}}}})
    for name, experiment in after.experiments.items():
        added = set(experiment.methods) - set(before.experiments[name].methods)
        assert added == ({"mine"} if name == "ckm_privacy" else set())
    mine = after.experiments["ckm_privacy"].methods["mine"]
    assert (mine.label, mine.estimator, mine.params) == (
        "mine (own claim)",
        "own_classes.Fits",
        {"x": 1},
    )
    assert after.targets["ckm_fig3"].own == ("mine",)
    assert after.targets["ckm_fig2"].own == ()


def test_a_users_method_leaves_other_fits_at_paper_effort(plan_of):
    mine = {"mine": {**METHOD, "targets": {"ckm_fig3": {"params": {"x": 1}}}}}
    before, after = plan_of(effort="paper"), plan_of(mine, effort="paper")
    specs = [plan.experiments["ckm_privacy"].fit_spec("lloyd", 0) for plan in (before, after)]
    assert specs[0] == specs[1]


def test_the_papers_say_which_fits_are_open(plan_of, tmp_path):
    paper = load_yaml(ROOT / "config/papers/ckm/paper.yaml")

    def plan(method):
        (tmp_path / "paper.yaml").write_text(yaml.safe_dump(paper))
        return plan_of({"mine": method}, papers=[str(tmp_path)])

    (fit,) = paper["open_fits"]
    paper["open_fits"][fit] = {"calls": "search", "reads": "answers_"}
    message = r"has no method 'search'; the class must have search and, after it was"
    with pytest.raises(ConfigError, match=message):
        plan(METHOD)
    other = "privclust_papers.dpem.data.fit_mixture"
    paper["open_fits"] = {other: {"calls": "fit", "reads": "labels_"}}
    with pytest.raises(ConfigError, match=r"mine.targets: ckm_fig3 compares no methods"):
        plan(METHOD)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"class": "own_classes.Bare"}, r"targets.ckm_fig3: own_classes.Bare has no method 'f"),
        ({"class": "own_classes.Nothing"}, r"mine.class: own_classes.Nothing: cannot be imported"),
        ({"class": "no_such.Thing"}, r"mine.class: no_such.Thing: cannot be imported"),
        ({"class": "own_classes.a_function"}, r"class: got own_classes.a_function, which is no"),
        ({"targets": {"ckm_fig9": {}}}, r"mine.targets: got 'ckm_fig9'; it must be one of ckm_bey"),
        ({"targets": {"ckm_tab_snr": {}}}, r"mine.targets: ckm_tab_snr compares no methods; it m"),
        ({"colour": "red"}, r"my_methods.yaml: methods.mine"),
    ],
)
def test_wrong_methods_are_named(plan_of, change, message):
    with pytest.raises(ConfigError, match=message) as error:
        plan_of({"mine": {**METHOD, **change}})
    assert "my_methods.yaml" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_name_that_is_taken_is_refused(plan_of):
    with pytest.raises(ConfigError, match=r"methods.eugkm: ckm has a method of that name"):
        plan_of({"eugkm": METHOD})


def test_targets_that_share_fits_share_parameters(plan_of):
    plan = plan_of({"mine": {**METHOD, "targets": {"ckm_beyond": {}, "ckm_fig3": {}}}})
    assert "mine" in plan.experiments["ckm_privacy"].methods


def test_what_only_paper_effort_has_is_left_out_at_quick(plan_of):
    methods = {"mine": {**METHOD, "targets": {"ckm_fig3": {}, "ckm_beyond": {}}}}
    quick = plan_of(methods)
    assert "ckm_beyond" in quick.elsewhere
    assert "ckm_fig3" not in quick.elsewhere
    (notice,) = quick.notices
    assert notice.endswith(
        "my_methods.yaml: methods.mine.targets.ckm_beyond: left out of this run: ckm_beyond is "
        "made at effort=paper only, as it takes long; to make it: snakemake --cores 2 ckm_beyond "
        "--config effort=paper"
    )
    assert "mine" in quick.experiments["ckm_privacy"].methods
    whole = plan_of(methods, effort="paper")
    assert whole.elsewhere == whole.notices == ()
    assert "ckm_beyond" in whole.targets


def test_no_notice_where_a_user_asks_for_nothing(plan_of):
    plan = plan_of()
    assert plan.elsewhere
    assert plan.notices == ()
