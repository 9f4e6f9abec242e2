r"""The guarantee of a fitted estimator: its releases and their composition."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby
from typing import Any

from privclust.core.validation import check_option, check_real
from privclust.privacy.accounting import (
    Loss,
    check_not_negative,
    composed_epsilon,
    total_epsilon,
    total_rho,
)
from privclust.privacy.groups import ROW, UNITS
from privclust.privacy.sensitivity import NORMS, Neighbours

DEFINITIONS = ("pure", "approximate", "zcdp", "cdp", "asymptotic", "none")
_FIXED_PARTS = (
    "parallel composition: holds for records that were assigned to parts in advance, not by their "
    "values"
)


class PrivacyLeakWarning(UserWarning):
    """Information was taken from the data without noise, so that the guarantee does not hold."""


class NoiseWarning(UserWarning):
    """A result is indistinguishable from noise; detected only from released quantities."""


class WeakGuaranteeWarning(UserWarning):
    """A guarantee holds but is weak: its epsilon or delta is large."""


@dataclass(frozen=True)
class Release:
    """One kind of noisy quantity, released one or more times.

    Attributes
    ----------
    name : str
        Name of the quantity, such as ``"mixing weights"``.
    mechanism : str
        ``"laplace"``, ``"gaussian"``, ``"gamma"``, ...
    noise : str
        Scale of the noise, as text.
    proof : str
        Reference of the proof of its sensitivity.
    loss : Loss or None
        The privacy loss of each release; None if it is not differentially private.
    flaw : str
        Why it is not private, if `loss` is None.
    sensitivity, scale : float or None
        Sensitivity of one release and scale of its noise, unrounded and in the same units. None
        if no single number is public. Epsilon is ``sensitivity / scale`` for Laplace noise and
        the exponential mechanism, which adds no noise. For Gaussian noise, the scale is the
        standard deviation and rho is ``sensitivity**2 / (2 * scale**2)``.
    norm : {"l1", "l2", "trace", "range"} or None
        Norm of the sensitivity, as in `privclust.privacy.Sensitivity`.

    Raises
    ------
    ValueError
        If there are both a loss and a flaw or neither, or if a number is not finite and positive.
    """

    name: str
    mechanism: str
    noise: str
    proof: str
    loss: Loss | None
    flaw: str = ""
    sensitivity: float | None = None
    scale: float | None = None
    norm: str | None = None

    def __post_init__(self) -> None:
        if (self.loss is None) != bool(self.flaw):
            raise ValueError("a release has either a loss or a flaw that says why it has none")
        for name in ("sensitivity", "scale"):
            if getattr(self, name) is not None:
                check_real(name, getattr(self, name))
        if self.norm is not None:
            check_option("norm", self.norm, NORMS)


@dataclass(frozen=True)
class Guarantee:
    """A privacy guarantee, with the releases that it is composed of.

    Parameters and methods are in natural units: epsilon, mu and tau in nats.

    Attributes
    ----------
    definition : {"pure", "approximate", "zcdp", "cdp", "asymptotic", "none"}
        In which sense the output is private. ``"asymptotic"``: only in a limit that no finite run
        reaches. ``"none"``: not at all; `caveats` say why.
    relation : Neighbours
        Or its name: one row is replaced (n fixed), or added or removed.
    releases : tuple of Release
    epsilon, delta : float
        For ``"pure"`` (delta = 0), ``"approximate"`` and ``"asymptotic"``.
    rho : float
        For ``"zcdp"``.
    mu, tau : float
        For ``"cdp"``: bound on the mean of the privacy loss, and its subgaussian deviation.
    seeded : bool
        Whether the noise came from a seed. Anyone who knows the seed can repeat such a run. It is
        for reproduction, not a release.
    caveats : tuple of str
        Assumptions of the guarantee, or why there is none.
    unit : {"row", "group"}
        The protected unit: one row, or all rows of one group, such as a person.

    Examples
    --------
    >>> noise = Release("sums", "gaussian", "sigma 3", "by hand", Loss(rho=0.05, count=10))
    >>> guarantee = Guarantee.of([noise], "zcdp", "replace-one")
    >>> guarantee.rho, round(guarantee.epsilon_at(1e-5), 2)
    (0.5, 4.38)
    """

    definition: str
    relation: Neighbours
    releases: tuple[Release, ...] = ()
    epsilon: float = math.inf
    delta: float = 0.0
    rho: float = math.inf
    mu: float = math.inf
    tau: float = math.inf
    seeded: bool = False
    caveats: tuple[str, ...] = ()
    unit: str = ROW

    def __post_init__(self) -> None:
        check_option("definition", self.definition, DEFINITIONS)
        check_option("unit", self.unit, tuple(UNITS))
        check_not_negative(self, ("epsilon", "delta", "rho", "mu", "tau"))
        object.__setattr__(self, "relation", Neighbours.of(self.relation, "relation"))

    @classmethod
    def of(
        cls,
        releases: Iterable[Release],
        definition: str,
        relation: Neighbours | str,
        *,
        delta: float = 0.0,
        seeded: bool = False,
        caveats: Iterable[str] = (),
        unit: str = ROW,
    ) -> Guarantee:
        """Compose releases and return the guarantee in the requested definition.

        Parameters are the attributes of the same names. One flawed release makes it ``"none"``;
        ``"approximate"`` is evaluated at delta.

        Raises
        ------
        ValueError
            For an unknown definition or relation, or ``"pure"`` with a release that is not pure.
        """
        releases, caveats = tuple(releases), tuple(caveats)
        flaws = tuple(f"{release.name}: {release.flaw}" for release in releases if release.flaw)
        relation = Neighbours.of(relation, "relation")
        told = (*caveats, *flaws)
        plain = cls("none", relation, releases, seeded=seeded, caveats=told, unit=unit)
        if flaws or definition == "none":
            return plain
        losses = [release.loss for release in releases]
        rho, added = total_rho(losses), total_epsilon(losses)
        if definition == "zcdp":
            return replace(plain, definition="zcdp", rho=rho)
        if definition == "cdp":
            return replace(plain, definition="cdp", mu=rho, tau=math.sqrt(2.0 * rho))
        if definition == "approximate":
            epsilon = composed_epsilon(losses, delta)
            return replace(plain, definition="approximate", epsilon=epsilon, delta=delta)
        if definition != "pure" or math.isinf(added) or any(loss.delta for loss in losses):
            raise ValueError(f"definition: got {definition!r}, which these releases do not give")
        return replace(plain, definition="pure", epsilon=added)

    @property
    def _holds(self) -> bool:
        """Whether a finite run is private."""
        return self.definition not in ("none", "asymptotic")

    @property
    def losses(self) -> list[Loss]:
        """The loss of each release; empty if there is no guarantee."""
        if self.definition == "none":
            return []
        return [release.loss for release in self.releases]

    def epsilon_at(self, delta: float) -> float:
        """Return the least epsilon for which the output is known to be (epsilon, delta)-DP.

        It is infinite without a guarantee, or with an asymptotic one. Delta is in (0, 1).
        """
        return composed_epsilon(self.losses, delta) if self._holds else math.inf

    @property
    def total_rho(self) -> float:
        """Sum of the zCDP parameters; infinite without a guarantee."""
        return total_rho(self.losses) if self._holds else math.inf

    def part(self, name: str) -> Guarantee:
        """Return the guarantee with the name of a part of the fit prefixed to each release.

        Examples
        --------
        >>> sums = Release("sums", "laplace", "scale 1", "by hand", Loss(0.5, epsilon=1.0))
        >>> Guarantee.of([sums], "pure", "replace-one").part("pilot").releases[0].name
        'pilot: sums'
        """
        named = (replace(release, name=f"{name}: {release.name}") for release in self.releases)
        return replace(self, releases=tuple(named))

    def to_replace_one(self) -> Guarantee:
        """Return the guarantee for replaced rows implied by one for added or removed rows.

        A replacement is two steps, a removal and an addition, so pure parameters double and rho
        grows fourfold (group privacy; Bun and Steinke 2016, Proposition 1.9).
        """
        if self.relation is Neighbours.REPLACE_ONE:
            return self
        releases = [
            replace(
                release,
                # None stays None: a flawed release has no loss, and a sensitivity may be private
                loss=release.loss and _two_steps(release.loss),
                sensitivity=release.sensitivity and 2 * release.sensitivity,
            )
            for release in self.releases
        ]
        return Guarantee.of(
            releases,
            self.definition if self._holds else "none",
            Neighbours.REPLACE_ONE,
            **_together((self,)),
        )

    def compose(self, *others: Guarantee) -> Guarantee:
        """Return the guarantee of releasing all outputs, in the definition of the first.

        Raises
        ------
        ValueError
            If the neighbour relations or the protected units differ.
        """
        parts = (self, *others)
        if len({part.relation for part in parts}) > 1:
            raise ValueError("compose: neighbour relations differ; see to_replace_one")
        if len({part.unit for part in parts}) > 1:
            raise ValueError("compose: one part protects rows and another groups of rows")
        return Guarantee.of(
            [release for part in parts for release in part.releases],
            self.definition if all(part._holds for part in parts) else "none",
            self.relation,
            **_together(parts),
        )

    def alongside(self, *others: Guarantee) -> Guarantee:
        r"""Return the guarantee of releasing all outputs, each made from different records.

        Parallel composition. Part j releases :math:`M_j(D_j)` with independent noise, and the part
        of each record is fixed in advance. Neighbouring data sets D, D' then have neighbouring
        :math:`D_j, D'_j` in one part and the same records in all others: replacing (adding,
        removing) a record changes only its own part. The densities of the other outputs are the
        same factor under D and D'. So the joint privacy loss is that of part j, for any j, and all
        parts have the same loss. All parameters of the distribution of that loss (epsilon, delta,
        rho, mu, tau) therefore hold for all outputs together.

        If a record's values decide its part, a replacement may change two parts, and the parameters
        are those of `compose` for two.

        Parameters
        ----------
        *others : Guarantee
            Guarantees of the other parts: the same relation, definition, mechanisms and losses.

        Returns
        -------
        Guarantee
            With the releases of one part, seeded if any part is, and a caveat that states the
            assumption.

        Raises
        ------
        ValueError
            If relations, definitions, mechanisms or losses differ.

        References
        ----------
        F. McSherry, "Privacy integrated queries", SIGMOD 2009, Theorem 4; Schellekens et al.,
        "Differentially private compressive k-means", ICASSP 2019, Proposition 2.

        Examples
        --------
        >>> noise = Release("sums", "laplace", "scale 1", "by hand", Loss(0.5, epsilon=1.0))
        >>> device = Guarantee.of([noise], "pure", "replace-one")
        >>> device.alongside(device, device).epsilon
        1.0
        """
        for other in others:
            theirs = _alike(other)
            for what, ours in _alike(self).items():
                if ours != theirs[what]:
                    raise ValueError(
                        f"alongside: {what} differ, {ours} and {theirs[what]}; parts must be alike "
                        "in these for one guarantee to hold for all"
                    )
        rest = _together((self, *others))
        caveats = tuple(dict.fromkeys((*rest["caveats"], _FIXED_PARTS)))
        return replace(self, **rest | {"caveats": caveats})

    def as_dict(self) -> dict[str, Any]:
        """Return the guarantee as JSON values, without infinite and missing numbers.

        Examples
        --------
        >>> guarantee = Guarantee("zcdp", "replace-one", rho=0.5)
        >>> Guarantee.from_dict(guarantee.as_dict()) == guarantee
        True
        """
        releases = [
            _finite(release) | {"loss": release.loss and _finite(release.loss)}
            for release in self.releases
        ]
        return _finite(self) | {"releases": releases, "caveats": list(self.caveats)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Guarantee:
        """Return the guarantee that `as_dict` wrote; a ValueError is raised for other values.

        Older dictionaries have no sensitivities, scales and norms: these are None.
        """
        try:
            releases = tuple(
                Release(**{**release, "loss": release["loss"] and Loss(**release["loss"])})
                for release in values["releases"]
            )
            caveats = tuple(values["caveats"])
            guarantee = cls(**{**values, "releases": releases, "caveats": caveats})
        except (AttributeError, KeyError, OverflowError, TypeError) as error:
            raise ValueError(f"these are not the values of a guarantee: {error}") from None
        parts: list[Any] = [guarantee, *releases, *(one.loss for one in releases if one.loss)]
        for part in parts:
            for item in fields(part):
                # types are texts here, because annotations are not evaluated in this module
                _check_type(item.name, getattr(part, item.name), str(item.type))
        for caveat in caveats:
            _check_type("caveats", caveat, "str")
        return guarantee

    def __str__(self) -> str:
        """Return the guarantee as a few lines of text."""
        statement = {
            "pure": f"{self.epsilon:.4g}-differential privacy",
            "approximate": f"({self.epsilon:.4g}, {self.delta:g})-differential privacy",
            "zcdp": f"{self.rho:.4g}-zero-concentrated differential privacy",
            "cdp": f"({self.mu:.4g}, {self.tau:.4g})-concentrated differential privacy",
            "asymptotic": f"{self.epsilon:.4g}-differential privacy in the limit only",
            "none": "no differential privacy",
        }[self.definition]
        unit = "" if self.unit == ROW else f", {UNITS[self.unit]}"
        lines = [f"{statement} ({self.relation} neighbours{unit})"]
        for words, alike in groupby(self.releases, lambda r: (r.name, r.mechanism, r.noise)):
            name, mechanism, noise = words
            count = sum(release.loss.count for release in alike if release.loss)
            times = f" x {count}" if count else ""
            lines.append(f"  {name}{times}: {mechanism}, {noise}")
        lines.extend(f"  note: {caveat}" for caveat in self.caveats)
        if self.seeded:
            lines.append("  note: the noise was seeded: for reproduction, not for release")
        return "\n".join(lines)


def _together(parts: Sequence[Guarantee]) -> dict[str, Any]:
    """Return the arguments of a guarantee of several parts, except their releases."""
    return {
        "delta": max(part.delta for part in parts),
        "seeded": any(part.seeded for part in parts),
        "caveats": tuple(dict.fromkeys(caveat for part in parts for caveat in part.caveats)),
        "unit": parts[0].unit,
    }


def _alike(guarantee: Guarantee) -> dict[str, Any]:
    return {
        "units": guarantee.unit,
        "neighbour relations": guarantee.relation,
        "definitions (and their delta)": (guarantee.definition, guarantee.delta),
        "mechanisms": [release.mechanism for release in guarantee.releases],
        "losses": [release.loss for release in guarantee.releases],
    }


def _finite(instance: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, except infinite ones and None, which are defaults."""
    values = {item.name: getattr(instance, item.name) for item in fields(instance)}
    if "relation" in values:
        values["relation"] = values["relation"].value
    return {
        name: value
        for name, value in values.items()
        if value is not None and not (isinstance(value, float) and math.isinf(value))
    }


_TYPES: dict[str, Any] = {"bool": bool, "float": int | float, "int": int, "str": str}
_LARGEST_INTEGER = 2**62  # largest integer value of a guarantee


def _check_type(name: str, value: Any, kind: str) -> None:
    """Raise a ValueError unless types are right, numbers at least 0, and text can be shown."""
    if kind not in _TYPES:
        return
    # a bool is an int
    right = isinstance(value, _TYPES[kind]) and isinstance(value, bool) == (kind == "bool")
    if right and kind == "str":
        right = value.isprintable()
    elif right:
        right = value >= 0 and (isinstance(value, float) or value <= _LARGEST_INTEGER)
    if not right:
        raise ValueError(f"{name} of a guarantee cannot be {value!r}")


def _two_steps(loss: Loss) -> Loss:
    """Group privacy for two rows."""
    # (epsilon, delta) becomes (2 epsilon, (1 + e^epsilon) delta); every mechanism has a delta of 1
    try:
        growth = 1.0 + math.exp(loss.epsilon)
    except OverflowError:
        growth = math.inf
    delta = loss.delta and min(loss.delta * growth, 1.0)
    return replace(loss, rho=4 * loss.rho, epsilon=2 * loss.epsilon, delta=delta)
