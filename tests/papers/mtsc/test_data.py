import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from privclust.segmentation import LRR, LSR, MTSC, SBL, SSC
from privclust_papers.datasets.hopkins155 import pack
from privclust_papers.mtsc import checks as segmentation_checks
from privclust_papers.mtsc import data as segmentation
from privclust_papers.mtsc import metrics as evaluation
from privclust_papers.pipeline.runner import TrialData, TrialStreams, prepared
from privclust_papers.settings.config import ConfigError, load_yaml
from privclust_papers.shared.statements import evaluate_numbers

SPEC = {"seed": 1, "paper": "mtsc", "experiment": "e", "swept": [], "method": {"name": "m"}}


def streams(point, trial=0):
    return TrialStreams(SPEC, point, trial)


@pytest.fixture
def motions():
    """A prepared set of four sequences, not in the order in which trials count them."""
    rng = np.random.default_rng(0)
    parts = []
    for name, k in (("a", 3), ("a_g12", 2), ("b", 2), ("c", 3)):
        labels = np.repeat(np.arange(k), 5)
        parts.append((name, "traffic", rng.standard_normal((8, 5 * k)), labels))
    return {**pack(parts), "source": "hopkins155"}


def test_trials_of_motions_are_the_sequences_two_motions_first(motions):
    trials = [segmentation.motion_trial({}, t, streams({}, t), motions) for t in range(4)]
    assert [data.facts["sequence"] for data in trials] == ["a_g12", "b", "a", "c"]
    assert [data.facts["scene"] for data in trials] == ["a", "b", "a", "c"]
    assert trials[0].X.shape == (10, 8)
    assert trials[2].n_clusters == 3
    assert trials[0].facts["split"] == trials[2].facts["split"] == "tuning"
    assert trials[1].facts["split"] == "report"


def test_tuning_trials_are_those_of_the_tuning_split(motions):
    trials = [segmentation.tuning_trial({}, t, streams({}, t), motions) for t in range(2)]
    assert [data.facts["sequence"] for data in trials] == ["a_g12", "a"]
    assert {data.facts["split"] for data in trials} == {"tuning"}


def test_trial_that_no_sequence_has_is_named(motions):
    with pytest.raises(ConfigError, match="trials: got 4; it must be 0 to 3, one a sequence"):
        segmentation.motion_trial({}, 4, streams({}), motions)


