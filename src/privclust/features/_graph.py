"""EfficientNet-Lite as an ONNX graph, from images of type uint8 to pooled features.

M. Tan and Q. V. Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks",
ICML 2019. The Lite models have no squeeze-and-excitation, ReLU6 in place of swish, and stem, head,
first and last stage that do not grow with the model. Padding is TensorFlow's, whose weights these
are: where a stride leaves an odd number of pixels over, the one more is at the end.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.packages import require

N_FEATURES = 1280
_DEPTHS = {"lite0": (1, 2, 2, 3, 3, 4, 1), "lite1": (1, 3, 3, 4, 4, 5, 1)}
_DEPTHS["lite2"] = _DEPTHS["lite1"]
_STRIDES = (1, 2, 2, 2, 1, 2, 1)  # of the first block of each stage
_EPSILON = 1e-3  # of batch normalisation
_MEAN, _SCALE = 127.0, 128.0  # pixels enter as (x - 127) / 128
_OPSET, _IR_VERSION = 13, 8  # old enough for any onnxruntime of today


def build_graph(model: str, weights: Mapping[str, np.ndarray]) -> bytes:
    """Build the graph of a model from the weights that `privclust.features._weights` reads.

    Returns the bytes of an ONNX model with one input, ``images`` of shape (n, h, w, 3) and type
    uint8, and one output, ``features`` of shape (n, 1280) and type float32. Raises an ImportError
    if the package ``onnx`` is missing.
    """
    return _Builder(weights).build(_DEPTHS[model])


class _Builder:
    """Nodes and constants of a graph that grows from its input."""

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        self._weights = weights
        self._onnx = require("onnx", "images")
        self._nodes: list = []
        self._constants: list = []
        self._last = "images"

    def build(self, depths: tuple[int, ...]) -> bytes:
        """Return the whole model."""
        tensor, helper = self._onnx.TensorProto, self._onnx.helper
        self._node("Cast", to=tensor.FLOAT)
        self._node("Sub", self._constant("mean", np.float32(_MEAN)))
        self._node("Div", self._constant("scale", np.float32(_SCALE)))
        self._node("Transpose", perm=[0, 3, 1, 2])
        self._convolution("_conv_stem", "_bn0", stride=2)
        strides = [
            stride if i == 0 else 1
            for depth, stride in zip(depths, _STRIDES, strict=True)
            for i in range(depth)
        ]
        for number, stride in enumerate(strides):
            self._block(f"_blocks.{number}", stride)
        self._convolution("_conv_head", "_bn1")
        self._node("GlobalAveragePool")
        self._node("Flatten", output="features")
        graph = helper.make_graph(
            self._nodes,
            "efficientnet-lite",
            [helper.make_tensor_value_info("images", tensor.UINT8, ["n", "h", "w", 3])],
            [helper.make_tensor_value_info("features", tensor.FLOAT, ["n", N_FEATURES])],
            self._constants,
        )
        opset = [helper.make_opsetid("", _OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=_IR_VERSION)
        return model.SerializeToString(deterministic=True)

    def _block(self, prefix: str, stride: int) -> None:
        """Add an inverted residual: widen, filter each channel, narrow, add the input."""
        start = self._last
        channels = channels_in = len(self._weights[f"{prefix}._depthwise_conv.weight"])
        if f"{prefix}._expand_conv.weight" in self._weights:
            channels_in = self._weights[f"{prefix}._expand_conv.weight"].shape[1]
            self._convolution(f"{prefix}._expand_conv", f"{prefix}._bn0")
        self._convolution(f"{prefix}._depthwise_conv", f"{prefix}._bn1", stride, channels)
        self._convolution(f"{prefix}._project_conv", f"{prefix}._bn2", bounded=False)
        if stride == 1 and channels_in == len(self._weights[f"{prefix}._project_conv.weight"]):
            self._node("Add", start)

    def _convolution(
        self, name: str, norm: str, stride: int = 1, groups: int = 1, bounded: bool = True
    ) -> None:
        """Add a convolution with its batch normalisation folded in, and ReLU6 if bounded."""
        weight = self._weights[f"{name}.weight"].astype(np.float64)
        gain, bias, mean, variance = (
            self._weights[f"{norm}.{part}"].astype(np.float64)
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        gain /= np.sqrt(variance + _EPSILON)
        self._node(
            "Conv",
            self._constant(f"{name}.weight", weight * gain[:, None, None, None]),
            self._constant(f"{name}.bias", bias - mean * gain),
            auto_pad="SAME_UPPER",
            strides=[stride, stride],
            group=groups,
        )
        if bounded:
            low = self._constant(f"{name}.low", np.float32(0.0))
            self._node("Clip", low, self._constant(f"{name}.high", np.float32(6.0)))

    def _node(self, kind: str, *inputs: str, output: str | None = None, **attributes) -> None:
        """Add a node whose first input is the last node's output."""
        output = output or f"{kind.lower()}{len(self._nodes)}"
        helper = self._onnx.helper
        self._nodes.append(helper.make_node(kind, [self._last, *inputs], [output], **attributes))
        self._last = output

    def _constant(self, name: str, value: ArrayLike) -> str:
        """Add a float32 constant and return its name."""
        array = np.asarray(value, dtype=np.float32)
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name
