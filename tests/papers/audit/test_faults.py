"""Known faults as an experiment: what each tool says, and the figure of it."""

import numpy as np
import pandas as pd
import pytest

from privclust_audit.faults import FAULTS
from privclust_papers.audit import fault_figures, fault_trials
from privclust_papers.pipeline.runner import TrialStreams
from privclust_papers.report.drawing.style import Results, save
from privclust_papers.settings.config import load_yaml

CONFIG = load_yaml("config/papers/audit/paper.yaml")
EXPERIMENT = CONFIG["experiments"]["audit_faults"]
TOOLS = {
    "faults_outputs": fault_trials.outputs_alone,
    "faults_ratio": fault_trials.density_ratio,
    "faults_sniper": fault_trials.dp_sniper,
    "faults_inside": fault_trials.looked_inside,
}
UNSEEN_BY_TWO_RUNS = {
    # how likely a choice, or a place, is: no number with noise of its own is told
    "noisy_max_value", "noisy_max_value_exponential", "noisy_max_half_noise", "redrawn_geometric",
    "rappor_hashes_forgotten", "svt_3", "svt_4", "svt_6", "svt_3_and_4",
}  # fmt: skip


def trial(fault, cost=0.001, method="m"):
    spec = {"seed": 3, "paper": "audit", "experiment": "e", "swept": [], "method": {"name": method}}
    point = {"cost": cost, "fault": fault}
    streams = TrialStreams(spec, point, 0)
    return fault_trials.fault_trial(point, 0, streams, None), streams


def test_the_experiment_has_all_faults():
    for effort in ("quick", "paper"):
        (point,) = EXPERIMENT["effort"][effort]["grid"]
        assert tuple(point["fault"]) == fault_trials.WRONG
    assert EXPERIMENT["methods"].keys() == TOOLS.keys()


@pytest.mark.parametrize("name", TOOLS)
def test_tools_find_a_plain_fault_and_not_its_twin(name):
    data, streams = trial("replaced_row", 0.005, name)
    found = fault_trials.evaluate_fault(data, TOOLS[name](data, streams))
    assert found["found"] == 1.0
    assert found["twin_found"] == found["is_missed"] == 0.0
    assert 1.0 < found["epsilon_bound"] <= FAULTS["replaced_row"].loss
    assert 0 < found["runs"] < 50_000
    assert TOOLS[name](data, streams) == TOOLS[name](data, streams)


def test_no_ratio_without_a_density_and_a_miss_is_one():
    data, streams = trial("empty_leaf")
    found = fault_trials.evaluate_fault(data, fault_trials.density_ratio(data, streams))
    assert (found["found"], found["is_missed"]) == (fault_trials.UNKNOWN, 0.0)
    data, streams = trial("steps_forgotten")
    found = fault_trials.evaluate_fault(data, fault_trials.outputs_alone(data, streams))
    assert (found["found"], found["is_missed"]) == (0.0, 1.0)


@pytest.mark.parametrize("name", fault_trials.WRONG)
def test_a_look_inside_finds_what_it_can_judge(name):
    data, streams = trial(name)
    found = fault_trials.evaluate_fault(data, fault_trials.looked_inside(data, streams))
    expected = fault_trials.UNSEEN if name in UNSEEN_BY_TWO_RUNS else 1.0
    assert (found["found"], found["is_missed"], found["twin_found"]) == (expected, 0.0, 0.0)
    loss = FAULTS[name].loss
    if found["epsilon_bound"] and loss is not None:
        assert found["epsilon_bound"] == pytest.approx(loss) or loss == np.inf


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in fault_trials.WRONG])
@pytest.mark.parametrize("seed", range(5))
def test_a_look_inside_convicts_nothing_corrected(name, seed):
    fault = FAULTS[name]
    assert fault_trials.look_at(fault, fault.mechanism, seed)[0] != "violated"


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_look_inside_convicts_no_twin_with_other_noise(seed):
    for name in fault_trials.WRONG:
        fault = FAULTS[name]
        assert fault_trials.look_at(fault, fault.twin, seed)[0] != "violated", name


def test_the_figure_has_each_fault_and_tool(tmp_path):
    rows = [
        {
            "method": name, "label": name, "trial": 0, "source": "made", "cost": 1.0,
            "fault": fault, "claimed_epsilon": FAULTS[fault].epsilon, "epsilon_bound": 1.2,
            "found": value, "runs": 1000.0, "twin_found": 0.0, "is_missed": 0.0,
        }
        for fault, values in {"twice_spent": (1, 1, 0, 1), "empty_leaf": (1, -1, 1, -2)}.items()
        for name, value in zip(TOOLS, values, strict=True)
    ]  # fmt: skip
    costs = pd.DataFrame({"method": list(TOOLS), "cpu_seconds": [1.0, 2.0, 3.0, 0.1]})
    results = Results(
        "t", {"audit_faults": pd.DataFrame(rows)}, {}, {}, pd.DataFrame(), {"audit_faults": costs}
    )
    drawing = fault_figures.faults(results)
    assert list(drawing.table["fault"]) == ["twice_spent"] * 4 + ["empty_leaf"] * 4
    verdicts = ["found", "found", "not found", "found", "found", "", "found", "cannot tell"]
    assert list(drawing.table["verdict"]) == verdicts
    heads = [text.get_text() for text in drawing.figure.axes[0].get_xticklabels()]
    assert "2 of 2 found" in heads[0]
    assert "1 of 1 found" in heads[1]
    assert "1 of 2 found" in heads[2]
    assert "1 of 1 found" in heads[3]
    save(drawing, tmp_path / "faults.svg", tmp_path / "faults.png", tmp_path / "faults.csv")
    assert (tmp_path / "faults.png").stat().st_size > 1000
