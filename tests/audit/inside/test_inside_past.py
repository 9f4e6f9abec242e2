"""Four fits of this project broke their guarantee; the search finds each without being told.

Each is put back as it was, by the few lines that were wrong. The search gets the estimator as
anyone would make it, with bounds of an ordinary size and no start.
"""

import numpy as np
import pytest

from privclust.core.lloyd import nearest_center
from privclust.kmeans import DPLloyd, _dplloyd
from privclust.mixtures import PrivateGaussianMixture, _private_em
from privclust.mixtures.exact_statistics import ExactStatistics
from privclust.subspaces import SuLQKPlanes, _exact_moments
from privclust_audit.inside import look_inside

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
N_PAIRS = 100


def found(subject, kind, n_pairs=N_PAIRS, **settings):
    """The first violation of a kind that the search finds; another seed finds it as well."""
    for seed in (0, 1):
        result = look_inside(subject, n_pairs=n_pairs, random_state=seed, **settings)
        assert result.verdict == "violated"
        findings = [each for each in result.findings if each.violation.kind == kind]
        assert findings
    return findings[0]


def test_sums_of_raw_coordinates(monkeypatch):
    """DPLloyd summed raw coordinates and moved the sums to the center of the box afterwards."""

    def raw_sums(parts, domain, centers):
        ((_, X),) = parts
        labels = nearest_center(X, domain.offset + centers * domain.units)
        counts = np.bincount(labels, minlength=len(centers)).astype(float)
        sums = np.zeros(centers.shape)
        np.add.at(sums, labels, X)
        units = (sums - counts[:, None] * domain.offset) / domain.units
        return np.hstack([counts[:, None], units])

    monkeypatch.setattr(_dplloyd, "_released", raw_sums)
    finding = found(DPLloyd(2, bounds=(-1.0, 1.0)), "sensitivity")
    assert finding.violation.part > 1.0
    assert "_dplloyd.py" in finding.violation.where
    assert "bounds" in finding.parameters


def test_ties_that_one_more_row_turns(monkeypatch):
    """SuLQKPlanes took products of columns that BLAS rounds, by kernels that n chooses."""

    def as_they_are(bases):
        return np.ascontiguousarray(bases.transpose(1, 0, 2)).reshape(bases.shape[1], -1)

    def by_kernels(rows, columns, n_clusters):
        """One row by another kernel than several: what BLAS does, on every machine."""
        order = slice(None, None, -1) if len(rows) == 1 else slice(None)
        products = np.zeros((len(rows), columns.shape[1]))
        for j in range(rows.shape[1])[order]:
            products += rows[:, j, None] * columns[j]
        labels = np.empty(len(rows), dtype=np.int64)
        _exact_moments._longest_projections(products, n_clusters, labels)
        return labels

    monkeypatch.setattr(_exact_moments, "rounded_columns", as_they_are)
    monkeypatch.setattr(_exact_moments, "_labels", by_kernels)
    subject = SuLQKPlanes(4, 1, norm_bound=1.0, neighbours="add_remove", max_iter=1)
    finding = found(subject, "sensitivity", n_pairs=150, n_features=8)
    assert finding.situation.startswith("tied starts")
    assert "_sulq.py" in finding.violation.where


def test_a_start_in_other_units(monkeypatch):
    """PrivateGaussianMixture summed about its means, took any start, and moved the sums to 0."""

    def about_the_means(self, radius, weights, means, covariances, X):
        rows, mean = X / radius, means[0]
        counts = np.full(1, float(len(X)))
        sums = (rows - mean).sum(axis=0)[None] + counts[:, None] * mean
        centred = (rows - mean).T @ (rows - mean)
        shift = np.outer((rows - mean).sum(axis=0), mean)
        moments = centred + shift + shift.T + len(X) * np.outer(mean, mean)
        return ExactStatistics(counts, sums, moments[None], 1.0)

    monkeypatch.setattr(_private_em, "_clipped", lambda name, array, function: array)
    monkeypatch.setattr(PrivateGaussianMixture, "_statistics", about_the_means)
    monkeypatch.setattr(_private_em, "weighted_statistics", lambda parts, now: now(parts[0][1]))
    subject = PrivateGaussianMixture(1, norm_bound=1.0, max_iter=1)
    finding = found(subject, "sensitivity")
    assert "means_init" in finding.parameters
    assert finding.violation.part > 1.0


class Refusing(DPLloyd):
    """DPLloyd as it was: fewer rows than clusters are refused, though their number is private."""

    def _check_parameters(self, X, groups):
        super()._check_parameters(X, groups)
        if len(X) < self.n_clusters:
            raise ValueError(f"got n_clusters={self.n_clusters} for n_samples={len(X)}")


def test_a_number_of_rows_that_is_refused():
    finding = found(Refusing(2, bounds=(0.0, 1.0), neighbours="add_remove"), "exception")
    assert "ValueError" in finding.violation.message
    assert "n_samples" not in str(finding)
    assert "test_inside_past.py" in finding.violation.where


def test_none_of_them_is_found_as_they_are_now():
    for subject, n_features in (
        (DPLloyd(2, bounds=(-1.0, 1.0)), 2),
        (SuLQKPlanes(4, 1, norm_bound=1.0, neighbours="add_remove", max_iter=1), 8),
        (PrivateGaussianMixture(1, norm_bound=1.0, max_iter=1), 2),
        (DPLloyd(2, bounds=(0.0, 1.0), neighbours="add_remove"), 2),
    ):
        result = look_inside(subject, n_pairs=N_PAIRS, n_features=n_features)
        assert result.verdict == "nothing found", str(result)
