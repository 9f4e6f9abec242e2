import math

import numpy as np
import pytest

from privclust.kmeans import DPLloyd, EUGkM, LloydKMeans
from privclust.mixtures import PrivateGaussianMixture
from privclust.sketches import FeatureSums, Sketch
from privclust.synthetic.clusters import draw_mixture
from privclust_papers.ckm import data as compression
from privclust_papers.ckm import methods as compression_methods
from privclust_papers.ckm import metrics as evaluation
from privclust_papers.ckm.methods import kmeans_at_snr, kmeans_on_devices
from privclust_papers.datasets import lifesci
from privclust_papers.pipeline.runner import TrialData, TrialStreams, merge_shards, run_method
from privclust_papers.settings.config import ConfigError

POINT = {"n_samples": 3000, "n_clusters": 3, "n_features": 4, "n_frequencies": 120}


def streams(point=POINT, trial=0, method="m", swept=()):
    spec = {"seed": 1, "paper": "ckm", "experiment": "e", "swept": list(swept)}
    return TrialStreams({**spec, "method": {"name": method}}, point, trial)


def fitted(estimator, params=None, point=POINT, method="m", shared=None):
    data = compression.mixture_trial(point, 0, streams(point), None)
    if shared is not None:
        data.extra["shared"] = shared
    method_streams = streams(point, method=method)
    return run_method(compression.fit_clusters, estimator, params or {}, data, method_streams)


# --- data ------------------------------------------------------------------------------------


def test_mixtures_are_drawn_when_asked_for_and_lie_in_their_box():
    data = compression.mixture_trial(POINT, 0, streams(), None)
    assert "array" not in vars(data.X)
    assert data.X.array.shape == (3000, 4)
    assert data.X.array.dtype == np.float64
    low, high = data.extra["bounds"]
    # of the law: four deviations of a coordinate, whose variance is 1 + 2.25 k^(2/d)
    assert high[0] == pytest.approx(4.0 * math.sqrt(1.0 + 2.25 * 3.0**0.5))
    assert (low == -high).all()
    assert ((data.X.array >= low) & (data.X.array <= high)).mean() > 0.99


def test_large_mixtures_are_held_in_single_precision():
    rows = compression.Rows(draw_mixture("paper", 1_000_000, 1, 1, 0))
    assert rows.array.dtype == np.float32


def test_trials_differ_and_repeat():
    first, again, other = (
        compression.mixture_trial(POINT, t, streams(trial=t), None).X.array for t in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.isin(first, other).any()


def test_shapes_that_the_paper_has_not_are_named_as_ours():
    sources = {
        shape: compression.mixture_trial({**POINT, "shape": shape}, 0, streams(), None).source
        for shape in ("paper", "elongated")
    }
    assert sources["paper"] != sources["elongated"]


def test_real_sets_lie_in_their_public_boxes():
    rng = np.random.default_rng(0)
    checkins = {"points": rng.uniform([-180, -90], [180, 90], (50, 2)), "source": "gowalla"}
    records = {"X": rng.uniform(lifesci.LOWER, lifesci.UPPER, (30, 10)), "source": "lifesci"}
    square = {"X": rng.uniform(-1, 1, (40, 2)), "source": "s1"}
    point = {"n_clusters": 2, "n_samples": 20}
    for trial, dataset, n in (
        (compression.gowalla_trial, checkins, 20),
        (compression.lifesci_trial, records, 30),
        (compression.s1_trial, square, 40),
    ):
        data = trial(point, 0, streams(point), dataset)
        low, high = data.extra["bounds"]
        assert len(data.X) == n
        np.testing.assert_array_equal(np.clip(data.X, low, high), data.X)
        assert data.source == dataset["source"]


def test_a_subset_larger_than_the_set_is_refused():
    checkins = {"points": np.zeros((50, 2)), "source": "gowalla"}
    with pytest.raises(ConfigError, match="n_samples: got 51; it must be at most 50"):
        compression.gowalla_trial({"n_clusters": 2, "n_samples": 51}, 0, streams(), checkins)


# --- fits ------------------------------------------------------------------------------------


def test_the_reference_has_both_errors():
    outputs = fitted(LloydKMeans)
    X = compression.mixture_trial(POINT, 0, streams(), None).X.array
    distances = ((X[:, None] - outputs["centers"]) ** 2).sum(axis=2)
    assert outputs["sse"] == pytest.approx(distances.min(axis=1).sum())
    assert outputs["sse_true"] == pytest.approx(outputs["sse"], rel=0.5)


def test_methods_with_a_norm_bound_see_centered_rows():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 0.1, (4000, 2)) for c in (98.0, 102.0)])
    bounds = np.full(2, 95.0), np.full(2, 105.0)
    extra = {"n_clusters": 2, "bounds": bounds, "n_frequencies": None}
    params = {"covariance_type": "zero", "mean_noise": "gaussian", "epsilon": 10.0}
    data = TrialData(X, None, "made", extra=extra)
    outputs = compression.fit_clusters(PrivateGaussianMixture, params, data, streams())
    assert ((outputs["centers"] > 95.0) & (outputs["centers"] < 105.0)).all()


