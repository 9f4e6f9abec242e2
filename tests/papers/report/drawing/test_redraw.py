"""Pictures that are drawn again from the published tables."""

import numpy as np
import pandas as pd
import pytest
import yaml


@pytest.fixture
def redraw(request, monkeypatch):
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    import redraw

    return redraw


@pytest.fixture
def plan(redraw):
    config = yaml.safe_load((redraw.ROOT / "config/config.yaml").read_text())
    schemas = str(redraw.ROOT / "workflow/schemas")
    return redraw.load_plan(config | {"effort": "paper"}, schemas, {})


@pytest.mark.parametrize("n", [1, 2, 7])
def test_made_values_have_the_published_statistics(redraw, n):
    values = redraw.spread_out(3.0, 0.5, n)
    assert len(values) == n
    assert values.mean() == pytest.approx(3.0)
    assert n == 1 or values.std(ddof=1) == pytest.approx(0.5)


@pytest.mark.parametrize("target", ["dpsc_faces", "frontier_auto", "ckm_fig3"])
def test_a_drawing_gives_the_published_table_again(redraw, plan, target, monkeypatch):
    module = redraw.privclust_papers.ckm.figures
    monkeypatch.setattr(module, "statistics", module.statistics)  # which the script replaces
    results, table = redraw.prepared(plan, target)
    drawing = redraw.load_object(plan.targets[target].draw)(results)
    redraw.check_same(target, drawing.table, table)


def test_another_table_is_refused(redraw):
    table = pd.DataFrame({"method": ["a"], "n": [2], "mean": [1.0], "std": [0.1], "se": [0.07]})
    redraw.check_same("t", table, table)
    with pytest.raises(SystemExit, match="another table"):
        redraw.check_same("t", table.assign(mean=np.array([1.1])), table)
