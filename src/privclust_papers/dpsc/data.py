"""Trials of private subspace clustering: generated subspaces, and faces.

The extra of a trial has ``n_clusters``, ``dimension``, ``n_sweeps`` of Gibbs samplers, ``delta``
and ``truth``, the subspaces (k, d, q); fits return ``bases``, an array of that shape.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import brentq

from privclust.core.validation import signature_of
from privclust.privacy.measurements import gaussian_share
from privclust.subspaces import MomentSubspaceClustering, SuLQKPlanes
from privclust.synthetic.subspaces import subspace_mixture
from privclust_papers.pipeline.runner import TrialData, TrialStreams, random_state_for
from privclust_papers.settings.config import ConfigError
from privclust_papers.settings.dotted import COMPLETE, construct
from privclust_papers.shared.rows import Dataset, Point

GENERATED = "generated as the paper describes"
STARTS = ("ssc", "lrr")
"""Solvers of shared labels from which a Gibbs sampler may start."""
PRIVATE_STARTS = {"sulq": SuLQKPlanes, "moments": MomentSubspaceClustering}
"""Private methods for a start, which spend a share of the budget."""
_RECORDS = ("sweep", "statistic", "aligned_statistic", "subspaces")
_N_RECORDS = 100  # of a chain, as in Figure 3
_FIRST_RECORDS = 30  # the first sweeps are all recorded


def mixture_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """Return points near random subspaces (Section 5); the truth is these subspaces.

    The point has ``n_samples``, ``n_clusters``, ``n_features``, ``dimension``, ``noise`` and
    ``n_sweeps``.
    """
    sizes = (point[name] for name in ("n_samples", "n_clusters", "n_features", "dimension"))
    X, labels, truth = subspace_mixture(*sizes, streams.get("data"), point["noise"])
    return TrialData(X, labels, GENERATED, extra=_extra(point, truth))


def yale_trial(point: Point, trial: int, streams: TrialStreams, dataset: Dataset) -> TrialData:
    """Return images of random people (Section 5), prepared as in the paper, with labels.

    People are drawn from those without missing images. The images of each person are projected onto
    the affine subspace of their largest principal components, which uses the labels and is not
    private. A Gaussian matrix then maps all images into fewer dimensions. Rows are scaled to norm
    1, or with ``rows: largest`` by the largest norm, and Gaussian noise of ``noise`` is added. The
    paper names no true subspaces: the truth here is the best-fitting linear subspace of the
    prepared rows of each person.

    The point has ``n_samples``, spread evenly over ``n_clusters`` people; ``dimension`` of the
    affine and the linear subspaces, ``n_features`` and ``n_sweeps``; and may have ``rows``
    (``unit`` or ``largest``) and ``noise``, a standard deviation, 0 unless given.
    """
    rng = streams.get("data")
    n_people, q = point["n_clusters"], point["dimension"]
    counts = np.bincount(dataset["labels"])
    complete = np.flatnonzero(counts == counts.max())
    n_each, left = divmod(point["n_samples"], n_people)
    if left or not q < n_each <= counts.max():
        raise ConfigError(
            f"n_samples: got {point['n_samples']}; it must be {n_people} times a number from "
            f"{q + 1} to {counts.max()}"
        )
    people = rng.choice(complete, size=n_people, replace=False)
    faces = []
    for person in people:
        images = dataset["images"][dataset["labels"] == person]
        drawn = images[rng.permutation(len(images))[:n_each]].astype(np.float64)
        faces.append(_affine(drawn, q))
    n_pixels = dataset["images"].shape[1]
    X = np.concatenate(faces) @ rng.normal(size=(n_pixels, point["n_features"]))
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    X /= {"unit": norms, "largest": norms.max()}[point.get("rows", "unit")]
    X += point.get("noise", 0.0) * rng.standard_normal(X.shape)
    persons = X.reshape(n_people, n_each, -1)
    # Right singular vectors without centring: the best linear subspace, not the affine one.
    truth = np.linalg.svd(persons, full_matrices=False)[2][:, :q].transpose(0, 2, 1).copy()
    labels = np.repeat(np.arange(n_people), n_each)
    return TrialData(X, labels, dataset["source"], extra=_extra(point, truth))


def _affine(images: np.ndarray, dimension: int) -> np.ndarray:
    mean = images.mean(axis=0)
    components = np.linalg.svd(images - mean, full_matrices=False)[2][:dimension]
    return mean + (images - mean) @ components.T @ components


def _extra(point: Point, truth: np.ndarray) -> dict[str, Any]:
    """Return the extra of a trial, with delta = 1/(n ln n), as in Figure 2."""
    n, settings = point["n_samples"], ("n_clusters", "dimension", "n_sweeps")
    extra = {name: point[name] for name in settings}
    return extra | {"delta": 1.0 / (n * math.log(n)), "truth": truth}


def share_labels(
    point: Point,
    trial: int,
    streams: TrialStreams,
    dataset: Dataset | None,
    shard: int,
    n_shards: int,
) -> dict[str, np.ndarray]:
    """Return the labels of SSC, LRR and TSC for the rows of an instance, once for all methods.

    Gibbs samplers start from them, and clusterings without privacy use them. They do not depend on
    epsilon. Returns ``ssc``, ``lrr`` and ``tsc``, shape (n,), int64.
    """
    from privclust_papers.dpsc.solvers import SOLVERS

    if n_shards != 1:
        raise ConfigError(f"shards: got {n_shards}; it must be 1: labels are no sums")
    trial_data = mixture_trial if dataset is None else yale_trial
    data, rng = trial_data(point, trial, streams, dataset), streams.get("init")
    labels = {}
    with warnings.catch_warnings():
        # columns of SSC that have not quite converged are part of the method
        warnings.filterwarnings("ignore", message=".*did not reach tol")
        for name, solver in SOLVERS.items():
            model = solver(data.extra["n_clusters"], random_state=rng)
            labels[name] = np.asarray(model.fit(data.X).labels_, dtype=np.int64)
    return labels


def fit_subspaces(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Cluster a trial's rows by any method, with the arguments that its class accepts.

    Private methods clip rows to the unit ball. The parameter ``base`` may be the name of a solver
    (`privclust_papers.dpsc.solvers.SOLVERS`). ``init: ssc`` or ``lrr`` starts from shared labels,
    without privacy. ``init: sulq`` or ``moments`` is a private start (`PRIVATE_STARTS`), which
    spends ``share`` of the budget, by default a half. Besides ``bases``, a sampler that keeps
    samples returns ``kept`` (n_kept, k, d, q), float32, and a method with a budget ``epsilon``.
    """
    model = fitted(estimator, params, data, streams)
    outputs = {"bases": model.subspaces_}
    if len(getattr(model, "kept_subspaces_", ())):
        outputs["kept"] = model.kept_subspaces_.astype(np.float32)
    if "epsilon" in params:
        outputs["epsilon"] = np.float64(params["epsilon"])
    return outputs


