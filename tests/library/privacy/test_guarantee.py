"""Guarantees: composition, conversion, and what takes them away."""

import itertools
import json
import math
import operator
from dataclasses import replace

import pytest

from privclust.privacy import Guarantee, Loss, Neighbours, Release, pld_epsilon, zcdp_epsilon

LAPLACE = Release("counts", "laplace", "scale 2", "by hand", Loss(0.005, 0.1, 10))
GAUSSIAN = Release("sums", "gaussian", "sigma 3", "by hand", Loss(0.05, count=10))
GAMMA = Release("variances", "gamma", "rate 1", "none", None, flaw="one-sided noise")


def test_definitions_of_one_composition():
    both = Guarantee.of([LAPLACE, GAUSSIAN], "zcdp", "replace-one")
    assert both.rho == pytest.approx(0.55)
    cdp = Guarantee.of(both.releases, "cdp", "replace-one")
    assert (cdp.mu, cdp.tau) == (pytest.approx(0.55), pytest.approx(math.sqrt(1.1)))
    approximate = Guarantee.of(both.releases, "approximate", "replace-one", delta=1e-6)
    assert approximate.epsilon == both.epsilon_at(1e-6)
    zcdp, pld = zcdp_epsilon(both.total_rho, 1e-6), pld_epsilon(both.losses, 1e-6)
    assert approximate.epsilon <= min(zcdp, pld)


def test_pure_composition_adds_up():
    pure = Guarantee.of([LAPLACE], "pure", "add-remove")
    assert pure.epsilon == pytest.approx(1.0)
    assert pure.compose(pure).epsilon == pytest.approx(2.0)
    with pytest.raises(ValueError, match="delta"):
        Guarantee.of([LAPLACE], "approximate", "add-remove")  # without a delta
    with pytest.raises(ValueError, match="pure"):
        Guarantee.of([GAUSSIAN], "pure", "add-remove")


def test_replacing_a_row_is_two_steps():
    pure = Guarantee.of([LAPLACE], "pure", "add-remove").to_replace_one()
    assert (pure.relation, pure.epsilon) == ("replace-one", pytest.approx(2.0))
    assert pure.total_rho == pytest.approx(4 * 0.05)
    assert pure.to_replace_one() is pure
    with pytest.raises(ValueError, match="relations"):
        pure.compose(Guarantee.of([LAPLACE], "pure", "add-remove"))


def test_one_flaw_takes_the_guarantee_away():
    broken = Guarantee.of([LAPLACE, GAMMA], "cdp", "replace-one")
    assert broken.definition == "none"
    assert any("one-sided" in caveat for caveat in broken.caveats)
    assert broken.epsilon_at(1e-2) == math.inf
    corrected = Guarantee.of([GAUSSIAN], "zcdp", "replace-one", seeded=True)
    whole = corrected.compose(broken)
    assert whole.definition == "none"
    assert whole.seeded


def test_text_says_what_matters():
    text = str(Guarantee.of([LAPLACE, GAMMA], "cdp", "replace-one", seeded=True))
    for part in ("no differential privacy", "replace-one", "gamma", "one-sided", "not for release"):
        assert part in text


@pytest.mark.parametrize(("definition", "relation"), [("perfect", "replace-one"), ("zcdp", "swap")])
def test_unknown_words_are_refused(definition, relation):
    with pytest.raises(ValueError, match=r"(definition|relation) must be one of .*got '"):
        Guarantee(definition, relation)


def test_relations_are_one_enum_with_either_dash():
    """What is written, printed and compared stays text."""
    for name in ("replace-one", "replace_one", Neighbours.REPLACE_ONE):
        guarantee = Guarantee.of([LAPLACE], "pure", name)
        assert guarantee.relation is Neighbours.REPLACE_ONE
        assert guarantee.relation == "replace-one"
        assert "(replace-one neighbours)" in str(guarantee)
        written = guarantee.as_dict()["relation"]
        assert (type(written), written) == (str, "replace-one")
        assert Guarantee.from_dict(guarantee.as_dict()) == guarantee
    for bad in ("replace one", "", None, ["add_remove"], 1):
        with pytest.raises(ValueError, match="neighbours must be one of replace_one, add_remove"):
            Neighbours.of(bad)


def test_a_release_has_a_loss_or_a_flaw():
    with pytest.raises(ValueError, match="either"):
        Release("x", "laplace", "1", "none", None)


def test_numbers_of_the_noise_are_written_in_full():
    exact = replace(LAPLACE, sensitivity=0.1 + 0.2, scale=3.0000000000000004, norm="l1")
    older = Guarantee.of([LAPLACE], "pure", "add-remove")
    newer = Guarantee.of([exact], "pure", "add-remove")
    assert str(newer) == str(older)
    written = json.loads(json.dumps(newer.as_dict()))
    assert Guarantee.from_dict(written) == newer != older
    for name in ("sensitivity", "scale", "norm"):
        del written["releases"][0][name]
    assert Guarantee.from_dict(written) == older
    assert older.as_dict() == written  # what has no numbers is written as it was before
    assert newer.to_replace_one().releases[0].sensitivity == 2 * exact.sensitivity


