r"""The Gibbs sampler audited against sweeps: the attack's bounds beside the exact loss.

From a start that does not look at the data, t sweeps with k = 2 are :math:`3/2\, t \epsilon`
differentially private for any t. Given the subspaces, only the record's own label depends on it:
with probability :math:`1 / (1 + e^{-a})`, :math:`|a| \le \epsilon / 2`, so that its logarithm
changes by at most :math:`\epsilon / 2`. Given the labels, density (12) changes by a factor
:math:`e^{\epsilon/2}` and its integral by another, together :math:`e^\epsilon`. All t sweeps are a
composition of these, and the last state is a part of them. With many sweeps the loss tends to that
of eq. (10), at most :math:`\epsilon`; in between nothing holds it below :math:`\epsilon`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privclust_papers.audit.data import evaluate_audit, fit_case
from privclust_papers.audit.exact_lines import least_delta, worst_ratio
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.pipeline.words import AUDIT_VERDICTS, VIOLATED

PER_SWEEP = 1.5
"""What a sweep costs at most, in units of epsilon, with two clusters."""


def fit_sweeps(
    estimator: type, params: Mapping[str, object], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Attack `LinesAfterSweeps`, and compute its exact loss.

    To the outputs of `fit_case` come ``loss_path`` (n_sweeps,), the least epsilon at delta = 0
    after each sweep; ``exact_delta``, the least delta at the claimed epsilon after the last;
    ``limit_loss``, the loss after many.
    """
    case = estimator(**params)
    n_sweeps = int(params["n_sweeps"])
    losses = [worst_ratio(*case.laws(t)) for t in range(1, n_sweeps + 1)]
    return fit_case(case, data, streams) | {
        "loss_path": np.array(losses),
        "exact_delta": np.float64(least_delta(*case.laws(n_sweeps), case.epsilon)),
        "limit_loss": np.float64(worst_ratio(*case.laws())),
    }


def evaluate_sweeps(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """What was found, as numbers.

    As `privclust_papers.audit.data.evaluate_audit`, but for ``is_surprise``, and
    ``exact_epsilon``, the exact loss after the last sweep; ``exact_excess``, by how much it is
    above the claim; ``beyond_exact``, by how much the attack's bounds are above the exact ones, the
    larger of the two; ``beyond_sum``, by how much the exact loss is above what all sweeps cost
    together; ``to_limit``, how far it is from that of many sweeps; ``is_convicted``, whether the
    attack convicts; ``is_missed``, whether it does not although the exact loss is above the claim;
    ``loss_path`` as it is.
    """
    path = outputs["loss_path"]
    scalars = {name: value for name, value in outputs.items() if name != "loss_path"}
    numbers = evaluate_audit(data, scalars)
    del numbers["is_surprise"]  # what is to be expected depends on the sweeps: see exact_excess
    exact, claim = float(path[-1]), numbers["claimed_epsilon"]
    is_convicted = numbers["verdict"] == AUDIT_VERDICTS.index(VIOLATED)
    beyond = (numbers["epsilon_bound"] - exact, numbers["delta_bound"] - numbers["exact_delta"])
    return numbers | {
        "exact_epsilon": exact,
        "exact_excess": max(exact - claim, 0.0),
        "beyond_exact": max(*beyond, 0.0),
        "beyond_sum": max(exact - PER_SWEEP * len(path) * claim, 0.0),
        "to_limit": abs(exact - numbers["limit_loss"]),
        "is_convicted": float(is_convicted),
        "is_missed": float(exact > claim and not is_convicted),
        "loss_path": path,
    }
