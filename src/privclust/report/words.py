"""A report in words: its origin, its guarantee in one sentence, its clusters one by one."""

from __future__ import annotations

import datetime
import math
import shlex
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Decimal
from pathlib import Path

import numpy as np

from privclust import __version__
from privclust.privacy import Guarantee
from privclust.privacy.advice import LARGEST_EPSILON, weak_parameters
from privclust.privacy.groups import ROW
from privclust.report.coordinate import DATE, SHARE, WIDTH_95, Coordinate
from privclust.report.table_clusters import TableClusters

_COLUMNS = 6  # most columns that describe a cluster; the page has tables of all
_DELTA = 1e-6  # delta at which a guarantee without one is put in words
_LONGEST = Decimal("1e-9")  # the least delta that is written without an exponent
_SMALL, _LARGE = 1e-4, 12.0  # epsilons between which the factor is written out


def origin(arguments: Sequence[str], paths: Iterable[str | None]) -> str:
    """Return the day, the version and the command that made a report.

    Paths are shortened to their last part. The value of ``--seed``, however the option is
    abbreviated, is left out: whoever knows the seed can remove the noise.

    Examples
    --------
    >>> typed = ["cluster", "tables/a.csv", "--see", "5", "-oreports/b"]
    >>> origin(typed, ["tables/a.csv", "reports/b"]).partition("with: ")[2]
    'privclust cluster a.csv --see ... -ob'
    """
    words = list(arguments)
    for path in sorted({path for path in paths if path}, key=len, reverse=True):
        words = [word.replace(path, Path(path).name or path) for word in words]
    is_value = False
    for place, word in enumerate(words):
        name, mark, _ = word.partition("=")
        if is_value:
            words[place] = "..."
        # argparse accepts abbreviations; "--" is none
        is_seed = len(name) > 2 and "--seed".startswith(name) and not is_value
        if is_seed and mark:
            words[place] = f"{name}=..."
        is_value = is_seed and not mark
    today = datetime.datetime.now(tz=datetime.UTC).date()
    return f"Made on {today} by privclust {__version__} with: {shlex.join(['privclust', *words])}"


def guarantee_in_words(guarantee: Guarantee) -> str:
    """Return the meaning of a guarantee in one sentence, without technical terms.

    Examples
    --------
    >>> said = guarantee_in_words(Guarantee("pure", "replace-one", epsilon=1.0))
    >>> said.partition(" changes ")[2]
    'the probability of any result from p to at most 2.72 p.'
    """
    thing = "one row" if guarantee.unit == "row" else "all rows of one person or group"
    change = "Replacing" if "replace" in str(guarantee.relation) else "Adding or removing"
    epsilon, delta = _at_a_delta(guarantee)
    plus = f" + {_decimal(delta)}" if delta else ""
    what = f"{change} {thing} of the table changes the probability of any result from p to at most"
    return f"{what} {_factor(epsilon)} p{plus}."


def five_rows_in_words(guarantee: Guarantee) -> str:
    """Return the protection of a person with five rows; empty if all rows of a person count once.

    Examples
    --------
    >>> print(five_rows_in_words(Guarantee("pure", "replace-one", epsilon=1.0)))
    A person with several rows is less protected: with five rows, up to 149 p.
    """
    if guarantee.unit != ROW:
        return ""
    epsilon, delta = _at_a_delta(guarantee)
    words = "A person with several rows is less protected: with five rows,"
    # five rows: 5 epsilon and 5 e^(4 epsilon) delta; exp overflows beyond 700
    more = 5.0 * math.exp(min(4.0 * epsilon, 700.0)) * delta
    if more >= 1.0:
        return f"{words} not at all."
    plus = f" + {_decimal(more)}" if more else ""
    return f"{words} up to {_factor(5.0 * epsilon)} p{plus}."


def _at_a_delta(guarantee: Guarantee) -> tuple[float, float]:
    """Return epsilon and delta, of a guarantee without them at a delta of 1e-6."""
    if guarantee.definition in ("pure", "approximate"):
        return guarantee.epsilon, guarantee.delta
    return guarantee.epsilon_at(_DELTA), _DELTA


def _factor(epsilon: float) -> str:
    """Write exp(epsilon), rounded up."""
    if _SMALL < epsilon < _LARGE:
        return f"{_rounded_up(math.exp(epsilon), 6 if epsilon < 0.1 else 3):,f}"
    # the factor would be too long to read, or look like 1; it overflows from 710 on
    return f"exp({float(_rounded_up(epsilon, 4)):.4g})"


