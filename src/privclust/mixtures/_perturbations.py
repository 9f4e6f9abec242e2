r"""How a private mixture noises the statistics of one iteration, and what that costs.

With rows in the unit ball, N fixed and one row replaced, one iteration releases, for all K
components at once, the expected sufficient statistics

.. math:: N_k = \sum_i \gamma_{ik}, \quad s_k = \sum_i \gamma_{ik} x_i, \quad
          S_k = \sum_i \gamma_{ik} x_i x_i'.

Noise on these sums is noise on the paper's parameters: dividing by the noisy N~_k afterwards
turns a Laplace scale of 2 sqrt(d) / eps' on s_k into the paper's 2 sqrt(d) / (eps' N~_k) of
eq. (15). The guarantee, however, no longer hangs on N~_k, which may come out small or negative.

A row adds gamma (x) phi(x), a Kronecker product with gamma on the simplex. Replacing it changes,
over all components together (notation: l1 / l2 sensitivity, and the leading term of rho, for small
eps', of noise with share eps'),

====================  ========  ======  =====================================  =================
statistic             l1        l2      noise                                  rho
====================  ========  ======  =====================================  =================
counts                2         sqrt 2  Laplace 2/eps', eq. (13)               eps'^2/4
sums                  2 sqrt d  2       Laplace 2 sqrt(d)/eps', eqs. (14-15)   eps'^2/2d
sums                            2       normal 2 c/eps', eq. (22)              eps'^2/2c^2
sum of |x|^2          2         sqrt 2  Laplace 1/eps', in place of eq. (16)   eps'^2
diagonal of S         2         sqrt 2  Laplace 1/eps'                         eps'^2
S, upper triangle     d + 1     sqrt 2  Laplace (d+1)/2eps', for eqs. (17-18)  4 eps'^2/(d+1)^2
all of them                     sqrt 6  normal sqrt(6)/share                   share^2/2
counts and sums                 2       normal 2/share                         share^2/2
====================  ========  ======  =====================================  =================

The last two: |phi|^2 = 1 + |x|^2 + |x|^4 <= 3 and phi(x)'phi(x') = 1 + x'x' + (x'x')^2 >= 0, so
|gamma (x) phi - gamma' (x) phi'|^2 <= 3 + 3, attained by unit rows in different components. For
independent Laplace noise of scale b on every entry rho is below l2^2 / (2 b^2), since each entry is
a pure release of its own (`privclust.privacy.accounting.laplace_rho`).

That is the textbook; what is computed is rounded (`privclust.mixtures._exact_kernels`). Rows are
rounded so that they are in the ball still. Each component then gets, in place of gamma, gamma u and
gamma u u', the numbers c, g and g u' with :math:`|c - \gamma| \le 2^{-31}` and
:math:`|g_j - \gamma u_j| \le \eta = 2^{-19}`, where a gamma of sum 1 differs from the computed one
by a part of (K + 2) 2^-53. For both rows of a replacement together, the statistics therefore change
by more than the table says by at most (and less than)

- in l1: :math:`2 K d \eta` for sums, :math:`2 K \sqrt d\, \eta` for the diagonal,
  :math:`2 K \eta \sum_j j |u_j| \le 2 K \eta (d + 1) \sqrt{d / 3}` for the triangle;
- in l2: :math:`2 \sqrt{K d}\, \eta` for sums, and :math:`\sqrt 2` times that for moments, with
  the entries beside the diagonal doubled; jointly :math:`2 \sqrt{3 K d}\, \eta`.

All are within
:math:`K \sqrt d\, 2^{-18}` (l1; l2 of the same noise) or :math:`\sqrt{K d}\, 2^{-18}`
(l2 of Gaussian noise) of the textbook's value, and so is what counts and the sum of
responsibilities add: `rounding`. With groups, such as persons with several rows each, every row
of n counts 1 / n, and a group moves the statistics by no more than a row does:
`privclust.privacy.groups`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from privclust.mixtures._exact_kernels import WEIGHTED_BITS
from privclust.privacy import Guarantee, Neighbours, Sensitivity, zcdp_rho
from privclust.privacy.accounting import (
    advanced_share,
    cdp_share,
    check_delta,
    check_epsilon,
    gaussian_constant,
)
from privclust.privacy.groups import ROW
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
    """What decides the noise besides its scale: d, K, J, and parameters of the estimator."""

    n_features: int
    n_components: int
    n_iter: int
    covariance_type: str  # "zero", "spherical", "diag" or "full"
    mean_noise: str  # "laplace", "gaussian" or "joint"
    variant: str  # "corrected" or "paper"
    mean_delta: float  # delta' of the classical Gaussian mechanism on the means


def perturbations(settings: PlanSettings, share: float) -> dict[str, Noise]:
    """Return the noise of one iteration at a share of the budget.

    There is ``"joint"`` alone, where the share is the ratio of sensitivity and standard deviation,
    or ``"counts"``, ``"sums"`` and, but for zero covariances, ``"second_moments"``, where it is
    eps' of the paper's mechanisms. Each states the price of all iterations: for
    ``variant="paper"`` the paper's, who counts each component's mean and covariance as a release.
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
    """Return by how much larger a sensitivity is where responsibilities are rounded.

    With one component they are 1, and nothing is rounded after the rows themselves.
    """
    if n_components == 1:
        return 1.0
    terms = n_components if norm == "l1" else math.sqrt(n_components)
    return 1.0 + terms * math.sqrt(n_features) * 2.0**-WEIGHTED_BITS


