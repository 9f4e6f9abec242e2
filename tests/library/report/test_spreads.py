"""How wide clusters are: what is said of it, from the fit to the files of the report."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from privclust.decoding import decode, standard_errors
from privclust.kmeans import CompressiveKMeans
from privclust.preprocessing import TableEncoder
from privclust.report import TableClusters, write

pytest.importorskip("matplotlib")
SPREADS = np.array([[4.0, 12_000.0], [8.0, 4_000.0]])  # of ages and incomes


def test_spreads_of_columns_are_told_without_errors(tmp_path):
    """A long cluster and a narrow one, in units of the table; by what was released alone."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=20_000)
    numbers = np.array([[30, 60_000], [75, 150_000]])[labels]
    numbers = numbers + SPREADS[labels] * rng.standard_normal(numbers.shape)
    table = {"age": numbers[:, 0], "income": numbers[:, 1], "plan": np.where(labels, "a", "b")}
    encoder = TableEncoder({"age": (0, 110), "income": (0, 250_000), "plan": ["a", "b"]})
    rows = encoder.transform(table)
    model = CompressiveKMeans(2, delta=1e-6, bounds=encoder.bounds_, random_state=0).fit(rows)
    clusters = TableClusters.of(encoder, model, random_state=0)
    of_age = np.argsort(clusters.coordinates[0].centers)
    for coordinate, truth in zip(clusters.coordinates, SPREADS.T, strict=False):
        spreads, errors = coordinate.spreads[of_age], coordinate.spread_errors[of_age]
        np.testing.assert_allclose(spreads, truth, rtol=0.15)
        assert (np.abs(spreads - truth) < 5.0 * errors + 0.02 * truth).all()  # 2 %: of points
        assert (errors < 0.2 * truth).all()
    assert clusters.coordinates[2].spreads is None  # of a share it would say nothing
    write(clusters, tmp_path)
    found = pd.read_csv(tmp_path / "centers.csv")
    np.testing.assert_array_equal(found["age spread"], clusters.coordinates[0].spreads)
    first = json.loads((tmp_path / "clusters.json").read_text())["clusters"][0]
    assert set(first["spread"]) == {"age", "income"}
    assert "spread_error" not in first  # they are too small
    low, high = first["weight_interval"]
    assert 0.0 <= low < first["weight"] < high <= 1.0
    report = (tmp_path / "report.html").read_text()
    assert ">Spread</h2>" in report
    assert "one standard deviation of the cluster" in report
    assert "far from all centers" in report
    # a sketch alone says the same, but for what rounds moved
    sketch = model.sketch_
    decoded = decode(sketch, 2, bounds=encoder.bounds_)
    numbers, errors = (sketch.n_samples, 0.0), standard_errors(sketch, decoded)
    alone = TableClusters.of_found(encoder, numbers, decoded, errors, guarantee=sketch.guarantee)
    np.testing.assert_allclose(
        np.sort(alone.coordinates[1].spreads), np.sort(clusters.coordinates[1].spreads), rtol=0.1
    )


@pytest.mark.filterwarnings("ignore::privclust.privacy.NoiseWarning")
def test_after_a_projection_spreads_are_told_by_cluster():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=20_000)
    wide = np.array([0.02, 0.04, 0.06])[labels, None]
    X = np.clip(
        rng.uniform(0.3, 0.7, (3, 18))[labels] + wide * rng.standard_normal((20_000, 18)), 0, 1
    )
    names = {f"x{j}": (0, 1) for j in range(18)}
    encoder = TableEncoder(names)
    model = CompressiveKMeans(
        3, epsilon=4.0, delta=1e-6, bounds=encoder.bounds_, random_state=0
    ).fit(encoder.transform(dict(zip(names, X.T, strict=True))))
    assert model.cluster_spreads_.shape == (3, 18)
    assert (model.cluster_spreads_ == model.cluster_spreads_[:, :1]).all()
    clusters = TableClusters.of(encoder, model, random_state=0)
    spreads, errors = clusters.coordinates[0].spreads, clusters.coordinates[0].spread_errors
    assert (np.abs(np.sort(spreads) - [0.02, 0.04, 0.06]) < 4.0 * errors[np.argsort(spreads)]).all()
    assert any("by cluster only" in remark for remark in clusters.remarks)


def test_clusters_that_are_points_have_no_spread():
    X = np.repeat([[-0.5], [0.5]], 500, axis=0)
    how = {"bounds": (-1.0, 1.0), "decoder": "clompr", "random_state": 0}
    model = CompressiveKMeans(2, epsilon=None, **how).fit(X)
    assert model.cluster_spreads_ is None


def test_a_spread_that_noise_hides_is_left_out_of_the_files(tmp_path):
    """The report says "or less"; the numbers in files would be taken for measured ones."""
    X = np.random.default_rng(0).normal(0.0, 0.1, (4_000, 1))
    encoder = TableEncoder({"age": (-1, 1)})
    rows = encoder.transform({"age": X[:, 0]})
    model = CompressiveKMeans(1, delta=1e-6, bounds=encoder.bounds_, random_state=0).fit(rows)
    clusters = TableClusters.of(encoder, model, random_state=0)
    (age,) = clusters.coordinates
    for errors, told in ((0.1 * age.spreads, float(age.spreads[0])), (age.spreads, None)):
        hidden = replace(clusters, coordinates=(replace(age, spread_errors=errors),))
        write(hidden, tmp_path)
        (cluster,) = json.loads((tmp_path / "clusters.json").read_text())["clusters"]
        assert cluster["spread"] == {"age": told}
        cell = pd.read_csv(tmp_path / "centers.csv")["age spread"][0]
        assert cell == told if told else np.isnan(cell)
