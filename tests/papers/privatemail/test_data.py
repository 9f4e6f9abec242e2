"""Trials of private image retrieval: data, ways to look images up, metrics and checks."""

import math
from dataclasses import replace

import numpy as np
import pytest

from privclust.embedding import SMLQ, PrivateMail, RetrievalServer, align
from privclust.metrics.retrieval import recall_ceiling
from privclust_papers.pipeline.runner import TrialData, TrialStreams, run_method
from privclust_papers.privatemail import checks as retrieval_checks
from privclust_papers.privatemail import data as retrieval
from privclust_papers.privatemail import methods as methods
from privclust_papers.privatemail import metrics as retrieval_evaluation
from privclust_papers.privatemail import structure
from privclust_papers.settings.config import ConfigError, load_yaml

POINT = {
    "n_public": 40,
    "alpha": 0.6,
    "sigma": 6.0,
    "n_components": 2,
    "init_scale": 1e-8,
    "n_iter": 5,
    "delta": 1e-5,
    "epsilon": 0.1,
}
N_CLASSES, N_EACH, WIDTH = 6, 10, 16
HUGE = 1e4


def streams(point=POINT, trial=0, method="m"):
    spec = {"seed": 1, "paper": "privatemail", "experiment": "e", "swept": ["epsilon"]}
    if method:
        spec["method"] = {"name": method}
    return TrialStreams(spec, point, trial)