def _bound(settings: PlanSettings, textbook: float, norm: str, proof: str) -> Sensitivity:
    """Return the sensitivity of what is computed; nearest means have nothing that is rounded."""
    factor = 1.0
    if settings.covariance_type != "zero":
        factor = rounding(settings.n_components, settings.n_features, norm)
    if factor > 1.0:
        proof += ", plus rounding"
    return Sensitivity(textbook * factor, norm, RELATION, proof)


def _joint(settings: PlanSettings, share: float) -> Gaussian:
    """One normal draw on all statistics."""
    squared = 2 if settings.covariance_type == "zero" else 3
    proof = f"|gamma (x) phi|^2 <= {squared} with phi'phi' >= 0"
    bound = _bound(settings, math.sqrt(2.0 * squared), "l2", proof)
    return Gaussian.of_share(bound, share, settings.n_iter)


def _sums(settings: PlanSettings, share: float, repeats: int) -> Laplace | Gaussian:
    """Laplace noise, or Gaussian noise by the classical formula."""
    if settings.mean_noise == "gaussian":
        bound = _bound(settings, 2.0, "l2", "DP-EM, eq. (22)")
        return Gaussian.classical(bound, share, settings.mean_delta, repeats)
    d = settings.n_features
    bound = _bound(settings, 2.0 * math.sqrt(d), "l1", "DP-EM, eqs. (14), (19)-(21)")
    entries = 1.0 if settings.variant == "paper" else d
    return Laplace(bound, share, repeats, entries=entries)


def _paper_moments(settings: PlanSettings, share: float, repeats: int) -> Gamma | Wishart:
    """Noise on second moments as the paper writes it, with the loss it claims."""
    if settings.covariance_type == "spherical":
        bound = Sensitivity(1.0, "l1", RELATION, "DP-EM, below eq. (16)")
        return Gamma(bound, share, repeats)
    bound = Sensitivity(1.0, "trace", RELATION, "DP-EM, eqs. (25)-(27)")
    return Wishart(bound, share, repeats)


def _sound_moments(settings: PlanSettings, share: float, repeats: int) -> Laplace:
    """Laplace noise on second moments; all components together cost at most two shares."""
    l1 = settings.n_features + 1.0 if settings.covariance_type == "full" else 2.0
    bound = _bound(settings, l1, "l1", "rows in the unit ball, responsibilities sum to 1")
    epsilon = 2.0 * share
    mu = math.sqrt(2.0) * epsilon / l1
    return Laplace(bound, epsilon, repeats, mu=mu)


@lru_cache(maxsize=1024)
def budget_share(settings: PlanSettings, epsilon: float, delta: float, accounting: str) -> float:
    """Return the share of one perturbation in one iteration, of the budget of the whole fit.

    Accounting is the paper's rule of Section 5 ("cdp", without delta), its rule of Appendix C
    ("advanced"), or calibration to (epsilon, delta) of what the noise costs (for the paper's
    variant: of what the paper claims it costs) by "zcdp" or "pld". The rules do not know the
    corrected variant's noise on second moments, which costs up to two shares: where they would
    exceed the budget (Section 5: K = 1) they give way to what zCDP allows.

    Raises a ValueError if the budget is out of its range, or the joint release is asked for with
    advanced composition, which knows pure releases only.
    """
    check_epsilon(epsilon)
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
    """The paper's rules: Section 5, and eq. (31) for advanced composition."""
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


def guarantee(
    settings: PlanSettings,
    share: float,
    delta: float,
    accounting: str,
    *,
    seeded: bool,
    leaks: tuple[str, ...] = (),
    caveats: tuple[str, ...] = (),
    unit: str = ROW,
) -> Guarantee:
    """Return what a fit with a share from `budget_share` promises; a leak takes it away."""
    zero, full = (settings.covariance_type == kind for kind in ("zero", "full"))
    names = {
        "counts": "mixing weights",
        "sums": "means",
        "second_moments": "covariances" if full else "variances",
        "joint": "counts and sums" if zero else "counts, sums and second moments",
    }
    words = {"gaussian": "sigma {scale:.4g}"}
    releases = [
        part.statement(names[key], noise=words.get(part.mechanism, ""))
        for key, part in perturbations(settings, share).items()
    ]
    definition = "none" if leaks else "cdp" if accounting == "cdp" else "approximate"
    return Guarantee.of(
        releases,
        definition,
        RELATION,
        delta=delta,
        seeded=seeded,
        caveats=leaks or caveats,
        unit=unit,
    )
