r"""How a private mixture noises the statistics of one iteration, and what that costs.

With rows in the unit ball, N fixed and one row replaced, one iteration releases, for all K
components at once, the expected sufficient statistics

.. math:: N_k = \sum_i \gamma_{ik}, \quad s_k = \sum_i \gamma_{ik} x_i, \quad
          S_k = \sum_i \gamma_{ik} x_i x_i'.

Noise on these sums is noise on the paper's parameters: dividing by the noised N~_k afterwards
turns a Laplace scale of 2 sqrt(d) / eps' on s_k into the paper's 2 sqrt(d) / (eps' N~_k) of
eq. (15). The guarantee, however, no longer hangs on N~_k, which may come out small or negative.

A row adds gamma (x) phi(x), a Kronecker product with gamma on the simplex. Replacing it changes,
over all components together (notation: l1 / l2 sensitivity, and rho of noise with share eps'),

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
independent Laplace noise of scale b on every entry rho is l2^2 / (2 b^2), since each entry is a
pure release of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from privclust.privacy import Guarantee, Neighbours, Sensitivity, zcdp_rho
from privclust.privacy.accounting import (
    advanced_share,
    cdp_share,
    check_delta,
    check_epsilon,
    gaussian_constant,
)
from privclust.privacy.measurements import (
    Gamma,
    Gaussian,
    Laplace,
    Wishart,
    claimed_rho,
    largest_share,
)

RELATION = Neighbours.REPLACE_ONE
# Sums over rows are rounded, in which two data sets may differ by more than a row: for a million
# rows in the ball by 2e-7 at most. The margin covers it.
ROUNDING_MARGIN = 1.0 + 1e-6
Noise: TypeAlias = Laplace | Gaussian | Gamma | Wishart


@dataclass(frozen=True)
class PlanSettings:
    """What decides the noise besides its scale: d, K, J, and parameters of the estimator."""

    n_features: int
    n_components: int
    n_iter: int
    covariance_type: str  # "zero", "spherical", "diag" or "full"
    mean_noise: str  # "laplace", "gaussian" or "joint"
    variant: str  # "sound" or "paper"
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
    bound = Sensitivity(2.0, "l1", RELATION, "DP-EM, eq. (13)")
    plan: dict[str, Noise] = {
        "counts": Laplace(
            bound, share, settings.n_iter, entries=1.0 if paper else 2.0, margin=ROUNDING_MARGIN
        ),
        "sums": _sums(settings, share, repeats),
    }
    if settings.covariance_type != "zero":
        second = _paper_moments if paper else _sound_moments
        plan["second_moments"] = second(settings, share, repeats)
    return plan


def joint_noise(bound: float, proof: str, share: float, count: int = 1) -> Gaussian:
    """Return one normal draw on all statistics, which change by a bound in l2."""
    sensitivity = Sensitivity(bound, "l2", RELATION, proof)
    return replace(Gaussian.of_share(sensitivity, share, count), margin=ROUNDING_MARGIN)


def _joint(settings: PlanSettings, share: float) -> Gaussian:
    """One normal draw on all statistics."""
    squared = 2 if settings.covariance_type == "zero" else 3
    proof = f"|gamma (x) phi|^2 <= {squared} with phi'phi' >= 0"
    return joint_noise(math.sqrt(2.0 * squared), proof, share, settings.n_iter)


def _sums(settings: PlanSettings, share: float, repeats: int) -> Laplace | Gaussian:
    """Laplace noise, or normal noise by the classical formula."""
    if settings.mean_noise == "gaussian":
        bound = Sensitivity(2.0, "l2", RELATION, "DP-EM, eq. (22)")
        noise = Gaussian.classical(bound, share, settings.mean_delta, repeats)
        return replace(noise, margin=ROUNDING_MARGIN)
    d = settings.n_features
    bound = Sensitivity(2.0 * math.sqrt(d), "l1", RELATION, "DP-EM, eqs. (14), (19)-(21)")
    entries = 1.0 if settings.variant == "paper" else d
    return Laplace(bound, share, repeats, entries=entries, margin=ROUNDING_MARGIN)


def _paper_moments(settings: PlanSettings, share: float, repeats: int) -> Gamma | Wishart:
    """Noise on second moments as the paper writes it, with the loss it claims."""
    if settings.covariance_type == "spherical":
        bound = Sensitivity(1.0, "l1", RELATION, "DP-EM, below eq. (16)")
        return Gamma(bound, share, repeats, margin=ROUNDING_MARGIN)
    bound = Sensitivity(1.0, "trace", RELATION, "DP-EM, eqs. (25)-(27)")
    return Wishart(bound, share, repeats, margin=ROUNDING_MARGIN)


def _sound_moments(settings: PlanSettings, share: float, repeats: int) -> Laplace:
    """Laplace noise on second moments; all components together cost at most two shares."""
    l1 = settings.n_features + 1.0 if settings.covariance_type == "full" else 2.0
    bound = Sensitivity(l1, "l1", RELATION, "rows in the unit ball, responsibilities sum to 1")
    epsilon = 2.0 * share
    mu = math.sqrt(2.0) * epsilon / l1
    return Laplace(bound, epsilon, repeats, mu=mu, margin=ROUNDING_MARGIN)


@lru_cache(maxsize=1024)
def budget_share(settings: PlanSettings, epsilon: float, delta: float, accounting: str) -> float:
    """Return the share of one perturbation in one iteration, of the budget of the whole fit.

    Accounting is the paper's rule of Section 5 ("cdp", without delta), its rule of Appendix C
    ("advanced"), or calibration to (epsilon, delta) of what the noise costs (for the paper's
    variant: of what the paper claims it costs) by "zcdp" or "pld". The rules do not know the sound
    variant's noise on second moments, which costs up to two shares: where they would exceed the
    budget (Section 5: K = 1) they give way to what zCDP allows.

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
    return min(printed, math.sqrt(rho / claimed_rho(perturbations(settings, 1.0).values())))


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
    leaks: tuple[str, ...],
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
    return Guarantee.of(releases, definition, RELATION, delta=delta, seeded=seeded, caveats=leaks)
