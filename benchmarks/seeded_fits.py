"""What private estimators learn and promise from a seed, to the last bit: digests as JSON.

    OMP_NUM_THREADS=1 python benchmarks/seeded_fits.py

One line for each estimator and setting, a digest of all fitted attributes and of what the guarantee
states, but for the names of its releases. unchanged.py runs this in two checkouts of the project:
public names alone are used. Digests are compared on one machine; they are not constants.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from itertools import product

import numpy as np
from sklearn.base import clone

from privclust.embedding import SMLQ, DPdSNE, PrivateMail, PrivatePCA, PrivateRandomProjection
from privclust.kmeans import CompressiveKMeans, DPLloyd, EUGkM, PrivateKMeans, TreeKMeans
from privclust.mixtures import AdaptiveGaussianMixture, PrivateGaussianMixture
from privclust.subspaces import (
    GibbsSubspaceClustering,
    KPlanes,
    MomentSubspaceClustering,
    SampleAggregateSubspaceClustering,
    SuLQKPlanes,
)

RELATIONS = ("replace_one", "add_remove")


def combinations(**options):
    """Return dictionaries of all combinations of parameters."""
    return [dict(zip(options, values, strict=True)) for values in product(*options.values())]


def data():
    """Return rows in the unit ball of three dimensions, in three groups, and their groups."""
    rng = np.random.default_rng(7)
    groups = rng.integers(3, size=600)
    centers = np.array([[0.6, 0.0, 0.0], [0.0, 0.6, 0.0], [0.0, 0.0, -0.6]])
    X = centers[groups] + rng.normal(scale=0.05, size=(600, 3))
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True)), groups


def kmeans():
    """Yield private k-means in all their forms of noise."""
    budget = {"epsilon": 2.0, "delta": 1e-5, "random_state": 0}
    domains = ({"norm_bound": 1.0}, {"bounds": (-1.0, 1.0)}, {})
    for options in combinations(accounting=("pure", "pld", "cdp"), neighbours=RELATIONS):
        for domain, init in product(domains, ("uniform", "separated")):
            yield DPLloyd(3, init=init, **options, **domain, **budget)
    for domain in domains[:2]:
        yield DPLloyd(3, variant="paper", **domain, **budget)
        yield DPLloyd(3, bounds=(-1.0, 1.0), epsilon=0.5, random_state=3)
    for options in combinations(delta=(0.0, 1e-5), neighbours=RELATIONS):
        yield EUGkM(3, epsilon=2.0, bounds=(-1.0, 1.0), n_init=2, random_state=0, **options)
    for relation in RELATIONS:
        yield TreeKMeans(3, bounds=(-1.0, 1.0), neighbours=relation, random_state=0)
        yield PrivateKMeans(3, bounds=(-1.0, 1.0), neighbours=relation, random_state=0)
    for options in combinations(delta=(0.0, 1e-5), neighbours=RELATIONS, epsilon=(None, 1.0, 30.0)):
        if options["epsilon"] or not options["delta"]:
            yield CompressiveKMeans(
                3, bounds=(-1.0, 1.0), n_frequencies=60, random_state=0, **options
            )


def mixtures():
    """Yield private mixtures in all their forms of noise."""
    budget = {"epsilon": 2.0, "delta": 1e-5, "norm_bound": 1.0, "random_state": 0}
    for options in combinations(
        covariance_type=("zero", "spherical", "diag", "full"),
        mean_noise=("laplace", "gaussian", "joint"),
        variant=("corrected", "paper"),
        accounting=("cdp", "advanced", "zcdp", "pld"),
    ):
        yield PrivateGaussianMixture(3, max_iter=3, **options, **budget)
    for epsilon in (0.5, 5.0):
        yield AdaptiveGaussianMixture(3, **budget | {"epsilon": epsilon})


def subspaces():
    """Yield private subspace clusterings in all their forms of noise."""
    budget = {"epsilon": 2.0, "norm_bound": 1.0, "random_state": 0}
    calibrations = ("zcdp", "classical", "mod_sulq")
    for options in combinations(calibration=calibrations, neighbours=RELATIONS):
        yield SuLQKPlanes(3, 1, n_init=2, max_iter=3, delta=1e-5, **options, **budget)
        start = DPLloyd(3, accounting="pld", neighbours=options["neighbours"], norm_bound=1.0)
        yield SuLQKPlanes(3, 1, init=start, max_iter=3, delta=1e-5, **options, **budget)
    for options in combinations(last_round=(True, False), neighbours=RELATIONS):
        yield MomentSubspaceClustering(3, 1, epsilon=2.0, delta=1e-5, random_state=0, **options)
    for options in combinations(variant=("corrected", "paper"), n_subsets=(1, 20)):
        base = KPlanes(3, 1, n_init=2)
        yield SampleAggregateSubspaceClustering(base, 1, delta=1e-5, **options, **budget)
    yield GibbsSubspaceClustering(3, 1, n_sweeps=3, **budget)
    yield GibbsSubspaceClustering(3, 1, n_sweeps=3, init=KPlanes(3, 1, random_state=0), **budget)


def embeddings():
    """Yield private embeddings and projections in all their forms of noise."""
    budget = {"epsilon": 2.0, "norm_bound": 1.0, "random_state": 0}
    for options in combinations(
        mechanism=("gaussian", "mod_sulq", "exponential"), neighbours=RELATIONS, n_components=(1, 2)
    ):
        yield PrivatePCA(delta=1e-5, **options, **budget)
    for neighbours in ("row", "attribute"):
        yield PrivateRandomProjection(2, neighbours=neighbours, random_state=0)
    for variant in ("corrected", "paper"):
        yield DPdSNE(variant=variant, perplexity=5.0, max_iter=3, random_state=0)
    for variant in ("corrected", "paper", "code"):
        yield PrivateMail(variant=variant, random_state=0)
    yield PrivateMail(released="embedding", kernel="2 sigma^2", random_state=0)
    yield SMLQ(random_state=0)


def update(digest, value):
    """Add a fitted value to a digest, whatever it is made of."""
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str} {value.shape} ".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, (list, tuple)):
        for item in value:
            update(digest, item)
    elif isinstance(value, dict):
        update(digest, sorted(value.items()))
    elif hasattr(value, "as_dict"):
        promise = value.as_dict()
        for release in promise["releases"]:
            del release["name"]  # words
        digest.update(json.dumps(promise, sort_keys=True).encode())
    elif isinstance(value, str):
        digest.update(value.encode())
    elif isinstance(value, (int, float, complex, bool, type(None), np.generic)):
        digest.update(repr(value).encode())
    elif not callable(value):
        update(digest, {k: v for k, v in vars(value).items() if not k.startswith("_")})


def outcome(estimator, X, y):
    """Return a digest of what is fitted, or what is said where the settings do not go together."""
    try:
        fitted = clone(estimator).fit(X, y)
    except ValueError as error:
        return f"ValueError: {error}"
    digest = hashlib.sha256()
    learned = {name: value for name, value in vars(fitted).items() if name.endswith("_")}
    update(digest, {name: value for name, value in learned.items() if not name.startswith("_")})
    return digest.hexdigest()


def main():
    """Fit all and print the digests."""
    warnings.simplefilter("ignore")
    X, y = data()
    estimators = [*kmeans(), *mixtures(), *subspaces(), *embeddings()]
    print(json.dumps({f"{i} {e!r}": outcome(e, X, y) for i, e in enumerate(estimators)}, indent=0))


if __name__ == "__main__":
    main()
