"""The records given to a private estimator, and the attributes of a fitted one that are released.

One record must not decide between a result and an error. Each row is therefore clipped to the
declared ball or box by a rule that depends only on that row (`privclust.privacy.bounds`). If the
number of rows is private, any number is accepted. Other errors concern shapes and types, which are
public, and contain no entry of the data.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_X_y, validate_data

from privclust.core.validation import check_parameters
from privclust.core.warn import warn_caller
from privclust.privacy.advice import noted
from privclust.privacy.budget import charge
from privclust.privacy.groups import Groups, person_codes, unit_of, whole_rows
from privclust.privacy.guarantee import Guarantee, PrivacyLeakWarning, Release
from privclust.privacy.left_out import LeftOutCount, NoisyCount, PrivateRecords
from privclust.privacy.noise import NoiseSource, is_seeded
from privclust.privacy.scaling import is_standardised
from privclust.privacy.sensitivity import Neighbours
from privclust.records.columns import is_frame
from privclust.records.errors import ReadingError, UnreadableCellError
from privclust.records.matrix import numbers_of_table

_ANY_ROW = (
    "rows count as clipped to the bounds; an entry that is not a number counts as their middle"
)
_ANY_WHOLE_ROW = (
    "rows count as clipped to the bounds; a row with an entry that is missing, or that cannot be "
    "read as a number, contributes nothing"
)
_ANY_DIRECTION = "rows count at norm 1; an entry that is not a number counts as 0"
_ANY_WHOLE_DIRECTION = (
    "rows count at norm 1; a row with an entry that is missing, or that cannot be read as a "
    "number, contributes nothing"
)
OF_LISTS = (
    "rows of a list must have as many columns as most of the rows; an error because there are no "
    "rows, or two such numbers of columns, is outside the guarantee"
)
ERRORS_TELL = "an error for rows outside the bounds reveals them: it is outside the guarantee"
_SCALED = (
    "X has means of 0 and deviations of 1: it seems to be scaled by its own statistics, as by "
    "StandardScaler, which the guarantee does not cover. Scale by bounds known without the data: "
    "privclust.preprocessing.BoundsScaler"
)


def all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method `fit` that leaves an estimator either fully fitted or unfitted.

    The attributes of an earlier fit are removed first. A fit that is refused or interrupted removes
    its own, so that attributes of one fit never appear with the guarantee of another.
    """

    @functools.wraps(fit)
    def whole(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        _forget(estimator, vars(estimator).pop("_set_by_fit", ()))
        before = set(vars(estimator))  # parameters, and attributes of scikit-learn
        try:
            result = fit(estimator, *args, **kwargs)
            _note_points(estimator)
        except BaseException:
            _forget(estimator, set(vars(estimator)) - before)
            raise
        estimator._set_by_fit = tuple(sorted(set(vars(estimator)) - before))
        return result

    return whole


def _note_points(estimator: Any) -> None:
    """Add caveats to the guarantee of a fit, if it is weak or X is a list, and warn."""
    guarantee = getattr(estimator, "guarantee_", None)
    if guarantee is None:
        return
    stated = noted(guarantee, getattr(estimator, "_n_public", None))
    if getattr(estimator, "_reads_list", False):
        caveats = dict.fromkeys((*stated.caveats, OF_LISTS))
        stated = replace(stated, caveats=tuple(caveats))
    if stated is guarantee:
        return
    estimator.guarantee_ = stated
    # the sketch of a fit has a copy of the guarantee, which must have the same caveats
    if getattr(getattr(estimator, "sketch_", None), "guarantee", None) is not None:
        estimator.sketch_ = replace(estimator.sketch_, guarantee=stated)


def _forget(estimator: Any, names: Iterable[str]) -> None:
    fitted = (name for name in vars(estimator) if name.endswith("_") and name[0] != "_")
    for name in {*names, *fitted}:
        vars(estimator).pop(name, None)


class PrivateEstimator:
    """An estimator with private fitted attributes, except for some that stay with the data.

    A fit succeeds fully or leaves the estimator unfitted (`all_or_nothing`).

    Files, pickles and copies for other processes leave out the attributes named in `_NOT_RELEASED`,
    which after `fit` only the holder of the data has.
    """

    guarantee_: Guarantee
    left_out_: NoisyCount | None
    _n_public: int | None

    _NOT_RELEASED: ClassVar[tuple[str, ...]] = ("labels_",)
    _SCALES_ROWS: ClassVar[bool] = False  # whether rows are scaled to norm 1, without bounds
    _TYPES: ClassVar[Any] = np.float64  # allowed types of rows

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let the class's own `fit` succeed fully or not at all."""
        super().__init_subclass__(**kwargs)
        if "fit" in vars(cls):
            cls.fit = all_or_nothing(cls.fit)  # type: ignore[method-assign]

    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        """Fit to private rows; the class describes which numbers are released.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers, finite unless rows are clipped to declared bounds or scaled to norm 1. If the
            number of rows is private and bounds are declared, any number of rows is accepted, even
            none.
        y : None
            Not used.
        groups : array-like of shape (n_samples,) or None
            The ID of the group of each row, such as a person. All rows of a group are protected
            together, and a group weighs as much as one row. None: each row is protected by itself.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If X holds no rows: a sketch, or an iterator, which can be read only once.
        ValueError
            If X or groups are not as described, there are fewer rows than clusters and their
            number is public, or a parameter is out of its range.
        ImportError
            If `random_state` is None and OpenDP is not installed.

        Warns
        -----
        PrivacyLeakWarning
            If bounds are taken from the data.
        NoiseWarning
            If a cluster or another result cannot be distinguished from noise.
        """
        raise NotImplementedError

    def _relation(self) -> Neighbours:
        """Return the relation of the parameter `neighbours`; replace-one if there is none."""
        return Neighbours.of(getattr(self, "neighbours", Neighbours.REPLACE_ONE))

    def _checked_records(
        self, X: ArrayLike, groups: ArrayLike | None = None, *, any_number: bool = True
    ) -> PrivateRecords:
        """Return the rows of X that count, after a check of them and of the parameters.

        There must be rows if their number is public, or unless `any_number`.
        """
        hidden = self._relation()
        needed = hidden if any_number else Neighbours.REPLACE_ONE
        records = private_records(self, X, groups, dtype=self._TYPES, neighbours=needed)
        is_public = hidden is Neighbours.REPLACE_ONE
        check_parameters(self, records.rows, count_is_public=is_public, records=records)
        return records

    def _promised(
        self,
        releases: Iterable[Release],
        definition: str,
        source: NoiseSource,
        leaks: tuple[str, ...],
        records: PrivateRecords,
    ) -> Guarantee:
        """Return the guarantee of the releases together; none if the bounds came from the data."""
        delta = getattr(self, "delta", 0.0)
        return Guarantee.of(
            releases,
            "none" if leaks else definition,
            self._relation(),
            delta=float(delta) if definition == "approximate" else 0.0,
            seeded=is_seeded(source),
            caveats=leaks or caveats_of_bounds(self),
            unit=unit_of(records.groups),
        )

    def _charged(
        self,
        promise: Guarantee,
        records: PrivateRecords,
        source: NoiseSource,
        whole: Guarantee | None = None,
    ) -> LeftOutCount:
        """Charge open ledgers, and release the number of records that are left out.

        `promise` is the charged guarantee; `whole` is the stated one, if it differs.
        """
        counts = records.n_counted, records.n_left_out
        left_out = LeftOutCount.of(promise, *counts, unit_of(records.groups))
        self.guarantee_ = left_out.stated(whole or promise)
        # before the count is released: a ledger that refuses the fit must have released nothing
        charge(left_out.stated(promise))
        self.left_out_ = left_out.release(source)
        return left_out

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for a pickle: without those that the guarantee does not cover."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name not in self._NOT_RELEASED}

    def __sklearn_tags__(self) -> Any:
        """Declare that NaN and text are accepted if rows are clipped to declared bounds."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = tags.input_tags.string = takes_any_row(self)
        return tags


def warn_of_score(estimator: Any) -> None:
    """Warn that the guarantee of a fit does not cover scores (PrivacyLeakWarning)."""
    if getattr(estimator, "guarantee_", None) is None or estimator.guarantee_.definition == "none":
        return
    warn_caller(
        f"{type(estimator).__name__}.score is of the rows themselves, without noise: if they are "
        "private, so is the score, and so is the choice of parameters by it; public rows, or "
        "n_clusters='auto' and privclust plan, which cost nothing, leave the guarantee as it is",
        PrivacyLeakWarning,
    )


def takes_any_row(estimator: Any) -> bool:
    """Return whether rows are clipped to declared bounds, or scaled to norm 1."""
    declared = (getattr(estimator, name, None) for name in ("norm_bound", "bounds"))
    return getattr(estimator, "_SCALES_ROWS", False) or any(one is not None for one in declared)


def caveats_of_bounds(estimator: Any) -> tuple[str, ...]:
    """Return the caveats of a guarantee on rows outside the declared bounds."""
    leaves_out = getattr(estimator, "missing", None) == "drop"
    if getattr(estimator, "_SCALES_ROWS", False):
        return (_ANY_WHOLE_DIRECTION if leaves_out else _ANY_DIRECTION,)
    if not takes_any_row(estimator):
        return (ERRORS_TELL,)
    return (_ANY_WHOLE_ROW if leaves_out else _ANY_ROW,)


def private_records(
    estimator: Any,
    X: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    dtype: Any = np.float64,
    neighbours: Neighbours | str = Neighbours.REPLACE_ONE,
    reset: bool = True,
) -> PrivateRecords:
    """Return the rows of X that count, after checks of their public properties.

    Parameters
    ----------
    estimator : estimator
        Its `n_features_in_` is set or, without `reset`, compared. If it `takes_any_row`, entries
        may be infinite or NaN. With ``missing="drop"`` rows with NaN do not count.
    X : array-like of shape (n_samples, n_features)
    groups : array-like of shape (n_samples,) or None
        The person of each row. Rows without an ID do not count.
    dtype : dtype or list of dtype
        As for scikit-learn's ``check_array``.
    neighbours : Neighbours or str
        With ``"add_remove"`` X may have no rows.
    reset : bool

    Returns
    -------
    PrivateRecords
        Rows in C order; X itself if it is in C order and all rows count.

    Raises
    ------
    TypeError
        If X holds no rows: a sketch, or an iterator, which can be read only once.
    ValueError
        If X has another shape or type, or entries that must be finite and are not. No entry is
        quoted.

    Warns
    -----
    PrivacyLeakWarning
        If, with `reset` and bounds that are declared or not needed, X seems to be scaled by its own
        statistics (`privclust.privacy.scaling`).
    """
    if not is_frame(X) and not any(hasattr(X, name) for name in ("__len__", "__array__", "shape")):
        raise TypeError(
            f"X must be an array, a frame or a list of rows, got {type(X).__name__!r}; a stream is "
            "sketched by privclust.sketches.Sketch.of_table, clusters of a sketch are found by "
            "privclust.decoding.decode"
        )
    any_number = Neighbours.of(neighbours) is Neighbours.ADD_REMOVE
    width = _declared_width(estimator) if reset else None
    if reset and width is None and isinstance(X, list | tuple):
        estimator._reads_list = True
    takes_any = takes_any_row(estimator)
    rows = validated(
        estimator,
        X,
        dtype=_one_type(X, dtype),
        order="C",
        reset=reset,
        ensure_all_finite=not takes_any,
        ensure_min_samples=0 if any_number else 1,
        width=width,
    )
    # epsilon=None asks for a fit without privacy
    is_private = getattr(estimator, "epsilon", 1.0) is not None
    if reset and takes_any and is_private and is_standardised(rows):
        warn_caller(_SCALED, PrivacyLeakWarning)
    is_counted, own, n_records = None, None, len(rows)
    if takes_any and getattr(estimator, "missing", None) == "drop":
        is_counted = whole_rows(rows)
    if groups is not None:
        codes, n_records = person_codes(groups, len(rows))
        is_counted = codes >= 0 if is_counted is None else is_counted & (codes >= 0)
        own = Groups.of_codes(codes[is_counted], n_records)
    if reset and isinstance(estimator, PrivateEstimator):
        is_public = groups is None and not any_number
        estimator._n_public = n_records if is_public else None
    kept = rows if is_counted is None or is_counted.all() else rows[is_counted]
    return PrivateRecords(kept, rows, own, is_counted, n_records)


def _declared_width(estimator: Any) -> int | None:
    """Return the number of columns that bounds declare; None if they hold for any number."""
    bounds = getattr(estimator, "bounds", None)
    if isinstance(bounds, Mapping):
        return len(bounds)
    try:
        sizes = {np.size(end) for end in bounds if np.ndim(end) == 1}
    except (TypeError, ValueError):
        return None
    # a list [low, high] of two features has the length 2 as well
    if sizes == {2} and isinstance(bounds, list):
        return len(bounds)  # pairs
    return max(sizes, default=None)


def validated(estimator: Any, X: ArrayLike, **options: Any) -> Any:
    """Return the result of scikit-learn's ``validate_data``, with each cell read independently.

    Types without numbers are refused (`privclust.records.matrix`). Names of columns are taken from
    X itself. ``ensure_all_finite="no NaN"`` accepts infinite entries.
    """
    numbers = numbers_of_table(X, options.pop("width", None))
    finite = options.pop("ensure_all_finite", True)
    # checked below, with a message that also covers texts that are no numbers
    options["ensure_all_finite"] = False
    rows = _validated(estimator, X, numbers, options)
    if finite:
        is_untyped = isinstance(X, np.ndarray) and X.dtype.kind == "O"
        check_finite(rows[0] if isinstance(rows, tuple) else rows, finite == "no NaN", is_untyped)
    return rows


def check_finite(X: np.ndarray, may_be_infinite: bool = False, is_untyped: bool = False) -> None:
    """Raise a ReadingError if an entry is infinite or NaN (such as an entry that is no number)."""
    if np.isnan(X).any():
        told = "X must hold finite real numbers, but contains NaN, or an entry that cannot be read"
        if is_untyped:
            rule = "an argument must be a string of a number, or a number"
            raise UnreadableCellError(f"{told} as a number: {rule}")
        raise ReadingError(f"{told} as a number")
    if not may_be_infinite and not np.isfinite(X).all():
        raise ReadingError("X must hold finite real numbers, but contains infinity")


def _validated(estimator: Any, X: Any, numbers: Any, options: dict[str, Any]) -> Any:
    """Return rows checked by scikit-learn; its messages are shown without entries."""
    refused: Exception
    try:
        if not is_frame(X):
            return validate_data(estimator, numbers, **options)
        reset = options.pop("reset", True)
        # only names and number of columns: scikit-learn would convert all columns together
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if "y" in options:
            return check_X_y(numbers, estimator=estimator, **options)
        return check_array(numbers, estimator=estimator, input_name="X", **options)
    except (TypeError, ValueError) as error:
        refused = type(error)(_without_entries(str(error)))
    raise refused  # outside of the handler: no context with entries of the data


def _without_entries(message: str) -> str:
    """Return a message of scikit-learn's without the entries that it quotes."""
    # "Expected 2D array, got ..." and "Complex data not supported" quote the whole array
    message = re.sub(r"\narray=.*?\.\n(?=Reshape)", "\n", message, flags=re.DOTALL)
    head, quoting, _ = message.partition("not supported\n")
    return head + quoting.rstrip("\n")


def _one_type(X: ArrayLike, dtype: Any) -> Any:
    """Return one of the allowed types; for a table of columns the first.

    A cell may determine the types of a table's columns; the type of an array is public.
    """
    if not isinstance(dtype, list):
        return dtype
    return X.dtype if isinstance(X, np.ndarray) and X.dtype in dtype else dtype[0]
