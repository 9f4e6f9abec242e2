"""All that a fit releases, as one number: its law, and what audits by it find."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator

from privclust.kmeans import DPLloyd
from privclust.privacy import Sensitivity, noise_source
from privclust.privacy.gaussian_delta import is_private
from privclust.privacy.measurements import Exponential, Gaussian, Laplace
from privclust_audit.black_box import audit_mechanism
from privclust_audit.inside import released_law
from privclust_papers.audit.cases.kmeans import WholeLloyd, WholeSketch
from privclust_papers.audit.cases.mixtures import CorrectedEM, CorrectedMixture
from privclust_papers.audit.cases.subspaces import WholeMoments, WholeSuLQ

X, Y = np.array([[1.0], [0.0]]), np.array([[-1.0], [0.0]])
UNIT_L1, UNIT_L2 = (
    Sensitivity(1.0, norm, "replace-one", "rows lie in [0, 1]") for norm in ("l1", "l2")
)


def lloyd(data, rng, max_iter=1):
    init = [[0.9], [-0.9]]
    return DPLloyd(2, bounds=(-1, 1), init=init, max_iter=max_iter, random_state=rng).fit(data)


class Two(BaseEstimator):
    """A sum with Laplace and with normal noise, times a factor that is not stated."""

    def __init__(self, factor=1.0, random_state=None):
        self.factor = factor
        self.random_state = random_state

    def fit(self, X, y=None):
        source, total = noise_source(self.random_state), self.factor * np.asarray(X).sum()
        self.first_ = Laplace(UNIT_L1, 0.5).release(total, source)
        self.second_ = Gaussian(UNIT_L2, 4.0).release(np.array([total]), source, weight=2.0)
        return self


def two(data, rng, factor=1.0):
    return Two(factor, rng).fit(data)


ONE, NONE = np.ones((1, 1)), np.zeros((1, 1))


@pytest.mark.parametrize("which", [0, 1])
def test_the_law_is_that_of_fits(which):
    rng, laplace, normal = np.random.default_rng(which), stats.laplace(scale=2.0), stats.norm(0, 2)
    by_fits = []
    for _ in range(400):
        model = two((ONE, NONE)[which], rng)
        parts = [(laplace, model.first_), (normal, model.second_[0])]
        by_fits.append(sum(law.logpdf(x - 1.0) - law.logpdf(x) for law, x in parts))
    by_law = released_law(two, ONE, NONE).many((ONE, NONE)[which], np.random.default_rng(9), 20_000)
    assert stats.ks_2samp(by_fits, by_law).pvalue > 0.01
    assert np.sign(np.mean(by_law)) == (1 if which == 0 else -1)


def test_the_law_has_the_loss_that_the_releases_have():
    law = released_law(lambda data, rng: two(data, rng, 0.5), ONE, NONE)
    assert np.isnan(law.epsilon(0.0))
    assert np.isnan(law.epsilon(0.01))  # both kinds of noise
    assert released_law(lloyd, X, Y).epsilon(0.0) == pytest.approx(1.0)
    ratios = released_law(lloyd, X, Y).many(X, np.random.default_rng(0), 10_000)
    assert abs(ratios).max() <= 1.0 + 1e-9


@pytest.mark.parametrize(
    ("case", "part"),
    [
        (CorrectedEM, 0.99), (lambda: CorrectedEM("full"), 0.99), (CorrectedMixture, 0.99),
        (WholeLloyd, 0.99),
        (WholeSuLQ, 0.99), (WholeMoments, 0.99), (lambda: WholeMoments("add_remove"), 0.99),
        pytest.param(WholeSketch, 0.7, marks=pytest.mark.slow),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("remembering_decoders")
def test_whole_fits_of_ours_lose_what_they_claim_and_no_more(case, part):
    made = case()
    is_laplace = isinstance(made, CorrectedEM | WholeLloyd | WholeSketch)
    exact = made.law.epsilon(0.0 if is_laplace else made.delta)
    assert part * made.epsilon <= exact <= made.epsilon * (1 + 1e-6)


def test_normal_noise_loses_what_its_curve_says():
    law = released_law(WholeSuLQ().fit, WholeSuLQ.data, WholeSuLQ.neighbour)
    length = np.sqrt(sum(shift.size**2 for shift in law._shifts))
    epsilon = law.epsilon(0.01)
    assert is_private(length, epsilon * (1 + 1e-6), 0.01)
    assert not is_private(length, epsilon * (1 - 1e-6), 0.01)


def test_a_change_that_is_not_stated_is_convicted():
    for factor, verdict in ((1.0, "consistent"), (2.0, "violated")):
        law = released_law(lambda data, rng, f=factor: two(data, rng, f), ONE, NONE)
        audit = audit_mechanism(law, ONE, NONE, 1.0, 0.05, 100_000, float, random_state=0)
        assert audit.verdict == verdict


def test_noise_that_is_less_than_it_says_is_convicted(monkeypatch):
    def little(self, value, source):
        return np.asarray(value) + source.laplace(scale=0.1 * self.scale, size=np.shape(value))

    monkeypatch.setattr(Laplace, "release", little)
    law = released_law(lloyd, X, Y)
    audit = audit_mechanism(law, X, Y, 1.0, 0.0, 100, float, random_state=0)
    assert audit.verdict == "violated"


def test_changes_that_follow_from_earlier_releases_have_no_law():
    with pytest.raises(ValueError, match=r"release \d .* depends on what was released before"):
        released_law(lambda data, rng: lloyd(data, rng, 3), X, Y, n_fits=8)


def test_what_has_no_ratio():
    def chosen(data, rng):
        noise = Exponential(Sensitivity(1.0, "range", "replace-one", "votes"), 1.0)
        return noise.release(data[:, 0], rng)

    def told(data, rng):
        return two(data, rng) if data.sum() else None

    for fit, words in (
        (chosen, "no density is known of exponential"),
        (told, "differ without noise"),
        (lambda data, rng: data, "no release was seen"),
    ):
        with pytest.raises(ValueError, match=words):
            released_law(fit, ONE, NONE)
