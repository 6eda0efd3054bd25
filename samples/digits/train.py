# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Train the digits model and write ``model_float.onnx`` and ``model.onnx`` (int8, QDQ) beside this file.

    python train.py

A small convolutional network, trained in numpy alone so that nothing but the seed decides the result:

    image 1x8x8 -> conv 3x3, 8 -> relu -> conv 3x3, 16 -> relu -> max-pool 2x2 -> dense 10 (logits)

The data are scikit-learn's digits (1797 images of 8x8 pixels, values 0..16, here scaled to 0..1). Every
fifth image is held back: it is never trained on, never used to calibrate, and gives the accuracy.
"""

from __future__ import annotations

import logging
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits  # comes with scikit-learn

from tinyml.reference.session import Session

Array = npt.NDArray[Any]
Weights = dict[str, Array]

HERE = Path(__file__).resolve().parent
SEED = 7
EPOCHS = 30
BATCH = 32
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-4
KERNEL = 3
CHANNELS = (1, 8, 16)
CLASSES = 10
SIDE = 8
OPSET = 17


@dataclass(frozen=True)
class Split:
    """Images (n, 1, 8, 8) in 0..1 and their labels."""

    images: Array
    labels: Array


def load() -> tuple[Split, Split]:
    """The training part and the held-back part (every fifth image)."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, np.newaxis]
    labels = digits.target.astype(np.int64)
    held_back = np.arange(len(labels)) % 5 == 0
    return Split(images[~held_back], labels[~held_back]), Split(images[held_back], labels[held_back])


# The network: forward keeps what backward needs.


def patches(x: Array) -> Array:
    """Every 3x3 neighbourhood of a zero-padded image: (n, c, h, w) -> (n, h, w, c * 9)."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (KERNEL, KERNEL), axis=(2, 3))
    n, c, h, w = x.shape
    return np.ascontiguousarray(windows.transpose(0, 2, 3, 1, 4, 5)).reshape(n, h, w, c * KERNEL**2)


def unpatch(grad: Array, channels: int) -> Array:
    """The transpose of ``patches``: every pixel collects from the neighbourhoods that held it."""
    n, h, w, _ = grad.shape
    grad = grad.reshape(n, h, w, channels, KERNEL, KERNEL)
    padded = np.zeros((n, channels, h + 2, w + 2), grad.dtype)
    for dy in range(KERNEL):
        for dx in range(KERNEL):
            padded[:, :, dy : dy + h, dx : dx + w] += grad[:, :, :, :, dy, dx].transpose(0, 3, 1, 2)
    return padded[:, :, 1:-1, 1:-1]


def conv(x: Array, weight: Array, bias: Array) -> tuple[Array, Array]:
    """Same-size convolution; also returns the patches."""
    columns = patches(x)
    out = columns @ weight.reshape(weight.shape[0], -1).T + bias
    return out.transpose(0, 3, 1, 2), columns


def conv_backward(grad: Array, columns: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Gradients of a convolution: with respect to its input, weight and bias."""
    grad = grad.transpose(0, 2, 3, 1)
    flat = grad.reshape(-1, weight.shape[0])
    d_weight = (flat.T @ columns.reshape(len(flat), -1)).reshape(weight.shape)
    d_input = unpatch(grad @ weight.reshape(weight.shape[0], -1), weight.shape[1])
    return d_input, d_weight, flat.sum(axis=0)


def pool(x: Array) -> tuple[Array, Array]:
    """2x2 max-pool, and which pixel won (ties go to all that tie, shared evenly)."""
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
    best = blocks.max(axis=(3, 5), keepdims=True)
    won = (blocks == best).astype(x.dtype)
    return best[:, :, :, 0, :, 0], won / won.sum(axis=(3, 5), keepdims=True)


def gradients(p: Weights, images: Array, labels: Array) -> Weights:
    """Gradients of the mean cross-entropy over one batch."""
    z1, columns1 = conv(images, p["conv1.weight"], p["conv1.bias"])
    a1 = np.maximum(z1, 0)
    z2, columns2 = conv(a1, p["conv2.weight"], p["conv2.bias"])
    a2 = np.maximum(z2, 0)
    pooled, won = pool(a2)
    flat = pooled.reshape(len(images), -1)
    logits = flat @ p["dense.weight"].T + p["dense.bias"]

    exp = np.exp(logits - logits.max(axis=1, keepdims=True))
    d_logits = exp / exp.sum(axis=1, keepdims=True)
    d_logits[np.arange(len(labels)), labels] -= 1
    d_logits /= len(labels)

    d_pooled = (d_logits @ p["dense.weight"]).reshape(pooled.shape)
    d_a2 = (won * d_pooled[:, :, :, np.newaxis, :, np.newaxis]).reshape(a2.shape)
    d_a1, d_weight2, d_bias2 = conv_backward(d_a2 * (z2 > 0), columns2, p["conv2.weight"])
    _, d_weight1, d_bias1 = conv_backward(d_a1 * (z1 > 0), columns1, p["conv1.weight"])
    return {
        "conv1.weight": d_weight1,
        "conv1.bias": d_bias1,
        "conv2.weight": d_weight2,
        "conv2.bias": d_bias2,
        "dense.weight": d_logits.T @ flat,
        "dense.bias": d_logits.sum(axis=0),
    }


