"""Construction of a network as an ONNX graph, with batch normalisation folded in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.packages import require

_OPSET, _IR_VERSION = 13, 8  # old enough for any onnxruntime of today


class Graph:
    """Nodes and constants, from images of type uint8 to pooled features.

    `weights` are read by `privclust.features._weights`; `epsilon` is that of batch normalisation.
    Pixels enter as (x - mean) / scale, each a number or one per colour. An ImportError is raised if
    the package ``onnx`` is missing.
    """

    def __init__(
        self, weights: Mapping[str, np.ndarray], epsilon: float, mean: ArrayLike, scale: ArrayLike
    ) -> None:
        self._weights, self._epsilon = weights, epsilon
        self._onnx = require("onnx", "images")
        self._nodes: list = []
        self._constants: list = []
        self.last = "images"
        self.node("Cast", to=self._onnx.TensorProto.FLOAT)
        self.node("Sub", self.constant("mean", mean))
        self.node("Div", self.constant("scale", scale))
        self.node("Transpose", perm=[0, 3, 1, 2])

    def convolution(self, name: str, norm: str, stride: int = 1, **attributes: Any) -> None:
        weight = self._weights[f"{name}.weight"].astype(np.float64)
        gain, bias, mean, variance = (
            self._weights[f"{norm}.{part}"].astype(np.float64)
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        # (W x - mean) / sqrt(variance + epsilon) * gain + bias as one convolution
        gain /= np.sqrt(variance + self._epsilon)
        self.node(
            "Conv",
            self.constant(f"{name}.weight", weight * gain[:, None, None, None]),
            self.constant(f"{name}.bias", bias - mean * gain),
            strides=[stride, stride],
            **attributes,
        )

    def node(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> None:
        output = output or f"{kind.lower()}{len(self._nodes)}"
        helper = self._onnx.helper
        self._nodes.append(helper.make_node(kind, [self.last, *inputs], [output], **attributes))
        self.last = output

    def constant(self, name: str, value: ArrayLike) -> str:
        array = np.asarray(value, dtype=np.float32)
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def pooled(self, name: str, n_features: int) -> bytes:
        """Return the whole model; its features are the means over the last node's channels."""
        tensor, helper = self._onnx.TensorProto, self._onnx.helper
        self.node("GlobalAveragePool")
        self.node("Flatten", output="features")
        graph = helper.make_graph(
            self._nodes,
            name,
            [helper.make_tensor_value_info("images", tensor.UINT8, ["n", "h", "w", 3])],
            [helper.make_tensor_value_info("features", tensor.FLOAT, ["n", n_features])],
            self._constants,
        )
        opset = [helper.make_opsetid("", _OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=_IR_VERSION)
        return model.SerializeToString(deterministic=True)
