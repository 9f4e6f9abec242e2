"""Clusters of a table in its own units, computed only from released numbers."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from privclust.decoding import Decoded, StandardErrors
from privclust.kmeans import CompressiveKMeans, PrivateKMeans, TreeKMeans
from privclust.preprocessing import TableEncoder
from privclust.privacy import Guarantee, Neighbours
from privclust.privacy.groups import ROW
from privclust.report.coordinate import DATE, NUMBER, SHARE, WIDTH_95, Coordinate
from privclust.report.missing import is_whole
from privclust.report.suspicions import separated_by_categories, suspicions

_BY_CLUSTER = (
    "spreads are the root mean square over all columns, each relative to its range: they are "
    "released by cluster only"
)


class Found(NamedTuple):
    """Clusters: centers (k, d), weights (k,), whether they are detected (k,), spreads (k, d)."""

    centers: np.ndarray
    weights: np.ndarray
    is_detected: np.ndarray
    cluster_spreads: np.ndarray | None


@dataclass(frozen=True)
class TableClusters:
    """Clusters, the largest first.

    Attributes
    ----------
    coordinates : tuple of Coordinate
    weights, weight_errors : ndarray of shape (n_clusters,)
        Fractions of the records, and standard errors.
    is_detected : ndarray of shape (n_clusters,)
        Whether a cluster is distinguishable from noise; if not, its numbers are not shown.
    is_reliable : ndarray of shape (n_clusters,)
        Whether the errors are known well.
    n_records : int or float
        Number of records; noisy, and so not whole, if it is private.
    columns : mapping of str to bounds or categories
        As declared.
    guarantee : privclust.privacy.Guarantee
    missing : {"drop", "middle"}
        Treatment of rows with entries that are missing or cannot be read.
    remarks : tuple of str
        Other remarks.
    private_bounds : tuple of str
        The columns with bounds from `privclust.preprocessing.private_bounds`, not declared ones.
    n_rows : int or None
        Number of rows with those that are left out, if it is public.
    """

    coordinates: tuple[Coordinate, ...]
    weights: np.ndarray
    weight_errors: np.ndarray
    is_detected: np.ndarray
    is_reliable: np.ndarray
    n_records: float
    columns: dict[str, Any]
    guarantee: Guarantee
    missing: str = "drop"
    remarks: tuple[str, ...] = ()
    private_bounds: tuple[str, ...] = ()
    n_rows: int | None = None

    @classmethod
    def of(
        cls,
        encoder: TableEncoder,
        model: CompressiveKMeans | TreeKMeans | PrivateKMeans,
        *,
        random_state: Any = None,
        **settings: Any,
    ) -> TableClusters:
        """Return the clusters of a model that was fitted to an encoder's coordinates.

        Parameters
        ----------
        encoder : TableEncoder
        model : CompressiveKMeans, TreeKMeans or PrivateKMeans
        random_state : None, int, numpy.random.Generator or numpy.random.RandomState
            Seed of the draws from which errors are computed; a tree needs none.
        **settings
            Keywords of `of_found`.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> table = {"age": np.repeat([30.0, 60.0], 5000) + rng.normal(0, 4, 10_000)}
        >>> encoder = TableEncoder({"age": (0, 110)})
        >>> model = CompressiveKMeans(2, delta=1e-6, bounds=encoder.bounds_, random_state=0)
        >>> model = model.fit(encoder.transform(table))
        >>> age = TableClusters.of(encoder, model, random_state=0).coordinates[0]
        >>> sorted(age.centers.round().tolist()), bool((age.errors < 1.0).all())
        ([30.0, 60.0], True)
        """
        model = model.estimator_ if isinstance(model, PrivateKMeans) else model
        found = Found(
            model.cluster_centers_,
            model.weights_,
            np.asarray(model.is_detected_, dtype=bool),
            model.cluster_spreads_,
        )
        settings = {"guarantee": model.guarantee_, **settings}
        if isinstance(model, TreeKMeans):
            n_left_out = 0.0 if model.left_out_ is None else model.left_out_.value
            numbers, errors = (model.n_records_, n_left_out), model.standard_errors()
            by_cluster = len(encoder.scale()) > 1
        else:
            sketch = replace(model.sketch_, left_out=model.left_out_)
            numbers = sketch.n_samples, float(sketch.n_left_out)
            errors = model.standard_errors(random_state=random_state)
            by_cluster = sketch.n_features < len(encoder.scale())
        return cls.of_found(encoder, numbers, found, errors, by_cluster=by_cluster, **settings)

    @classmethod
    def of_found(
        cls,
        encoder: TableEncoder,
        numbers: tuple[float, float],
        found: Found | Decoded,
        errors: StandardErrors,
        *,
        guarantee: Guarantee,
        by_cluster: bool = False,
        remarks: tuple[str, ...] = (),
        private_bounds: tuple[str, ...] = (),
    ) -> TableClusters:
        """Return clusters that were found among an encoder's coordinates.

        Parameters
        ----------
        encoder : TableEncoder
        numbers : (float, float)
            Numbers of records that count, and that are left out.
        found : Found or privclust.decoding.Decoded
            Centers and weights, in the coordinates of the encoder.
        errors : privclust.decoding.StandardErrors
            Their standard errors.
        guarantee : Guarantee
            The guarantee of all releases.
        by_cluster : bool
            Whether the spread of a cluster is the same number in all coordinates.
        remarks : tuple of str
            First remarks; those on centers at bounds or in the middle follow.
        private_bounds : tuple of str
            The columns with private bounds.
        """
        order = np.argsort(-found.weights, kind="stable")
        scale = encoder.scale()
        centers = encoder.inverse_transform(found.centers[order])
        of_centers = errors.centers[order] * scale
        spreads = found.cluster_spreads
        of_spreads = None if spreads is None else (spreads[order] * scale).T
        their_errors = (errors.spreads[order] * scale).T if spreads is not None else None
        coordinates = []
        for name, column in _columns_of(encoder):
            values = centers[name]
            kind = SHARE if isinstance(encoder.columns[column], list) else NUMBER
            kind = DATE if values.dtype.kind == "M" else kind
            j = len(coordinates)
            told = () if kind == SHARE or of_spreads is None else (of_spreads[j], their_errors[j])
            coordinates.append(Coordinate(name, column, kind, values, of_centers[:, j], *told))
        is_detected = found.is_detected[order]
        on_columns = suspicions(coordinates, encoder.columns, is_detected)
        if spreads is not None:
            there = order[is_detected]
            detected = found.weights[there], found.centers[there], spreads[there]
            of_coordinate = [column for _, column in _columns_of(encoder)]
            on_columns += separated_by_categories(encoder.columns, of_coordinate, *detected)
        if spreads is not None and by_cluster:
            on_columns.append(_BY_CLUSTER)
        # all rows are of a single cluster
        weight_errors = errors.weights[order] * (len(order) > 1)
        return cls(
            coordinates=tuple(coordinates),
            weights=found.weights[order],
            weight_errors=weight_errors,
            is_detected=is_detected,
            is_reliable=errors.is_reliable[order],
            n_records=numbers[0],
            columns=dict(encoder.columns),
            guarantee=guarantee,
            missing=encoder.missing,
            remarks=(*remarks, *on_columns),
            private_bounds=tuple(private_bounds),
            n_rows=_public_number(sum(numbers), guarantee),
        )

    @property
    def is_private(self) -> bool:
        """Whether the clusters may be published, under their guarantee."""
        return self.guarantee.definition != "none"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return header and rows of a table of text.

        Cells of undetected clusters are empty, and those of spreads that noise hides.
        """
        names = [name for c in self.coordinates for name, _ in _numbers_of(c)]
        header = ["cluster", "weight", "weight error", *names, "detected", "errors known"]
        rows = []
        for j, is_detected in enumerate(self.is_detected):
            numbers = [self.weights[j], self.weight_errors[j]]
            numbers += [values[j] for c in self.coordinates for _, values in _numbers_of(c)]
            cells = [_text(number) if is_detected else "" for number in numbers]
            words = ["yes" if is_one else "no" for is_one in (is_detected, self.is_reliable[j])]
            rows.append([str(j + 1), *cells, *words])
        return header, rows

    def csv(self) -> str:
        """Return that table as the text of a CSV file."""
        header, rows = self.table()
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([header, *rows])
        return text.getvalue()

    def as_dict(self) -> dict[str, Any]:
        """Return the clusters as JSON values.

        Undetected clusters have no numbers, and spreads that noise hides are None.
        """
        clusters = []
        for j, is_detected in enumerate(self.is_detected):
            cluster: dict[str, Any] = {"is_detected": bool(is_detected)}
            if is_detected:
                width = WIDTH_95 * np.array([-1.0, 1.0]) * self.weight_errors[j]
                cluster |= {
                    "are_errors_known": bool(self.is_reliable[j]),
                    "weight": float(self.weights[j]),
                    "weight_error": float(self.weight_errors[j]),
                    "weight_interval": np.clip(self.weights[j] + width, 0.0, 1.0).tolist(),
                    "center": {c.name: _plain(c.centers[j]) for c in self.coordinates},
                    "center_error": {c.name: float(c.errors[j]) for c in self.coordinates},
                }
                wide = [c for c in self.coordinates if c.spreads is not None]
                told = {c.name: None if c.hidden_spreads[j] else c.spreads[j] for c in wide}
                # None stays None
                cluster["spread"] = {name: value and float(value) for name, value in told.items()}
            clusters.append(cluster)
        columns = {
            name: [str(end) if isinstance(end, np.datetime64) else end for end in declared]
            for name, declared in self.columns.items()
        }
        return {
            "columns": columns,
            "n_records": self.n_records,
            "record": self.guarantee.unit,
            "clusters": clusters,
            "remarks": list(self.remarks),
            "guarantee": self.guarantee.as_dict(),
        }


