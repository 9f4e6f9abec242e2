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
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privclust.privacy import Guarantee, Loss, Release, zcdp_rho
from privclust.privacy.accounting import (
    advanced_share,
    calibrated,
    cdp_share,
    check_delta,
    check_epsilon,
    gaussian_constant,
)
from privclust.privacy.mechanisms import gamma, gaussian, laplace, wishart
from privclust.privacy.sensitivity import Sensitivity

ACCOUNTING = ("cdp", "advanced", "zcdp", "pld")
MEAN_NOISE = ("laplace", "gaussian", "joint")
VARIANTS = ("sound", "paper")
RELATION = "replace-one"
_ROUNDING_MARGIN = 1.0 + 1e-6

_FLAWS = {
    "gamma": "one-sided noise, eq. (16): an output below one data set's value excludes that data "
    "set; delta = 1 - exp(-eps') at every epsilon",
    "wishart": "positive semi-definite noise, eqs. (17), (18): an output that is not above one "
    "data set's matrix excludes that data set; delta >= 1 - exp(-eps') at every epsilon",
}


@dataclass(frozen=True)
class Settings:
    """What decides the noise besides its scale.

    Attributes
    ----------
    n_features, n_components, n_iter : int
        d, K and J.
    covariance_type : {"zero", "spherical", "diag", "full"}
    mean_noise : {"laplace", "gaussian", "joint"}
    variant : {"sound", "paper"}
    mean_delta : float
        delta' of the classical Gaussian mechanism on the means.
    """

    n_features: int
    n_components: int
    n_iter: int
    covariance_type: str
    mean_noise: str
    variant: str
    mean_delta: float


@dataclass(frozen=True)
class Perturbation:
    """Noise on one statistic in one iteration.

    Attributes
    ----------
    name : str
    mechanism : {"laplace", "gaussian", "gamma", "wishart"}
    sensitivity : Sensitivity
    strength : float
        The mechanism's epsilon, or sigma for ``"gaussian"``.
    claimed : Loss
        What its iterations cost, where it is private, or are claimed to.
    """

    name: str
    mechanism: str
    sensitivity: Sensitivity
    strength: float
    claimed: Loss

    def apply(self, value: np.ndarray, source) -> np.ndarray:
        """Return the value with noise from a source, a millionth larger than the plan says.

        Sums over rows are rounded, in which two data sets may differ by more than a row: for a
        million rows in the ball by 2e-7 at most. The margin covers it.
        """
        if self.mechanism == "gaussian":
            return gaussian(value, self.sensitivity, self.strength * _ROUNDING_MARGIN, source)
        mechanism = {"laplace": laplace, "gamma": gamma, "wishart": wishart}[self.mechanism]
        bound = self.sensitivity.scaled(_ROUNDING_MARGIN)
        return mechanism(value, bound, self.strength, source)

    @property
    def release(self) -> Release:
        """What the guarantee says of it."""
        flaw = _FLAWS.get(self.mechanism, "")
        gaussian_noise = self.mechanism == "gaussian"
        scale = self.strength if gaussian_noise else self.sensitivity.value / self.strength
        return Release(
            name=self.name,
            mechanism=self.mechanism,
            noise=f"{'sigma' if gaussian_noise else 'scale'} {scale:.4g}",
            proof=self.sensitivity.proof,
            loss=None if flaw else self.claimed,
            flaw=flaw,
        )


def perturbations(settings: Settings, share: float) -> dict[str, Perturbation]:
    """Return the noise of one iteration at a share of the budget.

    Parameters
    ----------
    settings : Settings
    share : float
        eps' of the paper's mechanisms; for ``mean_noise="joint"`` the ratio of the sensitivity
        to the standard deviation.

    Returns
    -------
    dict
        ``"joint"`` alone, or ``"counts"``, ``"sums"`` and (but for zero covariances)
        ``"second_moments"``.
    """
    if settings.mean_noise == "joint":
        return {"joint": _joint(settings, share)}
    d, n_iter = settings.n_features, settings.n_iter
    paper = settings.variant == "paper"
    # the paper counts each component's mean and covariance as a release of its own
    repeats = settings.n_components * n_iter if paper else n_iter
    pure = share**2 / 2.0
    found = {
        "counts": Perturbation(
            "mixing weights",
            "laplace",
            Sensitivity(2.0, "l1", RELATION, "DP-EM, eq. (13)"),
            share,
            Loss(pure if paper else pure / 2.0, share, n_iter),
        )
    }
    if settings.mean_noise == "laplace":
        found["sums"] = Perturbation(
            "means",
            "laplace",
            Sensitivity(2.0 * math.sqrt(d), "l1", RELATION, "DP-EM, eqs. (14), (19)-(21)"),
            share,
            Loss(pure if paper else pure / d, share, repeats),
        )
    else:
        c = gaussian_constant(settings.mean_delta)
        found["sums"] = Perturbation(
            "means",
            "gaussian",
            Sensitivity(2.0, "l2", RELATION, "DP-EM, eq. (22)"),
            2.0 * c / share,
            Loss(pure / c**2, count=repeats),
        )
    if settings.covariance_type != "zero":
        second = _paper_moments if paper else _sound_moments
        found["second_moments"] = second(settings, share, repeats)
    return found


