"""Deep features: the network against plain arithmetic, what must not matter, bad input."""

import logging
import sys

import joblib
import numpy as np
import pytest

from privclust.features import extract_features, small_pixels
from privclust.features._weights import read_weights
from privclust.features.images import ImageList, UnreadableImagesError, take_images
from privclust_papers.datasets import cub200

SIZE = 40  # halved five times: 20, 10, 5, 3, 2, so that odd sizes are padded too


def squares(images, size):
    """The squares in the middle of images at a size, (n, size, size, 3), as the network gets."""
    pixels = small_pixels(images, size).reshape(-1, size, size, 3)
    return np.rint(255.0 * pixels).astype(np.uint8)


def _padded(x, kernel, stride):
    """Pad as TensorFlow's "SAME" does: what is over goes to the end."""
    pads = []
    for length in x.shape[1:]:
        total = max((-(-length // stride) - 1) * stride + kernel - length, 0)
        pads.append((total // 2, total - total // 2))
    return np.pad(x, [(0, 0), *pads])


def _convolve(x, weight, stride, groups):
    kernel = weight.shape[-1]
    windows = np.lib.stride_tricks.sliding_window_view(
        _padded(x, kernel, stride), (kernel, kernel), axis=(1, 2)
    )[:, ::stride, ::stride]
    if groups == 1:
        return np.einsum("chwij,ocij->ohw", windows, weight, optimize=True)
    return np.einsum("chwij,cij->chw", windows, weight[:, 0])


def _by_hand(pixels, w):
    """The network of one image, in float64 and without folding."""

    def layer(x, name, norm, stride=1, groups=1, bounded=True):
        x = _convolve(x, w[f"{name}.weight"].astype(np.float64), stride, groups)
        gain, bias, mean, variance = (
            w[f"{norm}.{part}"].astype(np.float64)[:, None, None]
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        x = (x - mean) / np.sqrt(variance + 1e-3) * gain + bias
        return np.clip(x, 0, 6) if bounded else x

    x = (pixels.astype(np.float64).transpose(2, 0, 1) - 127) / 128
    x = layer(x, "_conv_stem", "_bn0", 2)
    down = {1, 3, 5, 11}
    for i in range(16):
        block, start = f"_blocks.{i}.", x
        if i:
            x = layer(x, block + "_expand_conv", block + "_bn0")
        depthwise = block + "_depthwise_conv"
        x = layer(x, depthwise, block + "_bn1", 2 if i in down else 1, groups=len(x))
        x = layer(x, block + "_project_conv", block + "_bn2", bounded=False)
        if start.shape == x.shape:
            x = x + start
    return layer(x, "_conv_head", "_bn1").mean(axis=(1, 2))


def test_network_is_what_its_weights_say(network, gratings):
    weights = read_weights("lite0")
    images = gratings["images"][::20]
    found = extract_features(images, size=SIZE)
    expected = np.array([_by_hand(square, weights) for square in squares(images, SIZE)])
    assert found.dtype == np.float32
    # 50 layers of float32 sums, each within a few roundings of 6e-8 of values of up to 6
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
    assert np.abs(expected[0] - expected[1]).max() > 0.1


def test_albatrosses_are_albatrosses(network, birds):
    """The weights and the preparation of images: class 146 of ImageNet is the albatross.

    Of 1,000 classes chance would name it once in 1,000 images.
    """
    arrays = cub200.read_crops(birds)
    some = np.flatnonzero(arrays["y"] < 3)[::8]  # three species of albatross
    weights = read_weights("lite0")
    features = extract_features(ImageList.from_arrays(take_images(arrays, some)))
    logits = features @ weights["_fc.weight"].T + weights["_fc.bias"]
    assert (logits.argmax(axis=1) == 146).mean() > 0.6


def test_batch_threads_and_order_change_no_byte(network, gratings):
    images = gratings["images"]
    expected = extract_features(images, size=SIZE, batch=16, threads=1)
    for batch, threads in ((1, 1), (7, 2), (64, 2)):
        found = extract_features(images, size=SIZE, batch=batch, threads=threads)
        np.testing.assert_array_equal(found, expected)
    turned = extract_features(images[::-1], size=SIZE, threads=2)
    np.testing.assert_array_equal(turned[::-1], expected)


def test_any_source_of_an_image_gives_the_same(network, gratings, png, tmp_path):
    image = gratings["images"][0]
    (tmp_path / "a.png").write_bytes(png(image))
    items = [image, png(image), tmp_path / "a.png", str(tmp_path / "a.png")]
    found = extract_features(items, size=SIZE)
    assert (found == found[0]).all()


def test_square_in_the_middle_is_kept(png):
    pytest.importorskip("PIL.Image")
    image = np.zeros((80, 200, 3), dtype=np.uint8)
    side = round(0.875 * 80)
    image[5 : 5 + side, 65 : 65 + side] = np.arange(side, dtype=np.uint8)[:, None, None]
    (found,) = squares([image], side)  # at the size that it has: no interpolation
    np.testing.assert_array_equal(found, image[5 : 5 + side, 65 : 65 + side])
    assert small_pixels([image], 17).shape == (1, 17 * 17 * 3)


def test_unreadable_images_are_counted_and_named(network, gratings, png, tmp_path):
    whole = png(gratings["images"][0])
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    items = [whole, tmp_path / "cut.png", b"<html>", tmp_path / "none.png", np.zeros((2, 2)), None]
    with pytest.raises(UnreadableImagesError, match="5 of 6 images cannot be read") as error:
        extract_features(items, size=SIZE)
    assert [position for position, _, _ in error.value.failures] == [1, 2, 3, 4, 5]
    for name in ("cut.png", "image 2", "none.png", "image 4", "image 5"):
        assert name in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(UnreadableImagesError, match=r"20 of 20 .*and 15 more"):
        extract_features([b""] * 20, size=SIZE)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("model", "lite9", "one of lite0, resnet50"),
        ("size", 31, "at least 32"),
        ("size", 64.0, "an integer"),
        ("batch", 0, "at least 1"),
        ("threads", 0, "at least 1"),
    ],
)
def test_parameters_out_of_range(gratings, name, value, reason):
    with pytest.raises(ValueError, match=rf"{name} must be .*{reason}"):
        extract_features(gratings["images"], **{name: value})


def test_no_images():
    with pytest.raises(ValueError, match="images: got none"):
        extract_features([])


@pytest.mark.parametrize("missing", ["onnxruntime", "onnx"])
def test_missing_package_says_what_to_install(monkeypatch, gratings, missing):
    from privclust.features import _extract

    _extract._network.cache_clear()
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr(_extract, "read_weights", lambda model, file: {})
    if missing == "onnx":
        pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install '.[images]'")
    with pytest.raises(ImportError, match=rf"{missing}.*pip install '\.\[images\]'"):
        extract_features(gratings["images"])


def test_progress_is_logged_and_silence_is_the_default(network, gratings, caplog):
    with caplog.at_level(logging.INFO, "privclust"):
        extract_features(gratings["images"], size=SIZE)
        assert not caplog.records
        extract_features(gratings["images"], size=SIZE, progress=True)
    assert "features by lite0, batches of 16: 3 of 3" in caplog.text


def test_threads_default_to_the_environment(monkeypatch, gratings):
    """Each call asks for its network with a number of threads."""
    asked = []

    def network(model, threads, weights):
        asked.append(threads)
        raise InterruptedError

    monkeypatch.setattr("privclust.features._extract._network", network)
    for value in ("3", "", "0", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        with pytest.raises(InterruptedError):
            extract_features(gratings["images"])
    assert asked == [3, *3 * [joblib.cpu_count()]]


def test_pixels_of_flat_images_are_their_colours():
    pytest.importorskip("PIL.Image", reason="needs Pillow: pip install '.[images]'")
    colours = np.array([[0, 51, 255], [102, 204, 0]], dtype=np.uint8)
    images = np.broadcast_to(colours[:, None, None], (2, 30, 50, 3))
    found = small_pixels(images, size=4)
    assert found.dtype == np.float32
    expected = np.repeat((colours / 255.0)[:, None].astype(np.float32), 16, axis=1)
    np.testing.assert_array_equal(found.reshape(2, 16, 3), expected)