def feature_set(split="images", spread=0.01, per_class=N_EACH):
    """Classes far apart; the first column of the pixels is the row's number."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(N_CLASSES), per_class)
    X = np.eye(N_CLASSES, WIDTH)[y] + spread * rng.normal(size=(len(y), WIDTH))
    pixels = rng.random((len(y), 3))
    pixels[:, 0] = np.arange(len(y))
    half = N_CLASSES // 2
    train = y < half if split == "classes" else np.arange(len(y)) % per_class < per_class // 2
    # classes of a data set need not be numbered without gaps
    arrays = {"X": X.astype(np.float32), "pixels": pixels.astype(np.float32), "y": 3 * y + 5}
    return {**arrays, "train": train, "source": "made"}


def trial_of(point=POINT, trial=0, dataset=None):
    return retrieval.retrieval_trial(point, trial, streams(point, trial), dataset or feature_set())


def task_of(kind="deep", **kwargs):
    return retrieval.task_of(trial_of(**kwargs), kind, streams())


def recall(found, k=8):
    return float((found["ranks"] < k).mean())


# --- data ----------------------------------------------------------------------------------------


def test_public_images_are_training_and_the_gallery_test():
    dataset = feature_set()
    data = trial_of({**POINT, "n_public": 20}, dataset=dataset)
    public, gallery = (rows[:, 0].astype(int) for rows in data.extra["pixels"])
    assert len(set(public)) == 20
    assert dataset["train"][public].all()
    np.testing.assert_array_equal(gallery, np.flatnonzero(~dataset["train"]))
    for rows, numbers in zip(data.extra["deep"], (public, gallery), strict=True):
        np.testing.assert_array_equal(rows, dataset["X"][numbers])
    for labels, numbers in zip(data.extra["labels"], (public, gallery), strict=True):
        np.testing.assert_array_equal(labels, (dataset["y"][numbers] - 5) // 3)
    assert data.source == "made"
    assert data.facts == {
        "n_images": 30,
        "n_public_images": 20,
        "n_classes": 6,
        "n_public_classes": len(set(dataset["y"][public])),
    }
    assert data.extra["settings"] == {k: v for k, v in POINT.items() if k != "n_public"}


def test_public_images_are_those_of_the_trial():
    few = {**POINT, "n_public": 10}
    first = trial_of(few).extra["deep"][0]
    np.testing.assert_array_equal(first, trial_of({**few, "epsilon": 5.0}).extra["deep"][0])
    assert not np.array_equal(first, trial_of(few, trial=1).extra["deep"][0])
    assert trial_of({**POINT, "n_public": 1000}).facts["n_public_images"] == 30


def test_public_and_gallery_classes_are_numbered_from_0():
    data = trial_of(dataset=feature_set("classes"))
    for labels in data.extra["labels"]:
        assert set(labels) == {0, 1, 2}
    assert data.n_clusters == 3


def test_a_set_without_test_images_is_named():
    dataset = {**feature_set(), "train": np.ones(N_CLASSES * N_EACH, dtype=bool)}
    with pytest.raises(ConfigError, match="got 60 training and 0 test images"):
        trial_of(dataset=dataset)


def test_kinds_of_features():
    np.testing.assert_array_equal(task_of().X_gallery, trial_of().extra["deep"][1])
    np.testing.assert_array_equal(task_of("pixels").X_public, trial_of().extra["pixels"][0])
    with pytest.raises(ConfigError, match="got 'sift'; it must be one of deep, pixels, random"):
        task_of("sift")


def test_class_free_features_are_shared_in_a_trial():
    data = trial_of(dataset=feature_set(per_class=100))
    found = [retrieval.task_of(data, "random", streams(method=m)) for m in ("mail", "code")]
    np.testing.assert_array_equal(found[0].X_gallery, found[1].X_gallery)
    X, y = found[0].X_gallery, found[0].y_gallery
    assert X.shape == (300, WIDTH)
    between = sum(len(X[y == c]) * X[y == c].mean(axis=0) ** 2 for c in range(N_CLASSES)).sum()
    # of independent normal entries a chi-square of 6 * 16 = 96: above 150 or below 50 in 1e-3
    assert 50 < between < 150


def test_queries_are_all_or_evenly_spaced():
    task = task_of()
    np.testing.assert_array_equal(task.spaced(), np.arange(30))
    np.testing.assert_array_equal(task.spaced(31), np.arange(30))
    np.testing.assert_array_equal(task.spaced(3), [0, 14, 29])


def test_a_query_is_left_out_of_its_own_answer():
    gallery = np.array([[0.0], [1.0], [2.0], [3.0]])
    task = retrieval.RetrievalTask(gallery, np.zeros(4, int), gallery, np.array([0, 1, 0, 2]))
    found = task.ranks(gallery, gallery, np.arange(4))
    # of 0 at 0 and at 2: image 1 comes before the other one, in a tie with 3 from 2; 1 and 2 are
    # the only images of their classes
    np.testing.assert_array_equal(found["ranks"], [1, 4, 2, 4])
    some = task.ranks(gallery[[2]], gallery, np.array([2]))
    np.testing.assert_array_equal(some["ranks"], [2])
    np.testing.assert_array_equal(some["queries"], [2])


# --- metrics -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 4, 40])
def test_chance_is_what_random_orders_have(k):
    y = np.repeat(np.arange(4), [1, 2, 5, 12])
    queries, rng = np.arange(0, 20, 2), np.random.default_rng(0)
    hits = np.empty((4000, len(queries)))
    for column, query in enumerate(queries):
        others = np.delete(y, query)
        order = rng.random((len(hits), len(others))).argsort(axis=1)[:, :k]
        hits[:, column] = (others[order] == y[query]).any(axis=1)
    found = hits.mean(axis=1)
    # 3.9 standard errors: a false alarm once in 10,000
    error = 3.9 * found.std(ddof=1) / math.sqrt(len(found))
    assert abs(retrieval_evaluation.chance_of(y, queries, k) - found.mean()) <= error + 1e-12


def evaluated(ranks, claimed, y=None, **outputs):
    y = np.repeat(np.arange(20), 5) if y is None else y
    found = {"ranks": np.array(ranks), "queries": np.arange(len(ranks)), "claimed": claimed}
    return retrieval_evaluation.evaluate_retrieval(TrialData(None, y, "made"), found | outputs)


def test_unequal_classes_have_no_lower_ceiling():
    equal, nearly = np.repeat(np.arange(50), 10), np.repeat(np.arange(50), [11] + [10] * 48 + [9])
    for epsilon in (0.0, 0.5, 5.0):
        bound = recall_ceiling(epsilon, 1e-5, 9, 50)
        assert retrieval_evaluation.ceiling_of(equal, epsilon, 1e-5) == bound
        assert bound <= retrieval_evaluation.ceiling_of(nearly, epsilon, 1e-5) <= 1.0
    # nothing known of the query: the nine largest classes come back
    assert retrieval_evaluation.ceiling_of(nearly, 0.0, 0.0) == pytest.approx(91 / 500)


def test_recall_beside_chance_and_ceiling():
    values = evaluated([0, 3, 7, 8], np.array([0.5, 1e-5]), guaranteed=np.array(0.4))
    assert (values["recall_8"], values["miss_8"], values["n_queries"]) == (0.75, 0.25, 4)
    expected = retrieval_evaluation.chance_of(np.repeat(np.arange(20), 5), np.arange(4), 8)
    assert values["gain_8"] == pytest.approx(0.75 - expected)
    # the query itself comes back too: 9 of 20 classes
    assert values["ceiling_8"] == recall_ceiling(0.5, 1e-5, 9, 20)
    assert values["excess_8"] == pytest.approx(0.75 - values["ceiling_8"])
    assert values["slack_8"] == -values["excess_8"]
    assert values["guaranteed_epsilon"] == 0.4


def test_without_a_budget_there_is_no_ceiling():
    values = evaluated([0, 1], np.array([math.nan, math.nan]))
    for name in ("ceiling_8", "excess_8", "slack_8", "guaranteed_epsilon"):
        assert math.isnan(values[name])


# --- ways to look images up ----------------------------------------------------------------------


class Seen:
    def __init__(self, alpha, *, epsilon=None, shared=None, random_state=None):
        self.seen = {"alpha": alpha, "epsilon": epsilon, "shared": shared}

    def search(self, task):
        return {"width": np.array(task.X_gallery.shape[1]), "epsilon": self.seen["epsilon"]}


def test_methods_get_what_their_class_accepts():
    data = trial_of()
    data.extra["shared"] = {"tsne": 1}
    model = retrieval.method_for(Seen, {"alpha": 0.9}, data, streams())
    assert model.seen == {"alpha": 0.9, "epsilon": 0.1, "shared": {"tsne": 1}}
    found = retrieval.fit_retrieval(Seen, {"features": "pixels"}, data, streams())
    assert found["width"] == 3


def test_what_a_method_is_run_at_is_recorded():
    params = {"epsilon": 2.0, "n_components": None, "variant": "corrected"}
    found = retrieval.fit_retrieval(methods.PrivateMailSearch, params, trial_of(), streams())
    assert found["claimed"].tolist() == [2.0, 1e-5]
    assert found["guaranteed"] == pytest.approx(2.0)
    found = methods.search_features(trial_of(), streams())
    assert np.isnan(found["claimed"]).all()
    found = methods.search_released_components(trial_of(), streams(), epsilon=2.0)
    assert found["claimed"].tolist() == [2.0, 1e-5]


@pytest.mark.parametrize("n_components", [None, 5])
def test_features_of_far_classes_find_their_class(n_components):
    found = methods.search_features(trial_of(), streams(), n_components=n_components)
    assert recall(found, 1) == 1.0
    random = methods.search_features(trial_of(), streams(), features="random")
    assert recall(random, 1) < 0.6  # chance is 4 of 29


def searched(method, epsilon, n_components, **params):
    data = trial_of({**POINT, "n_components": n_components})
    params = {**params, "epsilon": epsilon}
    return run_method(retrieval.fit_retrieval, method, params, data, streams())


@pytest.mark.parametrize(
    ("method", "n_components"),
    [
        (methods.PrivateMailSearch, None),
        (methods.search_released_components, 5),
        (methods.PCASearch, 5),
        (methods.ProjectionSearch, 8),
    ],
)
def test_with_hardly_any_noise_far_classes_are_found(method, n_components):
    assert recall(searched(method, HUGE, n_components), 1) == 1.0


@pytest.mark.parametrize(
    ("method", "n_components", "params", "epsilon"),
    [
        (methods.PrivateMailSearch, None, {}, 1e-3),
        (methods.search_released_components, 5, {}, 1e-3),
        (methods.ProjectionSearch, 5, {}, 1e-3),
        (methods.PrivateMailSearch, 2, {"variant": "paper"}, math.inf),
        (methods.PCASearch, 5, {}, math.inf),
    ],
)
def test_guarantees_of_what_is_released(method, n_components, params, epsilon):
    """With much noise answers depend on it alone, and the guarantee is the one asked for, or no."""
    found = searched(method, 1e-3, n_components, **params)
    assert found["guaranteed"] == pytest.approx(epsilon)
    again = searched(method, 1e-3, n_components, **params)
    np.testing.assert_array_equal(found["ranks"], again["ranks"])


def test_only_the_queries_asked_for_are_answered():
    for n_queries, expected in ((7, 7), (None, 30)):
        params = {"variant": "paper", "n_queries": n_queries}
        found = searched(methods.PrivateMailSearch, 0.1, 2, **params)
        assert len(found["ranks"]) == len(found["queries"]) == expected


def test_the_noisy_label_carries_recall_beyond_privacy():
    """As released, on features that know nothing: 360 queries of 60 classes at epsilon 0.1."""
    rng = np.random.default_rng(0)
    y_public, y_gallery = np.arange(180) % 60, np.repeat(np.arange(60), 6)
    X_public, X_gallery = (rng.normal(size=(len(y), 16)) for y in (y_public, y_gallery))
    task = retrieval.RetrievalTask(X_public, y_public, X_gallery, y_gallery)
    settings = {"epsilon": 0.1, "delta": 1e-5, "variant": "code", "random_state": 0}
    ceiling = recall_ceiling(0.1, 1e-5, 9, 60)
    # standard error of 360 hits or misses: 0.026 at most
    assert recall(methods.PrivateMailSearch(**settings).search(task)) > ceiling + 4 * 0.026
    without = methods.PrivateMailSearch(**settings, label_after_noise=False).search(task)
    assert recall(without) < ceiling


def test_missing_public_classes_get_the_nearest_number():
    """Of 17 classes 8 are for training and 9 for test."""
    data = {**feature_set(), "train": np.repeat(np.arange(N_CLASSES), N_EACH) < 2}
    found = trial_of(dataset=data)
    assert (found.facts["n_public_classes"], found.facts["n_classes"]) == (2, 4)
    task = retrieval.task_of(found, "deep", streams())
    np.testing.assert_array_equal(task.client_labels(np.array([0, 10, 20, 30])), [0, 1, 1, 1])
    for variant in ("paper", "code", "corrected"):
        model = methods.PrivateMailSearch(None, variant=variant, random_state=0)
        assert len(model.search(task)["ranks"]) == 40
    outputs = retrieval_checks.fit_alignment(PrivateMail, {"variant": "paper"}, found, streams())
    assert len(outputs["released"]) == 25


def test_a_class_without_public_images_keeps_its_number():
    """3 of 30 training images have 3 classes at most; equal numbers are the same class here."""
    dataset = feature_set()
    for trial in range(5):
        data = trial_of({**POINT, "n_public": 3}, trial, dataset)
        drawn = data.extra["pixels"][0][:, 0].astype(int)
        np.testing.assert_array_equal(data.extra["labels"][0], (dataset["y"][drawn] - 5) // 3)


def test_an_embedding_of_labels_does_not_depend_on_noise():
    found = [methods.EmbeddingSearch(random_state=seed).search(task_of()) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(found[0]["ranks"], found[1]["ranks"])
    assert not np.array_equal(found[0]["ranks"], found[2]["ranks"])


def test_noise_at_the_epsilon_of_the_client_alone_is_none():
    (epsilon,) = {
        use["params"]["epsilon"]
        for entry in load_yaml("config/papers/privatemail/paper.yaml")["experiments"].values()
        for name, use in entry["methods"].items()
        if name.startswith("client")
    }
    found, same = (
        searched(methods.PrivateMailSearch, e, 2, variant="paper", n_queries=10)
        for e in (epsilon, 1e12)
    )
    np.testing.assert_array_equal(found["ranks"], same["ranks"])


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 4.0])
def test_randomised_response_hits_as_often_as_its_formula_says(epsilon):
    n, n_classes, k = 40_000, 50, 8
    data = TrialData(None, np.arange(n) % n_classes, "made", extra={"settings": POINT})
    found = methods.respond_with_label(data, streams(), epsilon=epsilon)
    # sets of k classes with the true one weigh e^epsilon each, others 1
    inside = math.comb(n_classes - 1, k - 1) * math.exp(epsilon)
    expected = inside / (inside + math.comb(n_classes - 1, k))
    error = math.sqrt(expected * (1 - expected) / n)
    assert abs(recall(found, k) - expected) < 3.9 * error  # a false alarm once in 10,000
    assert recall(found, k - 1) == 0.0
    assert expected <= recall_ceiling(epsilon, 0.0, k, n_classes)
    assert found["guaranteed"] == epsilon


def test_tsne_is_shared_and_the_same_each_time():
    pytest.importorskip("openTSNE")
    dataset = feature_set()
    settings = (POINT, 0, streams(method=None), dataset)
    shared = retrieval.share_tsne(*settings, 0, 1)
    assert shared["tsne"].shape == (60, 2)
    np.testing.assert_array_equal(shared["tsne"], retrieval.share_tsne(*settings, 0, 1)["tsne"])
    with pytest.raises(ConfigError, match="shards: got 2; t-SNE is not a sum"):
        retrieval.share_tsne(*settings, 0, 2)
    data = trial_of()
    data.extra["shared"] = shared
    found = methods.search_tsne(data, streams())
    assert recall(found, 1) == 1.0


@pytest.mark.parametrize("variant", ["corrected", "paper"])
def test_dsne_places_queries_in_the_shared_embedding(variant):
    """An embedding as wide as those of t-SNE, which the steps are made for."""
    data = trial_of()
    y = np.concatenate(data.extra["labels"])
    angles = 2 * np.pi * y / N_CLASSES
    noise = 0.3 * np.random.default_rng(0).normal(size=(len(y), 2))
    tsne = 27 * np.column_stack([np.cos(angles), np.sin(angles)]) + noise
    task = replace(task_of(), tsne=tsne, n_placed=12)
    settings = {"variant": variant, "random_state": 0}
    found = methods.DSNESearch(epsilon=HUGE, delta=1e-5, **settings).search(task)
    assert len(found["ranks"]) == (12 if variant == "paper" else len(task_of().y_gallery))
    assert recall(found, 1) > 0.9
    weak = methods.DSNESearch(epsilon=0.5, delta=1e-5, **settings).search(task)
    assert weak["guaranteed"] == pytest.approx(0.5)


# --- checks --------------------------------------------------------------------------------------


def test_metrics_of_iterates():
    # Recall@8 of 4 queries at the start and 10 iterates: number of ranks below 8
    hits = [1, 1, 2, 2, 3, 2, 4, 3, 4, 4, 4]
    ranks = np.array([[0] * n + [8] * (4 - n) for n in hits])
    objectives = np.array([-2.0, -3.0, -3.0, -2.9, -4, -5, -6, -7, -8, -9, -10 * (1 - 1e-12)])
    shown = np.zeros((3, 4, 2))
    outputs = {"ranks": ranks, "objectives": objectives, "shown": shown, "shown_labels": shown}
    outputs |= {
        "separation": np.array([0.1, 0.2, 0.3, 0.4]),
        "locality": np.array([0.5, 0, 0, 0.2]),
    }
    values = retrieval_evaluation.evaluate_iterates(None, outputs)
    np.testing.assert_array_equal(values["recall"], np.array(hits) / 4)
    assert (values["recall_8_0"], values["recall_8_10"]) == (0.25, 1.0)
    assert (values["gap_5"], values["gap_7"]) == (0.5, 0.25)
    assert (values["separation_3"], values["locality_0"]) == (0.4, 0.5)
    assert values["unseparated"] == -values["separation_gain"] == pytest.approx(-0.3)
    assert values["unlocal"] == pytest.approx(0.3)
    assert values["rises"] == 1  # from -3 to -2.9; equal values are no rise
    assert values["objective"][[0, -1]].tolist() == pytest.approx([-1.0, -5.0])


def test_rounding_of_the_objective_is_no_rise():
    objectives = 1e-14 * np.array([1.0, 1.0 + 1e-12, 1.0 + 1e-6])
    shown = np.zeros((3, 1, 2))
    outputs = {"ranks": np.zeros((3, 4)), "objectives": objectives}
    outputs |= {"shown": shown, "shown_labels": np.zeros(1)}
    outputs |= {"separation": np.zeros(4), "locality": np.zeros(4)}
    assert retrieval_evaluation.evaluate_iterates(None, outputs)["rises"] == 1


@pytest.mark.parametrize("variant", ["paper", "code"])
def test_iterates_are_those_of_public_images_and_gallery(variant):
    params = {"n_iter": 10, "variant": variant}
    data = trial_of()
    found = retrieval_checks.fit_iterates(SMLQ, params, data, streams())
    assert found["ranks"].shape == (11, 30)
    assert found["objectives"].shape == (11,)
    assert found["shown"].shape == (3, 30, 2)
    model = retrieval.method_for(SMLQ, params, data, streams()).fit(
        np.concatenate(data.extra["deep"]), np.concatenate(data.extra["labels"])
    )
    np.testing.assert_array_equal(found["shown"], model.iterates_[1:4, 30:])
    np.testing.assert_array_equal(found["shown_labels"], data.y)
    np.testing.assert_array_equal(found["objectives"], model.objectives_)
    gallery = data.extra["deep"][1]
    last = model.iterates_[3, 30:]
    assert found["separation"][-1] == structure.separation(last, data.y)
    assert found["locality"][-1] == structure.locality(gallery, last, np.arange(30))


def aligned_outputs(released, anchors):
    """What `fit_alignment` returns, for queries released among public images."""
    return {
        "anchors": anchors,
        "gallery": anchors,
        "released": released,
        "aligned": align(released[:, :-1], anchors).apply(released),
        "labels": np.zeros(len(anchors), int),
        "noise": np.array(3e-8),
        "moved": np.array(1e-8),
    }


def test_what_alignment_leaves():
    rng = np.random.default_rng(0)
    anchors = 5.0 + rng.normal(size=(400, 2))
    turned = 1e-8 * anchors @ np.array([[0.6, -0.8], [0.8, 0.6]]) + 3.0
    data = trial_of()
    same = np.stack([np.vstack([turned, turned[:1]])] * 2)
    values = retrieval_evaluation.evaluate_alignment(data, aligned_outputs(same, anchors))
    # 1e-8 beside 3: some 8 digits of the rows are left
    assert values["residual"] == pytest.approx(0.0, abs=1e-6)
    noise = rng.normal(size=(2, 401, 2))
    values = retrieval_evaluation.evaluate_alignment(data, aligned_outputs(noise, anchors))
    # 1 - residual^2 is the squared correlation of two planes of noise, some 4 / 400
    assert 0.95 < values["residual"] <= 1.0


def test_alignment_of_what_is_released_improves_as_noise_falls():
    residuals = []
    for epsilon in (1e-2, 1e4, 1e8):
        data = trial_of()
        params = {"epsilon": epsilon, "variant": "paper"}
        found = retrieval_checks.fit_alignment(PrivateMail, params, data, streams())
        assert found["released"].shape == found["aligned"].shape == (25, 31, 2)
        residuals.append(retrieval_evaluation.evaluate_alignment(data, found)["residual"])
    assert residuals[0] > 0.9
    assert residuals[0] > residuals[1] > residuals[2]


def test_ratios_of_the_printed_bound():
    outputs = {"change": np.array(0.5), "bound": np.array(4.0), "constant": np.array(0.25)}
    values = retrieval_evaluation.evaluate_sensitivity(None, outputs)
    assert (values["ratio"], values["share"]) == (8.0, 0.125)
    # M = 1/4 replaced by its square root, 1/2, doubles the bound
    assert values["root_ratio"] == 16.0


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_the_search_is_run_at_the_point_of_the_grid(relation):
    point = {"n": 30, "alpha": 0.6, "sigma": 6.0, "n_classes": 5, "relation": relation}
    data = retrieval_checks.sensitivity_trial(point, 0, streams(point), None)
    found = retrieval_checks.search_worst_pair(data, streams(point), n_steps=3)
    assert 0 < found["change"] < math.inf
    assert retrieval_evaluation.evaluate_sensitivity(data, found)["constant"] == found["constant"]


def test_servers_on_the_same_images_share_the_kernel(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), np.arange(60) % 4
    made = []
    make = SMLQ._laplacian
    monkeypatch.setattr(SMLQ, "_laplacian", lambda self, X: made.append(1) or make(self, X))

    def compare(task, **settings):
        model = PrivateMail(**settings)
        server = methods.GalleryServer(model, task)
        n_made = len(made)
        alone = RetrievalServer(model, task.X_public, task.y_public, task.X_gallery, task.y_gallery)
        np.testing.assert_array_equal(server.gallery_, alone.gallery_)
        np.testing.assert_array_equal(server.anchors_, alone.anchors_)
        made.clear()
        return n_made

    task = retrieval.RetrievalTask(X[:20], y[:20], X[20:], y[20:])
    other = retrieval.RetrievalTask(X[:20], y[:20], X[20:] + 1e-12, y[20:])
    assert compare(task, variant="paper") == 1
    again = retrieval.RetrievalTask(X[:20].copy(), y[:20], X[20:].copy(), y[20:])
    assert compare(again, variant="paper", start_seed=3, alpha=0.1) == 0
    assert compare(task, variant="paper", sigma=2.0) == 1
    assert compare(task, variant="code", sigma=2.0) == 1
    assert compare(other, variant="code", sigma=2.0) == 1
