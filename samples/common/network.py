# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Small networks trained in numpy, so that nothing but the seed decides the result; and as ONNX files.

Layers work on float64 arrays (samples, channels, height, width) or (samples, features). ``forward`` keeps
what ``backward`` needs; ``backward`` leaves the gradients of the weights in ``gradients``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]
Loss = Callable[[Array, Array], tuple[float, Array]]
OPSET = 17


class Layer:
    """Something with weights (or none), a forward and a backward direction, and an ONNX node."""

    name = ""

    def __init__(self) -> None:
        self.weights: dict[str, Array] = {}
        self.gradients: dict[str, Array] = {}

    def forward(self, x: Array) -> Array:
        raise NotImplementedError

    def backward(self, grad: Array) -> Array:
        raise NotImplementedError

    def node(self, source: str, target: str) -> onnx.NodeProto:
        raise NotImplementedError


class Conv(Layer):
    """A convolution; ``pads`` are rows and columns of zeros on both sides."""

    def __init__(
        self,
        name: str,
        channels: tuple[int, int],
        kernel: tuple[int, int],
        strides: tuple[int, int] = (1, 1),
        pads: tuple[int, int] = (0, 0),
        *,
        random: np.random.Generator,
    ) -> None:
        super().__init__()
        self.name, self.kernel, self.strides, self.pads = name, kernel, strides, pads
        before, after = channels
        spread = np.sqrt(2.0 / (before * kernel[0] * kernel[1]))
        self.weights = {
            "weight": random.normal(0.0, spread, (after, before, *kernel)),
            "bias": np.zeros(after),
        }

    def _padded(self, x: Array) -> Array:
        high, wide = self.pads
        return np.pad(x, ((0, 0), (0, 0), (high, high), (wide, wide))) if high or wide else x

    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        down, right = self.strides
        windows = np.lib.stride_tricks.sliding_window_view(self._padded(x), self.kernel, axis=(2, 3))
        windows = windows[:, :, ::down, ::right].transpose(0, 2, 3, 1, 4, 5)
        self.outside = windows.shape[:3]
        self.columns = windows.reshape(-1, windows.shape[3] * self.kernel[0] * self.kernel[1])
        weight = self.weights["weight"]
        out = self.columns @ weight.reshape(len(weight), -1).T + self.weights["bias"]
        return out.reshape(*self.outside, -1).transpose(0, 3, 1, 2)

    def backward(self, grad: Array) -> Array:
        weight = self.weights["weight"]
        flat = grad.transpose(0, 2, 3, 1).reshape(-1, len(weight))
        self.gradients = {
            "weight": (flat.T @ self.columns).reshape(weight.shape),
            "bias": flat.sum(axis=0),
        }
        columns = (flat @ weight.reshape(len(weight), -1)).reshape(*self.outside, -1, *self.kernel)
        count, channels, height, width = self.shape
        high, wide = self.pads
        result = np.zeros((count, channels, height + 2 * high, width + 2 * wide))
        (down, right), (_, rows, across) = self.strides, self.outside
        for y in range(self.kernel[0]):
            for x in range(self.kernel[1]):
                part = columns[..., y, x].transpose(0, 3, 1, 2)
                result[:, :, y : y + rows * down : down, x : x + across * right : right] += part
        return result[:, :, high : high + height, wide : wide + width]

    def node(self, source: str, target: str) -> onnx.NodeProto:
        return helper.make_node(
            "Conv",
            [source, f"{self.name}.weight", f"{self.name}.bias"],
            [target],
            self.name,
            kernel_shape=self.kernel,
            strides=self.strides,
            pads=[*self.pads, *self.pads],
        )


class Dense(Layer):
    """A fully connected layer."""

    def __init__(self, name: str, before: int, after: int, *, random: np.random.Generator) -> None:
        super().__init__()
        self.name = name
        self.weights = {
            "weight": random.normal(0.0, np.sqrt(2.0 / before), (after, before)),
            "bias": np.zeros(after),
        }

    def forward(self, x: Array) -> Array:
        self.inputs = x
        return x @ self.weights["weight"].T + self.weights["bias"]

    def backward(self, grad: Array) -> Array:
        self.gradients = {"weight": grad.T @ self.inputs, "bias": grad.sum(axis=0)}
        return grad @ self.weights["weight"]

    def node(self, source: str, target: str) -> onnx.NodeProto:
        names = [source, f"{self.name}.weight", f"{self.name}.bias"]
        return helper.make_node("Gemm", names, [target], self.name, transB=1)


