"""The kinds of sketches: features of clusters' shapes, or moments of directions.

A sketcher has exact sums, to which chunks are added. It states the guarantee and size of their
sketch, and releases it.
"""

from __future__ import annotations

from typing import Any

from privclust.command._records import Records, first_rows

LAWS = ("adapted_radius", "folded_gaussian", "gaussian", "log_uniform")


class SampleError(ValueError):
    """A message that depends on the records of the public sample, which may yet be private."""


class FeatureSketcher:
    """Sketches of `privclust.sketches.Sketch`, for centers of clusters."""

    needed_by = "the frequencies are for"
    any_record = "an entry that is too large for the frequencies counts as the largest"

    def __init__(self, args, n_features: int, sample: Records | None) -> None:
        from privclust.sketches import FeatureSums, secret_mask_seed

        self._args = args
        self.frequencies, n_measurements, self.variance = _frequencies(args, n_features, sample)
        m = self.frequencies.shape[1]
        if args.groups is not None and (n_measurements or m) < m:
            raise ValueError(
                f"--groups: groups cannot have {n_measurements} of {m} measurements, which "
                "are drawn for each record"
            )
        self.n_features, self.n_numbers = self.frequencies.shape
        self.n_bytes = self.frequencies.nbytes + 2 * 2 * 8 * self.n_numbers
        self._n_measurements = n_measurements or self.n_numbers
        seed = secret_mask_seed() if args.seed_noise is None else args.seed_noise
        how = {"n_measurements": n_measurements, "mask_seed": seed, "n_threads": args.threads}
        try:
            self.sums = FeatureSums(self.frequencies, **how)
        except ValueError as error:
            if sample is None:
                raise
            raise SampleError(str(error)) from error

    def promise(self, share: float):
        from privclust.sketches._release import measurement

        noise = measurement(self._n_measurements, self.n_numbers, **self._terms(share))
        return noise.promise(unit=unit_of_records(self._args))

    def add(self, rows, groups, file) -> None:
        """Add rows that count; without privacy, refuse those too large for the frequencies."""
        if self._args.epsilon is None:
            self._check_sizes(rows, file)
        self.sums.add(self.sums.clipped(rows), groups)

    def _check_sizes(self, rows, file) -> None:
        import numpy as np

        largest = self.sums.largest_value(rows.dtype)
        is_large = (np.abs(rows) > largest).any(axis=0)
        if is_large.any():
            column = int(np.argmax(is_large))
            name = f"column {column + 1}" if file.header is None else repr(file.header[column])
            raise ValueError(
                f"{file.name}: {name} has an entry too large for the frequencies, which allow at "
                f"most {largest:.3g}; rescale the columns, or declare their --bounds"
            )

    def exact(self):
        from privclust.sketches import Sketch

        return Sketch.from_feature_sums(self.sums)

    def release(self, sketch, share: float, random_state):
        from privclust.sketches import release

        return release(sketch, **self._terms(share), random_state=random_state)

    def _terms(self, share: float) -> dict[str, Any]:
        """Return the parameters of a release, with one kind of noise."""
        args = self._args
        of_several = "gaussian" if args.delta and share < 1.0 else "auto"
        return {
            "epsilon": args.epsilon,
            "delta": args.delta or 0.0,
            "noise": args.noise or of_several,
            "neighbours": args.neighbours or "replace_one",
            "share": share,
        }


class MomentSketcher:
    """Sketches of `privclust.sketches.MomentSketch`, for unions of subspaces."""

    needed_by = "the first file"
    any_record = "of a record with infinite entries, only these count"
    variance = None

    def __init__(self, args, n_features: int, sample: Records | None) -> None:
        from privclust.sketches.moment_release import check_size, default_degree
        from privclust.sketches.moment_sums import GroupSums, HarmonicSums

        degree = args.degree or default_degree(n_features) if n_features > 1 else 4
        check_size(n_features, degree)
        self._args, self.n_features = args, n_features
        self.sums = GroupSums(n_features, degree)
        integers = HarmonicSums(n_features, degree).integers
        self.n_numbers = sum(map(len, integers.values())) - 1
        self.n_bytes = 8 * (self.n_numbers + 1)

    def promise(self, share: float):
        from privclust.privacy import Neighbours
        from privclust.sketches.moment_release import measurement

        args = self._args
        relation = Neighbours.of(args.neighbours or "replace_one")
        terms = args.epsilon, args.delta, share
        noise = measurement(self.n_features, self.sums.degree, relation, *terms)
        return noise.promise(seeded=args.seed_noise is not None, unit=unit_of_records(args))

    def add(self, rows, groups, file) -> None:
        """Add rows that count, each by its direction."""
        self.sums.add(self.sums.clipped(rows), groups)

    def exact(self):
        from privclust.sketches import MomentSketch

        return MomentSketch.from_sums(self.sums.total(), unit_of_records(self._args))

    def release(self, sketch, share: float, random_state):
        args = self._args
        return sketch.release(
            args.epsilon,
            args.delta,
            neighbours=args.neighbours or "replace_one",
            share=share,
            random_state=random_state,
        )


def unit_of_records(args) -> str:
    from privclust.privacy.groups import GROUP, ROW

    return ROW if args.groups is None else GROUP


def _frequencies(args, n_features: int, sample: Records | None):
    """Return frequencies (n_features, m), the number of measurements, and the variance, if known.

    The variance is not printed: the public sample may yet turn out to be private.
    """
    from privclust.sketches import Sketch, draw_frequencies, estimate_variance
    from privclust.sketches._base import MOST_BYTES

    if args.like is not None:
        like = Sketch.load(args.like)
        return like.frequencies, args.measurements or like.n_measurements, None
    most = MOST_BYTES // (8 * (n_features + 4))
    if args.frequencies > most:
        raise ValueError(
            f"--frequencies {args.frequencies}: must be at most {most} for {n_features} columns, "
            f"as a sketch's file may hold {MOST_BYTES >> 30} GiB"
        )
    law: Any = args.law or LAWS[0]
    how = {"law": law, "random_state": args.seed}
    if sample is None:
        frequencies = draw_frequencies(n_features, args.frequencies, variance=args.variance, **how)
        return frequencies, args.measurements, args.variance
    try:
        variance = estimate_variance(first_rows(sample), random_state=args.seed)
        frequencies = draw_frequencies(n_features, args.frequencies, variance=variance, **how)
    except ValueError as error:
        raise SampleError(str(error)) from error
    return frequencies, args.measurements, variance
