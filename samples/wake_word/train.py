# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Train the wake-word model on recordings, and write ``model_float.onnx``.

    pip install scikit-learn pymicro-features
    python train.py [FOLDER]

The folder (default: recordings, as record.py writes it) has the subfolders other and wake. The features are
those of micro_frontend: 40 bands every 10 ms; the model takes three rows at a time. With relu after every
convolution:

    rows 3x40 -> conv 5x40 /3, 16 -> conv 7x1, 16 -> conv 9x1, 16 -> dense 16x16, 2 -> softmax

It is trained on windows of 92 rows (0.94 s) that end with the wake word, or elsewhere. The model that is
written computes the same from three new rows: the past inputs of each layer are state. Every fifth recording
is held back.
"""

from __future__ import annotations

import json
import sys
import wave
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from pymicro_features import MicroFrontend  # tinyml.features computes the same numbers, but in Python
from threadpoolctl import threadpool_limits

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "common"))

from network import (
    Array,
    Conv,
    Dense,
    Flatten,
    Layer,
    Relu,
    constants,
    cross_entropy,
    finished,
    forward,
    softmax,
    train,
)

CLASSES = ("other", "wake")
FRONTEND = {"kind": "micro", "rate": 16000, "window_ms": 30, "step_ms": 10, "channels": 40}
STEP = 160  # samples between two rows
STRIDE = 3  # rows of a run
KERNELS = (5, 7, 9, 16)
CHANNELS = 16
WINDOW = KERNELS[0] + STRIDE * sum(size - 1 for size in KERNELS[1:])
AFTER_ROWS = 30  # rows of noise after the wake word
MEAN, SPREAD = 10.0, 6.0  # of features; they become part of the first layer
SEED = 4


def samples_of(path: Path) -> bytes:
    with wave.open(str(path), "rb") as stream:
        return stream.readframes(stream.getnframes())


def rows_of(sound: bytes) -> Array:
    """Features of int16 samples, in the units of models: 0 to 26."""
    frontend, found, at = MicroFrontend(), [], 0
    while at + 2 * STEP <= len(sound):
        result = frontend.process_samples(sound[at : at + 2 * STEP])
        at += 2 * result.samples_read
        if result.features:
            found.append(result.features)
    return np.array(found, np.float32)


def windows(rows: Array, wake: bool, random: np.random.Generator) -> list[tuple[Array, int]]:
    """Windows and their classes. Before the recording there was silence."""
    padded = np.pad(rows, ((WINDOW, 0), (0, 0)))
    end = len(padded) - AFTER_ROWS
    if wake:
        heard = [(end + late, 1) for late in random.integers(2, 16, 5)]
        unheard = [(end - early, 0) for early in random.integers(20, 60, 3)]
        places = [*heard, *unheard]
    else:
        places = [(place, 0) for place in random.integers(WINDOW + 3, len(padded) + 1, 12)]
    return [(padded[place - WINDOW : place], label) for place, label in places]


def load(folder: Path) -> tuple[Array, Array, Array]:
    """Windows, their classes, and whether they are held back. Half of the time, other speech comes before."""
    random = np.random.default_rng(SEED)
    sounds = {kind: [samples_of(path) for path in sorted((folder / kind).glob("*.wav"))] for kind in CLASSES}
    found = []
    for kind in CLASSES:
        for number, sound in enumerate(sounds[kind]):
            others = [at for at in range(len(sounds["other"])) if (at % 5 == 0) == (number % 5 == 0)]
            before = sounds["other"][random.choice(others)] if random.random() < 0.5 else b""
            rows = rows_of(before + sound)
            found += [(*window, number % 5 == 0) for window in windows(rows, kind == "wake", random)]
    if not found:
        sys.exit(f"{folder} has no recordings: run record.py, or give the folder of your own")
    inputs, labels, held_back = zip(*found, strict=True)
    return np.stack(inputs)[:, np.newaxis], np.array(labels), np.array(held_back)


def network() -> list[Layer]:
    random = np.random.default_rng(SEED)
    first, second, third, last = KERNELS
    width = (CHANNELS, CHANNELS)
    return [
        Conv("conv1", (1, CHANNELS), (first, 40), (STRIDE, 1), random=random),
        Relu(),
        Conv("conv2", width, (second, 1), random=random),
        Relu(),
        Conv("conv3", width, (third, 1), random=random),
        Relu(),
        Flatten(),
        Dense("dense", CHANNELS * last, len(CLASSES), random=random),
    ]


def fold_normalisation(conv: Layer) -> None:
    """Let the first layer take features as they are."""
    weight = conv.weights["weight"] / SPREAD
    conv.weights["bias"] = conv.weights["bias"] - MEAN * weight.sum(axis=(1, 2, 3))
    conv.weights["weight"] = weight


def streaming(layers: list[Layer]) -> onnx.ModelProto:
    """A model that takes three rows and remembers the past inputs of each layer."""
    nodes, inputs, outputs, states = [], [], [], {}
    at = "input"
    convs = [layer for layer in layers if layer.weights]
    for layer, kernel in zip(convs, KERNELS, strict=True):
        first = layer is convs[0]
        fresh = STRIDE if first else 1
        shape = [1, 1, kernel - fresh, 40] if first else [1, CHANNELS, kernel - fresh, 1]
        past, joined, kept = (f"{layer.name}.{what}" for what in ("past", "joined", "kept"))
        inputs.append(helper.make_tensor_value_info(past, TensorProto.FLOAT, shape))
        outputs.append(helper.make_tensor_value_info(kept, TensorProto.FLOAT, shape))
        states[past] = kept
        nodes.append(helper.make_node("Concat", [past, at], [joined], joined, axis=2))
        nodes.append(helper.make_node("Slice", [joined, f"from{fresh}", "end", "rows"], [kept], kept))
        if isinstance(layer, Conv):
            nodes.append(layer.node(joined, layer.name))
            at = f"{layer.name}.relu"
            nodes.append(helper.make_node("Relu", [layer.name], [at], at))
        else:
            nodes.append(helper.make_node("Flatten", [joined], ["flat"], "flat"))
            nodes.append(layer.node("flat", "logits"))
    nodes.append(helper.make_node("Softmax", ["logits"], ["scores"], "softmax"))
    numbers = {"from1": 1, f"from{STRIDE}": STRIDE, "end": 2**31 - 1, "rows": 2}
    graph = helper.make_graph(
        nodes,
        "wake_word",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, 1, STRIDE, 40]), *inputs],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, len(CLASSES)]), *outputs],
        [
            *constants(layers),
            *(numpy_helper.from_array(np.array([value], np.int64), name) for name, value in numbers.items()),
        ],
    )
    written = " ".join(f"{key}={value}" for key, value in FRONTEND.items())
    return finished(graph, {"tinyml.states": json.dumps(states), "tinyml.frontend": written})


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0]) if arguments else HERE / "recordings"
    inputs, labels, held_back = load(folder)
    normal = (inputs - MEAN) / SPREAD
    layers = network()
    with threadpool_limits(1):  # the order of sums stays the same
        train(layers, normal[~held_back], labels[~held_back], cross_entropy, epochs=16, seed=SEED)
        scores = softmax(forward(layers, normal[held_back].astype(np.float64)))[:, 1]
    truth = labels[held_back] == 1
    fold_normalisation(layers[0])
    (HERE / "model_float.onnx").write_bytes(streaming(layers).SerializeToString(deterministic=True))
    heard = 100 * (scores[truth] > 0.5).mean(), 100 * (scores[~truth] > 0.5).mean()
    print(
        f"model_float.onnx: heard in {heard[0]:.1f} % of {truth.sum()} held-back windows with the wake word, "
        f"and in {heard[1]:.1f} % of {(~truth).sum()} without"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
