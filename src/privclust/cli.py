"""The command ``privclust``: sketches of files, clusters from sketches, audits of mechanisms.

A command is a function that adds its parser and names what runs it (see `_COMMANDS`). Nothing that
takes long to import is imported before the arguments have been understood.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from privclust import __version__

_FAILURE, _USAGE, _INTERRUPTED, _TERMINATED = 1, 2, 130, 143
_SECONDS_BETWEEN_LINES = 5.0
_HEADER_BYTES = 1 << 16  # of a sketch's file, beside its arrays
_SAMPLE_ROWS = 100_000  # of a public sample, more tell its scale no better
_LAWS = ("adapted_radius", "folded_gaussian", "gaussian", "log_uniform")
_NOT_PRIVATE = (
    "NOT private: it holds exact sums, from which records can be told; keep it as the data "
    "themselves, or make it with --epsilon"
)


class _Terminated(BaseException):
    """SIGTERM, as an exception: files under temporary names are removed on the way out."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str):
        self.exit(_USAGE, f"{self.prog}: error: {message} (see --help)\n")


def main(argv: list[str] | None = None) -> int:
    """Run the command ``privclust`` and return its exit code.

    Parameters
    ----------
    argv : list of str or None
        Arguments; those of the process where None.

    Returns
    -------
    int
        0; 1 if it failed, with one line on the standard error, or if an audit finds a claim
        violated; 130 or 143 if it was interrupted or terminated.

    Raises
    ------
    SystemExit
        With code 2 and one line, if the arguments cannot be understood; 0 for ``--help``.
    """
    parser = _Parser(prog="privclust", description="Clustering under differential privacy.")
    parser.add_argument("--version", action="version", version=f"privclust {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in _COMMANDS:
        add(commands)
    args = parser.parse_args(argv)
    try:
        with _termination_as_exception():
            return args.run(args) or 0
    except KeyboardInterrupt:
        return _fail("interrupted; nothing was written", _INTERRUPTED)
    except _Terminated:
        return _fail("terminated; nothing was written", _TERMINATED)
    except Exception as error:  # one line whatever it is; a library's errors have any type
        return _fail(str(error).strip() or type(error).__name__, _FAILURE)


def _add_sketch(commands) -> None:
    """``privclust sketch``."""
    parser = commands.add_parser(
        "sketch",
        help="reduce files of records to one small sketch",
        description="Reduce files of records (HDF5, Parquet, CSV, .npy; of any size) to a sketch. "
        "With --epsilon it is private; without, it is NOT and must be kept as the data.",
    )
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="records, one a row")
    add("-o", "--output", required=True, metavar="SKETCH", help="file to write (.h5)")
    add("--dataset", metavar="NAME", help="data set within HDF5 files, if there are several")
    add("--threads", type=_positive_integer, default=_cores(), metavar="N", help="default: all")
    group = parser.add_argument_group(
        "frequencies", "Sketches can be merged if made with the same: use --like for all but one."
    )
    add = group.add_argument
    add("--like", metavar="SKETCH", help="use the frequencies and measurements of this sketch")
    add("--frequencies", type=_positive_integer, metavar="M", help="how many, such as 10 k d")
    add("--law", choices=_LAWS, help=f"default: {_LAWS[0]}")
    add(
        "--variance",
        type=_positive_number,
        metavar="V",
        help="scale of the frequencies: about 4 times the variance of a cluster per feature",
    )
    add("--public-sample", metavar="FILE", help="estimate the variance on records that are public")
    add("--seed", type=_seed, metavar="S", help="of the frequencies, which are public")
    add("--measurements", type=_positive_integer, metavar="R", help="of M per record; default: all")
    group = parser.add_argument_group("privacy")
    add = group.add_argument
    add("--epsilon", type=_positive_number, metavar="E", help="in nats")
    add("--delta", type=_probability, metavar="D", help="default: 0")
    add("--noise", choices=("auto", "laplace", "gaussian"), help="default: auto")
    add(
        "--neighbours",
        choices=("replace_one", "add_remove"),
        help="what is hidden: one record's values (default; the number of records is public), or "
        "whether it is there at all",
    )
    add(
        "--seed-noise",
        type=_seed,
        metavar="S",
        help="seed of noise and masks, for reproduction ONLY: who knows it can take the noise off",
    )
    parser.set_defaults(run=_sketch, usage_error=parser.error)