def test_generated_trials_differ_and_repeat():
    point = {"ambient_dimension": 26, "dimension": 5, "n_subspaces": 3, "n_per_subspace": 8}
    first, again, other = (
        segmentation.random_subspace_trial(point, t, streams(point, t), None).X for t in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_fits_keep_labels_and_coefficients_where_there_are_any():
    class Labels:
        def __init__(self, n_clusters=None):
            self.n_clusters = n_clusters

        def fit(self, X):
            self.labels_ = np.arange(len(X)) % self.n_clusters
            return self

    point = {"ambient_dimension": 26, "dimension": 3, "n_subspaces": 2, "n_per_subspace": 8}
    data = segmentation.random_subspace_trial(point, 0, streams(point), None)
    full = segmentation.fit_segmentation(SSC, {"alpha": None}, data, streams(point))
    assert full["coefficients"].dtype == np.float32
    assert evaluation.evaluate_segmentation(data, full)["segmentation_error"] == 0.0
    bare = segmentation.fit_segmentation(Labels, {}, data, streams(point))
    metrics = evaluation.evaluate_segmentation(data, bare)
    assert np.isnan(metrics["l2_error"])
    assert metrics["segmentation_error"] == 0.5


def test_fits_say_where_their_descent_ended():
    point = {"ambient_dimension": 26, "dimension": 3, "n_subspaces": 2, "n_per_subspace": 8}
    data = segmentation.random_subspace_trial(point, 0, streams(point), None)
    short = {"max_iter": 40, "n_annealing": 30, "n_restarts": 1, "tol": 0.0}
    with pytest.warns(ConvergenceWarning):
        stopped = segmentation.fit_segmentation(MTSC, short, data, streams(point))
    metrics = evaluation.evaluate_segmentation(data, stopped)
    assert metrics["n_iter"] == 40
    assert metrics["converged"] == 0.0
    assert metrics["best_run"] in (0.0, 1.0)
    longer = segmentation.fit_segmentation(MTSC, {"n_restarts": 0}, data, streams(point))
    ended = evaluation.evaluate_segmentation(data, longer)
    assert ended["converged"] == 1.0
    assert ended["best_run"] == 0.0
    Z = segmentation.fit_segmentation(SSC, {"alpha": None}, data, streams(point))
    assert np.isnan(evaluation.evaluate_segmentation(data, Z)["objective"])


def test_transforms_are_applied_in_order():
    X = np.arange(12.0).reshape(4, 3)
    steps = [
        ("privclust.preprocessing.PrincipalCoordinates", {"n_components": 1}),
        ("privclust.preprocessing.AppendOne", {"value": 2.0}),
    ]
    result = prepared(X, steps)
    assert result.shape == (4, 2)
    assert (result[:, 1] == 2.0).all()


def answer(y, Z):
    """What a fit would keep of labels that are right and coefficients."""
    return {"labels": y, "labels_unit_columns": y, "n_estimated": np.int64(2), "coefficients": Z}


def test_heat_map_metrics_on_matrices_with_known_answers():
    y = np.array([1, 0, 1, 0])
    data = TrialData(np.zeros((4, 2)), y, "made")
    block = (y[:, None] == y).astype(float)
    even = evaluation.evaluate_heat_map(data, answer(y, block))
    assert even["off_block_energy"] == 0.0
    assert even["active_rows"] == pytest.approx(1.0)
    assert even["effective_entries"] == pytest.approx(2.0)
    assert even["wrong_number"] == 0.0
    rows = block * np.array([1.0, 1.0, 0.0, 0.0])[:, None]  # one row in each block
    sparse = evaluation.evaluate_heat_map(data, answer(y, rows))
    assert sparse["active_rows"] == pytest.approx(0.5)
    leaky = evaluation.evaluate_heat_map(data, answer(y, np.ones((4, 4))))
    assert leaky["off_block_energy"] == pytest.approx(0.5)
    assert leaky["motion_sizes"].tolist() == [2, 2]
    np.testing.assert_array_equal(even["sorted_magnitudes"], np.kron(np.eye(2), np.ones((2, 2))))


def test_connectivity_is_of_whole_and_broken_clusters():
    y = np.repeat([0, 1], 4)
    whole = np.kron(np.eye(2), np.ones((4, 4)) - np.eye(4))
    assert evaluation.connectivity(whole, y) == pytest.approx(4.0 / 3.0)
    pairs = np.kron(np.eye(4), 1.0 - np.eye(2))  # two pairs in each cluster
    assert evaluation.connectivity(pairs, y) == pytest.approx(0.0, abs=1e-12)
    assert evaluation.connectivity(np.zeros((8, 8)), y) == 0.0


def test_affinity_of_unit_columns():
    Z = np.array([[0.0, 3.0, 0.0], [2.0, 0.0, 0.0], [0.0, 4.0, 0.0]])
    expected = [[0.0, 1.6, 0.0], [1.6, 0.0, 0.8], [0.0, 0.8, 0.0]]
    np.testing.assert_allclose(segmentation.unit_column_affinity(Z), expected)


def test_gaussian_maps_draw_the_same_points():
    point = {"ambient_dimension": 6, "dimension": 2, "n_subspaces": 2, "n_per_subspace": 5}
    plain = segmentation.random_subspace_trial(point, 0, streams(point), None)
    other = segmentation.gaussian_map_trial(point, 0, streams(point), None)
    assert np.ptp(np.linalg.norm(other.X, axis=1)) > 0.1
    for k in range(2):  # the same subspaces
        both = np.concatenate([plain.X[plain.y == k], other.X[other.y == k]])
        assert np.linalg.matrix_rank(both) == 2


def deviation(name, estimator, **params):
    """The deviation of one method from one property, on one draw."""
    point = {"property": name}
    data = segmentation_checks.property_trial(point, 0, streams(point), None)
    fit = segmentation_checks.fit_property(estimator, params, data, streams(point))
    return evaluate_numbers(data, fit)["deviation"]


def test_properties_separate_methods_that_have_them():
    lsr = {"lam": None, "zero_diagonal": False}
    assert deviation("shape_interaction", LRR) < 1e-9
    assert deviation("shape_interaction", LSR, **lsr) < 1e-9
    assert deviation("shape_interaction", LSR, lam=None) > 0.1
    assert deviation("orthogonal_map", SSC, alpha=None) < 1e-9
    assert deviation("invertible_map", LSR, lam=0.1) > 0.01
    assert deviation("independent_subspaces", LRR) < 1e-9
    assert deviation("independent_subspaces", LSR, lam=10.0) > 0.01


def test_rises_of_the_objective_are_looked_for():
    short = {"n_restarts": 0, "n_annealing": 150, "max_iter": 150, "noise_start": 1e-3}
    assert deviation("objective_increase", SBL, noise_variance=1e-3, **short) < 1e-9
    assert deviation("objective_increase", MTSC, noise_variance=1e-3, **short) < 1e-9
    assert np.isnan(deviation("objective_increase", LRR))


def test_lemma_2_holds_from_the_ideal_start():
    short = {"noise_start": 1e-8, "noise_variance": 1e-8, "n_restarts": 0, "max_iter": 120}
    assert deviation("ideal_start", MTSC, **short) < 0.0
    assert deviation("ideal_answer", MTSC, **short) < 1e-4
    assert np.isnan(deviation("ideal_start", SBL, **short))


def test_distances_from_lsr():
    assert deviation("lsr_distance", LSR, lam=None) == 0.0
    assert deviation("lsr_distance", SSC, alpha=None) > 0.5
    assert deviation("dependent_subspaces", LRR, lam=None) < 0.0


def _motions(**params):
    """Return the settings of MTSC and SBL on motions, which share the rest."""
    shared = {"components_per_cluster": 4, "noise_start": 300.0, "noise_variance": 10.0}
    return {"params": shared | {"prior_variance": 1e-3, "tol": 1e-5, "max_iter": 1000} | params}


def test_settings_on_unseen_data_are_the_frozen_ones():
    """Settings as they stood before KT3DMoSeg was read (commit 9a80cd1); nothing is tuned on it."""
    append = {"class": "privclust.preprocessing.AppendOne"}
    project = {
        "class": "privclust.preprocessing.PrincipalCoordinates",
        "params": {"n_components": 12},
    }
    frozen = {
        "ssc": {"params": {"alpha": 800.0, "affine": True, "tol": 5e-4}},
        "cass": {"params": {"lam": 3e-4}, "transforms": [project, append]},
        "lrr": {"params": {"lam": 2.0}, "transforms": [append]},
        "lsr": {"params": {"lam": 0.02}, "transforms": [append]},
        "mtsc": _motions(start="both", n_restarts=0, weight_penalty=1.0),
        "sbl": _motions(start="ssc"),
    }
    experiments = load_yaml("config/papers/mtsc/paper.yaml")["experiments"]
    assert experiments["mtsc_unseen"]["methods"] == frozen
    seen = experiments["mtsc_hopkins155"]["methods"]
    assert {**seen, "sbl": frozen["sbl"]} == frozen  # SBL: next test


def test_sbl_has_the_settings_of_mtsc_on_seen_motions():
    """SBL is MTSC without shared priors: a comparison of the two changes nothing else."""
    experiments = load_yaml("config/papers/mtsc/paper.yaml")["experiments"]
    methods = experiments["mtsc_hopkins155"]["methods"]
    mtsc, sbl = (m(**methods[m.__name__.lower()]["params"]).get_params() for m in (MTSC, SBL))
    assert sbl == {name: value for name, value in mtsc.items() if name != "weight_penalty"}
