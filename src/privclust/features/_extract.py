"""Features of images by a network on onnxruntime."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from joblib import cpu_count

from privclust.core.packages import require
from privclust.core.progress import progress_over
from privclust.core.validation import check_integer, check_option
from privclust.features._networks import build_graph
from privclust.features._weights import MODELS, check_weights, read_weights
from privclust.features.images import Image, ImageList, UnreadableImagesError

_CROP = 0.875  # side of the square that is kept, as a share of an image's shorter side
_SMALLEST_SIZE = 32  # pixels; the network halves an image five times


def extract_features(
    images: ImageList | Sequence[Image] | np.ndarray,
    *,
    model: Literal["lite0", "resnet50"] = "lite0",
    weights: str | os.PathLike[str] | None = None,
    size: int = 224,
    batch: int = 16,
    threads: int | None = None,
    progress: bool = False,
) -> np.ndarray:
    """Return deep features: the pooled outputs of a network trained on ImageNet.

    The central square of each image, of 0.875 times its shorter side, is scaled to ``size`` x
    ``size`` pixels by bicubic interpolation. This is how the Lite models are evaluated, M. Tan and
    Q. V. Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", ICML 2019;
    their pixels are (x - 127) / 128. ResNet-50, K. He, X. Zhang, S. Ren and J. Sun, "Deep Residual
    Learning for Image Recognition", CVPR 2016, gets the same square, with pixels standardised by
    the mean and standard deviation of ImageNet's colours.

    The features of an image depend neither on its batch nor on the number of threads. On a
    processor with other vector instructions they differ by rounding.

    Parameters
    ----------
    images : ImageList, array of shape (n, h, w, 3) or sequence
        Arrays of type uint8, bytes of encoded files, or paths; see
        `privclust.features.images.ImageList`, which also crops to boxes.
    model : {"lite0", "resnet50"}, default="lite0"
        The network.
    weights : path-like or None, default=None
        The published file of the network's weights; its checksum is verified. None uses the file of
        the package with the weights; resnet50 has no package and needs torchvision's
        ``resnet50-0676ba61.pth``.
    size : int, default=224
        Height and width of the network's input in pixels, >= 32. Both networks were trained at 224;
        time grows with the square.
    batch : int, default=16
        Images per run, >= 1.
    threads : int or None, default=None
        Threads, >= 1. None uses ``OMP_NUM_THREADS`` if set, else one per core.
    progress : bool, default=False
        Whether to show progress: a bar on a terminal, otherwise lines in the log.

    Returns
    -------
    ndarray of shape (n, 1280), or (n, 2048) for ResNet-50, float32
        Non-negative and finite.

    Raises
    ------
    ValueError
        If a parameter is out of range, there are no images, or the weights have neither a package
        nor a given file.
    WeightsError
        If the file of the weights is not the published one.
    UnreadableImagesError
        If images cannot be decoded, before any is run; a ValueError that names and counts them.
    ImportError
        If onnxruntime, onnx, Pillow or the weights are missing; the message names them.

    Examples
    --------
    >>> photographs = ["first.jpg", "second.jpg"]
    >>> extract_features(photographs, size=96).shape  # doctest: +SKIP
    (2, 1280)
    """
    check_option("model", model, MODELS)
    check_weights(model, weights)
    check_integer("size", size, minimum=_SMALLEST_SIZE)
    check_integer("batch", batch, minimum=1)
    threads = _default_threads() if threads is None else threads
    check_integer("threads", threads, minimum=1)
    images = images if isinstance(images, ImageList) else ImageList(images)
    # before the network runs for a long time, and all of them in one message
    if failures := images.unreadable():
        raise UnreadableImagesError(failures, len(images))
    network = _network(model, threads, None if weights is None else Path(weights))
    starts = range(0, len(images), batch)
    what = f"features by {model}, batches of {batch}"
    batches = []
    for start in progress_over(starts, len(starts), what) if progress else starts:
        stop = min(start + batch, len(images))
        pixels = np.stack([prepare(images[i], size) for i in range(start, stop)])
        batches += network.run(["features"], {"images": pixels})
    return np.concatenate(batches)


def prepare(image: np.ndarray, size: int) -> np.ndarray:
    """Return the square in an image's middle at the network's size, (size, size, 3) uint8."""
    image_module = require("PIL.Image", "images")
    height, width = image.shape[:2]
    side = _CROP * min(height, width)
    left, top = (width - side) / 2.0, (height - side) / 2.0
    scaled = image_module.fromarray(image).resize(
        (size, size), image_module.Resampling.BICUBIC, box=(left, top, left + side, top + side)
    )
    return np.asarray(scaled)


def small_pixels(images: ImageList, size: int) -> np.ndarray:
    """Return the pixels of downscaled images, for comparison with deep features.

    Parameters
    ----------
    images : ImageList
    size : int
        Height and width of the downscaled central squares in pixels, >= 1.

    Returns
    -------
    ndarray of shape (n, 3 * size ** 2), float32
        In [0, 1]; row by row, with the three colours of a pixel together.
    """
    check_integer("size", size, minimum=1)
    pixels = np.stack([prepare(image, size).ravel() for image in images])
    return pixels.astype(np.float32) / np.float32(255.0)


@functools.lru_cache(maxsize=2)
def _network(model: str, threads: int, weights: Path | None):
    """Return the network, ready to run; the last two are kept."""
    runtime = require("onnxruntime", "images")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors
    # waiting threads would otherwise take time from other processes
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    graph = build_graph(model, read_weights(model, weights))
    return runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def _default_threads() -> int:
    """Return the number of threads set by the environment, or that of usable cores."""
    n_threads = os.environ.get("OMP_NUM_THREADS", "")
    if n_threads.isdigit() and int(n_threads):
        return int(n_threads)
    return cpu_count()
