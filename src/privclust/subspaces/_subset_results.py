"""Results of a clusterer on many subsets; whether there is a result depends on no row.

After any exception on one subset, a result drawn beforehand is used, and warnings of the clusterer
are silenced. Exceptions that stop a program, and a ledger's refusal of the clusterer, are passed
on.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator, clone

from privclust.core.grassmann import bases_of_labels, orthonormal, random_bases
from privclust.privacy.budget import BudgetError

_ORTHONORMALITY_TOLERANCE = 1e-8  # entries of U'U - I of a valid result


def try_base(base: BaseEstimator, n_rows: int, shape: tuple[int, int, int]) -> None:
    """Raise a ValueError if `base` fails on random rows of norm at most 1.

    `shape` is that of its result, (n_clusters, n_features, dimension).
    """
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n_rows, shape[1]))
    rows *= rng.random((n_rows, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    try:
        _result(base, rows, shape, rng)
    except (MemoryError, BudgetError):
        raise
    except Exception as error:
        raise ValueError(
            f"base fails on random rows of shape {rows.shape}, the shape of a subset: "
            f"{type(error).__name__}: {error}"
        ) from error


def subset_results(
    base: BaseEstimator,
    rows: np.ndarray,
    subsets: Sequence[np.ndarray],
    shape: tuple[int, int, int],
    rng: np.random.Generator,
) -> tuple[np.ndarray, int]:
    """Return the bases of each subset, (n_subsets, *shape), and the number of failures."""
    # draw everything random beforehand: the rows of a subset then affect no other result
    instead = random_bases(*shape, rng)
    seeds = rng.integers(2**31 - 1, size=len(subsets))
    results, n_failed = [], 0
    for subset, seed in zip(subsets, seeds, strict=True):
        try:
            results.append(_result(base, rows[subset], shape, np.random.default_rng(seed)))
        except BudgetError:  # the loss of a base is public
            raise
        except Exception:  # of any kind: a row must not decide whether there is a result
            results.append(instead)
            n_failed += 1
    return np.stack(results), n_failed


def _result(base, rows, shape, rng):
    """Return the bases that a clone of `base` finds; hide its warnings, which mention rows."""
    base = clone(base)
    # nested estimators too, such as the init of a base; sorted, so that each always gets its seed
    names = sorted(n for n in base.get_params() if n.split("__")[-1] == "random_state")
    base.set_params(**{name: int(rng.integers(2**31 - 1)) for name in names})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        base.fit(rows)
        bases = getattr(base, "subspaces_", None)
        if bases is None:
            labels = np.asarray(base.labels_)
            if labels.shape != (len(rows),) or not np.isin(labels, np.arange(shape[0])).all():
                raise ValueError(f"labels_ of base are not 0 .. {shape[0] - 1} for each row")
            bases = bases_of_labels(rows, labels, shape[0], shape[2], rng)
        bases = np.asarray(bases, dtype=np.float64)
        if bases.shape != shape or not np.isfinite(bases).all():
            raise ValueError(f"base found no finite bases of shape {shape}, got {bases.shape}")
        bases = orthonormal(bases)
        errors = np.abs(bases.transpose(0, 2, 1) @ bases - np.eye(shape[2]))
    if not errors.max() <= _ORTHONORMALITY_TOLERANCE:
        raise ValueError("base found no bases that can be made orthonormal")
    return bases
