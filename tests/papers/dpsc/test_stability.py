"""Lemma 3.3 and Theorem 3.4 on two lines in the plane."""

import numpy as np
import pandas as pd
import pytest

from privclust.metrics.subspaces import subspace_cost, wasserstein_distance
from privclust_papers.dpsc import stability
from privclust_papers.dpsc.circle import circle_optimum
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.report.drawing.style import Results, styles_of
from privclust_papers.settings.config import ConfigError

POINT = {"n_samples": 300}


def streams():
    spec = {"seed": 1, "paper": "dpsc", "experiment": "e", "swept": [], "method": {"name": "m"}}
    return TrialStreams(spec, POINT, 0)


def trial():
    return stability.separated_trial(POINT, 0, streams(), None)


def ratios(**params):
    return stability.candidate_lines(trial(), streams(), **params)["ratio"]


@pytest.mark.parametrize("noise", stability.NOISES)
def test_turned_lines_cost_no_more_than_they_may(noise):
    X = stability._rows(trial().extra["angles"], noise)
    best, least = circle_optimum(X)
    lines = stability._turned(X, best, least, 5.0)
    assert subspace_cost(X, lines) <= 5.0 * least * (1 + 1e-4)
    # rows change lines only where the noise is large
    assert subspace_cost(X, lines) == pytest.approx(5.0 * least, rel=1e-3)
    assert wasserstein_distance(lines, best) > noise


def test_least_costs_are_those_of_a_search():
    X = stability._rows(trial().extra["angles"], 0.01)
    _, least = circle_optimum(X)
    phi2, bound = stability._constants(X, least)
    angles = np.linspace(0.0, np.pi, 20_001)
    single = min(np.mean((X @ [-np.sin(a), np.cos(a)]) ** 2) for a in angles[:-1])
    assert phi2 == pytest.approx(least / single, rel=1e-5)
    expected = 600 * 2 * phi2 / ((1 - 150 * phi2) * (single - 2 * least))
    assert bound == pytest.approx(expected, rel=1e-5)


def test_the_printed_lemma_fails_for_lines_not_the_best():
    turned = ratios(slack="limit")
    assert turned[0] < 1.0
    assert (turned[1:] > 1.0).all()
    assert (np.diff(turned) > 0).all()
    assert (ratios(slack="limit", is_refitted=True) < 1.0).all()


def test_the_theorem_holds_for_an_exact_solver():
    assert (ratios(slack=0.0, n_draws=1e8) < 1.0).all()
    assert ratios(slack=0.1, n_draws=1e8)[-1] > 1.0
    exact = stability.evaluate_candidates(trial(), {"ratio": np.array([0.5, 0.9])})
    broken = stability.evaluate_candidates(trial(), {"ratio": np.array([0.5, 1.5])})
    assert (exact["over_stability"], exact["outside"]) == (0.9, 0.0)
    assert (broken["over_stability"], broken["outside"]) == (1.5, 1.0)


def test_data_that_are_not_well_separated_are_refused():
    data = TrialData(np.eye(2), None, "generated", extra={"angles": 10.0 * trial().extra["angles"]})
    with pytest.raises(ConfigError, match="not well separated"):
        stability.candidate_lines(data, streams(), slack=0.0)


def test_the_picture_has_a_curve_for_each_kind_of_candidate():
    methods = {"turned_limit": {"slack": "limit"}, "exact_draw": {"slack": 0.0, "n_draws": 1e8}}
    arrays, rows = {}, []
    for method, params in methods.items():
        found = stability.candidate_lines(trial(), streams(), **params)
        values = stability.evaluate_candidates(trial(), found)
        kept = {name: values[name] for name in ("ratio", "bound", "noise")}
        arrays["e", method] = {f"array/00000/{name}": value for name, value in kept.items()}
        rows.append({"method": method, "label": method.upper(), "trial": 0, "source": "generated"})
    styles = styles_of([(name, {"colour": "blue"}) for name in methods])
    results = Results("t", {"e": pd.DataFrame(rows)}, {}, arrays, pd.DataFrame(), styles=styles)
    drawing = stability.stability(results)
    curves = {line.get_label(): line.get_ydata() for line in drawing.figure.axes[0].lines}
    expected = arrays["e", "turned_limit"]["array/00000/ratio"]
    np.testing.assert_allclose(curves["TURNED_LIMIT"], expected)
    assert len(drawing.table) == 2 * len(stability.NOISES)