class Relu(Layer):
    def forward(self, x: Array) -> Array:
        self.on = x > 0
        return x * self.on

    def backward(self, grad: Array) -> Array:
        return grad * self.on

    def node(self, source: str, target: str) -> onnx.NodeProto:
        return helper.make_node("Relu", [source], [target], target)


class Flatten(Layer):
    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, grad: Array) -> Array:
        return grad.reshape(self.shape)

    def node(self, source: str, target: str) -> onnx.NodeProto:
        return helper.make_node("Flatten", [source], [target], target)


# Losses: the mean over a batch, and its gradient with respect to the network's output.


def softmax(logits: Array) -> Array:
    exp = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exp / exp.sum(axis=1, keepdims=True)


def cross_entropy(logits: Array, labels: Array) -> tuple[float, Array]:
    """Of classes: logits (samples, classes, …) and the number of the right one, (samples, …)."""
    probabilities = softmax(logits)
    right = np.expand_dims(labels, 1)
    loss = -np.log(np.take_along_axis(probabilities, right, 1) + 1e-12).mean()
    grad = probabilities.copy()
    np.put_along_axis(grad, right, np.take_along_axis(grad, right, 1) - 1, 1)
    return float(loss), grad / labels.size


def squared_error(values: Array, wanted: Array) -> tuple[float, Array]:
    difference = values - wanted
    return float((difference**2).mean()), 2 * difference / difference.size


def forward(layers: Sequence[Layer], x: Array) -> Array:
    for layer in layers:
        x = layer.forward(x)
    return x


def train(
    layers: Sequence[Layer],
    inputs: Array,
    wanted: Array,
    loss: Loss,
    *,
    epochs: int,
    batch: int = 32,
    rate: float = 3e-3,
    decay: float = 1e-4,
    seed: int = 0,
) -> None:
    """Adam with a learning rate that falls to zero along a cosine."""
    random = np.random.default_rng(seed)
    slots = [(layer, key) for layer in layers for key in layer.weights]
    mean = [np.zeros_like(layer.weights[key]) for layer, key in slots]
    square = [np.zeros_like(layer.weights[key]) for layer, key in slots]
    steps, step = epochs * (len(inputs) // batch), 0
    for _ in range(epochs):
        order = random.permutation(len(inputs))
        for start in range(0, len(order) - batch + 1, batch):
            chosen = order[start : start + batch]
            step += 1
            _, grad = loss(forward(layers, inputs[chosen].astype(np.float64)), wanted[chosen])
            for layer in reversed(layers):
                grad = layer.backward(grad)
            now = rate * 0.5 * (1 + np.cos(np.pi * step / steps))
            for at, (layer, key) in enumerate(slots):
                slope = layer.gradients[key]
                mean[at] = 0.9 * mean[at] + 0.1 * slope
                square[at] = 0.999 * square[at] + 0.001 * slope**2
                update = (mean[at] / (1 - 0.9**step)) / (np.sqrt(square[at] / (1 - 0.999**step)) + 1e-8)
                layer.weights[key] = layer.weights[key] - now * (update + decay * layer.weights[key])


def constants(layers: Sequence[Layer]) -> list[onnx.TensorProto]:
    return [
        numpy_helper.from_array(value.astype(np.float32), f"{layer.name}.{key}")
        for layer in layers
        for key, value in layer.weights.items()
    ]


def to_onnx(
    layers: Sequence[Layer],
    name: str,
    shapes: tuple[Sequence[int], Sequence[int]],
    output: str,
    *,
    last: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> onnx.ModelProto:
    """The trained network as a float model; ``last``: an operator after it, such as Softmax."""
    nodes, at = [], "input"
    for index, layer in enumerate(layers):
        final = index == len(layers) - 1 and last is None
        target = output if final else layer.name or f"{type(layer).__name__.lower()}{index}"
        nodes.append(layer.node(at, target))
        at = target
    if last is not None:
        nodes.append(helper.make_node(last, [at], [output], last.lower()))
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, shapes[0])],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shapes[1])],
        constants(layers),
    )
    return finished(graph, metadata)


def finished(graph: onnx.GraphProto, metadata: Mapping[str, str] | None = None) -> onnx.ModelProto:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    helper.set_model_props(model, dict(metadata or {}))
    onnx.checker.check_model(model, full_check=True)
    return model