def _joint(settings: Settings, share: float) -> Perturbation:
    """One normal draw on all statistics."""
    zero = settings.covariance_type == "zero"
    bound = 2.0 if zero else math.sqrt(6.0)
    what = "counts and sums" if zero else "counts, sums and second moments"
    proof = (
        "|gamma (x) phi|^2 <= 2 with phi'phi' >= 0"
        if zero
        else ("|gamma (x) phi|^2 <= 3 with phi'phi' >= 0")
    )
    return Perturbation(
        what,
        "gaussian",
        Sensitivity(bound, "l2", RELATION, proof),
        bound / share,
        Loss(share**2 / 2.0, count=settings.n_iter),
    )


def _paper_moments(settings: Settings, share: float, repeats: int) -> Perturbation:
    """Noise on second moments as the paper writes it, with the loss it claims."""
    spherical = settings.covariance_type == "spherical"
    proof = "DP-EM, below eq. (16)" if spherical else "DP-EM, eqs. (25)-(27)"
    return Perturbation(
        "variances" if spherical else "covariances",
        "gamma" if spherical else "wishart",
        Sensitivity(1.0, "l1" if spherical else "trace", RELATION, proof),
        share,
        Loss(share**2 / 2.0, share, repeats),
    )


def _sound_moments(settings: Settings, share: float, repeats: int) -> Perturbation:
    """Laplace noise on second moments; all components together cost at most two shares."""
    full = settings.covariance_type == "full"
    l1 = settings.n_features + 1.0 if full else 2.0
    epsilon = 2.0 * share
    return Perturbation(
        "covariances" if full else "variances",
        "laplace",
        Sensitivity(l1, "l1", RELATION, "rows in the unit ball, responsibilities sum to 1"),
        epsilon,
        Loss((math.sqrt(2.0) * epsilon / l1) ** 2 / 2.0, epsilon, repeats),
    )


@lru_cache(maxsize=1024)
def budget_share(settings: Settings, epsilon: float, delta: float, accounting: str) -> float:
    """Return the share of one perturbation in one iteration.

    Parameters
    ----------
    settings : Settings
    epsilon, delta : float
        The budget of the whole fit; delta is not used by ``"cdp"``.
    accounting : {"cdp", "advanced", "zcdp", "pld"}
        The paper's rule of Section 5, its rule of Appendix C, or calibration of what the noise
        costs (for the paper's variant: of what the paper claims it costs) to (epsilon, delta).
        The rules do not know the sound variant's noise on second moments, which costs up to two
        shares: where they would exceed the budget (Section 5: K = 1) they give way to what zCDP
        allows.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the budget is out of its range, or the joint release is asked for with advanced
        composition, which knows pure releases only.
    """
    check_epsilon(epsilon)
    if accounting != "cdp":
        check_delta(delta)

    def losses(share: float) -> list[Loss]:
        return [part.claimed for part in perturbations(settings, share).values()]

    if accounting == "pld":
        return calibrated(losses, epsilon, delta)
    printed = math.inf
    if accounting in ("cdp", "advanced"):
        printed = _printed_share(settings, epsilon, delta, accounting)
        if settings.variant == "paper":
            return printed
    rho = epsilon if accounting == "cdp" else zcdp_rho(epsilon, delta)
    return min(printed, math.sqrt(rho / sum(loss.rho * loss.count for loss in losses(1.0))))


def _printed_share(settings: Settings, epsilon: float, delta: float, accounting: str) -> float:
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
    settings: Settings,
    share: float,
    delta: float,
    accounting: str,
    *,
    seeded: bool,
    leaks: tuple[str, ...],
) -> Guarantee:
    """Return what a fit promises.

    Parameters
    ----------
    settings : Settings
    share : float
        From `budget_share`.
    delta : float
        Where an (epsilon, delta) statement is made.
    accounting : str
        As for `budget_share`.
    seeded : bool
        Whether the noise came from a seed.
    leaks : tuple of str
        What was taken from the data without noise: any takes the guarantee away.
    """
    releases = [part.release for part in perturbations(settings, share).values()]
    definition = "none" if leaks else "cdp" if accounting == "cdp" else "approximate"
    return Guarantee.of(releases, definition, RELATION, delta=delta, seeded=seeded, caveats=leaks)
