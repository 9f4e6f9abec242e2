r"""Smooth sensitivity of the most central of m results, and the noise that it requires.

Sample and aggregate computes :math:`B = (s_1, \ldots, s_m)` on m subsets of the data and releases
the :math:`g(B) = s_i` with the smallest :math:`r_i(t_0)`, with noise. Here :math:`r_i(t)` is the
radius of the smallest ball about :math:`s_i` that holds t results, itself among them, in a
semimetric d of diameter :math:`\Lambda`; a record changes at most s results, and
:math:`t_0 = \lfloor (m + s) / 2 \rfloor + 1`.

Local sensitivity
    Write :math:`r_{(j)}(t)` for the j-th smallest of :math:`r_1(t), \ldots, r_m(t)`, and
    :math:`\Lambda` for it when j or t is above m. Let B' differ from B in s results at most.

    (a) :math:`r'_{(j)}(t) \le r_{(j+s)}(t+s)`. At least j of the first j + s results of the
    right-hand side are in B' too. The ball of t + s results about one of them loses at most s
    results, so :math:`r'(t) \le r(t+s)` for it.

    (b) B and B' share at least m - s results. The balls of :math:`t_0` results about g(B) and g(B')
    contain at least :math:`t_0 - s` of these each. Since :math:`2 (t_0 - s) > m - s` they
    share one, and :math:`d(g(B), g(B')) \le r_{(1)}(t_0) + r'_{(1)}(t_0)`.

    With (a), :math:`d(g(B), g(B')) \le A_0`, where

    .. math:: A_k = \min\{\Lambda,\;
        r_{(ks+1)}(t_0 + ks) + r_{((k+1)s+1)}(t_0 + (k+1)s)\}.

Smooth bound
    :math:`S(B) = \max_{k \ge 0} e^{-\beta k} A_k(B) \ge A_0`. By (a)
    :math:`A_k(B') \le A_{k+1}(B)`, hence :math:`S(B') \le e^{\beta} S(B)`, and the same with B and
    B' exchanged. (Both terms of :math:`A_k` are at most the second one: S is at most
    :math:`2 \max_k e^{-\beta k} r_{((k+1)s+1)}(t_0 + (k+1)s)`.)

    (a) compares numbers and needs no triangle inequality, so rounding does not affect it.

Noise
    Gaussian noise of standard deviation :math:`S(B) / \alpha` on each of D coordinates, in which
    the Euclidean distance of g(B) and g(B') is at most :math:`\min(S(B), S(B'))`. In units of
    :math:`S(B) / \alpha` the two outputs are N(0, I) and :math:`N(v, c^2 I)` with
    :math:`e^{-\beta} \le c \le e^{\beta}` and :math:`\|v\| \le \alpha \min(1, c)`; exchanging them
    gives a pair of the same kind. `worst_delta` bounds their hockey-stick divergence.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaincc, gammaln, log_ndtr, ndtr

_LARGEST_BETA = 5.0  # S falls by e^-5 a step: larger ones change nothing
_STEP_PART_OF_EPSILON = 0.01  # fraction of epsilon that the steps in c may add
_MAX_STEPS = 20_000  # most steps in c
_BETA_DECAY = 0.98  # factor of beta from one attempt to the next, until delta is met
_MARGIN = 1e-6  # relative, of delta: outweighs errors of the quadrature
_TAIL_DEVIATIONS = 12.0  # values further from the mean have probability 1e-31
_PANELS, _NODES = 64, 16  # panels of the quadrature, and Gauss-Legendre nodes in each


def neighbours_needed(n_results: int, n_changed: int) -> int:
    """Return t_0: two balls of t_0 results share a result that a record did not change."""
    return (n_results + n_changed) // 2 + 1


def neighbour_radii(distances: np.ndarray) -> np.ndarray:
    """Return r_i(t) in row i and column t - 1 of an (m, m) array, from distances of results."""
    return np.sort(distances, axis=1)


def most_central(radii: np.ndarray, n_changed: int) -> int:
    """Return i with the least r_i(t_0); 0 if t_0 is above m."""
    t0 = neighbours_needed(len(radii), n_changed)
    return int(radii[:, t0 - 1].argmin()) if t0 <= len(radii) else 0


def smooth_sensitivity(
    radii: np.ndarray, beta: float, diameter: float, n_changed: int = 1
) -> float:
    r"""Return S(B), the smooth bound on the local sensitivity that the module derives.

    Parameters
    ----------
    radii : ndarray of shape (m, m)
        From `neighbour_radii`.
    beta : float
        Positive: the largest change of ln S when `n_changed` results change.
    diameter : float
        Largest distance of any two results, Lambda.
    n_changed : int
        s.

    Returns
    -------
    float
        In the units of the distances, positive, at most the diameter.
    """
    n_results, s = len(radii), n_changed
    t0 = neighbours_needed(n_results, s)
    # the number of k with t0 + ks <= m
    n_steps = max(0, (n_results - t0) // s + 1)
    ranks = np.arange(n_steps) * s  # j = ks + 1 and t = t0 + ks, counted from 0; j <= t
    ordered = np.sort(np.minimum(radii, diameter), axis=0)
    # beyond m results both terms are the diameter
    nearest = np.append(ordered[ranks, t0 - 1 + ranks], [diameter, diameter])
    bounds = np.minimum(nearest[:-1] + nearest[1:], diameter)
    return float((bounds * np.exp(-beta * np.arange(len(bounds)))).max())


def printed_sensitivity(radii: np.ndarray, beta: float, diameter: float, n_changed: int) -> float:
    r"""Return S(B) of Algorithm 1, which is not smooth.

    :math:`2 \max_k \rho(t_0 + (k + 1) s) e^{-\beta k}`, with :math:`\rho(t)` the mean of the
    :math:`\lfloor s / \beta \rfloor` largest :math:`r_i(t)` (at least one, at most all).

    If all results but s agree, :math:`\rho` is about :math:`\beta \Lambda`; if all agree, it is 0
    up to t = m. The ratio is not :math:`e^{\beta}` but grows as :math:`\beta e^{\beta m / (2 s)}`.
    """
    n_results, s = len(radii), n_changed
    # floor(s / beta) of the paper may be 0 or above m
    n_top = min(max(int(s / beta), 1), n_results)
    means = np.sort(radii, axis=0)[-n_top:].mean(axis=0)
    ranks = np.arange(neighbours_needed(n_results, s) + s, n_results + 1, s)
    means = np.append(means[ranks - 1], diameter)
    return float(2.0 * (means * np.exp(-beta * np.arange(len(means)))).max())


def lemma_calibration(epsilon: float, delta: float, n_coordinates: int) -> tuple[float, float]:
    """Return alpha and beta of Algorithm 1, line 2 (Nissim, Raskhodnikova and Smith 2007).

    `worst_delta` finds them admissible, for delta from 1e-12 to 0.01, up to an epsilon of at least
    25 (D = 2), 30 (D = 4), 105 (D = 30), 225 (D = 90) and 430 (D = 2250).
    """
    log_term = math.log(2.0 / delta)
    alpha = epsilon / (5.0 * math.sqrt(2.0 * log_term))
    return alpha, epsilon / (4.0 * (n_coordinates + log_term))


@lru_cache(maxsize=1024)
def exact_calibration(epsilon: float, delta: float, n_coordinates: int) -> tuple[float, float]:
    r"""Return alpha and beta by the hockey-stick divergence itself, for every epsilon.

    Alpha is half of its value for noise of one fixed scale, so that varying scales cost at most a
    factor of two if results agree perfectly; beta is the largest that `worst_delta` then allows. Up
    to epsilon = 10 the noise is smaller than by `lemma_calibration` by a factor of 2 to 7, and beta
    falls as :math:`1 / \sqrt D` rather than 1 / D. Raises a ValueError if the budget is so small
    that there is no beta.
    """
    least = 1e-9 * epsilon

    def excess_of_shift(alpha):
        return hockey_stick(epsilon, alpha, 1.0, 1) - delta

    # the mean loss alpha^2 / 2 is far above epsilon here, so that delta is close to 1
    largest = 2.0 * (math.sqrt(2.0 * epsilon) + math.sqrt(-2.0 * math.log(delta)) + 4.0)
    alpha0 = largest
    if excess_of_shift(largest) > 0:
        alpha0 = brentq(excess_of_shift, least, largest, rtol=1e-12)
    # worst_delta needs alpha^2 <= 2 epsilon, which fails for deltas near 1 only
    alpha = min(alpha0 / 2.0, math.sqrt(2.0 * epsilon))

    def excess(log_beta):
        c = math.exp(-math.exp(log_beta))
        # twice the margin that `worst_delta` adds, so that the first beta usually passes there
        return hockey_stick(epsilon, alpha * c, c, n_coordinates) - delta * (1.0 - 2.0 * _MARGIN)

    # a smaller beta than the lower end would make S nearly the diameter for any results
    low, high = math.log(1e-7 * epsilon / n_coordinates), math.log(_LARGEST_BETA)
    if excess(low) > 0:
        raise ValueError(
            f"epsilon and delta are too small for noise on {n_coordinates} coordinates, got "
            f"epsilon={epsilon!r}, delta={delta!r}"
        )
    beta = math.exp(high if excess(high) <= 0 else brentq(excess, low, high, xtol=1e-9))
    while worst_delta(epsilon, alpha, beta, n_coordinates) > delta:
        beta *= _BETA_DECAY
    return alpha, beta


def worst_delta(epsilon: float, alpha: float, beta: float, n_coordinates: int) -> float:
    r"""Return delta for which noise of that alpha and beta is (epsilon, delta)-private.

    Bounds :math:`H(v, c) = \sup_E P(E) - e^{\epsilon} Q(E)` of P = N(0, I), Q = N(v, c^2 I) over
    all c and v that the module allows.

    *In v*, H grows with :math:`\|v\|`. It is :math:`1 - \int \min(p, e^{\epsilon} q)`. The integral
    is over the common volume of level sets, which are balls about 0 and v, and falls with the
    distance of their centers.

    *For c <= 1*, H grows as c falls if :math:`\alpha^2 \le 2 \epsilon`. In units of c times the
    noise, P and Q are N(0, a^2 I), a = 1 / c, and N(v, I) with :math:`\|v\| = \alpha`. The best E
    is the outside of a ball that contains 0, since
    :math:`\alpha^2 / 2 - D \ln a \le \epsilon`. By the envelope theorem dH / da is the change of
    P(E) with E fixed. A wider normal distribution gives less probability to a convex set that
    contains its center. So the worst case is :math:`c = e^{-\beta}`.

    *For c > 1*, steps :math:`c_j` of ratio :math:`e^h`: for c in
    :math:`[c_j, c_j e^h]` the density of N(v, c^2 I) is at least :math:`e^{-Dh}` of that with
    :math:`c_j`, so that H at epsilon is at most H at :math:`\epsilon - D h` with :math:`c_j`.

    Returns
    -------
    float
        At most 1, the value for any beta above 5. Without the condition on alpha, steps are taken
        on both sides.
    """
    if beta > _LARGEST_BETA:
        return 1.0
    n_steps = math.ceil(n_coordinates * beta / (_STEP_PART_OF_EPSILON * epsilon))
    n_steps = min(max(n_steps, 1), _MAX_STEPS)
    step = beta / n_steps
    reduced = epsilon - n_coordinates * step
    if reduced <= 0:
        return 1.0
    wider = np.exp(step * np.arange(n_steps))
    deltas = [hockey_stick(reduced, alpha, c, n_coordinates) for c in wider]
    if alpha**2 <= 2.0 * epsilon:
        narrowest = math.exp(-beta)
        deltas.append(hockey_stick(epsilon, alpha * narrowest, narrowest, n_coordinates))
    else:
        # c_j e^-h <= c <= c_j: the smallest of the densities is that of the lower end
        narrower = np.exp(-step * np.arange(1, n_steps + 1))
        deltas += [
            hockey_stick(reduced, alpha * c * math.exp(step), c, n_coordinates) for c in narrower
        ]
    return min(1.0, max(deltas) * (1.0 + _MARGIN))


def hockey_stick(epsilon: float, shift: float, scale: float, n_coordinates: int) -> float:
    r"""Return :math:`\sup_E P(E) - e^{\epsilon} Q(E)` for P = N(0, I), Q = N(v, c^2 I).

    `shift` is the length of v, `scale` is c and `n_coordinates` D, at least 2 unless c = 1. Let t
    be the coordinate along v and u the squared length of the D - 1 others. With :math:`\tau =
    c^{-2} - 1`, :math:`b = \|v\| / c^2`; then

    .. math:: 2 \ln (p / q) - 2 \epsilon = \tau t^2 - 2 b t + C(u), \quad
        C(u) = \tau u + \|v\|^2 / c^2 + 2 D \ln c - 2 \epsilon.

    E is where this is positive: for given u, t outside (c < 1) or inside (c > 1) two roots, with a
    normal probability. Its mean over u is found by quadrature, with a relative error of about
    1e-10. If :math:`e^{\epsilon} Q(E)` underflows, the result is P(E),
    which is larger.
    """
    if scale == 1.0:  # closed form: only the coordinate along v differs
        middle = epsilon / shift
        # in logarithms: e^epsilon overflows from epsilon = 710 on
        less = math.exp(min(epsilon + float(log_ndtr(-shift / 2.0 - middle)), 0.0))
        return max(0.0, float(ndtr(shift / 2.0 - middle)) - less)
    first = _mass(epsilon, shift, scale, n_coordinates, 0.0, 1.0)
    second = _mass(epsilon, shift, scale, n_coordinates, shift, scale)
    if second == 0.0:
        return first
    return max(0.0, first - math.exp(min(epsilon + math.log(second), 0.0)))


def _mass(epsilon, shift, scale, n_coordinates, mean, deviation):
    """Return the probability of E of `hockey_stick` under N(mean v / |v|, deviation^2 I)."""
    # scale^-2 - 1 in factors, because scales are close to 1
    tau = (1.0 / scale - 1.0) * (1.0 / scale + 1.0)
    b = shift / scale**2
    constant = shift**2 / scale**2 + 2.0 * n_coordinates * math.log(scale) - 2.0 * epsilon
    # above this u there are no roots: all t are in E if c < 1, and none if c > 1
    last = (b**2 / tau - constant) / tau / deviation**2
    degrees = n_coordinates - 1
    # the length of a normal vector is as concentrated as one coordinate
    low = max(0.0, math.sqrt(degrees) - _TAIL_DEVIATIONS)
    high = math.sqrt(degrees) + _TAIL_DEVIATIONS
    edge = min(math.sqrt(max(last, 0.0)), high)
    beyond = float(gammaincc(degrees / 2.0, edge**2 / 2.0)) if tau > 0 and edge < high else 0.0
    if edge <= low:
        return beyond
    nodes, weights = _quadrature()
    # the roots meet at the edge as a square root does: smooth in this variable
    lengths = edge - (edge - low) * nodes**2
    weights = weights * 2.0 * nodes * (edge - low)
    # the chi distribution of the length of D - 1 coordinates
    log_density = (degrees - 1) * np.log(lengths) - lengths**2 / 2.0
    log_density -= (degrees / 2.0 - 1.0) * math.log(2.0) + gammaln(degrees / 2.0)
    u = (lengths * deviation) ** 2
    c_of_u = tau * u + constant
    # roots of tau t^2 - 2 b t + C without cancellation: C / reach and reach / tau
    reach = b + np.sqrt(np.maximum(b**2 - tau * c_of_u, 0.0))
    near, far = (c_of_u / reach - mean) / deviation, (reach / tau - mean) / deviation
    inside = ndtr(near) + ndtr(-far) if tau > 0 else ndtr(near) - ndtr(far)
    return float(min(1.0, beyond + (weights * np.exp(log_density) * inside).sum()))


@lru_cache(maxsize=1)
def _quadrature():
    """Return nodes and weights on [0, 1]: Gauss-Legendre in each of many equal panels."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    starts = np.arange(_PANELS)[:, None]
    return ((starts + (nodes + 1.0) / 2.0) / _PANELS).ravel(), np.tile(
        weights / (2.0 * _PANELS), _PANELS
    )
