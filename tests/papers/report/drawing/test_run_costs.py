import numpy as np
import pandas as pd
import pytest

from privclust_papers.report.drawing.run_costs import draw_costs
from privclust_papers.report.drawing.style import save


@pytest.fixture
def table():
    rows = [
        ("rule", "fit", 10.0, 8.0),
        ("rule", "snakemake", 2.0, 0.0),
        ("paper", "ckm", 10.0, 8.0),
        ("paper", "snakemake", 2.0, 0.0),
        ("target", "ckm_fig2", 9.0, 7.0),
        ("total", "all", 12.0, 8.0),
    ]
    made = pd.DataFrame(rows, columns=["level", "name", "cpu_s", "work_cpu_s"])
    return made.assign(overhead_cpu_s=made.cpu_s - made.work_cpu_s)


@pytest.fixture
def model():
    seconds = np.array([1200.0, 660.0, 600.0])
    return pd.DataFrame(
        {
            "cores": [1, 2, 4],
            "predicted_s": seconds,
            "lower_s": seconds * 0.9,
            "upper_s": seconds * 1.1,
        }
    )


@pytest.fixture
def runs():
    return pd.DataFrame({"cores": [2, 1], "measured_s": [720.0, 60.0], "complete": [True, False]})


def test_bars_are_work_and_overhead_and_add_up(table, model, runs):
    by_rule, by_paper, _ = draw_costs(table, model, runs).figure.axes
    for axes in (by_rule, by_paper):
        ends = [patch.get_x() + patch.get_width() for patch in axes.patches]
        assert ends == [0.0, 8.0, 2.0, 10.0]  # work, then overhead after it, the least first
    assert [label.get_text() for label in by_rule.get_yticklabels()] == ["snakemake", "fit"]


def test_only_complete_runs_stand_beside_the_prediction(table, model, runs):
    times = draw_costs(table, model, runs).figure.axes[2]
    lines = {line.get_label(): line.get_xydata().tolist() for line in times.lines}
    assert lines["predicted"] == [[1.0, 20.0], [2.0, 11.0], [4.0, 10.0]]
    assert lines["measured"] == [[2.0, 12.0]]


def test_drawing_is_written_also_without_a_complete_run(tmp_path, table, model, runs):
    drawing = draw_costs(table, model, runs.iloc[1:])
    paths = [tmp_path / f"costs.{suffix}" for suffix in ("svg", "png", "csv")]
    save(drawing, *paths)
    assert all(path.stat().st_size for path in paths)
    # written to six figures
    np.testing.assert_allclose(pd.read_csv(paths[2])[model.columns], model, rtol=1e-5)