def test_a_grid_that_is_too_large_has_no_centers():
    outputs = fitted(EUGkM, {"max_cells": 2, "epsilon": 10.0})
    assert outputs["regime"] == 2  # a claim on this range still names the method
    assert np.isnan(outputs["centers"]).all()
    with pytest.raises(ValueError, match="max_cells must be an integer"):
        fitted(EUGkM, {"max_cells": 0})


def test_methods_differ_in_noise_alone():
    one, two = (fitted(DPLloyd, {"epsilon": 1.0}, method=name)["centers"] for name in "ab")
    assert not np.isin(one, two).any()
    np.testing.assert_array_equal(one, fitted(DPLloyd, {"epsilon": 1.0}, method="a")["centers"])


# --- sketches --------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha_r", [1.0, 0.1])
def test_noise_for_an_snr_inverts_eq_6(alpha_r):
    for target in (0.1, 5.0, 30.0):
        sigma_xi = compression_methods.sigma_xi_for(target, alpha_r, 1000)
        n_alpha = 1000 * alpha_r
        by_hand = n_alpha * 0.35 / (1.0 - 0.35 * alpha_r + sigma_xi**2)
        assert by_hand == pytest.approx(target)
    assert compression_methods.sigma_xi_for(1e6, alpha_r, 1000) is None


@pytest.mark.parametrize("sigma_xi", [0.0, 2.0])
def test_measurements_for_an_snr_are_the_nearest_within_a_tenth(sigma_xi):
    measurements = {}
    for target in (0.01, 3.0, 30.0, 100.0, 1e6):
        r = compression_methods.measurements_for(target, sigma_xi, 5000, 200)
        reached = [compression_methods.attained_snr(s / 200, sigma_xi, 5000) for s in range(1, 201)]
        off = np.abs(np.array(reached) / target - 1.0)
        assert (r is None) == (off.min() > 0.1)
        assert r is None or abs(off[r - 1] - off.min()) < 0.01
        measurements[target] = r
    assert measurements[0.01] is None
    assert measurements[1e6] is None


@pytest.mark.parametrize("n_shards", [1, 3])
def test_shards_add_up_to_the_sketch_of_the_rows(n_shards):
    point = {**POINT, "masks": "60/6 40/20"}
    shared = merge_shards(
        compression_methods.share_sums(point, 0, streams(point), None, shard, n_shards)
        for shard in range(n_shards)
    )
    assert shared["full_n_samples"].tolist() == [3000]
    frequencies = compression_methods.trial_frequencies(streams(point).get("init"), 4, 120)
    X = compression.mixture_trial(point, 0, streams(point), None).X.array.astype(np.float32)
    full = Sketch.of(X, frequencies)
    state = {name: shared[f"full_{name}"] for name in ("whole", "fraction", "n_samples")}
    merged = FeatureSums.from_state(state, frequencies).state()
    for name, array in full.exact.items():
        np.testing.assert_array_equal(merged[name], array)
    for m, r in ((60, 6), (40, 20)):
        counts = (
            shared[f"masked_{m}_{r}_n_samples"][0] * r / m
        )  # records of a masked sum, on average
        sums = np.abs(shared[f"masked_{m}_{r}_whole"])
        assert sums.shape[0] == m
        assert sums.max() < counts + 5 * math.sqrt(counts)


