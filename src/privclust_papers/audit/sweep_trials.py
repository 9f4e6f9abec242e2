r"""The audit of the Gibbs sampler by number of sweeps: bounds compared with the exact loss.

From a data-independent start, t sweeps with k = 2 are :math:`3/2\, t \epsilon` differentially
private for any t. Given the subspaces, only the label of the record depends on it, with probability
:math:`1 / (1 + e^{-a})`, :math:`|a| \le \epsilon / 2`: its logarithm changes by at most
:math:`\epsilon / 2`. Given the labels, density (12) and its integral each change by a factor of at
most :math:`e^{\epsilon/2}`, together :math:`e^\epsilon`. The last state is a part of the
composition of all t sweeps. With many sweeps the loss tends to that of eq. (10), at most
:math:`\epsilon`; in between it may exceed :math:`\epsilon`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privclust_papers.audit.data import evaluate_audit, fit_case
from privclust_papers.audit.exact_lines import least_delta, worst_ratio
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.pipeline.words import AUDIT_VERDICTS, VIOLATED

PER_SWEEP = 1.5
"""Upper bound on the loss of a sweep, in units of epsilon, with two clusters."""


def fit_sweeps(
    estimator: type, params: Mapping[str, object], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Attack `LinesAfterSweeps`, and compute its exact loss.

    In addition to the outputs of `fit_case`: ``loss_path`` (n_sweeps,), the least epsilon at
    delta = 0 after each sweep; ``exact_delta``, the least delta at the claimed epsilon after the
    last sweep; ``limit_loss``, the loss after many sweeps.
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
    """Return the findings as numbers.

    In addition to `privclust_papers.audit.data.evaluate_audit`, without ``is_surprise``:
    ``exact_epsilon``, the exact loss after the last sweep; ``exact_excess``, its excess over the
    claim; ``beyond_exact``, the larger excess of the attack's bounds over the exact values;
    ``beyond_sum``, the excess of the exact loss over the composition of all sweeps; ``to_limit``,
    its distance to the limit; ``is_convicted``, whether the attack convicts; ``is_missed``, whether
    it fails to although the exact loss exceeds the claim; ``loss_path``.
    """
    path = outputs["loss_path"]
    scalars = {name: value for name, value in outputs.items() if name != "loss_path"}
    numbers = evaluate_audit(data, scalars)
    del numbers["is_surprise"]  # the expectation depends on the sweeps: see exact_excess
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