def _add_decode(commands) -> None:
    """``privclust decode``."""
    parser = commands.add_parser(
        "decode",
        help="find clusters from one or more sketches",
        description="Find cluster centers from sketches of disjoint records, merged. Centers come "
        "as CSV with their weights. What sketches promise, their centers promise.",
    )
    add = parser.add_argument
    add("sketches", nargs="+", metavar="SKETCH", help="files that privclust sketch wrote")
    add("--clusters", type=_positive_integer, required=True, metavar="K")
    add("--bounds", type=_number, nargs=2, metavar=("LOW", "HIGH"), help="of every feature")
    add("--seed", type=_seed, metavar="S", help="of random starts, to repeat the outcome")
    add("-o", "--output", metavar="CSV", help="default: the standard output")
    parser.set_defaults(run=_decode, usage_error=parser.error)


def _add_audit(commands) -> None:
    """``privclust audit``."""
    parser = commands.add_parser(
        "audit",
        help="attack a mechanism's privacy claim",
        description="Run a mechanism on two neighbouring data sets and bound epsilon and delta "
        "from below. Exit code 1 if they exceed the claim. No audit proves privacy.",
    )
    add = parser.add_argument
    add("mechanism", metavar="MODULE:CALLABLE", help="called as (data, rng), returns an output")
    add("--epsilon", type=_number, required=True, metavar="E", help="claimed, in nats")
    add("--delta", type=_probability, default=0.0, metavar="D", help="claimed; default: 0")
    add("--trials", type=_positive_integer, default=10_000, metavar="N", help="on each data set")
    known = "MODULE:PAIR (or a function that returns it) or FILE FILE; default: pair in MODULE"
    add("--data", nargs="+", metavar="X", help=known)
    add("--statistic", metavar="MODULE:CALLABLE", help="output to number; default: learned")
    add("--confidence", type=_probability, default=0.95, metavar="P", help="default: 0.95")
    add("--seed", type=_seed, metavar="S", help="of the random numbers that the mechanism is given")
    parser.set_defaults(run=_audit, usage_error=parser.error)


_COMMANDS = (_add_sketch, _add_decode, _add_audit)


def _audit(args) -> int:
    """Audit a mechanism; the outcome goes to the standard output."""
    if len(args.data or ()) > 2:
        args.usage_error("--data takes MODULE:PAIR or two files")
    from privclust.privacy.audit._command import audit

    with _progress(2 * args.trials, "runs") as advance:
        result = audit(args, advance)
    print(result, flush=True)
    return _FAILURE if result.verdict == "violated" else 0


def _sketch(args) -> None:
    """Read files, add up, add noise, write: exact sums of a private sketch meet no disk."""
    _check_sketch_arguments(args)
    _check_output(args.output, [*args.files, args.like, args.public_sample])

    import numpy as np

    from privclust.kmeans._feature_sums import FeatureSums
    from privclust.kmeans._release import release
    from privclust.kmeans._sketch import Sketch, secret_mask_seed
    from privclust.privacy import noise_source
    from privclust.streams import chunks

    if args.epsilon is not None and args.seed_noise is None:
        noise_source(None)  # says now, not after hours, what is not installed
    streams = [chunks(file, dataset=args.dataset) for file in args.files]
    frequencies, n_measurements = _frequencies(args, streams[0].n_features)
    for stream in streams:
        if stream.n_features != len(frequencies):
            raise ValueError(
                f"{stream.name}: has {stream.n_features} columns, "
                f"the frequencies are for {len(frequencies)}"
            )
    sums = FeatureSums(
        frequencies,
        n_measurements=n_measurements,
        mask_seed=secret_mask_seed() if args.seed_noise is None else args.seed_noise,
        n_threads=args.threads,
    )
    _check_room(args.output, frequencies)
    counts = [stream.n_rows for stream in streams]
    with _progress(None if None in counts else sum(counts)) as advance:
        for stream in streams:
            for chunk in stream:
                try:
                    sums.add(chunk)
                except ValueError as error:  # values too large for their phases
                    raise ValueError(f"{stream.name}: {error}") from None
                advance(len(chunk))
    if sums.n_samples == 0:
        raise ValueError(f"{', '.join(args.files)}: no records")
    sketch = Sketch.from_feature_sums(sums)
    if args.epsilon is not None:
        # a stream of its own: frequencies may have been drawn from the same number
        seeded = args.seed_noise is not None
        sketch = release(
            sketch,
            args.epsilon,
            args.delta or 0.0,
            noise=args.noise or "auto",
            neighbours=args.neighbours or "replace_one",
            random_state=np.random.default_rng([args.seed_noise, 1]) if seeded else None,
        )
    _check_room(args.output, frequencies)  # may be gone after hours; HDF5 fails with many words
    sketch.save(args.output)
    _say(f"{args.output}: sketch of {_count(sketch)} records, {sketch.n_frequencies} numbers")
    _say_privacy(sketch)


