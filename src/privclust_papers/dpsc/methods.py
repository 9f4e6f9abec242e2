"""Methods of the paper's experiments on subspace clustering, composed of estimators."""

from __future__ import annotations

import numpy as np

from privclust.core.grassmann import bases_of_labels
from privclust.core.validation import as_generator
from privclust.subspaces import GibbsSubspaceClustering
from privclust_papers.pipeline.runner import TrialData, TrialStreams

_STAGES = 20
_ANNEALED = 0.5  # share of the sweeps below the full epsilon
_FIRST_EPSILON_N = 10.0  # epsilon n_samples at which the density of eq. (10) is nearly flat


def subspaces_of_labels(
    data: TrialData, streams: TrialStreams, *, by: str
) -> dict[str, np.ndarray]:
    """Return the best-fitting subspaces of a solver's shared clusters, without privacy.

    Subspaces of too few rows are completed at random.
    """
    labels, k, q = data.extra["shared"][by], data.extra["n_clusters"], data.extra["dimension"]
    return {"bases": bases_of_labels(data.X, labels, k, q, streams.get("noise"))}


class AnnealedGibbs(GibbsSubspaceClustering):
    """Gibbs sampling with an epsilon that rises to the budget over the first half of the sweeps.

    The second half of the chain has the full epsilon, so that target and (asymptotic) guarantee are
    those of a chain from a uniform start. At a lower epsilon subspaces move more freely, so that
    the chain is less likely to stay near its start.
    """

    def fit(self, X, y=None):
        """Sample from X (n_samples, n_features)."""
        rng = as_generator(self.random_state)
        lowest = min(_FIRST_EPSILON_N / len(X), self.epsilon)
        stage_sweeps = max(1, int(_ANNEALED * self.n_sweeps / _STAGES))
        init = "random"
        for epsilon in np.geomspace(lowest, self.epsilon, _STAGES):
            stage = {"epsilon": float(epsilon), "n_sweeps": stage_sweeps, "n_kept": 0, "init": init}
            init = self._chain(stage, rng).fit(X).subspaces_
        # The kept samples are the last ones and must all be drawn at the full epsilon.
        left = max(self.n_kept, 1, self.n_sweeps - _STAGES * stage_sweeps)
        model = self._chain({"n_sweeps": left, "init": init}, rng).fit(X)
        # Fitted attributes end in an underscore; parameters stay those of the whole chain.
        vars(self).update({name: value for name, value in vars(model).items() if name[-1] == "_"})
        return self

    def _chain(self, stage, rng):
        """Continue the chain; its state is the subspaces, which determine the labels' law."""
        settings = {**self.get_params(), **stage, "random_state": rng}
        return GibbsSubspaceClustering(**{**settings, "record_every": settings["n_sweeps"]})