@pytest.mark.parametrize("name", ["sensitivity", "scale", "norm"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan, 10**400, True, "1", "", [2.0]])
def test_numbers_of_the_noise_that_are_none_are_refused(name, value):
    written = Guarantee.of([LAPLACE], "pure", "add-remove").as_dict()
    written["releases"][0][name] = value
    with pytest.raises(ValueError, match=rf"{name} must be|not the values of a guarantee"):
        Guarantee.from_dict(written)


def test_parts_with_records_of_their_own_keep_one_loss():
    part = Guarantee.of([LAPLACE], "pure", "replace-one", caveats=["masks"])
    seeded = Guarantee.of([LAPLACE], "pure", "replace-one", seeded=True, caveats=["clock"])
    both = part.alongside(seeded)
    assert (both.definition, both.epsilon, both.releases) == ("pure", part.epsilon, part.releases)
    assert both.total_rho == part.total_rho
    assert both.seeded
    assert {"masks", "clock"} < set(both.caveats)
    assert any("assigned to parts in advance" in caveat for caveat in both.caveats)
    assert both.alongside(part).caveats == both.caveats


def test_parallel_parts_against_the_worst_pair_of_data_sets():
    """Randomised response on two parts: every neighbour of every data set, all outputs."""
    epsilon = 1.0
    loss = Loss(epsilon**2 / 2, epsilon)
    part = Guarantee.of(
        [Release("bit", "laplace", "flips", "counted here", loss)], "pure", "replace-one"
    )
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))

    def probability(output, data):
        return math.prod(keep if o == x else 1 - keep for o, x in zip(output, data, strict=True))

    pairs = list(itertools.product((0, 1), repeat=2))
    neighbours = [(a, b) for a in pairs for b in pairs if sum(map(operator.ne, a, b)) == 1]
    worst = max(
        math.log(probability(output, a) / probability(output, b))
        for a, b in neighbours
        for output in pairs
    )
    assert worst == pytest.approx(part.alongside(part).epsilon)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (Guarantee.of([LAPLACE], "pure", "add-remove"), "neighbour relations"),
        (Guarantee.of([LAPLACE], "zcdp", "replace-one"), "definitions"),
        (Guarantee.of([replace(LAPLACE, mechanism="x")], "pure", "replace-one"), "mechanisms"),
        (
            Guarantee.of([replace(LAPLACE, loss=Loss(0.02, 0.2, 10))], "pure", "replace-one"),
            "losses",
        ),
    ],
)
def test_parts_that_differ_have_no_common_guarantee(other, reason):
    with pytest.raises(ValueError, match=reason):
        Guarantee.of([LAPLACE], "pure", "replace-one").alongside(other)


# --- losses known as (epsilon, delta) alone ---------------------------------------------------

SAMPLED = Release("subspaces", "smooth", "scale 1", "by hand", Loss(epsilon=1.0, delta=1e-6))
SUMS = Release("sums", "laplace", "scale 2", "by hand", Loss(rho=0.125, epsilon=0.5))


def test_an_approximate_loss_is_added_by_basic_composition():
    alone = Guarantee.of([SAMPLED], "approximate", "replace-one", delta=1e-6)
    assert (alone.epsilon, alone.delta) == (1.0, 1e-6)
    both = Guarantee.of([SAMPLED, SUMS], "approximate", "replace-one", delta=1e-6)
    assert both.epsilon == 1.5
    # what is left of delta may serve the other release
    later = both.epsilon_at(1e-5)
    assert 1.0 < later <= 1.5


def test_an_approximate_loss_promises_nothing_below_its_delta():
    alone = Guarantee.of([SAMPLED], "approximate", "replace-one", delta=1e-6)
    assert math.isinf(alone.epsilon_at(5e-7))
    assert math.isinf(zcdp_epsilon(alone.total_rho, 1e-5))
    assert math.isinf(pld_epsilon(alone.losses, 1e-5))
    with pytest.raises(ValueError, match="pure"):
        Guarantee.of([SAMPLED], "pure", "replace-one")


def test_an_approximate_loss_doubles_by_group_privacy():
    alone = Guarantee.of([SAMPLED], "approximate", "add-remove", delta=1e-6)
    assert Guarantee.from_dict(alone.as_dict()) == alone
    loss = alone.to_replace_one().releases[0].loss
    assert loss.epsilon == 2.0
    assert loss.delta == pytest.approx((1.0 + math.e) * 1e-6)


@pytest.mark.parametrize("epsilon", [1.0, 50.0, 709.0, 710.0, 1e6])
def test_two_steps_of_any_epsilon_have_a_delta_of_at_most_one(epsilon):
    release = Release("a", "x", "n", "p", Loss(epsilon=epsilon, delta=1e-6))
    whole = Guarantee.of([release], "approximate", "add-remove", delta=1e-6)
    loss = whole.to_replace_one().releases[0].loss
    assert loss.epsilon == 2.0 * epsilon
    assert loss.delta == pytest.approx(1e-6 * (1.0 + math.e) if epsilon == 1.0 else 1.0)
