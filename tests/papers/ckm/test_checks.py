import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from privclust.sketches import Sketch
from privclust.synthetic.clusters import MixtureRows
from privclust_papers.ckm import checks as checks
from privclust_papers.pipeline.runner import TrialStreams
from privclust_papers.settings.config import load_yaml
from privclust_papers.shared.statements import evaluate_numbers, measure_excess

CLAIMS = Path(__file__).parents[3] / "config/papers/ckm/claims.yaml"
SIZES = {"n_clusters": 4, "n_features": 3, "n_frequencies": 80}
SETTING = {"alpha_r": 0.25, "sigma_xi": 1.5, "n_devices": 2, "device_size": 200, "repeats": 60}


def streams(point, trial=0):
    spec = {"seed": 1, "paper": "ckm", "experiment": "e", "swept": [], "method": {"name": "m"}}
    return TrialStreams(spec, point, trial)


def excess(statement, trial):
    point = {"statement": statement}
    data = checks.statement_trial(point, trial, streams(point, trial), None)
    outputs = measure_excess(data, streams(point, trial))
    return data.extra, evaluate_numbers(data, outputs)["excess"]


def test_the_characteristic_function_is_what_sketches_tend_to():
    rng = np.random.default_rng(0)
    means, frequencies = rng.normal(size=(4, 3)), rng.normal(size=(3, 50))
    n = 200_000
    sketch = Sketch.of(MixtureRows(n, means, 1).to_array(), frequencies)
    features = sketch.values * math.sqrt(50)
    off = np.abs(features - checks.characteristic_function(means, frequencies)) ** 2
    # E |error|^2 <= 1 / n for each; the mean of 50 exceeds 3 / n with probability below 1e-6
    assert off.mean() < 3.0 / n


def test_the_measured_snr_agrees_with_eq_6():
    point = {**SIZES, **SETTING}
    ratios = []
    for trial in range(4):
        data = checks.snr_trial(point, trial, streams(point, trial), None)
        outputs = checks.measure_sketch(data, streams(point, trial))
        metrics = checks.evaluate_snr(data, outputs)
        assert metrics["ratio"] == pytest.approx(metrics["snr_measured"] / metrics["snr_eq6"])
        eq7 = 0.25 * 400 * 0.35 / (1.0 - 0.25 * 0.35 + 1.5**2)
        assert metrics["snr_eq7"] == pytest.approx(eq7)
        ratios.append(metrics["ratio"])
    # 4 x 60 errors of 80 features: a standard error below 2 %, and four of them
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.08)


def test_norms_are_those_of_the_closed_form_at_either_scale():
    data = checks.snr_trial(SIZES, 0, streams(SIZES), None)
    fixed, estimated = (
        checks.evaluate_norm(data, checks.measure_sketch(data, streams(SIZES), scale=s))
        for s in ("fixed", "estimated")
    )
    features = checks.characteristic_function(data.extra["means"], data.extra["frequencies"])
    assert fixed["norm2"] == pytest.approx(np.sum(np.abs(features / math.sqrt(80)) ** 2))
    assert fixed["norm2_error"] == pytest.approx(abs(fixed["norm2"] - 0.35))
    assert estimated["norm2"] != fixed["norm2"]
    assert 0.0 < estimated["norm2"] < 1.0


def test_norms_do_not_depend_on_the_scale_of_the_data():
    frequencies = checks.trial_frequencies(np.random.default_rng(0), 3, 400)
    norms = []
    for size in (1.0, 4.0, 16.0):  # beside which a unit covariance is nothing
        means = 100.0 * size * np.random.default_rng(1).standard_normal((4, 3))
        data = checks.without_rows({**SIZES, "means": means, "frequencies": frequencies})
        norms.append(float(checks.measure_norm(data, streams(SIZES), "total")["norm2"]))
    np.testing.assert_allclose(norms, norms[0], rtol=0.01)