def _check_sketch_arguments(args) -> None:
    """Refuse what does not go together, before anything is read."""
    drawn = ("frequencies", "law", "variance", "public_sample", "seed")
    if args.like is not None:
        for name in drawn:
            if getattr(args, name) is not None:
                args.usage_error(f"--{_dashed(name)} does not go with --like, which brings its own")
    elif args.frequencies is None:
        args.usage_error("--frequencies M is needed (or --like SKETCH)")
    elif (args.variance is None) == (args.public_sample is None):
        args.usage_error(
            "the scale of the clusters is needed, from one of --variance V (known beforehand), "
            "--public-sample FILE or --like SKETCH; it is not taken from FILE, because that would "
            "tell of the private records without noise"
        )
    elif args.measurements is not None and args.measurements > args.frequencies:
        args.usage_error(f"--measurements may be at most --frequencies {args.frequencies}")
    if args.epsilon is None:
        for name in ("delta", "noise", "neighbours"):
            if getattr(args, name) is not None:
                args.usage_error(f"--{name} says how --epsilon is met, which is not given")
    if args.noise == "gaussian" and not args.delta:
        args.usage_error("--noise gaussian needs a --delta greater than 0")


def _frequencies(args, n_features: int):
    """Return frequencies (n_features, m) and the number of measurements."""
    from privclust.kmeans._frequencies import draw_frequencies, estimate_variance
    from privclust.kmeans._sketch import Sketch

    if args.like is not None:
        like = Sketch.load(args.like)
        return like.frequencies, args.measurements or like.n_measurements
    variance = args.variance
    if variance is None:
        sample = _public_sample(args.public_sample, n_features)
        variance = estimate_variance(sample, random_state=args.seed)
        _say(f"variance estimated on the public sample: {variance:.6g}")
    law: Any = args.law or _LAWS[0]
    frequencies = draw_frequencies(
        n_features, args.frequencies, variance=variance, law=law, random_state=args.seed
    )
    return frequencies, args.measurements


def _public_sample(path: str, n_features: int):
    """Return the first records of a file (n, n_features)."""
    import numpy as np

    from privclust.streams import chunks

    stream = chunks(path, chunk_size=_SAMPLE_ROWS)
    if stream.n_features != n_features:
        raise ValueError(f"{path}: has {stream.n_features} columns, the records {n_features}")
    sample = next(stream, np.zeros((0, n_features)))
    if len(sample) == 0:
        raise ValueError(f"{path}: no records to estimate the variance on")
    return sample


def _decode(args) -> None:
    """Merge sketches, find centers, write them as CSV."""
    if args.bounds is not None and not args.bounds[0] < args.bounds[1]:
        args.usage_error("--bounds: LOW must be less than HIGH")
    resolved = [os.path.realpath(path) for path in args.sketches]
    if len(set(resolved)) < len(resolved):
        args.usage_error("one SKETCH is named twice: its records would count twice")
    if args.output is not None:
        _check_output(args.output, args.sketches)

    from functools import reduce
    from operator import add

    from privclust.files import write_text
    from privclust.kmeans import decode
    from privclust.kmeans._sketch import Sketch

    sketch = reduce(add, (Sketch.load(path) for path in args.sketches))
    bounds = None if args.bounds is None else tuple(args.bounds)
    found = decode(sketch, args.clusters, bounds=bounds, random_state=args.seed)
    columns = ",".join([*(f"x{j + 1}" for j in range(sketch.n_features)), "weight"])
    rows = (
        ",".join(repr(float(value)) for value in (*center, weight))
        for center, weight in zip(found.centers, found.weights, strict=True)
    )
    text = "\n".join([columns, *rows]) + "\n"
    if args.output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_text(args.output, text)
    count = "1 sketch" if len(resolved) == 1 else f"{len(resolved)} sketches"
    _say(f"{args.clusters} centers from {_count(sketch)} records in {count}")
    _say_privacy(sketch)


