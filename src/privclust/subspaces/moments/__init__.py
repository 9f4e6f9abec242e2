"""Private unions of subspaces from one noisy sketch of harmonic moments.

Read in this order: `union`, `_objective`, `_likelihood` and `_information` (fit of a union of
subspaces, and its errors), `_decoding`, `_selection` (how many), `last_round`, `_estimator`;
`_bound` is a lower bound on the error of any decoder.
"""