@pytest.mark.parametrize(
    "params",
    [
        {"m_factor": 5.0},
        {"alpha_r": 0.1, "m_factor": 5.0},
        {"alpha_r": 0.5, "m_factor": 10 / 3},
    ],
)
def test_shared_sums_stand_for_rows(params):
    point = {**POINT, "masks": "60/6 40/20"}
    shared = compression_methods.share_sums(point, 0, streams(point), None, 0, 1)
    params = {**params, "epsilon": 1e4}
    from_sums = fitted(kmeans_on_devices, params, point, shared=shared)["centers"]
    from_rows = fitted(kmeans_on_devices, params, point)["centers"]
    # single against double precision, and the same masks and noise
    assert np.abs(from_sums - from_rows).max() < 0.05


@pytest.mark.parametrize("decoder", ["clompr", "gaussian", "gaussian_shared"])
def test_a_sketch_without_noise_finds_the_means(decoder):
    outputs = fitted(kmeans_at_snr, {"decoder": decoder})
    means = compression.mixture_trial(POINT, 0, streams(), None).extra["means"]
    distances = np.linalg.norm(means[:, None] - outputs["centers"], axis=2)
    assert distances.min(axis=1).max() < (1.0 if decoder == "clompr" else 0.2)


def test_an_snr_out_of_reach_has_no_centers():
    out = fitted(kmeans_at_snr, {"snr": 1e9})
    assert np.isnan(out["centers"]).all()
    masked = fitted(kmeans_at_snr, {"snr": 1e-3, "alpha_r": None, "sigma_xi": 0.0})
    assert np.isnan(masked["centers"]).all()


@pytest.mark.filterwarnings("ignore:.*not identifiable")
@pytest.mark.parametrize(
    ("params", "regime"),
    [
        ({"snr": 100.0, "m_factor": 0.5}, 0.0),
        ({"snr": 100.0, "m_factor": 5.0}, 1.0),
        ({"snr": 100.0, "m_factor": 10.0}, 1.0),  # the paper says "greater than 10kd"
        ({"snr": 4.0, "m_factor": 20.0}, 1.0),
        ({"snr": 5.0, "m_factor": 20.0}, 2.0),
    ],
)
def test_regimes_are_those_of_section_5(params, regime):
    point = POINT | {"n_frequencies": 240}
    assert fitted(kmeans_at_snr, params, point)["regime"] == regime


def test_the_variance_of_masks_is_that_of_eq_7():
    """(1 - alpha_r) n epsilon^2 / (32 alpha_r m^2), for the paper's n rows, whatever the effort."""
    n, m, epsilon = 10**7, POINT["n_frequencies"], 0.3
    full, masked = (
        fitted(kmeans_on_devices, {"epsilon": epsilon, "alpha_r": alpha_r})
        for alpha_r in (1.0, 0.5)
    )
    assert full["of_masks"] == 0.0
    assert masked["of_masks"] == pytest.approx(0.5 * n * epsilon**2 / (32.0 * 0.5 * m**2))


def test_the_regime_of_a_private_fit_is_the_papers():
    budgets = (1e-4, 3e-3, 0.01, 0.03, 1.0)
    assert [compression.budget_regime(epsilon) for epsilon in budgets] == [0, 0, 1, 2, 2]
    short = {"epsilon": 0.03, "max_iter": 1}
    assert (
        fitted(DPLloyd, short)["regime"] == fitted(kmeans_on_devices, {"epsilon": 0.03})["regime"]
    )
    assert "regime" not in fitted(LloydKMeans)


