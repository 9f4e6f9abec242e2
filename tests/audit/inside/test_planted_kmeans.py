"""Faults planted into the rounds and the tree of private k-means are found by a look inside."""

import dataclasses

import numpy as np
import pytest

from privclust.core.fixed_point import FixedPoint
from privclust.kmeans import CompressiveKMeans, TreeKMeans, _rounds, _tree
from privclust.privacy.measurements import Gaussian
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
    real = _tree.Cells.counts

    def twice(self, numbers, level):
        counts = real(self, numbers, level)
        if isinstance(counts, FixedPoint):  # of groups
            return FixedPoint(2 * counts.integers, counts.bits)
        return 2.0 * counts

    patch.setattr(_tree.Cells, "counts", twice)


class ScaledNoise(Gaussian):
    """Gaussian noise with its standard deviation multiplied by a factor of earlier releases."""

    def release(self, exact, source, *more):
        factor = self.factor_of(RELEASED)
        RELEASED.append(Gaussian(self.sensitivity, factor * self.sigma).release(exact, source))
        return RELEASED[-1]


RELEASED = []  # counts of the levels of a fit


def scale_noise_of_second_level(patch, factor):
    """Multiply the noise of the second level by `factor`, a function of the first's release."""
    real = _tree._grow

    def grow(cells, noises, *more):
        RELEASED.clear()
        scaled = [ScaledNoise(noise.sensitivity, noise.sigma) for noise in noises]
        return real(cells, scaled, *more)

    def factor_of(self, released):
        return factor(released[0]) if len(released) == 1 else 1.0

    patch.setattr(ScaledNoise, "factor_of", factor_of, raising=False)
    patch.setattr(_tree, "_grow", grow)


def a_level_takes_another_share(patch):
    scale_noise_of_second_level(patch, lambda first: 0.5)


def a_share_depends_on_an_earlier_release(patch):
    def factor(first):
        return 0.5 if first.ravel()[0] < first.mean() else 1.0

    scale_noise_of_second_level(patch, factor)


def a_level_is_released_twice(patch):
    real = _tree._grow

    class Twice(Gaussian):
        def release(self, *args):
            return 0.5 * (super().release(*args) + super().release(*args))

    def grow(cells, noises, *more):
        first, second, *others = noises
        return real(cells, [first, Twice(second.sensitivity, second.sigma), *others], *more)

    patch.setattr(_tree, "_grow", grow)


def the_radius_of_the_tree_is_that_of_the_rows(patch):
    real = _tree.one_round

    def of_rows(X, labels, centers, radii, *more):
        most = np.linalg.norm(X - centers[labels], axis=1).max(initial=1e-9)
        return real(X, labels, centers, np.full(len(centers), most), *more)

    patch.setattr(_tree, "one_round", of_rows)


@pytest.mark.parametrize(
    ("model", "plant", "kind"),
    [
        (ROUNDS, a_round_looks_twice, "guarantee"),
        (ROUNDS, a_radius_is_that_of_the_rows, "output"),
        (ROUNDS, a_split_goes_by_the_rows, "output"),
        (TREE, a_level_counts_rows_twice, "sensitivity"),
        (TREE, a_level_takes_another_share, "guarantee"),
        (TREE, a_level_is_released_twice, "guarantee"),
        (TREE, a_share_depends_on_an_earlier_release, "guarantee"),
        (TREE, the_radius_of_the_tree_is_that_of_the_rows, "output"),
    ],
)
@pytest.mark.usefixtures("remembering_decoders")
def test_a_planted_fault_is_named(model, plant, kind, monkeypatch):
    with monkeypatch.context() as patch:
        plant(patch)
        result = look_inside(model, n_pairs=16, random_state=1)
    assert result.n_refused == 0
    assert result.verdict == "violated"
    assert kind in {each.violation.kind for each in result.findings}, str(result)
    assert look_inside(model, n_pairs=16, random_state=1).verdict == "nothing found"


def test_noise_of_levels_is_acquitted_at_a_factor_of_1(monkeypatch):
    """The share is what convicts above, not the way in which it is planted."""
    with monkeypatch.context() as patch:
        scale_noise_of_second_level(patch, lambda first: 1.0)
        assert look_inside(TREE, n_pairs=16, random_state=1).verdict == "nothing found"


def test_a_radius_of_released_counts_is_acquitted(monkeypatch):
    real = _tree.one_round

    def of_radii(X, labels, centers, radii, *more):
        return real(X, labels, centers, np.full(len(centers), radii.max()), *more)

    monkeypatch.setattr(_tree, "one_round", of_radii)
    assert look_inside(TREE, n_pairs=16, random_state=1).verdict == "nothing found"