def fit_chain(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Run a Gibbs sampler and return records of the first sweeps and of about a hundred later.

    Returns ``sweep``, ``statistic`` and ``aligned_statistic`` (n_records,), and ``subspaces``
    (n_records, k, d, q).
    """
    every = max(data.extra["n_sweeps"] // _N_RECORDS, 1)
    recorded = {"record_every": every, "record_first": _FIRST_RECORDS}
    model = fitted(estimator, {**params, **recorded}, data, streams)
    records = model.diagnostics_
    return {name: records[name] for name in _RECORDS}


def method_for(estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams):
    """Construct a method with the arguments that its class accepts; see `fit_subspaces`."""
    from privclust_papers.dpsc.solvers import SOLVERS

    noise, params = streams.get("noise"), dict(params)
    offered = {name: data.extra[name] for name in ("n_clusters", "dimension", "delta", "n_sweeps")}
    offered["subspace_dimension"] = offered["dimension"]
    if isinstance(params.get("base"), str):
        seed = int(noise.integers(2**31))
        params["base"] = SOLVERS[params["base"]](data.extra["n_clusters"], random_state=seed)
    init = params.get("init")
    # "random" is the sampler's own start and passes unchanged.
    if isinstance(init, str) and init in STARTS:
        params["init"] = data.extra["shared"][init]
    elif isinstance(init, str) and init in PRIVATE_STARTS:
        epsilon, share = params["epsilon"], params.pop("share", 0.5)
        params["epsilon"], of_start = (1.0 - share) * epsilon, share * epsilon
        if "delta" in signature_of(estimator).parameters:  # both have Gaussian noise and one delta
            params["epsilon"], of_start = (
                epsilon_of_share(epsilon, offered["delta"], part) for part in (1.0 - share, share)
            )
        start = {"epsilon": of_start, "random_state": int(noise.integers(2**31))}
        params["init"] = construct(
            PRIVATE_STARTS[init], start, norm_bound=1.0, **COMPLETE, **offered
        )
    random_state = random_state_for(estimator, noise)
    return construct(
        estimator, params, norm_bound=1.0, random_state=random_state, **COMPLETE, **offered
    )


def epsilon_of_share(epsilon: float, delta: float, share: float) -> float:
    """Return the epsilon of a share of the Gaussian budget (epsilon, delta).

    Shares are of the squared ratio of sensitivity and standard deviation, and add up.
    """
    # `gaussian_share` is the ratio itself, so that a share of its square is the root here.
    target = math.sqrt(share) * gaussian_share(epsilon, delta)
    return float(brentq(lambda e: gaussian_share(e, delta) - target, 1e-3 * epsilon, epsilon))


def fitted(estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams):
    """Fit a method without its expected warnings."""
    with warnings.catch_warnings():
        # expected: most noisy rows are outside the ball, starts without privacy leave no guarantee,
        # and most of Figure 2 is outside the condition of Theorem 3.1
        warnings.simplefilter("ignore", UserWarning)
        return method_for(estimator, params, data, streams).fit(data.X)
