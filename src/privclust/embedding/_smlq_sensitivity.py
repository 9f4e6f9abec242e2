"""Sensitivity of an embedding to one query: the printed bound, a search, and proved bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from privclust.core.hints import RandomState
from privclust.core.validation import as_generator, check_integer, check_option, check_real
from privclust.embedding._smlq import LabelLaplacian, first_iterate, kernel_width, unit_rows
from privclust.privacy.sensitivity import Neighbours

_N_DIRECTIONS = 24  # directions of the changed record per arrangement in the search
_N_FEATURES = 3  # dimension of the features in the search
_MEAN_ROUNDING = 4.0 * np.finfo(np.float64).eps  # per term, of the difference of two means
_DIAMETER_SQUARED = 4.0 + 1e-4  # of the unit ball, with the rounding of float32


def sensitivity_constant(
    n: int, alpha: float, sigma: float, n_classes: int, variant: str = "paper"
) -> float:
    r"""Return the constant M of Theorem 2, :math:`M = n M_{ij} + M_{ii}` of eqs. (7) and (8).

    As printed. The proof (eqs. 9, 29) bounds :math:`\sum_j [\cdot]_{ij}^2`, the *square* of the
    norm of a row, and uses it as the norm. It therefore proves :math:`\sqrt M`, which exceeds M if
    M < 1, as at the default parameters.

    Parameters
    ----------
    n : int
        Number of samples without the added one, at least 1.
    alpha : float
        Not negative.
    sigma : float
        Positive; width of the kernel :math:`e^{-|x - x'|^2 / (2 \sigma^2)}` of eq. (11).
    n_classes : int
        c + 1, at least 1.
    variant : {"paper", "code"}
        ``"code"`` has :math:`e^{-c / (2 \sigma^2)}` for :math:`e^{-c^2 / (2 \sigma^2)}` in the
        third term of eq. (7), as in the authors' code.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is out of its range, M is not positive, or a denominator is not positive (at
        about :math:`n e^{-2 / \sigma^2} \le 1`), so that the formula gives no bound.

    References
    ----------
    PrivateMail (2021), Lemma 1, eqs. (7), (8), (22), (28).

    Examples
    --------
    >>> round(sensitivity_constant(1000, 0.6, 6.0, 100), 4)
    0.8086
    """
    check_integer("n", n, minimum=1)
    check_real("alpha", alpha, inclusive=True)
    check_real("sigma", sigma)
    check_integer("n_classes", n_classes, minimum=1)
    check_option("variant", variant, ("paper", "code"))
    c = n_classes - 1.0
    width = 2.0 * sigma**2
    far, zero = math.exp(-4.0 / width), math.exp(-1.0 / width)
    less, more = n * far + zero - 1.0, (n + 1.0) * far - 1.0
    if less <= 0 or more <= 0:
        raise ValueError(
            f"Theorem 2 bounds nothing for n={n} and sigma={sigma:g}: a denominator of eqs. (7) "
            f"and (8), n e^(-2/sigma^2) + e^(-1/(2 sigma^2)) - 1 = {less:.3g} or (n + 1) "
            f"e^(-2/sigma^2) - 1 = {more:.3g}, is not positive; use more samples or a larger sigma"
        )
    most = n + zero - 1.0
    labels = math.exp(-(c if variant == "code" else c**2) / width)
    # M_ii, eq. (7)
    row = alpha**2 * (
        (n / less) ** 2 + (n / more) ** 2 - 2.0 * ((n + 1.0) * labels - 1.0) ** 2 / (n * most)
    )
    both = 2.0 * alpha * math.exp(-(c**2 + 4.0) / width)
    # M_ij, eq. (8)
    entry = (
        (alpha**2 + 1.0) * (less**-2 + more**-2)
        - both * (most**-2 + float(n) ** -2)
        - 2.0 * (alpha**2 * math.exp(-2.0 * c**2 / width) + far**2) / (n * most)
        + 4.0 * alpha / (less * more)
    )
    constant = n * entry + row
    if constant <= 0:
        raise ValueError(
            f"Theorem 2 bounds nothing for n={n}, alpha={alpha:g}, sigma={sigma:g}, "
            f"n_classes={n_classes}: its M is {constant:.3g}, not positive"
        )
    return constant


def sensitivity_bound(
    n: int, alpha: float, sigma: float, n_classes: int, start_norm: float, variant: str = "paper"
) -> float:
    r"""Return the bound of Theorem 2, :math:`\Delta = M \sqrt{n + 1} \, \|Q\|_F / 2`.

    Parameters
    ----------
    n, alpha, sigma, n_classes, variant
        See `sensitivity_constant`.
    start_norm : float
        Frobenius norm of the start Q, of n + 1 rows; positive.

    Returns
    -------
    float
        In the units of the start.

    Raises
    ------
    ValueError
        See `sensitivity_constant`.

    Examples
    --------
    >>> round(sensitivity_bound(1000, 0.6, 6.0, 100, 1.0), 3)
    12.792
    """
    check_real("start_norm", start_norm)
    constant = sensitivity_constant(n, alpha, sigma, n_classes, variant)
    return 0.5 * constant * math.sqrt(n + 1.0) * start_norm


@dataclass(frozen=True)
class WorstPair:
    """The neighbouring data sets with the largest change of the first iterate in a search.

    `change` is the Frobenius norm of the difference, `bound` that of Theorem 2. `records` are the
    two versions of the differing record; an added record has a counterpart of zeros.
    """

    change: float
    bound: float
    X: np.ndarray
    y: np.ndarray
    records: tuple[tuple[np.ndarray, int], tuple[np.ndarray, int]]

    @property
    def ratio(self) -> float:
        """The bound over the largest change found: at least 1 if the bound holds."""
        return self.bound / self.change


def search_sensitivity(
    n: int = 1000,
    *,
    alpha: float = 0.6,
    sigma: float = 6.0,
    n_classes: int = 100,
    n_components: int = 2,
    kernel: str = "2 sigma^2",
    relation: str = "add-remove",
    n_steps: int = 50,
    random_state: RandomState = None,
) -> WorstPair:
    """Search for the pair of neighbours with the largest change of the first iterate.

    Initial arrangements have all points at one place, at two opposite places or spread over a
    sphere, with labels that are equal, split between the extremes or random. The differing record
    has the same, the opposite or other directions. Hill climbing then starts at the worst
    arrangement and redraws parts of the points or labels.

    Parameters
    ----------
    n : int
        Number of common samples of both data sets.
    alpha, sigma, n_classes, n_components
        As in `SMLQ`; labels are 0 to n_classes - 1.
    kernel : {"sigma", "sigma^2", "2 sigma^2"}
        The bound is for the last.
    relation : {"add-remove", "replace-one"}
        The paper's relation, an added record against a row and a label of zeros; or a replaced
        record.
    n_steps : int
        Steps of hill climbing, at least 0; O(n^2) each.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of the start Q, of standard deviation 1, and of the arrangements.

    Returns
    -------
    WorstPair
        A lower bound of the sensitivity for that start.

    Raises
    ------
    ValueError
        If an argument is out of its range or Theorem 2 gives no bound.

    Examples
    --------
    >>> pair = search_sensitivity(50, sigma=6.0, n_classes=5, n_steps=0, random_state=0)
    >>> pair.ratio > 1
    True
    """
    check_integer("n", n, minimum=1)
    relation = Neighbours.of(relation, "relation")
    check_integer("n_steps", n_steps, minimum=0)
    check_integer("n_components", n_components, minimum=1)
    rng = as_generator(random_state)
    start = rng.normal(size=(n + 1, n_components))
    bound = sensitivity_bound(n, alpha, sigma, n_classes, float(np.linalg.norm(start)))
    search = _Search(start, alpha, kernel_width(sigma, kernel), n_classes, relation, rng)
    change, X, y, records = max(
        (search.worst_record(X, y) for X, y in search.arrangements(n)), key=lambda worst: worst[0]
    )
    for _ in range(n_steps):
        worst = search.worst_record(*search.perturbed(X, y))
        if worst[0] > change:
            change, X, y, records = worst
    return WorstPair(change, bound, X, y, records)


class _Search:
    """Arrangements of points and labels, and the worst change of one record given each."""

    def __init__(self, start, alpha, width, n_classes, relation, rng):
        self._start, self._alpha, self._width = start, alpha, width
        self._n_classes, self._relation, self._rng = n_classes, relation, rng

    def arrangements(self, n):
        pole, last = np.eye(_N_FEATURES)[0], self._n_classes - 1
        one = np.tile(pole, (n, 1))
        poles = np.where(np.arange(n)[:, None] % 2 == 0, pole, -pole)
        for X in (one, poles, unit_rows(self._rng.normal(size=(n, _N_FEATURES)))):
            yield X, np.zeros(n, dtype=np.int64)
            yield X, np.full(n, last)
            yield X, np.where(np.arange(n) % 2 == 0, 0, last)
            yield X, self._rng.integers(self._n_classes, size=n)

    def perturbed(self, X, y):
        """Return the arrangement with a random part of labels or points redrawn."""
        rng, n = self._rng, len(X)
        X, y = X.copy(), y.copy()
        part = rng.random(n) < rng.choice([0.01, 0.1, 0.5])
        if rng.random() < 0.5:
            y[part] = rng.choice([0, self._n_classes - 1, rng.integers(self._n_classes)])
        else:
            place = unit_rows(rng.normal(size=(1, _N_FEATURES)))
            spread = rng.choice([0.0, 0.3, 3.0])
            X[part] = unit_rows(place + spread * rng.normal(size=(part.sum(), _N_FEATURES)))
        return X, y

    def worst_record(self, X, y):
        """Return the largest change by one differing record, with X, y and both records."""
        weights = np.exp(-cdist(X, X, "sqeuclidean") / self._width)
        np.fill_diagonal(weights, 0.0)
        degrees, products = weights.sum(axis=1), weights @ self._start[:-1]
        points = unit_rows(self._rng.normal(size=(_N_DIRECTIONS, _N_FEATURES)))
        points = np.vstack([X[:1], -X[:1], points])
        labels = sorted({0, self._n_classes // 2, self._n_classes - 1, int(y[0])})
        records = [(point, label) for point in points for label in labels]
        if self._relation is Neighbours.ADD_REMOVE:
            records.insert(0, (np.zeros(_N_FEATURES), 0))
        laplacians = {
            label: LabelLaplacian(np.append(y, label), "paper", self._width) for label in labels
        }
        labelled = {label: self._alpha * own.dot(self._start) for label, own in laplacians.items()}
        flat = np.empty((len(records), self._start.size))
        for image, (point, label) in zip(flat, records, strict=True):
            kernel_row = np.exp(-cdist(point[None], X, "sqeuclidean") / self._width)
            image[:] = first_iterate(
                self._start, degrees, products, kernel_row, np.zeros((1, 1)), labelled[label], 0.0
            ).ravel()
        if self._relation is Neighbours.ADD_REMOVE:
            i, j = 0, int(np.linalg.norm(flat - flat[0], axis=1).argmax())
        else:
            changes = cdist(flat, flat)
            i, j = np.unravel_index(int(changes.argmax()), changes.shape)
        change = float(np.linalg.norm(flat[i] - flat[j]))
        return change, X, y, (records[i], records[j])


def weighted_mean_diameter(rows: np.ndarray, least: float) -> float:
    """Return a bound on the distance of two weighted means of rows, weights in [least, 1].

    Along an axis, the largest mean has weight 1 on the largest coordinates and `least` on the
    others, for some split of the sorted coordinates, which gives the exact extent. The bound is the
    diagonal of the box of these extents, at most sqrt(k) times the diameter. It includes a bound on
    rounding, which matters if `least` is close to 1.
    """
    rounding = _MEAN_ROUNDING * len(rows) / least * np.abs(rows).max()
    extents = [
        _largest_mean(column, least) + _largest_mean(-column, least) + rounding for column in rows.T
    ]
    return float(np.linalg.norm(extents))


def _largest_mean(values, least):
    """Return the largest mean of numbers with weights in [least, 1]."""
    values = -np.sort(-values)
    ones = np.arange(values.size + 1)
    # entry i of `weighted` has weight 1 on the i largest values
    head = np.concatenate([[0.0], np.cumsum(values)])
    weighted = head + least * (head[-1] - head)
    return float((weighted / (ones + least * (values.size - ones))).max())


def proved_sensitivity(
    degrees: np.ndarray,
    products: np.ndarray,
    start: np.ndarray,
    labelled: np.ndarray,
    width: float,
) -> float:
    r"""Return the sensitivity of the first iterate to the query, for given public samples.

    Replace-one: any features of norm 1 and any label are replaced by any others. Let w be the
    kernel of query and public sample i, in :math:`[e^{-4/h}, 1]` (h the kernel's width; slightly
    more than 4, since features may be float32). Row i of :math:`L_Y Q`, :math:`\ell_i`, depends on
    the query only by its label. Then

    .. math:: Z_i = \tfrac12 Q_i + \tfrac12 \frac{\alpha \ell_i + s_i + w q}{d_i + w}
              = \tfrac12 (Q_i + q) + \tfrac12 \frac{\alpha \ell_i + s_i - d_i q}{d_i + w}

    for a public sample (d, s, Q its degree, product and start without the query, q the query's
    start), and :math:`Z = \frac12 q + \frac12 (\alpha \ell / D + \sum_j p_j Q_j)` for the query,
    with :math:`D = \sum_j w_j` and p the weights over D. Two values of a quotient u / v differ by
    at most :math:`|u - u'| / v_{min} + |u'| (1 / v_{min} - 1 / v_{max})`; the last sum is a
    weighted mean (`weighted_mean_diameter`). The squares of the bounds for rows add up.

    `degrees` (n,) are d, `products` (n, k) are s, `start` (n + 1, k) is Q and q, and `labelled`
    (n_labels, n + 1, k) is :math:`\alpha L_Y Q` for each label that a query may have. The result is
    in the units of the start; infinite if a degree is 0.
    """
    n, least = len(degrees), math.exp(-_DIAMETER_SQUARED / width)
    numerators = labelled[:, :-1] + products - degrees[:, None] * start[-1]
    public = _quotient_change(numerators, degrees + least, degrees + 1.0)
    query = _quotient_change(labelled[:, -1:], np.array([n * least]), np.array([float(n)]))
    query_change = float(query[0]) + weighted_mean_diameter(start[:-1], least)
    return 0.5 * math.sqrt(float((public**2).sum()) + query_change**2)


def exchanged_sensitivity(
    start: np.ndarray, labelled: np.ndarray, n_classes: int, width: float
) -> float:
    r"""Return the sensitivity of Algorithm 1's first iterate to a replaced query.

    Rows are n public images, then one row per class: the query for its class, a dummy drawn from
    public images for each other. Assume that a dummy is drawn for *every* class, independently of
    the query. Given these draws, replacing the query (x, c) by (x', c') changes at most two rows: c
    from x to its dummy and c' from its dummy to x' (one row if c = c'). Labels do not change, so
    that :math:`L_Y` and :math:`\ell = \alpha L_Y Q` are the same for every query. A bound for any
    other rows holds for each draw, hence for their mixture. Iterates after the noise use only its
    output and :math:`L_Y`: they are post-processing.

    Let only row a change, among N rows with features of norm 1 and kernel values in [e, 1],
    :math:`e = e^{-4 / h}`. For another row i let d be its degree without a, in
    :math:`[(N - 2) e, N - 2]`, m its weighted mean of Q without a, and w its weight to a:

    .. math:: 2 Z_i = Q_i + Q_a + \frac{\ell_i + d (m - Q_a)}{d + w}.

    For two values of w the quotient differs by at most
    :math:`(1 - e) (|\ell_i| + d R_a) / ((d + e)(d + 1))`, where :math:`R_a` is the largest distance
    from :math:`Q_a` to the bounding box of the rows of Q. :math:`1 / ((d + e)(d + 1))` decreases in
    d, and :math:`d / ((d + e)(d + 1))` from :math:`\sqrt e` on. The iterate of row a is
    :math:`2 Z_a = Q_a + \ell_a / D + \sum_j p_j Q_j` with :math:`D \in [(N - 1) e, N - 1]` and a
    weighted mean (`weighted_mean_diameter`). The squares of the bounds for rows add up. Two rows
    change one after the other: the result is the sum of the two largest such bounds.

    `start` (N, k) is Q, `labelled` (N, k) is l. The result is in the units of the start; infinite
    if e is 0.
    """
    n, least = len(start), math.exp(-_DIAMETER_SQUARED / width)
    if least == 0.0:
        return math.inf
    norms, low, high = np.linalg.norm(labelled, axis=1), start.min(axis=0), start.max(axis=0)
    degree = (n - 2) * least
    turned = max(degree, math.sqrt(least))
    by_label = norms / ((degree + least) * (degree + 1.0))
    by_start = turned / ((turned + least) * (turned + 1.0))
    moves = []
    for a in range(n - n_classes, n):
        reach = np.linalg.norm(np.maximum(high - start[a], start[a] - low))
        rows = (1.0 - least) * (by_label + reach * by_start)
        rows[a] = norms[a] * (1.0 / least - 1.0) / (n - 1)
        rows[a] += weighted_mean_diameter(np.delete(start, a, axis=0), least)
        moves.append(0.5 * float(np.linalg.norm(rows)))
    return math.fsum(sorted(moves)[-2:])


def _quotient_change(numerators, least, most):
    """Return a bound on the change of u / v over all u (axis 0) and v in [least, most]."""
    # the box of all numerators: its diagonal bounds |u - u'|
    extents = numerators.max(axis=0) - numerators.min(axis=0)
    largest = np.linalg.norm(numerators, axis=2).max(axis=0)
    return np.linalg.norm(extents, axis=1) / least + largest * (1.0 / least - 1.0 / most)
