"""Images a second of EfficientNet-Lite, by network, size and number of threads.

Run: ``nice python benchmarks/features.py [SECONDS]``; SECONDS is how long each row runs at least,
5 by default. Images are generated, 256 x 256 pixels, and brought to size as photographs are;
decoding of files is not in the times. Given: images a second by the clock and by CPU time, and
whether the features are those of one thread, byte for byte. Networks that are not installed are
left out.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from privclust.datasets.images import generate
from privclust.features import extract_features


def rate(images, seconds, **settings):
    """Return features and images a second, by the clock and by CPU time."""
    features = extract_features(images, **settings)  # builds the network
    clock, cpu, n_images = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - clock < seconds:
        extract_features(images, **settings)
        n_images += len(images)
    return (
        features,
        n_images / (time.perf_counter() - clock),
        n_images / (time.process_time() - cpu),
    )


def print_rows(model, images, seconds):
    """Print the rows of one network."""
    for size in (96, 224):
        first = None
        for threads in (1, 2):
            features, clock, cpu = rate(images, seconds, model=model, size=size, threads=threads)
            first = features if first is None else first
            same = "yes" if np.array_equal(first, features) else "no"
            print(
                f"{model}  {size:4d}  {threads:7d}  {clock:8.1f}  {cpu:12.1f}  {same}", flush=True
            )


def main():
    """Print a table."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    images = generate(seed=1, n_classes=4, n_images=8, size=256)["images"]
    print("model  size  threads  images/s  images/CPU-s  same bytes")
    for model in ("lite0", "lite1", "lite2"):
        try:
            print_rows(model, images, seconds)
        except ImportError as error:
            print(error)


if __name__ == "__main__":
    main()