def initial(rng: np.random.Generator) -> Weights:
    """He initialisation."""

    def he(*shape: int) -> Array:
        return rng.normal(0.0, np.sqrt(2.0 / np.prod(shape[1:])), shape)

    features = CHANNELS[2] * (SIDE // 2) ** 2
    return {
        "conv1.weight": he(CHANNELS[1], CHANNELS[0], KERNEL, KERNEL),
        "conv1.bias": np.zeros(CHANNELS[1]),
        "conv2.weight": he(CHANNELS[2], CHANNELS[1], KERNEL, KERNEL),
        "conv2.bias": np.zeros(CHANNELS[2]),
        "dense.weight": he(CLASSES, features),
        "dense.bias": np.zeros(CLASSES),
    }


def train(split: Split) -> Weights:
    """Adam with a learning rate that falls to zero along a cosine; all in float64, rounded at the end."""
    rng = np.random.default_rng(SEED)
    p = initial(rng)
    mean = {name: np.zeros_like(value) for name, value in p.items()}
    square = {name: np.zeros_like(value) for name, value in p.items()}
    steps = EPOCHS * (len(split.labels) // BATCH)
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(split.labels))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            batch = order[start : start + BATCH]
            step += 1
            rate = LEARNING_RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            images = split.images[batch].astype(np.float64)
            for name, grad in gradients(p, images, split.labels[batch]).items():
                mean[name] = 0.9 * mean[name] + 0.1 * grad
                square[name] = 0.999 * square[name] + 0.001 * grad**2
                update = (mean[name] / (1 - 0.9**step)) / (np.sqrt(square[name] / (1 - 0.999**step)) + 1e-8)
                p[name] = p[name] - rate * (update + WEIGHT_DECAY * p[name])
    return {name: value.astype(np.float32) for name, value in p.items()}


# Export.


def to_onnx(p: Weights) -> onnx.ModelProto:
    """The trained network as a float ONNX model, layers named as people would."""
    same: dict[str, Any] = {"kernel_shape": [KERNEL, KERNEL], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["image", "conv1.weight", "conv1.bias"], ["conv1"], "conv1", **same),
        helper.make_node("Relu", ["conv1"], ["relu1"], "relu1"),
        helper.make_node("Conv", ["relu1", "conv2.weight", "conv2.bias"], ["conv2"], "conv2", **same),
        helper.make_node("Relu", ["conv2"], ["relu2"], "relu2"),
        helper.make_node("MaxPool", ["relu2"], ["pool"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["pool"], ["flat"], "flat"),
        helper.make_node("Gemm", ["flat", "dense.weight", "dense.bias"], ["logits"], "dense", transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, SIDE, SIDE])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, CLASSES])],
        [numpy_helper.from_array(value, name) for name, value in p.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


class Calibration(CalibrationDataReader):  # type: ignore[misc]  # the base class is untyped
    """Feeds training images, one at a time."""

    def __init__(self, split: Split) -> None:
        self.images = iter(split.images)

    def get_next(self) -> dict[str, Array] | None:
        image = next(self.images, None)
        return None if image is None else {"image": image[np.newaxis]}


def quantize(float_model: onnx.ModelProto, split: Split) -> onnx.ModelProto:
    """int8 activations, int8 weights per channel, calibrated on training images."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "float.onnx"), Path(folder, "int8.onnx")
        onnx.save(float_model, source)
        quantize_static(
            source,
            result,
            Calibration(split),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
        )
        return onnx.load(result)


def logits(model: Path, split: Split) -> Array:
    """What onnxruntime answers to each image; of the int8 model, the same on every CPU."""
    session = Session(model)
    return np.concatenate([session.run({"image": image[np.newaxis]})["logits"] for image in split.images])


def accuracy(model: Path, split: Split) -> float:
    """The share of images whose largest logit is the label's."""
    return float((logits(model, split).argmax(axis=1) == split.labels).mean())


def main() -> None:
    logging.getLogger().setLevel(logging.ERROR)  # quantize_static recommends pre-processing; not needed
    training, held_back = load()
    with threadpool_limits(1):  # matrices this small gain nothing from threads, and the order of sums stays
        float_model = to_onnx(train(training))
    models = {"model_float.onnx": float_model, "model.onnx": quantize(float_model, training)}
    for name, model in models.items():
        (HERE / name).write_bytes(model.SerializeToString(deterministic=True))
        percent = 100 * accuracy(HERE / name, held_back)
        print(f"{name}: {percent:.2f} % of {len(held_back.labels)} held-back images")


if __name__ == "__main__":
    main()