@pytest.mark.parametrize("n_devices", [1, 50])
def test_noise_of_devices_has_the_variance_of_definition_3(monkeypatch, n_devices):
    seen = []
    real = compression_methods.decode

    def recording(sketch, *args, **kwargs):
        seen.append(sketch)
        return real(sketch, *args, **kwargs)

    monkeypatch.setattr(compression_methods, "decode", recording)
    params = {"epsilon": 0.5, "n_devices": n_devices}
    fitted(kmeans_on_devices, params, {**POINT, "n_samples": 500})
    (sketch,) = seen
    m, n = 120, 500
    frequencies = compression_methods.trial_frequencies(streams().get("init"), 4, m)
    X = compression.mixture_trial({**POINT, "n_samples": n}, 0, streams(), None).X.array
    sigma_xi = 4.0 * math.sqrt(2.0) * m / (math.sqrt(n / n_devices) * 0.5)
    expected = m * sigma_xi**2 / (m * n)  # E |s - z|^2 from noise alone, eq. (6)'s numerator
    noise = sketch.sums / (n * math.sqrt(m)) - Sketch.of(X, frequencies).values
    # 120 numbers of relative deviation below 1.6, and five of their standard errors
    assert np.sum(np.abs(noise) ** 2) == pytest.approx(expected, rel=5 * 1.6 / math.sqrt(m))
    assert sketch.noise_variance * 2 * m / (n * n * m) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("estimator", "params", "message"),
    [
        (kmeans_at_snr, {"decoder": "omp"}, "decoder"),
        (kmeans_on_devices, {"epsilon": 1.0, "decoder": "omp"}, "decoder"),
        (kmeans_on_devices, {"epsilon": 1.0, "delta": 1e-6, "n_devices": 2}, "n_devices must be 1"),
        (kmeans_at_snr, {"m_factor": 11.0}, "n_frequencies must be at least 132, got 120"),
    ],
)
def test_bad_parameters_are_named(estimator, params, message):
    with pytest.raises(ValueError, match=message):
        fitted(estimator, params)


# --- metrics ---------------------------------------------------------------------------------


def test_errors_are_in_parts_of_the_reference_s():
    X = np.array([[0.0], [2.0], [10.0]])
    extra = {"reference": {"sse": np.float64(2.0), "sse_true": np.float64(4.0)}}
    data = TrialData(X, None, "made", extra=extra)
    # squared distances 1, 1, 0
    fine = evaluation.evaluate_clusters(data, {"centers": np.array([[1.0], [10.0]])})
    assert (fine["relative_sse"], fine["relative_sse_true"]) == (1.0, 0.5)
    assert (fine["missed"], fine["recovered"], fine["possible"]) == (0.0, 1.0, 1.0)
    assert np.isnan(fine["regime"])
    # 1, 1, 4
    poor = evaluation.evaluate_clusters(data, {"centers": np.array([[1.0], [8.0]]), "regime": 2.0})
    assert (poor["relative_sse"], poor["missed"], poor["recovered"]) == (3.0, 1.0, 0.0)
    assert poor["regime"] == 2.0
    none = evaluation.evaluate_clusters(data, {"centers": np.full((2, 1), np.nan)})
    assert none["possible"] == 0.0
    assert np.isnan([none[name] for name in ("relative_sse", "missed", "recovered")]).all()


def test_fresh_rows_are_of_the_same_mixture_and_others():
    data = compression.mixture_trial(POINT, 0, streams(), None)
    means = data.extra["means"]
    metrics = evaluation.evaluate_on_fresh_rows(data, {"centers": means})
    assert "array" not in vars(data.X)
    # unit covariances in four dimensions, 3000 rows
    assert metrics["sse_per_row"] == pytest.approx(4.0, abs=0.6)
    assert 1.0 <= metrics["relative_sse"] < 1.05
    away = evaluation.evaluate_on_fresh_rows(data, {"centers": means + 3.0})
    assert away["relative_sse"] > 2.0