def test_one_gaussian_and_many_clusters_have_norm_0_297():
    norms = []
    for k in (1, 400):  # means of many clusters are normal, so that the mixture is nearly Gaussian
        means = np.random.default_rng(k).normal(scale=2.0, size=(k, 3))
        frequencies = checks.trial_frequencies(np.random.default_rng(0), 3, 10_000)
        data = checks.without_rows({**SIZES, "means": means, "frequencies": frequencies})
        norms.append(float(checks.measure_norm(data, streams(SIZES), "total")["norm2"]))
    np.testing.assert_allclose(norms, 0.297, atol=0.01)


def test_the_variance_line_sums_to_eq_6_but_differs():
    assert max(excess("variance_line_summed", trial)[1] for trial in range(10)) < 1e-12
    for trial in range(10):
        assert excess("variance_line_printed", trial)[1] > 0.01


def test_a_sketch_holds_the_same_after_any_number_of_rows():
    assert excess("memory", 0)[1] == 0.0


@pytest.mark.parametrize("statement", ["merging", "merging_masked"])
def test_merged_sketches_are_the_union_s_to_the_byte(statement):
    assert [excess(statement, trial)[1] for trial in range(3)] == [0.0] * 3


def test_proposition_1_exceeds_epsilon_as_printed():
    for trial in range(10):
        setting, loss_excess = excess("privacy_printed", trial)
        assert loss_excess == pytest.approx(math.sqrt(setting["m"] / setting["r"]) - 1.0)
        setting, loss_excess = excess("privacy_corrected", trial)
        assert loss_excess == pytest.approx(0.0, abs=1e-9)


def test_log_density_of_a_mixture_is_that_of_plain_arithmetic():
    centers = np.array([[0.0, 1.0], [2.0, -1.0]])
    outputs = np.array([[0.5, 0.5], [-3.0, 2.0]])
    logs = checks._log_density(outputs, centers, 0.7)
    for output, value in zip(outputs, logs, strict=True):
        parts = [math.exp(-np.abs(output - center).sum() / 0.7) for center in centers]
        assert value == pytest.approx(math.log(sum(parts) / 2))


def test_masks_are_unbiased_and_a_bias_would_be_seen(monkeypatch):
    values = [excess("unbiased_masks", trial)[1] for trial in range(6)]
    # each is a sum over 1000 features with a relative deviation of about 0.05
    assert np.mean(values) == pytest.approx(0.0, abs=0.1)
    real = checks.Sketch.of

    def biased(X, frequencies, **settings):
        result = real(X, frequencies, **settings)
        return result if "mask_seed" not in settings else real(X[1:], frequencies, **settings)

    monkeypatch.setattr(checks.Sketch, "of", biased)
    assert excess("unbiased_masks", 0)[1] > 0.1


def test_complex_laplace_numbers_have_the_printed_variance():
    assert max(excess("laplace_variance", trial)[1] for trial in range(3)) < 0.02


def test_every_statement_is_in_the_config_s_reach():
    assert set(checks.STATEMENTS) == {
        *("merging", "merging_masked", "unbiased_masks", "laplace_variance"),
        *("privacy_printed", "privacy_corrected", "memory"),
        *("variance_line_printed", "variance_line_summed"),
    }
    settings = [excess("merging", trial)[0] for trial in range(30)]
    assert all(1 <= s["r"] < s["m"] <= 4 for s in settings)
    assert all(a["seed"] != b["seed"] for a, b in itertools.combinations(settings, 2))


def test_variances_are_compared_in_pairs_each_counted_once():
    claims = load_yaml(CLAIMS)
    rows = [c["check"] for c in claims if c.get("under") == "ckm_fig3_variances_all"]
    deciding = [r for r in rows if "dplloyd_separated" in (r["method"], *r["against"])]
    methods = {m for r in deciding for m in (r["method"], *r["against"])}
    pairs = [frozenset((r["method"], other)) for r in deciding for other in r["against"]]
    assert len(pairs) == len(set(pairs)) == 6
    assert set(pairs) == set(map(frozenset, itertools.combinations(methods, 2)))
