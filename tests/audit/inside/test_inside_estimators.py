"""Every private estimator, looked into: at least 200 pairs of neighbours each.

Not looked into are draws that no measurement makes: the matrix Bingham sampler of
`PrivatePCA("exponential")` and of Gibbs sampling.
"""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from privclust.embedding import DPdSNE, PrivateMail, PrivatePCA, PrivateRandomProjection
from privclust.kmeans import CompressiveKMeans, DPLloyd, EUGkM, PrivateKMeans, TreeKMeans
from privclust.mixtures import AdaptiveGaussianMixture, PrivateGaussianMixture
from privclust.subspaces import (
    GibbsSubspaceClustering,
    KPlanes,
    MomentSubspaceClustering,
    SampleAggregateSubspaceClustering,
    SuLQKPlanes,
)
from privclust_audit.inside import look_inside

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
FEW, MANY = 24, 200
SKETCH = {"delta": 1e-6, "bounds": (-1.0, 1.0)}
RNG = np.random.default_rng(0)
PUBLIC, LABELS = RNG.standard_normal((12, 3)), np.arange(12) % 3


def both_relations(name, make, **settings):
    """An estimator for rows replaced, and for rows added or removed; then for groups of rows."""
    for relation, grouped in itertools.product(("replace_one", "add_remove"), (False, True)):
        full = f"{name}, {relation}{', groups' if grouped else ''}"
        yield pytest.param(make(neighbours=relation), {"grouped": grouped, **settings}, id=full)


def of_rows(make, read):
    """A callable that fits on public rows and releases private ones."""

    def released(X):
        model = make()
        return SimpleNamespace(rows=read(model, X), guarantee_=model.guarantee_)

    return released


QUICK = [
    *both_relations("DPLloyd", lambda **how: DPLloyd(2, bounds=(-1.0, 1.0), max_iter=3, **how)),
    *both_relations("DPLloyd, ball", lambda **how: DPLloyd(3, norm_bound=1.0, max_iter=3, **how)),
    *both_relations(
        "DPLloyd, pld", lambda **how: DPLloyd(2, bounds=(-1.0, 1.0), accounting="pld", **how)
    ),
    *both_relations(
        "EUGkM", lambda **how: EUGkM(2, bounds=(-1.0, 1.0), n_samples=900, n_init=1, **how)
    ),
    *both_relations(
        "EUGkM, normal", lambda **how: EUGkM(2, delta=1e-6, bounds=(-1.0, 1.0), n_init=1, **how)
    ),
    *both_relations("tree", lambda **how: TreeKMeans(2, bounds=(-1.0, 1.0), **how)),
    *both_relations("one front", lambda **how: PrivateKMeans(2, bounds=(-1.0, 1.0), **how)),
    *both_relations(
        "SuLQ", lambda **how: SuLQKPlanes(2, 1, norm_bound=1.0, max_iter=3, **how), n_features=3
    ),
    *both_relations("PCA", lambda **how: PrivatePCA(2, norm_bound=1.0, **how), n_features=3),
    *(
        pytest.param(
            PrivateGaussianMixture(2, norm_bound=1.0, max_iter=2, **how),
            {"grouped": grouped},
            id=f"PrivateGaussianMixture, {how}, {grouped}",
        )
        for how in (
            {},
            {"mean_noise": "laplace", "accounting": "cdp"},
            {"covariance_type": "diag"},
            {"covariance_type": "spherical", "mean_noise": "gaussian"},
        )
        for grouped in (False, True)
    ),
    pytest.param(DPLloyd(2, norm_bound=1.0, variant="paper"), {}, id="DPLloyd as printed"),
    pytest.param(PrivatePCA(1, norm_bound=1.0, mechanism="mod_sulq"), {}, id="PCA, MOD-SuLQ"),
    pytest.param(
        SampleAggregateSubspaceClustering(KPlanes(1, 1, n_init=1), n_subsets=3, norm_bound=1.0),
        {},
        id="sample and aggregate",
    ),
    pytest.param(
        of_rows(
            lambda: PrivateRandomProjection(2, norm_bound=1.0, random_state=0).fit(PUBLIC),
            lambda model, X: model.transform(X),
        ),
        {"n_features": 3},
        id="random projection",
    ),
    *(
        pytest.param(
            of_rows(
                lambda released=released: PrivateMail(
                    epsilon=5.0, random_state=0, released=released
                ).fit(PUBLIC, LABELS),
                lambda model, X: model.release(X),
            ),
            {"n_features": 3},
            id=f"PrivateMail, {released}",
        )
        for released in ("feature", "embedding")
    ),
]
SLOW = [
    pytest.param(
        CompressiveKMeans(1, neighbours="add_remove", **SKETCH), {}, id="CompressiveKMeans"
    ),
    pytest.param(CompressiveKMeans(2, bounds=(-1.0, 1.0)), {}, id="CompressiveKMeans, Laplace"),
    pytest.param(
        CompressiveKMeans(2, last_round=True, **SKETCH),
        {"grouped": True},
        id="CompressiveKMeans, last round, groups",
    ),
    pytest.param(
        CompressiveKMeans(1, n_directions=1, last_round=True, **SKETCH),
        {},
        id="CompressiveKMeans, projection",
    ),
    pytest.param(
        AdaptiveGaussianMixture(1, norm_bound=1.0, max_iter=2),
        {"grouped": True},
        id="AdaptiveGaussianMixture, groups",
    ),
    pytest.param(
        MomentSubspaceClustering(1, 1, last_round=False, neighbours="add_remove"),
        {},
        id="moment sketch",
    ),
    pytest.param(MomentSubspaceClustering(1, 1, last_round=True), {}, id="moments, last round"),
    pytest.param(MomentSubspaceClustering(1, 1), {"grouped": True}, id="moments, groups"),
]