def _numbers_of(coordinate: Coordinate) -> list[tuple[str, np.ndarray]]:
    """Return names and numbers (k,) of the columns for a coordinate."""
    name = coordinate.name
    columns = [(name, coordinate.centers), (f"{name} error", coordinate.errors)]
    if coordinate.spreads is not None:
        told = np.where(coordinate.hidden_spreads, np.nan, coordinate.spreads)
        columns.append((f"{name} spread", told))
    return columns


def _public_number(total: float, guarantee: Guarantee) -> int | None:
    """Return the number of rows with those left out, whose noise cancels if it is public."""
    is_replaced = Neighbours.of(guarantee.relation) is Neighbours.REPLACE_ONE
    is_public = is_replaced and guarantee.unit == ROW
    return round(total) if is_public and is_whole(total) else None


def _columns_of(encoder: TableEncoder) -> list[tuple[str, str]]:
    names, columns = iter(encoder.get_feature_names_out()), []
    for column, declared in encoder.columns.items():
        width = len(declared) if isinstance(declared, list) else 1
        columns += [(next(names), column) for _ in range(width)]
    return columns


def _plain(value: Any) -> Any:
    """Return a number, or a date as text."""
    return str(value) if isinstance(value, np.datetime64) else float(value)


def _text(value: Any) -> str:
    """Return a number as text that is read back exactly, or a date; nothing for NaN."""
    value = _plain(value)
    if isinstance(value, str):
        return value
    return "" if math.isnan(value) else repr(value)
