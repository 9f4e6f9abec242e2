"""Images a second of the networks, by size and number of threads.

Run: ``nice python benchmarks/features.py [SECONDS]``; SECONDS is how long each row runs at least,
5 by default. Images are generated, 256 x 256 pixels, and brought to size as photographs are;
decoding of files is not in the times. Given: images a second by the clock and by CPU time, and
whether the features are those of one thread, byte for byte; and the most memory of the process so
far. Networks that are not installed are left out; ResNet-50 has generated weights, with which it
takes as long. The last line is how long 60,000 images would take by its rate at 224 pixels.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from privclust.features import _extract, extract_features
from privclust.synthetic.images import generate

_DEPTHS = (3, 4, 6, 3)  # of ResNet-50


def generated_weights(seed=0):
    """Weights of the shapes and names of torchvision's, that keep values near 1."""
    rng = np.random.default_rng(seed)
    weights = {}

    def layer(name, norm, n_out, n_in, kernel):
        shape = (n_out, n_in, kernel, kernel)
        scale = np.sqrt(2.0 / (n_in * kernel**2))
        weights[f"{name}.weight"] = scale * rng.standard_normal(shape, dtype=np.float32)
        weights[f"{norm}.weight"] = rng.uniform(0.5, 1.0, n_out).astype(np.float32)
        weights[f"{norm}.bias"] = rng.normal(0.0, 0.1, n_out).astype(np.float32)
        weights[f"{norm}.running_mean"] = rng.normal(0.0, 0.1, n_out).astype(np.float32)
        # some channels vary so little that the epsilon of batch normalisation counts
        variance = np.where(rng.random(n_out) < 0.1, 1e-5, rng.uniform(0.5, 1.5, n_out))
        weights[f"{norm}.running_var"] = variance.astype(np.float32)
        weights[f"{norm}.weight"][variance < 1e-3] *= 3e-3

    layer("conv1", "bn1", 64, 3, 7)
    n_in = 64
    for stage, depth in enumerate(_DEPTHS):
        width = 64 * 2**stage
        for block in range(depth):
            prefix = f"layer{stage + 1}.{block}"
            layer(f"{prefix}.conv1", f"{prefix}.bn1", width, n_in, 1)
            layer(f"{prefix}.conv2", f"{prefix}.bn2", width, width, 3)
            layer(f"{prefix}.conv3", f"{prefix}.bn3", 4 * width, width, 1)
            if block == 0:
                layer(f"{prefix}.downsample.0", f"{prefix}.downsample.1", 4 * width, n_in, 1)
            n_in = 4 * width
    return weights


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


def print_rows(model, images, seconds, **settings):
    """Print the rows of one network."""
    for size in (96, 224):
        first = None
        for threads in (1, 2):
            features, clock, cpu = rate(
                images, seconds, model=model, size=size, threads=threads, **settings
            )
            first = features if first is None else first
            same = "yes" if np.array_equal(first, features) else "no"
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
            print(
                f"{model:8s}  {size:4d}  {threads:7d}  {clock:8.1f}  {cpu:12.1f}  {same:10s}  "
                f"{memory:9.0f}",
                flush=True,
            )
    return 60_000 / cpu


def main():
    """Print a table."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    images = generate(seed=1, n_classes=4, n_images=8, size=256)["images"]
    print("model     size  threads  images/s  images/CPU-s  same bytes  memory MB")
    print_rows("lite0", images, seconds)
    _extract.read_weights = lambda model, file: generated_weights()
    cpu = print_rows("resnet50", images, seconds, weights="generated")
    print(f"60,000 images by ResNet-50 at 224 pixels: {cpu:.0f} CPU seconds, extrapolated")


if __name__ == "__main__":
    main()
