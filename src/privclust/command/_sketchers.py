"""What a sketch is made of: features of clusters' shapes, or moments of directions.

A sketcher has exact sums, to which chunks are added; says what a sketch of them would promise, and
how large it is; and releases it.
"""

from __future__ import annotations

from typing import Any

from privclust.command._records import public_sample
from privclust.command.output import say

LAWS = ("adapted_radius", "folded_gaussian", "gaussian", "log_uniform")


class FeatureSketcher:
    """Sketches of `privclust.sketches.Sketch`, for centers of clusters."""

    needed_by = "the frequencies are for"
    any_record = (
        "what is no number counts as 0, what is too large for the frequencies as the largest"
    )
    errors_tell = "an error for a record that is no number or too large is outside the guarantee"

    def __init__(self, args, n_features: int) -> None:
        from privclust.sketches import FeatureSums, secret_mask_seed

        self._args = args
        self.frequencies, n_measurements = _frequencies(args, n_features)
        m = self.frequencies.shape[1]
        if args.groups is not None and (n_measurements or m) < m:
            raise ValueError(
                f"--groups: groups cannot have {n_measurements} of {m} measurements, which "
                "are drawn for each record"
            )
        self.n_features, self.n_numbers = self.frequencies.shape
        self.n_bytes = self.frequencies.nbytes + 2 * 2 * 8 * self.n_numbers
        self._n_measurements = n_measurements or self.n_numbers
        self.sums = FeatureSums(
            self.frequencies,
            n_measurements=n_measurements,
            mask_seed=secret_mask_seed() if args.seed_noise is None else args.seed_noise,
            n_threads=args.threads,
        )

    def promise(self):
        """Return what a release would promise."""
        from privclust.sketches import promise

        unit = unit_of_records(self._args)
        return promise(self._n_measurements, self.n_numbers, **self._terms(), unit=unit)

    def check(self, chunk, stream) -> None:
        """Refuse records whose values are too large for their phases."""
        import numpy as np

        largest = self.sums.largest_value(chunk.dtype)
        large = np.argwhere(np.abs(chunk) > largest)
        if len(large):
            row, column = large[0]
            raise ValueError(
                f"{stream.name}: {stream.place(row - len(chunk), column)} is too large for the "
                f"frequencies, which bear {largest:.3g}; rescale the columns"
            )

    def borne(self, chunk):
        """Return values that the sums bear, of any."""
        return self.sums.clipped(chunk, [0.0] * self.n_features)

    def exact(self):
        """Return the sketch of what was added, which is not private."""
        from privclust.sketches import Sketch

        return Sketch.from_feature_sums(self.sums)

    def release(self, sketch, random_state):
        """Return a sketch with noise."""
        from privclust.sketches import release

        return release(sketch, **self._terms(), random_state=random_state)

    def _terms(self) -> dict[str, Any]:
        """Return what a release is asked for."""
        args = self._args
        return {
            "epsilon": args.epsilon,
            "delta": args.delta or 0.0,
            "noise": args.noise or "auto",
            "neighbours": args.neighbours or "replace_one",
        }


class MomentSketcher:
    """Sketches of `privclust.sketches.MomentSketch`, for unions of subspaces."""

    needed_by = "the first file"
    any_record = "what is no number counts as 0, and of records with infinite fields those alone"
    errors_tell = "an error for a record that is no number is outside the guarantee"

    def __init__(self, args, n_features: int) -> None:
        from privclust.sketches.moment_release import check_size, default_degree
        from privclust.sketches.moment_sums import GroupSums, HarmonicSums

        degree = args.degree or default_degree(n_features) if n_features > 1 else 4
        check_size(n_features, degree)
        self._args, self.n_features = args, n_features
        rows = HarmonicSums(n_features, degree)
        self.sums = rows if args.groups is None else GroupSums(n_features, degree)
        self.n_numbers = sum(len(sums) for sums in rows.integers.values()) - 1
        self.n_bytes = 8 * (self.n_numbers + 1)

    def promise(self):
        """Return what a release would promise."""
        from privclust.privacy import Neighbours
        from privclust.sketches.moment_release import measurement

        args = self._args
        relation = Neighbours.of(args.neighbours or "replace_one")
        noise = measurement(self.n_features, self.sums.degree, relation, args.epsilon, args.delta)
        return noise.promise(seeded=args.seed_noise is not None, unit=unit_of_records(args))

    def check(self, chunk, stream) -> None:
        """Any numbers will do: each record counts by its direction."""

    def borne(self, chunk):
        """Return any values as they are, which sums bear."""
        return chunk

    def exact(self):
        """Return the sketch of what was added, which is not private."""
        from privclust.sketches import MomentSketch

        if self._args.groups is None:
            return MomentSketch.from_sums(self.sums)
        return MomentSketch.from_sums(self.sums.total(), unit_of_records(self._args))

    def release(self, sketch, random_state):
        """Return a sketch with noise."""
        args = self._args
        return sketch.release(
            args.epsilon,
            args.delta,
            neighbours=args.neighbours or "replace_one",
            random_state=random_state,
        )


def unit_of_records(args) -> str:
    """Return what is protected: rows, or groups of them."""
    from privclust.privacy.groups import GROUP, ROW

    return ROW if args.groups is None else GROUP


def _frequencies(args, n_features: int):
    """Return frequencies (n_features, m) and the number of measurements."""
    from privclust.sketches import Sketch, draw_frequencies, estimate_variance
    from privclust.sketches._base import MOST_BYTES

    if args.like is not None:
        like = Sketch.load(args.like)
        return like.frequencies, args.measurements or like.n_measurements
    most = MOST_BYTES // (8 * (n_features + 4))
    if args.frequencies > most:
        raise ValueError(
            f"--frequencies {args.frequencies}: may be at most {most} for {n_features} columns, as "
            f"a sketch's file may hold {MOST_BYTES >> 30} GiB"
        )
    variance = args.variance
    if variance is None:
        sample = public_sample(args, n_features)
        variance = estimate_variance(sample, random_state=args.seed)
        say(f"variance estimated on the public sample: {variance:.6g}")
    law: Any = args.law or LAWS[0]
    frequencies = draw_frequencies(
        n_features, args.frequencies, variance=variance, law=law, random_state=args.seed
    )
    return frequencies, args.measurements
