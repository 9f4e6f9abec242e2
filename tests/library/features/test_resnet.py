"""ResNet-50: the graph against plain arithmetic with generated weights, and the weights' file."""

import hashlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from privclust.features import (
    WeightsError,
    _weights,
    extract_features,
    small_pixels,
    weights_sha256,
)
from privclust_papers.datasets.registry import load_datasets
from privclust_papers.settings.dotted import load_object

ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "workflow" / "schemas" / "datasets.schema.yaml"
SIZE = 44  # halved to 22, 11, 6, 3, 2, so that odd sizes are padded too
DEPTHS = (3, 4, 6, 3)


@pytest.fixture(scope="module")
def weights():
    """Weights that the benchmark of features generates."""
    spec = importlib.util.spec_from_file_location("features", ROOT / "benchmarks" / "features.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.generated_weights()


@pytest.fixture(scope="module")
def runtime():
    pytest.importorskip("onnx", reason="deep features need onnx: pip install '.[images]'")
    return pytest.importorskip(
        "onnxruntime", reason="deep features need onnxruntime: pip install '.[images]'"
    )


def _windows(x, kernel, stride, value=0.0):
    edge = kernel // 2
    x = np.pad(x, [(0, 0), (edge, edge), (edge, edge)], constant_values=value)
    windows = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), axis=(1, 2))
    return windows[:, ::stride, ::stride]


def _by_hand(pixels, w):
    """The network of one image, in float64 and without folding."""

    def layer(x, name, norm, stride=1):
        weight = w[f"{name}.weight"].astype(np.float64)
        windows = _windows(x, weight.shape[-1], stride)
        x = np.einsum("chwij,ocij->ohw", windows, weight, optimize=True)
        gain, bias, mean, variance = (
            w[f"{norm}.{part}"].astype(np.float64)[:, None, None]
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        return (x - mean) / np.sqrt(variance + 1e-5) * gain + bias

    def relu(x):
        return np.maximum(x, 0.0)

    x = (pixels / 255.0 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    x = relu(layer(x.transpose(2, 0, 1), "conv1", "bn1", 2))
    x = _windows(x, 3, 2, -np.inf).max(axis=(3, 4))
    for stage, depth in enumerate(DEPTHS, start=1):
        for block in range(depth):
            prefix, stride = f"layer{stage}.{block}", 2 if block == 0 and stage > 1 else 1
            y = relu(layer(x, f"{prefix}.conv1", f"{prefix}.bn1"))
            y = relu(layer(y, f"{prefix}.conv2", f"{prefix}.bn2", stride))
            y = layer(y, f"{prefix}.conv3", f"{prefix}.bn3")
            if block == 0:
                x = layer(x, f"{prefix}.downsample.0", f"{prefix}.downsample.1", stride)
            x = relu(x + y)
    return x.mean(axis=(1, 2))


@pytest.fixture
def settings(runtime, weights, monkeypatch, tmp_path):
    """A file that stands for the published one: it has its checksum, and generated weights."""
    path = tmp_path / "resnet50.pth"
    path.write_bytes(b"generated")
    sha256 = hashlib.sha256(b"generated").hexdigest()
    monkeypatch.setitem(_weights._SHA256, "resnet50", sha256)
    monkeypatch.setattr(_weights, "parse_weights", lambda file: weights)
    return {"model": "resnet50", "weights": path, "size": SIZE}


def test_network_is_what_its_weights_say(settings, weights, gratings):
    images = gratings["images"][::20]
    found = extract_features(images, **settings)
    pixels = np.rint(255.0 * small_pixels(images, SIZE)).reshape(-1, SIZE, SIZE, 3)
    expected = np.array([_by_hand(image, weights) for image in pixels])
    assert found.shape == (2, 2048)
    assert found.dtype == np.float32
    # 53 layers of float32 sums, each within a few roundings of 6e-8 of the largest value
    largest = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * largest)
    assert np.abs(expected[0] - expected[1]).max() > 1e-2 * largest


def test_number_of_weights_is_the_published_one(weights):
    """25,557,032, of which the classifier, which is not run, has 2,049,000."""
    n_trained = sum(w.size for name, w in weights.items() if "running" not in name)
    assert n_trained + 2_048 * 1_000 + 1_000 == 25_557_032


def test_batches_and_threads_change_no_byte(settings, gratings):
    images = gratings["images"][:3]
    found = extract_features(images, **settings, batch=1, threads=1)
    assert found.shape == (3, 2048)
    assert (found >= 0).all()
    np.testing.assert_array_equal(found, extract_features(images, **settings, threads=2))


def test_weights_that_are_not_given_or_not_the_published_ones(gratings, tmp_path):
    assert weights_sha256("resnet50").startswith("0676ba61")
    with pytest.raises(ValueError, match=r"resnet50-0676ba61\.pth and give its path as weights"):
        extract_features(gratings["images"], model="resnet50")
    pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install '.[images]'")
    with pytest.raises(WeightsError, match=r"none\.pth: cannot be read \(No such file"):
        extract_features(gratings["images"], model="resnet50", weights=tmp_path / "none.pth")
    (tmp_path / "cut.pth").write_bytes(b"other")
    with pytest.raises(WeightsError, match=r"cut\.pth: its SHA-256 .* replace it by a whole copy"):
        extract_features(gratings["images"], model="resnet50", weights=tmp_path / "cut.pth")


def test_config_fetches_the_published_file():
    """The config file's addresses and checksums are those that reading the weights asks for."""
    dataset = load_datasets(ROOT / "config" / "datasets.yaml", SCHEMA)["resnet50"]
    assert dataset.file == "resnet50-0676ba61.pth"
    assert [s.location for s in dataset.sources if s.kind == "url"] == [
        _weights._ADDRESSES["resnet50"]
    ]
    assert {source.sha256 for source in dataset.sources} == {weights_sha256("resnet50")}
    assert load_object(dataset.reader) is _weights.read_resnet50
