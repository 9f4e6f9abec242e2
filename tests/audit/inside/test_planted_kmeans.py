"""Faults planted into the rounds and the tree of private k-means are found by a look inside."""

import dataclasses

import numpy as np
import pytest

from privclust.core.fixed_point import FixedPoint
from privclust.kmeans import CompressiveKMeans, TreeKMeans, _rounds, _tree
from privclust.kmeans._cells import Cells
from privclust_audit.inside import look_inside

ROUNDS = CompressiveKMeans(
    2, delta=1e-6, bounds=(-1.0, 1.0), n_frequencies=10, last_round=True, random_state=0
)
TREE = TreeKMeans(2, bounds=(-1.0, 1.0), random_state=0)


def a_round_looks_twice(patch):
    real = _rounds.release_round

    def twice(*args):
        first, second = real(*args), real(*args)
        return dataclasses.replace(first, sums=0.5 * (first.sums + second.sums))

    patch.setattr(_rounds, "release_round", twice)


def a_radius_is_that_of_the_rows(patch):
    real = _rounds.release_round

    def of_rows(X, labels, centers, radius, *more):
        most = np.linalg.norm(X - centers[labels], axis=1).max(initial=1e-9)
        return real(X, labels, centers, np.full(len(centers), most), *more)

    patch.setattr(_rounds, "release_round", of_rows)


def a_split_goes_by_the_rows(patch):
    real, rows = _rounds.release_round, []

    def remember(X, *more):
        rows[:] = [X]
        return real(X, *more)

    def split(self, last, rng):
        self.centers[0] += 0.1 * rows[0].mean()
        return np.zeros(len(self.centers), dtype=bool)

    patch.setattr(_rounds, "release_round", remember)
    patch.setattr(_rounds._Clusters, "split", split)


def a_level_counts_rows_twice(patch):
    real = Cells.counts

    def twice(self, numbers, level):
        counts = real(self, numbers, level)
        if isinstance(counts, FixedPoint):  # of groups
            return FixedPoint(2 * counts.integers, counts.bits)
        return 2.0 * counts

    patch.setattr(Cells, "counts", twice)


def a_level_takes_another_share(patch):
    real = _tree._grow

    def grow(cells, levels, n_samples, source):
        first, second, *others = levels.noises
        second = dataclasses.replace(second, sigma=0.5 * second.sigma)
        return real(
            cells, dataclasses.replace(levels, noises=(first, second, *others)), n_samples, source
        )

    patch.setattr(_tree, "_grow", grow)


@pytest.mark.parametrize(
    ("model", "plant", "kind"),
    [
        (ROUNDS, a_round_looks_twice, "guarantee"),
        (ROUNDS, a_radius_is_that_of_the_rows, "output"),
        (ROUNDS, a_split_goes_by_the_rows, "output"),
        (TREE, a_level_counts_rows_twice, "sensitivity"),
        (TREE, a_level_takes_another_share, "guarantee"),
    ],
)
@pytest.mark.usefixtures("remembering_decoders")
def test_a_planted_fault_is_named(model, plant, kind, monkeypatch):
    with monkeypatch.context() as patch:
        plant(patch)
        result = look_inside(model, n_pairs=8, random_state=1)
    assert result.n_refused == 0
    assert result.verdict == "violated"
    assert kind in {each.violation.kind for each in result.findings}, str(result)
    assert look_inside(model, n_pairs=8, random_state=1).verdict == "nothing found"