@pytest.fixture(autouse=True)
def decoders(remembering_decoders):
    """Replays give decoders what they were given before."""


@pytest.mark.parametrize(("subject", "settings"), [*QUICK, *SLOW])
def test_few_pairs(subject, settings):
    check(subject, settings, FEW)


@pytest.mark.system
@pytest.mark.parametrize(("subject", "settings"), [*QUICK, *SLOW])
def test_many_pairs(subject, settings):
    check(subject, settings, MANY)


def check(subject, settings, n_pairs):
    nearest = {}
    for seed in 1, 2, 3:
        result = look_inside(subject, n_pairs=n_pairs, random_state=seed, **settings)
        assert result.verdict == "nothing found", str(result)
        assert result.n_pairs == n_pairs
        assert result.n_refused <= n_pairs // 4, str(result)
        for place, site in result.sites.items():
            if "smooth" not in site.mechanism:
                nearest[place] = max(site.part, nearest.get(place, 0.0))
        if n_pairs < MANY or all(part > 0.5 for part in nearest.values()):
            return
    # the pairs say something: they come near to what is stated, with one of three seeds
    raise AssertionError(str(result))


@pytest.mark.parametrize(
    "subject",
    [
        GibbsSubspaceClustering(1, 1, n_sweeps=1, norm_bound=1.0),
        PrivatePCA(1, norm_bound=1.0, mechanism="exponential"),
    ],
)
def test_draws_that_no_measurement_makes_are_not_acquitted(subject):
    result = look_inside(subject, n_pairs=8)
    assert result.verdict == "cannot tell"
    assert any("not looked into" in remark for remark in result.remarks)


def test_a_fit_with_bounds_of_the_data_promises_nothing():
    result = look_inside(DPLloyd(2), n_pairs=40)
    assert result.verdict == "cannot tell"
    assert "promises nothing" in str(result)
    assert {each.violation.kind for each in result.findings} >= {"control flow"} or result.findings


def test_the_whole_transform_of_dpdsne():
    """Its distances come from BLAS, so that floats are compared; a row's gradients are its own.

    More than 1,024 rows are embedded in blocks. Each row is in one, but the releases of all would
    be counted.
    """
    subject = of_rows(
        lambda: DPdSNE(perplexity=2.0, max_iter=3, random_state=0).fit(PUBLIC, PUBLIC[:, :2]),
        lambda model, X: model.transform(X[:1024]),
    )
    result = look_inside(subject, n_pairs=MANY, n_features=3)
    assert result.verdict == "nothing found", str(result)
    assert not any(site.is_exact for site in result.sites.values())
