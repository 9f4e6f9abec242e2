"""The networks: EfficientNet-Lite0 and ResNet-50, from images of type uint8 to pooled features."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privclust.features._graph import Graph

_LITE_DEPTHS = (1, 2, 2, 3, 3, 4, 1)  # blocks of each stage
_LITE_STRIDES = (1, 2, 2, 2, 1, 2, 1)  # of the first block of each stage
_RESNET_DEPTHS = (3, 4, 6, 3)
# Mean and standard deviation of ImageNet's colours, in [0, 1]
_IMAGENET_MEAN, _IMAGENET_SCALE = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

_NAMES = {"lite0": "EfficientNet-Lite0", "resnet50": "ResNet-50"}


def network_name(model: str) -> str:
    """Return the name of a model for messages.

    Examples
    --------
    >>> network_name("resnet50")
    'ResNet-50'
    """
    return _NAMES[model]


def build_graph(model: str, weights: Mapping[str, np.ndarray]) -> bytes:
    """Build the graph of a model from the weights that `privclust.features._weights` reads.

    Returns the bytes of an ONNX model with one input, ``images`` of shape (n, h, w, 3) and type
    uint8, and one output, ``features`` of shape (n, d) and type float32: d is 1280, and 2048 for
    ResNet-50. Raises an ImportError if the package ``onnx`` is missing.
    """
    return _resnet(weights) if model == "resnet50" else _lite(weights)


def _lite(weights: Mapping[str, np.ndarray]) -> bytes:
    """Return EfficientNet-Lite0.

    M. Tan and Q. V. Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks",
    ICML 2019. The Lite models have no squeeze-and-excitation, ReLU6 in place of swish, and stem,
    head, first and last stage that do not grow with the model. The weights come from TensorFlow, so
    padding does too: an odd number of padding pixels has the extra one at the end.
    """
    graph = Graph(weights, epsilon=1e-3, mean=127.0, scale=128.0)
    _convolution(graph, "_conv_stem", "_bn0", stride=2)
    strides = [
        stride if i == 0 else 1
        for depth, stride in zip(_LITE_DEPTHS, _LITE_STRIDES, strict=True)
        for i in range(depth)
    ]
    for number, stride in enumerate(strides):
        _inverted_residual(graph, weights, f"_blocks.{number}", stride)
    _convolution(graph, "_conv_head", "_bn1")
    return graph.pooled("efficientnet-lite", n_features=1280)


def _inverted_residual(
    graph: Graph, weights: Mapping[str, np.ndarray], prefix: str, stride: int
) -> None:
    """Widen, filter each channel, narrow, add the input."""
    start = graph.last
    # blocks of the first stage do not widen
    channels = channels_in = len(weights[f"{prefix}._depthwise_conv.weight"])
    if f"{prefix}._expand_conv.weight" in weights:
        channels_in = weights[f"{prefix}._expand_conv.weight"].shape[1]
        _convolution(graph, f"{prefix}._expand_conv", f"{prefix}._bn0")
    _convolution(graph, f"{prefix}._depthwise_conv", f"{prefix}._bn1", stride, channels)
    _convolution(graph, f"{prefix}._project_conv", f"{prefix}._bn2", bounded=False)
    if stride == 1 and channels_in == len(weights[f"{prefix}._project_conv.weight"]):
        graph.node("Add", start)


def _convolution(
    graph: Graph, name: str, norm: str, stride: int = 1, groups: int = 1, bounded: bool = True
) -> None:
    graph.convolution(name, norm, stride, auto_pad="SAME_UPPER", group=groups)
    if bounded:
        low = graph.constant(f"{name}.low", 0.0)
        graph.node("Clip", low, graph.constant(f"{name}.high", 6.0))


def _resnet(weights: Mapping[str, np.ndarray]) -> bytes:
    """Return ResNet-50 in torchvision's form.

    K. He, X. Zhang, S. Ren and J. Sun, "Deep Residual Learning for Image Recognition", CVPR 2016.
    In torchvision the convolution of 3 x 3 pixels has a stage's stride, not the one before it.
    """
    mean, scale = 255.0 * np.array(_IMAGENET_MEAN), 255.0 * np.array(_IMAGENET_SCALE)
    graph = Graph(weights, epsilon=1e-5, mean=mean, scale=scale)
    graph.convolution("conv1", "bn1", stride=2, pads=[3] * 4)
    graph.node("Relu")
    graph.node("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage, depth in enumerate(_RESNET_DEPTHS, start=1):
        for number in range(depth):
            stride = 2 if stage > 1 and number == 0 else 1
            _bottleneck(graph, f"layer{stage}.{number}", stride, is_first=number == 0)
    return graph.pooled("resnet-50", n_features=2048)


def _bottleneck(graph: Graph, prefix: str, stride: int, is_first: bool) -> None:
    """Add a residual: narrow, filter, widen, add the input, projected by a stage's first block."""
    start = graph.last
    if is_first:
        graph.convolution(f"{prefix}.downsample.0", f"{prefix}.downsample.1", stride)
    # the residual begins at the block's input, too
    shortcut, graph.last = graph.last, start
    graph.convolution(f"{prefix}.conv1", f"{prefix}.bn1")
    graph.node("Relu")
    graph.convolution(f"{prefix}.conv2", f"{prefix}.bn2", stride, pads=[1] * 4)
    graph.node("Relu")
    graph.convolution(f"{prefix}.conv3", f"{prefix}.bn3")
    graph.node("Add", shortcut)
    graph.node("Relu")
