"""Fits of this project that broke their guarantee; the search finds each without being told.

Each is put back as it was, by the few lines that were wrong. The search gets the estimator as
anyone would make it, with bounds of an ordinary size and no start.
"""

import numpy as np
import pytest

from privclust.core.lloyd import nearest_center
from privclust.decoding import _density
from privclust.kmeans import DPLloyd, _dplloyd
from privclust.mixtures import AdaptiveGaussianMixture, PrivateGaussianMixture, _private_em
from privclust.mixtures.exact_statistics import ExactStatistics
from privclust.privacy import Neighbours, estimator, left_out
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
    finding = found(DPLloyd(2, bounds=(-1.0, 1.0)), "sensitivity", n_pairs=400)
    assert finding.violation.part >= 1.0  # one rounding is enough
    assert "_dplloyd.py" in finding.violation.where


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
    monkeypatch.setattr(_exact_moments, "labels_by_subspace", by_kernels)
    subject = SuLQKPlanes(4, 1, norm_bound=1.0, neighbours="add_remove", max_iter=1)
    finding = found(subject, "sensitivity", n_pairs=400, n_features=8)
    assert finding.situation.startswith("tied starts")
    assert "_sulq.py" in finding.violation.where


def test_a_start_in_other_units(monkeypatch):
    """PrivateGaussianMixture summed about its means, took any start, and moved the sums to 0."""

    def about_the_means(self, radius, mixture, X):
        rows, mean = X / radius, mixture.means[0]
        counts = np.full(1, float(len(X)))
        sums = (rows - mean).sum(axis=0)[None] + counts[:, None] * mean
        centred = (rows - mean).T @ (rows - mean)
        shift = np.outer((rows - mean).sum(axis=0), mean)
        moments = centred + shift + shift.T + len(X) * np.outer(mean, mean)
        return ExactStatistics(counts, sums, moments[None], 1.0)

    monkeypatch.setattr(_private_em, "shortened", lambda means, length: means)
    monkeypatch.setattr(_private_em, "clipped_spectrum", lambda covariances, *bounds: covariances)
    monkeypatch.setattr(PrivateGaussianMixture, "_statistics", about_the_means)
    monkeypatch.setattr(_private_em, "weighted_statistics", lambda parts, now: now(parts[0][1]))
    subject = PrivateGaussianMixture(1, norm_bound=1.0, max_iter=1)
    finding = found(subject, "sensitivity")
    assert "means_init" in finding.parameters
    assert finding.violation.part > 1.0


class Refusing(DPLloyd):
    """DPLloyd as it was: fewer rows than clusters are refused, though their number is private."""

    def _checked_records(self, X, groups=None):
        records = super()._checked_records(X, groups)
        if len(records.rows) < self.n_clusters:
            raise ValueError(f"got n_clusters={self.n_clusters} for n_samples={len(records.rows)}")
        return records


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


def test_ids_that_are_made_one_array(monkeypatch):
    """One ID that is a float made floats of all, of which large ones meet."""

    def of_one_array(groups, n_samples):
        known = np.asarray(groups)
        known = known.astype(str) if known.dtype.kind == "O" else known
        _, codes = np.unique(known, return_inverse=True)
        return codes.astype(np.int64), int(codes.max()) + 1

    monkeypatch.setattr(estimator, "person_codes", of_one_array)
    finding = found(DPLloyd(2, bounds=(-1.0, 1.0)), "sensitivity", n_pairs=200, grouped=True)
    assert finding.situation == "an ID of another kind"


def test_an_id_that_is_missing_raises(monkeypatch):
    """It decided between a result and an error."""
    real = estimator.person_codes

    def refusing(groups, n_samples):
        codes, count = real(groups, n_samples)
        if (codes < 0).any():
            raise ValueError("groups must not be missing")
        return codes, count

    monkeypatch.setattr(estimator, "person_codes", refusing)
    finding = found(DPLloyd(2, bounds=(-1.0, 1.0)), "exception", n_pairs=200, grouped=True)
    assert finding.situation == "an ID of another kind"


def test_a_cell_that_sends_all_others_down_another_way(monkeypatch):
    """A table that numpy could not read at once was read cell by cell, to other numbers."""
    real = estimator.numbers_of_table

    def at_once(X, width=None):
        rows = real(X, width)
        whole = [cell for row in X for cell in row] if isinstance(X, list) else []
        if any(not isinstance(cell, float) for cell in whole):
            rows = np.sign(rows)
        return rows

    monkeypatch.setattr(estimator, "numbers_of_table", at_once)
    finding = found(DPLloyd(2, bounds=(-1.0, 1.0)), "sensitivity", n_pairs=200)
    assert finding.situation == "a cell of another kind"


def test_a_number_of_records_that_count_which_is_exact(monkeypatch):
    """The public number of rows less those that are left out, without noise, decided a start.

    About one search of two finds it.
    """
    monkeypatch.setattr(_density, "_released", _with_exact_number(_density._released))
    subject = AdaptiveGaussianMixture(2, norm_bound=1.0, max_iter=1)
    found = (
        each.violation.kind
        for seed in range(3)
        for each in look_inside(subject, n_pairs=200, random_state=seed, grouped=True).findings
    )
    assert {"sensitivity", "output"} & set(found)


def _with_exact_number(released):
    """What releases sketches, of the exact number of records."""

    def of_exact_number(*arguments):
        return released(*arguments[:-1], None)

    return of_exact_number


def test_a_count_of_rows_left_out_with_too_little_noise(monkeypatch):
    """With the room of rows that are added or removed, replaced ones lose more than is stated."""
    real = left_out._room
    monkeypatch.setattr(left_out, "_room", lambda loss, relation: real(loss, Neighbours.ADD_REMOVE))
    subject = DPLloyd(1, bounds=(-1.0, 1.0), max_iter=1, accounting="pld", delta=1e-6)
    finding = found(subject, "guarantee", n_pairs=200)
    assert "together lose" in finding.violation.message
