"""Readings of settings that the PrivateMail paper leaves open: features, kernel widths, labels.

Eq. (4) is linear, so that a scale changes no neighbours: iterates are rescaled to size 1, since
degrees near 0 would make them overflow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from privclust.embedding import PrivateMail, align, unit_rows
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.privatemail.data import RetrievalTask, claimed, task_of
from privclust_papers.privatemail.methods import sent_for

_WIDTHS = {
    "sigma": lambda sigma: sigma,
    "sigma^2": lambda sigma: sigma**2,
    "2 sigma^2": lambda sigma: 2.0 * sigma**2,
}
_VISIBLE = 1e-3
_N_ITER = 10  # as in Figure 3
_MOST_KEPT = 4  # matrices of distances: raw or unit features, shuffled or not
_kept: dict[bytes, np.ndarray] = {}


class ReadingMail(PrivateMail):
    """PrivateMail with raw features, or with unit vectors as labels.

    The printed noise is for features of norm 1; for others there is no proof.
    """

    is_unit, is_one_hot = True, False

    def _scaled(self, X):
        return unit_rows(X) if self.is_unit else X

    def _label_kernel(self):
        return "one-hot" if self.is_one_hot else self.variant


def read_smlq(
    data: TrialData,
    streams: TrialStreams,
    *,
    reading: str,
    sigma: float,
    labels: str = "integer",
    is_shuffled: bool = False,
    n_queries: int = 600,
) -> dict[str, np.ndarray]:
    """Run SMLQ under one reading, without privacy, and search for gallery images at each iterate.

    A `reading` is "unit" or "raw" features and the width of kernels, as in "unit, sigma^2". With
    `is_shuffled` features are permuted among images, so that only labels are informative. Returns
    ``ranks`` (11, n_queries) from the start on, ``queries``, ``sigma``, and ``density``: the share
    of entries of the feature kernel off its diagonal that are above 0.001 (the diagonal is 1).
    """
    is_unit, width = _read(reading, sigma)
    task = task_of(data, "deep", streams)
    rng, n_public, queries = streams.get("init"), len(task.y_public), task.spaced(n_queries)
    X = _rows(task, is_unit)
    if is_shuffled:
        X = X[rng.permutation(len(X))]
    ranks = [
        task.ranks(rows[n_public:][queries], rows[n_public:], queries)["ranks"]
        for rows in _iterates(X, task, data, rng, width, labels, _N_ITER)
    ]
    n_visible, n = (np.exp(-_squares(X) / width) > _VISIBLE).sum(), len(X)
    density = (n_visible - n) / (n * (n - 1))  # without the diagonal, which is 1
    numbers = {"density": density, "sigma": sigma}
    return {
        "ranks": np.array(ranks),
        "queries": queries,
        **{name: np.array(number) for name, number in numbers.items()},
    } | claimed()


def read_mail(
    data: TrialData,
    streams: TrialStreams,
    *,
    reading: str,
    sigma: float,
    epsilon: float,
    labels: str = "integer",
    n_queries: int = 300,
) -> dict[str, np.ndarray]:
    """Run Algorithm 1 under one reading, with the printed noise.

    There are no ranks if Theorem 2 gives no bound, and hence no noise, or if raw features have
    degrees so near to 0 that iterates overflow.
    """
    is_unit, width = _read(reading, sigma)
    task, settings = task_of(data, "deep", streams), data.extra["settings"]
    kept = ("alpha", "n_components", "init_scale", "n_iter", "delta")
    model = ReadingMail(
        sigma=sigma, epsilon=epsilon, kernel=reading.partition(", ")[2], variant="paper",
        obfuscate=True, random_state=streams.get("noise"),
        **{name: settings[name] for name in kept},
    )  # fmt: skip
    model.is_unit, model.is_one_hot = is_unit, labels == "one-hot"
    queries = task.spaced(n_queries)
    nothing = {"ranks": np.empty((1, 0)), "queries": queries[:0]}
    budget = claimed(epsilon, settings["delta"])
    try:
        model.fit(task.X_public, task.y_public)
    except ValueError as error:
        if "Theorem 2 bounds nothing" not in str(error):
            raise
        return nothing | budget
    n_public = len(task.y_public)
    X, rng = _rows(task, is_unit), streams.get("init")
    start = model.start_[:n_public]  # public images start where the client starts them
    *_, server = _iterates(X, task, data, rng, width, labels, settings["n_iter"], start)
    with np.errstate(over="ignore", invalid="ignore"):
        released = sent_for(model, task, queries)
    if not np.isfinite(released).all():
        return nothing | budget
    located = align(released[:, :-1], server[:n_public]).apply(released[:, -1:])[:, 0]
    ranks = task.ranks(located, server[n_public:], queries)["ranks"]
    return {"ranks": ranks[None], "queries": queries} | budget


def _read(reading: str, sigma: float) -> tuple[bool, float]:
    norm, _, kernel = reading.partition(", ")
    return {"unit": True, "raw": False}[norm], _WIDTHS[kernel](sigma)


def _rows(task: RetrievalTask, is_unit: bool) -> np.ndarray:
    X = np.concatenate([task.X_public, task.X_gallery]).astype(np.float64)
    return unit_rows(X) if is_unit else X


def _iterates(
    X: np.ndarray,
    task: RetrievalTask,
    data: TrialData,
    rng: np.random.Generator,
    width: float,
    labels: str,
    n_iter: int,
    public_start: np.ndarray | None = None,
) -> Iterator[np.ndarray]:
    """Yield the start and the iterates of eq. (4), in float64, up to scale."""
    y, settings = np.append(task.y_public, task.y_gallery), data.extra["settings"]
    values, classes = np.unique(y, return_inverse=True)
    squares = (values[:, None] - values) ** 2.0
    if labels == "one-hot":
        squares = 2.0 * (squares > 0)
    weights = np.exp(-squares / width)
    kernel = np.exp(-_squares(X) / width)
    np.fill_diagonal(kernel, 0.0)
    degrees = kernel.sum(axis=1)
    is_alone = degrees < np.finfo(float).tiny  # by the pseudo-inverse such a row does not move
    halves = np.where(is_alone, 0.0, 0.5 / np.where(is_alone, 1.0, degrees))[:, None]
    unit = max(halves.max(), 1.0)  # iterates are computed in this unit, against overflow
    # Images of a class have the same sums over labels: C^2 operations in place of n^2.
    of_labels = (weights @ np.bincount(classes))[classes][:, None]
    Z = rng.normal(size=(len(X), settings["n_components"]))
    if public_start is not None:
        Z[: len(public_start)] = public_start / settings["init_scale"]
    yield Z
    for _ in range(n_iter):
        sums = np.stack([np.bincount(classes, column) for column in Z.T], axis=1)
        by_labels = of_labels * Z - (weights @ sums)[classes]
        slope = settings["alpha"] * by_labels + kernel @ Z - degrees[:, None] * Z
        Z = Z / unit + halves / unit * slope
        Z /= np.abs(Z).max()
        yield Z


def _squares(X: np.ndarray) -> np.ndarray:
    """Return squared distances of rows, cached since most readings of a trial share them."""
    key = hashlib.blake2b(np.ascontiguousarray(X).data).digest()
    if key not in _kept:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        norms = np.einsum("ij,ij->i", X, X)
        # Rounding may make the squared distance of near rows negative.
        _kept[key] = np.maximum(norms[:, None] + norms - 2.0 * (X @ X.T), 0.0)
    return _kept[key]
