"""CPU seconds and memory of private fits, here and in another checkout, in turns.

    git worktree add FOLDER REV
    OMP_NUM_THREADS=1 python benchmarks/private_fits.py --before FOLDER [--repeats 5] [--only NAME]

A line for each fit: the least CPU seconds in both checkouts, of so many runs in turns, their ratio,
and how much memory the process took at its largest beyond that before the fit (Linux). Compiling is
not timed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent.parent
_MEGABYTE = 2.0**10  # in kilobytes
_BALL = {"norm_bound": 1.0, "random_state": 0}
_BOX = {"bounds": (-1.0, 1.0), "random_state": 0}
_ESTIMATORS = {
    "DPLloyd box": ("kmeans.DPLloyd", 10, _BOX),
    "DPLloyd ball": ("kmeans.DPLloyd", 10, _BALL),
    "EUGkM": ("kmeans.EUGkM", 10, _BOX),
    "CompressiveKMeans": ("kmeans.CompressiveKMeans", 5, {"epsilon": 1.0, **_BOX}),
    "mixture zero": ("mixtures.PrivateGaussianMixture", 5, {"covariance_type": "zero", **_BALL}),
    "mixture spherical": (
        "mixtures.PrivateGaussianMixture",
        5,
        {"covariance_type": "spherical", **_BALL},
    ),
    "mixture diag": ("mixtures.PrivateGaussianMixture", 5, {"covariance_type": "diag", **_BALL}),
    "mixture full": ("mixtures.PrivateGaussianMixture", 5, {"covariance_type": "full", **_BALL}),
    "adaptive full": ("mixtures.AdaptiveGaussianMixture", 5, _BALL),
    "SuLQ": ("subspaces.SuLQKPlanes", 5, {"dimension": 3, **_BALL}),
    "PCA": ("embedding.PrivatePCA", 3, _BALL),
    "projection": ("embedding.PrivateRandomProjection", 3, _BALL),
}
_FEW_FEATURES = ("EUGkM",)  # its grid grows with each
_SHAPES = {
    "rows": ((1_000_000, 10), "float64"),
    "rows, single": ((1_000_000, 10), "float32"),
    "features": ((50_000, 100), "float64"),
    "few": ((2_000, 4), "float64"),
}


def rows(shape, dtype):
    """Return rows in five groups within the unit ball and the box."""
    rng = np.random.default_rng(0)
    n, d = shape
    centers = rng.normal(size=(5, d))
    centers *= 0.6 / np.linalg.norm(centers, axis=1, keepdims=True)
    X = centers[rng.integers(5, size=n)] + rng.normal(scale=0.1 / d**0.5, size=shape)
    return X.astype(dtype)


def measure(name: str, shape: str) -> dict[str, float]:
    """Fit twice, and once more against the clock."""
    import importlib

    path, n_groups, parameters = _ESTIMATORS[name]
    package, cls = path.split(".")
    estimator = getattr(importlib.import_module(f"privclust.{package}"), cls)
    X = rows(*_SHAPES[shape])
    warm = X[:200].copy()

    def fit(on):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = estimator(n_groups, **parameters).fit(on)
            return fitted.transform(on) if name == "projection" else fitted

    fit(warm)
    Path("/proc/self/clear_refs").write_text("5")  # the largest memory so far is forgotten
    before = _largest_memory()
    times = []
    for _ in range(2):
        start = time.process_time()
        fit(X)
        times.append(time.process_time() - start)
    return {"seconds": min(times), "memory": (_largest_memory() - before) / _MEGABYTE}


def _largest_memory() -> float:
    """Return the largest resident memory so far, in kilobytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def in_checkout(folder: Path, script: str, *arguments: str) -> dict[str, float]:
    """Let a script measure in a process of its own, with the package of a checkout."""
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    command = [sys.executable, script, "--measure", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"seconds": np.nan, "memory": np.nan}
    return json.loads(done.stdout)


def main() -> None:
    """Print a table of Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--before", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--measure", nargs=2)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(*args.measure)))
        return
    print("| fit | rows | CPU s before | now | ratio | MB before | now |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in _ESTIMATORS:
        shapes = ["few"] if name in _FEW_FEATURES else list(_SHAPES)
        for shape in shapes if args.only in name else ():
            runs = [
                [in_checkout(folder, __file__, name, shape) for folder in (args.before, HERE)]
                for _ in range(args.repeats)
            ]
            least = [min(run[k]["seconds"] for run in runs) for k in (0, 1)]
            memory = [max(run[k]["memory"] for run in runs) for k in (0, 1)]
            print(
                f"| {name} | {shape} | {least[0]:.3f} | {least[1]:.3f} | "
                f"{least[1] / least[0]:.2f} | {memory[0]:.0f} | {memory[1]:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
