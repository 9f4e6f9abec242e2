"""At most seven lines a panel, each with its own look, in the pictures of all papers."""

from collections import Counter

import pytest
import yaml

from privclust_papers.ckm import figures as ckm
from privclust_papers.dpem import figures as dpem
from privclust_papers.pipeline.plan import load_plan
from privclust_papers.report.drawing.style import styles_of

MOST_LINES = 7
REFERENCES = ("upper bound for (ε, δ)-private queries", "end of the paper's axis")  # no methods
REDRAWN = (  # from the published tables
    *("dpsc_fig2", "dpsc_beyond", "dpsc_starts", "dpsc_frontier", "dpsc_faces"),
    *("privatemail_fig3", "privatemail_fig5", "privatemail_fig6", "privatemail_leak"),
    *("frontier_errors", "frontier_auto", "frontier_tab1", "frontier_public"),
    *("frontier_archives", "ckm_fig2", "ckm_fig3", "dpem_fig4", "dpem_accuracy"),
)
EVERY_METHOD = ("mtsc_fig1", "mtsc_fig1_gaussian", "dpsc_tsc", "privatemail_readings")


@pytest.fixture(scope="module")
def plan(request):
    root = request.config.rootpath
    config = yaml.safe_load((root / "config/config.yaml").read_text()) | {"effort": "paper"}
    return load_plan(config, str(root / "workflow/schemas"), {})


@pytest.fixture
def redraw(request, monkeypatch):
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    import redraw

    papers = redraw.privclust_papers  # whose functions the script replaces
    monkeypatch.setattr(papers.ckm.figures, "statistics", papers.ckm.figures.statistics)
    iterates = papers.privatemail.figures.along_iterates
    monkeypatch.setattr(papers.privatemail.figures, "along_iterates", iterates)
    return redraw


def can_be_read(looks):
    """Return whether a panel's lines are few, and differ in more than their markers."""
    return len(looks) <= MOST_LINES and max(Counter(looks).values(), default=1) == 1


def is_curve(line):
    """Return whether a line is a method's: not a level, points without a line, or a reference."""
    name = str(line.get_label())
    is_named = not name.startswith("_") and name not in REFERENCES
    return is_named and line.get_linestyle() != "None" and list(line.get_xdata()) != [0, 1]


def test_looks_are_told_apart_by_colour_and_dash():
    assert can_be_read([("red", "-"), ("red", "--")])
    assert not can_be_read([("red", "-"), ("blue", "-"), ("red", "-")])
    assert not can_be_read([(number, "-") for number in range(8)])


@pytest.mark.parametrize("target", REDRAWN)
def test_a_drawn_panel_can_be_read(redraw, plan, target):
    results, _ = redraw.prepared(plan, target)
    drawing = redraw.load_object(plan.targets[target].draw)(results)
    for axis in drawing.figure.axes:
        lines = [line for line in axis.get_lines() if is_curve(line)]
        looks = [(line.get_color(), line.get_linestyle()) for line in lines]
        assert can_be_read(looks), [line.get_label() for line in lines]


def panels_of_runs(plan):
    """Yield the methods of panels that only a run draws, with their target."""
    privacy = [name for name, _ in plan.targets["ckm_fig3"].styles]
    own_decoder = {*privacy} - {*ckm._DEVICES, *ckm._SKETCHES, "lloyd"}
    for methods in (ckm._DEVICES, ckm._SKETCHES, own_decoder):
        yield "ckm_fig3", methods
    for methods in (dpem._NOMINAL, dpem._EQUAL_PRIVACY):
        yield "dpem_fig2", ["em", *methods]
    settings = [name for name, _ in plan.targets["dpem_geometry"].styles]
    yield "dpem_geometry", {*settings} - {"em", "dp", dpem._IN_TABLE_ONLY}
    for name in plan.targets["dpsc_scaling"].experiments:
        yield "dpsc_scaling", plan.experiments[name].methods
    yield "ckm_beyond", {name for name, _ in plan.targets["ckm_beyond"].styles} - {"lloyd"}
    for target in EVERY_METHOD:
        yield target, [name for name, _ in plan.targets[target].styles]


def test_a_panel_of_a_run_can_be_read(plan):
    for target, methods in panels_of_runs(plan):
        styles = styles_of(plan.targets[target].styles)
        looks = [(styles[method].color, str(styles[method].dash)) for method in methods]
        assert can_be_read(looks), (target, methods)
