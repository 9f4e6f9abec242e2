"""Cases of the privacy audit: stated sensitivities, and the neighbours for a search."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privclust.core.lloyd import nearest_center
from privclust.core.second_moments import in_units, second_moments, unit
from privclust.embedding import SMLQ, PrivateMail, PrivateRandomProjection, search_sensitivity
from privclust.kmeans import DPLloyd, Grid, last_rounds
from privclust.mixtures import MixtureParameters, responsibilities
from privclust.privacy import Neighbours
from privclust.privacy.bounds import declared_box
from privclust.sketches import Sketch, sensitivities
from privclust.sketches.moment_release import sensitivity as moment_sensitivity
from privclust.sketches.moment_release import weighted_features
from privclust.sketches.moment_sums import HarmonicSums
from privclust.subspaces import (
    DecodedSubspaces,
    SuLQKPlanes,
    moments_by_subspace,
    most_central,
    neighbour_radii,
    printed_sensitivity,
    result_distances,
    smooth_sensitivity,
)
from privclust.subspaces.moments.last_round import round_sums
from privclust.subspaces.moments.last_round import sensitivity as round_sensitivity
from privclust.subspaces.moments.union import Union
from privclust_audit.black_box import add_remove, replace_one
from privclust_papers.audit.cases.audit_case import N_PUBLIC, Claim, public_features

_LARGEST_NORM = 1.0 - 1e-12  # a norm within the unit ball despite rounding
_ADD_REMOVE = "add_remove"
_CHANGES = {"replace_one": replace_one, _ADD_REMOVE: add_remove}


class SensitivityCase(Claim):
    """A statistic with its stated sensitivity `bound` in `norm`.

    Rows are in the unit ball of `d` dimensions unless a subclass draws others. Instead of
    `function` a subclass may have ``search(rng, n_trials)``, which returns the largest change. A
    search has `trials` pairs at cost 1, and at least `least_trials`.
    """

    norm = "l2"
    trials, least_trials = 40_000, 4_000
    d, n_rows = 2, 2
    neighbours = "replace_one"
    bound: float

    def draw(self, rng):
        """Return rows of the domain."""
        return np.stack([self.draw_record(rng) for _ in range(self.n_rows)])

    def draw_record(self, rng):
        """Return one row, on the boundary with probability 1/2."""
        row = rng.normal(size=self.d)
        row /= np.linalg.norm(row)
        return self.project(row * (1.0 if rng.random() < 0.5 else rng.random()))

    def change(self, data, rng):
        """Return a neighbour of the data: one record is replaced, added or removed."""
        return _CHANGES[self.neighbours](self.draw_record)(data, rng)

    def project(self, row):
        """Return the nearest row of the domain."""
        row = np.asarray(row, dtype=float)
        return _LARGEST_NORM * row / max(float(np.linalg.norm(row)), 1.0)


class Moments(SensitivityCase):
    """Counts, sums and second moments of two components, released by an iteration of EM."""

    def __init__(self, neighbours: str = "replace_one") -> None:
        self.neighbours = neighbours
        # A row changes count, sum and second moment of a component by at most 1 each; a replaced
        # row changes those of two components.
        self.bound = math.sqrt(6.0 if neighbours == "replace_one" else 3.0)
        covariances = np.tile(1e-3 * np.eye(2), (2, 1, 1))
        self._start = MixtureParameters(np.full(2, 0.5), np.eye(2), covariances, "full")

    def function(self, rows):
        gamma = responsibilities(rows, self._start)
        seconds = np.einsum("nk,ni,nj->kij", gamma, rows, rows)
        return np.concatenate([gamma.sum(axis=0), (gamma.T @ rows).ravel(), seconds.ravel()])


class SketchSums(SensitivityCase):
    """Sums of features of a sketch, and the count for add/remove-one neighbours."""

    d = 3
    trials, least_trials = 20_000, 3_000

    def __init__(self, norm: str = "l1", neighbours: str = "replace_one") -> None:
        self.norm, self.neighbours = norm, neighbours
        l1, l2 = sensitivities(self.d, neighbours)
        self.bound = (l1 if norm == "l1" else l2).value

    def function(self, rows):
        """Return the parts of the sums; with unit frequencies, entries of rows are phases."""
        parts = Sketch.of(rows, np.eye(self.d)).sums.view(float)
        return parts if self.neighbours == "replace_one" else np.append(parts, len(rows))

    def draw_record(self, rng):
        """Return phases, with probability 1/2 multiples of 45 degrees."""
        if rng.random() < 0.5:
            return rng.integers(8, size=self.d) * math.pi / 4.0
        return rng.uniform(0.0, 2.0 * math.pi, self.d)

    def project(self, row):
        """Return the row: it has no bound."""
        return row


class SubspaceMoments(SensitivityCase):
    """Second moments by nearest subspace, released by SuLQ."""

    def __init__(self, neighbours: str = "replace_one") -> None:
        self.neighbours = neighbours
        model = SuLQKPlanes(2, delta=0.01, neighbours=neighbours)
        self.bound = model.round_noise(self.d, 1).sensitivity.value
        self._bases = np.eye(2)[:, :, None]

    def function(self, rows):
        rounded = in_units(np.ascontiguousarray(rows), unit(1.0, self.d))
        return np.asarray(moments_by_subspace(rounded, self._bases))


class MomentFeatures(SensitivityCase):
    """Harmonic moments of directions, released by a moment sketch."""

    trials, least_trials = 10_000, 1_000
    d = 5

    def __init__(self, neighbours: str = "replace_one") -> None:
        self.neighbours, self._relation = neighbours, Neighbours.of(neighbours)
        self.bound = moment_sensitivity(self.d, 6, self._relation).value

    def function(self, rows):
        return weighted_features(HarmonicSums(self.d, 6).add(rows), self._relation)


class RowsBeside(SensitivityCase):
    """Clipped components of rows orthogonal to decoded subspaces, released by the last round."""

    trials, least_trials = 20_000, 2_000
    d = 4
    _RADIUS = 0.1

    def __init__(self, neighbours: str = "replace_one") -> None:
        self.neighbours = neighbours
        relation = Neighbours.of(neighbours)
        self.bound = round_sensitivity(self._RADIUS, relation).value
        bases = np.eye(4).reshape(4, 2, 2).transpose(1, 0, 2)
        union = Union(bases, np.ones((2, 2)), np.full(2, 0.25), {4: 0.0})
        errors = np.eye(8)
        self._decoded = DecodedSubspaces(
            union, bases[::-1], errors, errors, 0.0, math.inf, np.full(len(bases), math.inf), True
        )
        # `round_sums` returns f and g without their factor r / 2, with which they are released.
        self._weights = np.array([1.0] * 4 + [self._RADIUS / 2.0] * 2)

    def function(self, rows):
        return np.asarray(round_sums(rows, self._decoded, self._RADIUS)) * self._weights


class RowsAboutCenters(SensitivityCase):
    """Clipped rows about centers, and counts, released by last rounds of k-means."""

    trials, least_trials = 20_000, 2_000
    d = 3
    _RADIUS = 0.5

    def __init__(self, neighbours: str = "replace_one") -> None:
        self.neighbours = neighbours
        self.bound = last_rounds.sensitivity(Neighbours.of(neighbours)).value
        self._centers = np.array([[-0.3, 0.0, 0.0], [0.3, 0.1, 0.0]])

    def function(self, rows):
        rows = np.ascontiguousarray(rows)
        labels = nearest_center(rows, self._centers)
        sums = np.asarray(last_rounds.round_sums(rows, labels, self._centers, self._RADIUS))
        return sums * last_rounds.weights(self.d)


class SecondMoments(SensitivityCase):
    """Second moments of all rows, released by private PCA."""

    def __init__(self, neighbours: str = "replace_one") -> None:
        self.neighbours = neighbours
        self.bound = math.sqrt(2.0) if neighbours == "replace_one" else 1.0

    def function(self, rows):
        return np.asarray(second_moments(np.ascontiguousarray(rows), unit(1.0, self.d)))


class ProjectedRow(SensitivityCase):
    """A row under a public random projection."""

    d = 4

    def __init__(self) -> None:
        model = PrivateRandomProjection(2, norm_bound=1.0, random_state=0).fit(np.zeros((1, 4)))
        self._matrix, self.bound = model.components_.T, model.sensitivity_.value

    def function(self, rows):
        return rows @ self._matrix


class LloydSums(SensitivityCase):
    """Counts and sums of two clusters of Lloyd's algorithm, replace-one.

    The printed d + 1 is for add/remove-one neighbours.
    """

    norm = "l1"
    d = 1

    def __init__(self, variant: str = "corrected") -> None:
        self.claimed_by(variant == "corrected")
        self._model = DPLloyd(2, variant=variant, norm_bound=1.0)
        self.bound = self._round(np.zeros((2, 1)))[1].sensitivity.value

    def function(self, rows):
        return np.asarray(self._round(np.ascontiguousarray(rows))[0])

    def _round(self, rows):
        return self._model.one_round(rows, np.array([[0.5], [-0.5]]))


class CellCounts(SensitivityCase):
    """Counts of the cells of a grid."""

    norm = "l1"
    bound = 2.0

    def __init__(self) -> None:
        box = declared_box(np.zeros((1, self.d)), (-1.0, 1.0))[0]
        self._grid = Grid(box, (3, 3))

    def function(self, rows):
        return self._grid.histogram(rows)


class MailStatistic(SensitivityCase):
    """The vector that corrected PrivateMail releases for a query."""

    d, n_rows = 3, 1
    trials, least_trials = 20_000, 2_000

    def __init__(self, released: str = "feature") -> None:
        X, y = _public_images()
        self._model = PrivateMail(released=released, random_state=0).fit(X, y)
        self.bound = self._model.sensitivity_

    def function(self, rows):
        return self._model.public_map(rows)

    def project(self, row):
        return row / np.linalg.norm(row)


class MailIterate(SensitivityCase):
    """The first iterate of PrivateMail for one query among public images: the bound proved here.

    A row is a feature vector and, as last entry, a label.
    """

    d, n_rows = 4, 1
    trials, least_trials = 4_000, 500
    _LAST_LABEL, _OBFUSCATE = 9, False

    def __init__(self) -> None:
        self._X, self._y = _public_images()
        how = {"variant": "paper", "obfuscate": self._OBFUSCATE, "random_state": 0}
        model = PrivateMail(**how).fit(self._X, self._y)
        self._start = model.start_ / model.init_scale
        self.bound = model.iterate_sensitivity(model.init_scale)

    def function(self, rows):
        X, y = np.vstack([self._X, rows[:, :-1]]), np.append(self._y, round(rows[0, -1]))
        return SMLQ(n_iter=1, init=self._start).fit(X, y).embedding_

    def draw_record(self, rng):
        feature = rng.normal(size=self.d - 1)
        return self.project(np.append(feature, rng.integers(self._LAST_LABEL + 1)))

    def project(self, row):
        norm = np.linalg.norm(row[:-1])
        return np.append(row[:-1] / norm, np.clip(np.round(row[-1]), 0, self._LAST_LABEL))


class MailExchange(MailIterate):
    """The first iterate of Algorithm 1 for a replaced query (two rows): the bound proved here.

    Dummies are the first image of each class.
    """

    _OBFUSCATE = True

    def function(self, rows):
        classes, first = np.unique(self._y, return_index=True)
        of_classes = self._X[first]
        of_classes[round(rows[0, -1])] = rows[0, :-1]
        X, y = np.vstack([self._X, of_classes]), np.append(self._y, classes)
        return SMLQ(n_iter=1, init=self._start).fit(X, y).embedding_


class TheoremTwo(SensitivityCase):
    """Theorem 2 of PrivateMail: an added record, by `search_sensitivity`."""

    claimant = "paper"
    trials, least_trials = 200, 20
    _N = 200

    def search(self, rng, n_trials):
        search = search_sensitivity(self._N, n_steps=n_trials, random_state=rng)
        self.bound = search.bound
        return search.change


class SmoothBound(SensitivityCase):
    """Smoothness of S(B): the change of its logarithm over beta, at most 1.

    Results are lines in the plane, given by angles. As printed, sqrt m of them change at once.
    """

    norm = "linf"
    bound = 1.0
    beta = 1.0
    _DIAMETER = math.sqrt(2.0)

    def __init__(self, variant: str = "corrected") -> None:
        self.claimed_by(variant == "corrected")
        self._m = 20 if self.is_private else 400
        self._s = 1 if self.is_private else math.isqrt(self._m)
        self.trials, self.least_trials = (20_000, 2_000) if self.is_private else (200, 20)

    def function(self, angles):
        return np.array([math.log(self.sensitivity(angles)) / self.beta])

    def sensitivity(self, angles):
        """Return the smooth sensitivity at the angles: the corrected bound, or the printed one."""
        radii = neighbour_radii(self.distances(angles))
        bound = smooth_sensitivity if self.is_private else printed_sensitivity
        return bound(radii, self.beta, self._DIAMETER, self._s)

    def distances(self, angles):
        frames = np.stack([np.cos(angles[:, 0]), np.sin(angles[:, 0])], axis=1)[:, None, :, None]
        return result_distances(frames, "procrustes" if self.is_private else "projection")

    def draw(self, rng):
        """Return angles about one to three places, with a random spread."""
        places = rng.uniform(0.0, math.pi, (rng.integers(1, 4), 1))
        spread = rng.choice([1e-6, 1e-3, 0.1])
        chosen = places[rng.integers(len(places), size=self._m)]
        return chosen + spread * rng.normal(size=(self._m, 1))

    def draw_record(self, rng):
        return rng.uniform(0.0, math.pi, 1)

    def change(self, data, rng):
        """Return the results with s of them redrawn."""
        changed = data.copy()
        others = rng.uniform(0.0, math.pi, (self._s, 1))
        changed[rng.choice(len(data), self._s, replace=False)] = others
        return changed

    def project(self, row):
        return row


class CentralResult(SmoothBound):
    """The change of the most central result by a changed result, over S(B), at most 1."""

    def search(self, rng, n_trials):
        largest = 0.0
        for _ in range(n_trials):
            angles = self.draw(rng)
            other = self.change(angles, rng)
            chosen = [
                rows[most_central(neighbour_radii(self.distances(rows)), self._s)]
                for rows in (angles, other)
            ]
            moved = self.distances(np.stack(chosen))[0, 1]
            # computed distances of equal lines are up to 1e-7, which the release adds to S
            least = min(self.sensitivity(angles), self.sensitivity(other)) + 1e-6
            largest = max(largest, moved / least)
        return largest


def _public_images():
    return public_features(), np.arange(N_PUBLIC) % 10


STATEMENTS: dict[str, tuple[Any, ...]] = {
    "moments": ("EM: counts, sums, moments; replaced, sqrt 6", Moments),
    "moments_add": ("EM: the same; added or removed, sqrt 3", Moments, _ADD_REMOVE),
    "sketch_l1": ("sketch, l1; replaced", SketchSums),
    "sketch_l2": ("sketch, l2; replaced", SketchSums, "l2"),
    "sketch_l1_add": ("sketch and count, l1; added or removed", SketchSums, "l1", _ADD_REMOVE),
    "sketch_l2_add": ("sketch and count, l2; added or removed", SketchSums, "l2", _ADD_REMOVE),
    "lloyd": ("Lloyd: counts and sums, l1; replaced", LloydSums),
    "lloyd_printed": ("Lloyd: printed d + 1, l1; replaced", LloydSums, "paper"),
    "cells": ("EUGkM: counts of cells, l1; replaced, 2", CellCounts),
    "sulq": ("SuLQ: moments; replaced, sqrt 2", SubspaceMoments),
    "sulq_add": ("SuLQ: moments; added or removed, 1", SubspaceMoments, _ADD_REMOVE),
    "moment_sketch": ("moment sketch; replaced", MomentFeatures),
    "moment_sketch_add": ("moment sketch and count; added or removed", MomentFeatures, _ADD_REMOVE),
    "moment_round": ("moment sketch, last round; replaced", RowsBeside),
    "moment_round_add": ("moment sketch, last round; added or removed", RowsBeside, _ADD_REMOVE),
    "means_round": ("k-means, last round; replaced, 2", RowsAboutCenters),
    "means_round_add": ("k-means, last round; added or removed", RowsAboutCenters, _ADD_REMOVE),
    "pca": ("PCA: moments; replaced, sqrt 2", SecondMoments),
    "pca_add": ("PCA: moments; added or removed, 1", SecondMoments, _ADD_REMOVE),
    "projection": ("random projection: 2 |P|", ProjectedRow),
    "aggregate_smooth": ("S(B) repaired: |ln S/S'| / beta", SmoothBound),
    "aggregate_smooth_printed": ("S(B) as printed: |ln S/S'| / beta", SmoothBound, "paper"),
    "aggregate_local": ("most central result: distance over S", CentralResult),
    "mail_feature": ("PrivateMail corrected: discriminants", MailStatistic),
    "mail_embedding": ("PrivateMail corrected: embedding", MailStatistic, "embedding"),
    "mail_iterate": ("PrivateMail: first iterate, the bound proved here", MailIterate),
    "mail_exchange": ("PrivateMail: Algorithm 1, an exchange of the query", MailExchange),
    "mail_theorem": ("PrivateMail: Theorem 2, a record added", TheoremTwo),
}
"""Statements by name: a description, the class of the case and its arguments."""
