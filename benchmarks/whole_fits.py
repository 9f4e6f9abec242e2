"""Exact losses of whole fits on their pair, and audited bounds: docs/audit_quality.md.

    OMP_NUM_THREADS=1 python benchmarks/whole_fits.py [--into docs/audit_quality.md]

The exact loss is that of all releases of a fit, at the claimed delta (at 0 of Laplace noise), from
their changes between the two data sets as three fits show them. The audit stops when it has seen
enough, with the runs of paper effort; of cases whose law is not that of their attack, it is left to
the table in docs/audit_results.md.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from scratch import write_into

from privclust_audit.black_box import audit_mechanism
from privclust_audit.inside import released_law
from privclust_papers.audit.cases.audit_case import RecordedFit
from privclust_papers.settings.config import load_yaml
from privclust_papers.settings.dotted import load_object

CASES = (
    "dpem_em_spherical_corrected", "dpem_em_full_corrected", "dpem_mixture", "dpem_lloyd_whole",
    "ckm_whole", "dpsc_sulq_whole", "dpsc_moments_whole", "dpsc_moments_whole_add",
    "privatemail_pca", "privatemail_pca_mod", "dpsc_sulq_classical", "dpsc_sulq_mod",
    "privatemail_embedding", "privatemail_printed", "dpsc_aggregate_whole", "ckm_rounds_whole",
    "dpem_adaptive",
)  # fmt: skip
LABELS = {  # of cases whose label in the audit's own table stands below the name of the paper
    "privatemail_pca": "PCA, Gaussian noise",
    "privatemail_embedding": "PrivateMail, corrected, embedding",
    "privatemail_printed": "PrivateMail, as printed (Algorithm 1)",
    "dpsc_aggregate_whole": "sample and aggregate (Algorithm 1 repaired), whole fit",
    "ckm_rounds_whole": "compressive k-means with rounds, whole fit",
    "dpem_adaptive": "AdaptiveGaussianMixture, whole fit",
}
HEAD = "| case | claimed (epsilon, delta) | exact | epsilon at least | runs | CPU s |"


def exact(case):
    """The exact loss of a case in words, or why it is not known."""
    try:
        is_recorded = isinstance(case, RecordedFit)
        law = case.law if is_recorded else released_law(case, case.data, case.neighbour)
    except ValueError as error:
        reason = str(error).partition(" (")[0]
        if reason.startswith("the change of release"):
            return "unknown: the change of a release depends on earlier noise"
        return reason.replace(
            "no density is known of gaussian,", "unknown: no density for Gaussian noise with"
        )
    losses = [law.epsilon(delta) for delta in dict.fromkeys((case.delta, 0.0))]
    known = [loss for loss in losses if not np.isnan(loss)]
    return f"{known[0]:.3f}" if known else "another kind of noise"


def rows():
    """Yield a line of the table for each case."""
    config = load_yaml("config/papers/audit/paper.yaml")
    methods = config["experiments"]["audit_mechanisms"]["methods"]
    for name in CASES:
        start = time.process_time()
        case = load_object(config["methods"][name]["class"])(**methods[name].get("params", {}))
        label = LABELS.get(name, config["methods"][name]["label"])
        cells = [label, f"({case.epsilon:g}, {case.delta:g})"]
        cells.append(exact(case))
        if isinstance(case, RecordedFit):
            result = audit_mechanism(
                case, case.data, case.neighbour, case.epsilon, case.delta, case.draws,
                case.statistic, 0, stopping="anytime", closeness=case.closeness,
            )  # fmt: skip
            cells += [f"{result.epsilon_lower_bound:.2f}", f"{2 * result.n_trials:,}"]
        else:
            cells += ["", ""]
        cells.append(f"{time.process_time() - start:.1f}")
        yield "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [HEAD, "|" + " --- |" * (HEAD.count("|") - 1)]
    for line in rows():
        print(line, flush=True)
        lines.append(line)
    if args.into:
        write_into(args.into, "whole fits", "\n".join(lines))


if __name__ == "__main__":
    main()