def weakness_in_words(guarantee: Guarantee, n_rows: int | None) -> str:
    """Return why a guarantee is weak and what to do about it; empty if it is not weak.

    Parameters
    ----------
    guarantee : Guarantee
    n_rows : int or None
        The number of rows, if it is public.

    Examples
    --------
    >>> said = weakness_in_words(Guarantee("pure", "replace-one", epsilon=40.0), 1000)
    >>> said.partition(",")[0]
    'This guarantee is weak: with an epsilon of 40'
    """
    is_weak_epsilon, is_weak_delta = weak_parameters(guarantee, n_rows)
    thing = "one row" if guarantee.unit == ROW else "one person"
    why, how = [], []
    if is_weak_epsilon:
        why.append(
            f"with an epsilon of {guarantee.epsilon:.4g}, these files may reveal almost everything "
            f"about {thing}"
        )
        how.append(f"an epsilon of at most {LARGEST_EPSILON:g}")
    if is_weak_delta:
        why.append(
            f"a delta of {guarantee.delta:g} is at least one over the number of rows, and would "
            "allow one row to be published as it is"
        )
        how.append("a delta far below one over the number of rows")
    if not why:
        return ""
    return (
        f"This guarantee is weak: {'; '.join(why)}. Keep these files as the table itself. For "
        f"files to publish, run again with {' and '.join(how)}."
    )


def _rounded_up(value: float, digits: int) -> Decimal:
    """Round a positive number up to a number of digits, as bounds are never rounded down."""
    exact = Decimal(repr(value))
    if not exact.is_finite():
        return exact
    return exact.quantize(Decimal(1).scaleb(exact.adjusted() + 1 - digits), ROUND_CEILING)


def _decimal(delta: float) -> str:
    """Write a small number, rounded up, without an exponent if it is not too long."""
    rounded = _rounded_up(delta, 2)
    return (
        f"{rounded:f}".rstrip("0").rstrip(".") if rounded >= _LONGEST else f"{float(rounded):.1e}"
    )


def clusters_in_words(clusters: TableClusters) -> list[str]:
    """Return a sentence for each detected cluster: its share of the rows, and its center.

    A "?" marks clusters with errors that are not known well. If there are many columns, only those
    are named in which the cluster differs most.
    """
    sentences = []
    for j in np.flatnonzero(clusters.is_detected).tolist():
        columns = sorted(clusters.columns, key=lambda name: -_difference(clusters, name, j))
        chosen = columns[:_COLUMNS]
        told = [_column(clusters, name, j) for name in clusters.columns if name in chosen]
        further = " (of all columns, those that differ most)" if len(columns) > _COLUMNS else ""
        share = _about(100.0 * clusters.weights[j], 100.0 * clusters.weight_errors[j])
        mark = "" if clusters.is_reliable[j] else "(?) "
        sentences.append(f"{mark}About {share} % of the rows: {', '.join(told)}{further}")
    return sentences


def _coordinates(clusters: TableClusters, name: str) -> list[Coordinate]:
    return [c for c in clusters.coordinates if c.column == name]


def _difference(clusters: TableClusters, name: str, j: int) -> float:
    """Return the distance of a cluster from the mean of all, relative to the column's range."""
    weights = np.where(clusters.is_detected, np.maximum(clusters.weights, 0.0), 0.0)
    largest = 0.0
    for coordinate in _coordinates(clusters, name):
        places, _ = coordinate.scaled(clusters.columns[name])
        mean = weights @ places / weights.sum()
        largest = max(largest, abs(float(places[j] - mean)))
    return largest


def _column(clusters: TableClusters, name: str, j: int) -> str:
    """Return a column of a cluster in words; for categories, the most frequent one."""
    first, *others = _coordinates(clusters, name)
    if first.kind == SHARE:
        shares = [c.centers[j] for c in (first, *others)]
        most = int(np.argmax(shares))
        width = WIDTH_95 * (first, *others)[most].errors[j]
        share = min(max(shares[most], 0.0), 1.0)  # noise may move it out of the range
        told = f"{name} {clusters.columns[name][most]}"
        if not width < share:
            return f"most often {told}"
        if share + width < 1.0:
            return f"about {100.0 * share:.0f} % with {told}"
        return f"at least {math.floor(round(100.0 * (share - width), 6))} % with {told}"
    if first.kind == DATE:
        return f"{name} about {np.datetime_as_string(first.centers[j], unit='D')}"
    return f"{name} about {_about(first.centers[j], first.errors[j])}"


def _about(value: float, error: float) -> str:
    """Return a number as in the tables of the report, but with at most three digits.

    Examples
    --------
    >>> _about(81234.5, 1234.0), _about(21.593, 0.105), _about(0.169, 0.02)
    ('81,200', '21.6', '0.169')
    """
    size = max(abs(value), WIDTH_95 * error)
    if not (math.isfinite(size) and error > 0.0 and size > 0.0):
        return f"{value:,.3g}"
    digits = 1 - math.floor(math.log10(WIDTH_95 * error))
    # two digits of the error, and at most three of the number
    digits = min(digits, 2 - math.floor(math.log10(size)))
    return f"{round(value, digits) + 0.0:,.{max(digits, 0)}f}"  # -0.0 has a sign