def _count(sketch) -> str:
    """Number of records as it is read best; a decimal tells that it was noised."""
    n_samples = sketch.n_samples
    return f"{n_samples:,.1f}" if isinstance(n_samples, float) else f"{n_samples:,}"


def _say_privacy(sketch) -> None:
    """Print what the sketch and all that is made from it promise."""
    _say(_NOT_PRIVATE if sketch.guarantee is None else str(sketch.guarantee))


def _check_output(output: str, inputs: list[str | None]) -> None:
    """Find out before hours of reading whether the outcome can be written."""
    target = Path(output)
    for path in inputs:
        if path is not None and os.path.realpath(path) == os.path.realpath(target):
            raise ValueError(f"{output}: is one of the inputs; name another file to write")
    if target.is_dir():
        raise ValueError(f"{output}: is a directory; name a file to write")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{output}: cannot be written ({error.strerror})") from None
    _check_write(target, 0)


def _check_room(output: str, frequencies) -> None:
    """Find out whether a sketch with these frequencies fits on the disk."""
    of_sums = 2 * 2 * 8 * frequencies.shape[1]
    _check_write(Path(output), frequencies.nbytes + of_sums + _HEADER_BYTES)


def _check_write(target: Path, n_bytes: int) -> None:
    """Write so many bytes beside a file and remove them."""
    try:
        with tempfile.TemporaryFile(dir=target.parent) as file:
            file.write(os.urandom(n_bytes))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise ValueError(f"{target}: cannot be written ({error.strerror})") from None


@contextlib.contextmanager
def _progress(total: int | None, unit: str = "records read") -> Iterator:
    """Give a function that is told how much more was done."""
    try:
        from tqdm import tqdm
    except ImportError:
        tqdm = None
    if tqdm is not None and sys.stderr.isatty():
        unit = f" {unit.split()[0]}"
        with tqdm(total=total, unit=unit, unit_scale=True, file=sys.stderr) as bar:
            yield bar.update
    else:
        yield _Lines(total, unit).advance


class _Lines:
    """Progress for logs: a line every few seconds."""

    def __init__(self, total: int | None, unit: str) -> None:
        self._total, self._unit = total, unit
        self._done = 0
        self._last = time.monotonic()

    def advance(self, count: int) -> None:
        """Count what was done."""
        self._done += count
        if time.monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            of = f" of {self._total:,}" if self._total is not None else ""
            _say(f"{self._done:,}{of} {self._unit}")


@contextlib.contextmanager
def _termination_as_exception() -> Iterator[None]:
    """Turn SIGTERM into `_Terminated` meanwhile; only the main thread may."""

    def stop(signum, frame):
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _say(text: str) -> None:
    """Print to the standard error: the standard output is for results."""
    print(text, file=sys.stderr, flush=True)


def _fail(message: str, code: int) -> int:
    """Print one line and return the code."""
    _say(f"privclust: error: {' '.join(message.split())}")
    return code


def _dashed(name: str) -> str:
    """An option as it is typed."""
    return name.replace("_", "-")


def _cores() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a finite number, got {text!r}")
    return value


def _positive_number(text: str) -> float:
    """A finite number above 0."""
    value = _number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"must be greater than 0, got {text!r}")
    return value


def _probability(text: str) -> float:
    """A number from 0 to less than 1."""
    value = _number(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"must be from 0 to less than 1, got {text!r}")
    return value


def _seed(text: str) -> int:
    """A whole number from 0."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a whole number from 0, got {text!r}")
    return int(text)


def _positive_integer(text: str) -> int:
    """A whole number from 1."""
    value = _seed(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text!r}")
    return value


if __name__ == "__main__":
    sys.exit(main())
