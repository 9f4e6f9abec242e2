r"""Noise on the statistics of one iteration of a private mixture, and its privacy loss.

Rows are in the unit ball, N is fixed and one row is replaced. One iteration releases, for all K
components at once, the expected sufficient statistics

.. math:: N_k = \sum_i \gamma_{ik}, \quad s_k = \sum_i \gamma_{ik} x_i, \quad
          S_k = \sum_i \gamma_{ik} x_i x_i'.

Noise on these sums is equivalent to noise on the paper's parameters: division by the noisy N~_k
turns a Laplace scale of 2 sqrt(d) / eps' on s_k into the paper's 2 sqrt(d) / (eps' N~_k) of
eq. (15). The guarantee, however, does not depend on N~_k, which may be small or negative.

A row adds gamma (x) phi(x), a Kronecker product with gamma on the simplex. The table gives the l1
and l2 sensitivities over all components to a replaced row, and the leading term of rho, for small
eps', of noise with share eps':

====================  ========  ======  =====================================  =================
statistic             l1        l2      noise                                  rho
====================  ========  ======  =====================================  =================
counts                2         sqrt 2  Laplace 2/eps', eq. (13)               eps'^2/4
sums                  2 sqrt d  2       Laplace 2 sqrt(d)/eps', eqs. (14-15)   eps'^2/2d
sums                            2       Gaussian 2 c/eps', eq. (22)            eps'^2/2c^2
sum of |x|^2          2         sqrt 2  Laplace 1/eps', in place of eq. (16)   eps'^2
diagonal of S         2         sqrt 2  Laplace 1/eps'                         eps'^2
S, upper triangle     d + 1     sqrt 2  Laplace (d+1)/2eps', for eqs. (17-18)  4 eps'^2/(d+1)^2
all of them                     sqrt 6  Gaussian sqrt(6)/share                 share^2/2
counts and sums                 2       Gaussian 2/share                       share^2/2
====================  ========  ======  =====================================  =================

The last two rows: |phi|^2 = 1 + |x|^2 + |x|^4 <= 3 and phi(x)'phi(x') = 1 + x'x' + (x'x')^2 >= 0,
so |gamma (x) phi - gamma' (x) phi'|^2 <= 3 + 3, attained by unit rows in different components. For
independent Laplace noise of scale b on every entry rho is below l2^2 / (2 b^2), since each entry is
a pure release (`privclust.privacy.accounting.laplace_rho`).

The table is for exact arithmetic. Computed statistics are rounded
(`privclust.mixtures._kernels`). Rounded rows are still in the ball. Each component then
receives c, g and g u' instead of gamma, gamma u and gamma u u', with
:math:`|c - \gamma| \le 2^{-31}` and :math:`|g_j - \gamma u_j| \le \eta = 2^{-19}`; the relative
error of the computed gamma is (K + 2) 2^-53. For both rows of a replacement together, this
increases the sensitivity by less than

- in l1: :math:`2 K d \eta` for sums, :math:`2 K \sqrt d\, \eta` for the diagonal,
  :math:`2 K \eta \sum_j j |u_j| \le 2 K \eta (d + 1) \sqrt{d / 3}` for the triangle;
- in l2: :math:`2 \sqrt{K d}\, \eta` for sums, and :math:`\sqrt 2` times that for moments, with
  off-diagonal entries doubled; jointly :math:`2 \sqrt{3 K d}\, \eta`.

Relative to the table, all are within :math:`K \sqrt d\, 2^{-18}` (l1; l2 of the same noise) or
:math:`\sqrt{K d}\, 2^{-18}` (l2 of Gaussian noise), including the errors of counts and of the sum
of responsibilities: `rounding`. With groups, such as persons with several rows each, a row of a
group of n has weight 1 / n, and the sensitivity to a group is that to a row:
`privclust.privacy.groups`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from privclust.core.validation import check_real
from privclust.mixtures._kernels import WEIGHTED_BITS
from privclust.privacy import Neighbours, Release, Sensitivity, zcdp_rho
from privclust.privacy.accounting import advanced_share, cdp_share, check_delta, gaussian_constant
from privclust.privacy.measurements import (
    Gamma,
    Gaussian,
    Laplace,
    Wishart,
    largest_share,
    share_of_rho,
)

RELATION = Neighbours.REPLACE_ONE
Noise: TypeAlias = Laplace | Gaussian | Gamma | Wishart


@dataclass(frozen=True)
class PlanSettings:
    """Settings that determine the noise except its scale: d, K, J, and estimator parameters."""

    n_features: int
    n_components: int
    n_iter: int
    covariance_type: str  # "zero", "spherical", "diag" or "full"
    mean_noise: str  # "laplace", "gaussian" or "joint"
    variant: str  # "corrected" or "paper"
    mean_delta: float  # delta' of the classical Gaussian mechanism on the means


def perturbations(settings: PlanSettings, share: float) -> dict[str, Noise]:
    """Return the noise of one iteration at a share of the budget.

    The only key is ``"joint"``, with the ratio of sensitivity and standard deviation as share; or
    there are ``"counts"``, ``"sums"`` and, unless covariances are zero, ``"second_moments"``, with
    eps' of the paper's mechanisms as share. Each states the privacy loss of all iterations;
    ``variant="paper"`` counts the mean and covariance of each component as a release, as the paper.
    """
    if settings.mean_noise == "joint":
        return {"joint": _joint(settings, share)}
    paper = settings.variant == "paper"
    repeats = settings.n_components * settings.n_iter if paper else settings.n_iter
    bound = _bound(settings, 2.0, "l1", "DP-EM, eq. (13)")
    plan: dict[str, Noise] = {
        "counts": Laplace(bound, share, settings.n_iter, entries=1.0 if paper else 2.0),
        "sums": _sums(settings, share, repeats),
    }
    if settings.covariance_type != "zero":
        second = _paper_moments if paper else _sound_moments
        plan["second_moments"] = second(settings, share, repeats)
    return plan


def rounding(n_components: int, n_features: int, norm: str) -> float:
    """Return the factor by which rounded responsibilities increase a sensitivity.

    With one component responsibilities are 1, and only the rows are rounded.
    """
    if n_components == 1:
        return 1.0
    terms = n_components if norm == "l1" else math.sqrt(n_components)
    return 1.0 + terms * math.sqrt(n_features) * 2.0**-WEIGHTED_BITS


def _bound(settings: PlanSettings, textbook: float, norm: str, proof: str) -> Sensitivity:
    """Return the sensitivity with rounding; assignments to nearest means are not rounded."""
    factor = 1.0
    if settings.covariance_type != "zero":
        factor = rounding(settings.n_components, settings.n_features, norm)
    if factor > 1.0:
        proof += ", plus rounding"
    return Sensitivity(textbook * factor, norm, RELATION, proof)


def _joint(settings: PlanSettings, share: float) -> Gaussian:
    squared = 2 if settings.covariance_type == "zero" else 3
    proof = f"|gamma (x) phi|^2 <= {squared} with phi'phi' >= 0"
    bound = _bound(settings, math.sqrt(2.0 * squared), "l2", proof)
    return Gaussian.of_share(bound, share, settings.n_iter)


def _sums(settings: PlanSettings, share: float, repeats: int) -> Laplace | Gaussian:
    """Return noise on sums: Laplace, or Gaussian by the classical formula."""
    if settings.mean_noise == "gaussian":
        bound = _bound(settings, 2.0, "l2", "DP-EM, eq. (22)")
        return Gaussian.classical(bound, share, settings.mean_delta, repeats)
    d = settings.n_features
    bound = _bound(settings, 2.0 * math.sqrt(d), "l1", "DP-EM, eqs. (14), (19)-(21)")
    entries = 1.0 if settings.variant == "paper" else d
    return Laplace(bound, share, repeats, entries=entries)


def _paper_moments(settings: PlanSettings, share: float, repeats: int) -> Gamma | Wishart:
    """Return noise on second moments as printed, with the privacy loss that the paper claims."""
    if settings.covariance_type == "spherical":
        bound = Sensitivity(1.0, "l1", RELATION, "DP-EM, below eq. (16)")
        return Gamma(bound, share, repeats)
    bound = Sensitivity(1.0, "trace", RELATION, "DP-EM, eqs. (25)-(27)")
    return Wishart(bound, share, repeats)


def _sound_moments(settings: PlanSettings, share: float, repeats: int) -> Laplace:
    """Return Laplace noise on second moments; its loss over all components is two shares."""
    l1 = settings.n_features + 1.0 if settings.covariance_type == "full" else 2.0
    bound = _bound(settings, l1, "l1", "rows in the unit ball, responsibilities sum to 1")
    epsilon = 2.0 * share
    # the l2 sensitivity sqrt(2) over the scale l1 / epsilon
    mu = math.sqrt(2.0) * epsilon / l1
    return Laplace(bound, epsilon, repeats, mu=mu)


@lru_cache(maxsize=1024)
def budget_share(settings: PlanSettings, epsilon: float, delta: float, accounting: str) -> float:
    """Return the share of one perturbation in one iteration, for the budget of the whole fit.

    Accounting is the paper's rule of Section 5 ("cdp", without delta), its rule of Appendix C
    ("advanced"), or calibration of the privacy loss to (epsilon, delta) by "zcdp" or "pld". For
    ``variant="paper"`` the loss is that claimed by the paper. The rules do not cover the corrected
    noise on second moments, with a loss of up to two shares. If a rule would exceed the budget
    (Section 5: K = 1), the share from zCDP is used.

    Raises a ValueError if the budget is out of its range, or for the joint release with advanced
    composition, which needs pure releases.
    """
    check_real("epsilon", epsilon)
    if accounting != "cdp":
        check_delta(delta)
    if accounting == "pld":
        return largest_share(lambda s: perturbations(settings, s).values(), epsilon, delta)
    printed = math.inf
    if accounting in ("cdp", "advanced"):
        printed = _printed_share(settings, epsilon, delta, accounting)
        if settings.variant == "paper":
            return printed
    rho = epsilon if accounting == "cdp" else zcdp_rho(epsilon, delta)
    return min(printed, share_of_rho(lambda s: perturbations(settings, s).values(), rho))


def _printed_share(settings: PlanSettings, epsilon: float, delta: float, accounting: str) -> float:
    """Return the share by the paper's rules: Section 5, or eq. (31) (advanced composition)."""
    n_iter, k = settings.n_iter, settings.n_components
    moments = 0 if settings.covariance_type == "zero" else k
    if accounting == "advanced":
        if settings.mean_noise == "joint":
            raise ValueError(
                "accounting='advanced' composes pure releases: with mean_noise='joint' use "
                "'cdp', 'zcdp' or 'pld'"
            )
        return advanced_share(epsilon, delta, n_iter * (1 + k + moments))
    if settings.mean_noise == "joint":
        return cdp_share(epsilon, n_pure=n_iter)
    if settings.mean_noise == "laplace":
        return cdp_share(epsilon, n_pure=n_iter * (1 + k + moments))
    c = gaussian_constant(settings.mean_delta)
    return cdp_share(epsilon, n_iter * (1 + moments), n_iter * k, c)


def statements(settings: PlanSettings, share: float) -> list[Release]:
    """Return the releases of a fit with a share from `budget_share`."""
    zero, full = (settings.covariance_type == kind for kind in ("zero", "full"))
    names = {
        "counts": "mixing weights",
        "sums": "means",
        "second_moments": "covariances" if full else "variances",
        "joint": "counts and sums" if zero else "counts, sums and second moments",
    }
    words = {"gaussian": "sigma {scale:.4g}"}
    return [
        part.statement(names[key], noise=words.get(part.mechanism, ""))
        for key, part in perturbations(settings, share).items()
    ]
