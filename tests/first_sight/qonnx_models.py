# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""QONNX's Quant, BipolarQuant and Trunc (Brevitas, FINN, hls4ml), against their definition in numpy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from tests.first_sight import Case, Holds, Refused
from tests.support.onnx_models import model, node
from tinyml.datasets.generated_samples import generated
from tinyml.harness import Standalone
from tinyml.ir import Array
from tinyml.ops.conv.conv import Conv
from tinyml.pipeline import Options, compile_model

DOMAIN = "qonnx.custom_op.general"
RNG = np.random.default_rng(12)
FLOAT = np.float32
ROUNDS: dict[str, Callable[[Array], Array]] = {"ROUND": np.rint, "FLOOR": np.floor, "CEIL": np.ceil}


def quant(
    x: Array, scale: Array, zero: float, bits: int, signed: int, narrow: int, mode: str = "ROUND"
) -> Array:
    low = -(2 ** (bits - 1)) + narrow if signed else 0
    high = 2 ** (bits - 1) - 1 if signed else 2**bits - 1 - narrow
    steps = ROUNDS[mode](np.clip(x / scale + FLOAT(zero), low, high))
    return ((steps - FLOAT(zero)) * scale).astype(FLOAT)


def same(content: bytes, wanted: Callable[[Array], Array], folder: Path, least: float = 1.0) -> None:
    """``least``: the share of the outputs that must be equal; others may round the other way."""
    (folder / "q.onnx").write_bytes(content)
    compiled = compile_model(folder / "q.onnx", Options("q", "host"))
    samples = generated(compiled.graph, 6)
    runs = Standalone("host", checked=True).run(compiled.files, samples).outputs
    pairs = [(run["y"], wanted(sample["x"])) for run, sample in zip(runs, samples, strict=True)]
    close = np.concatenate([np.isclose(f, w, rtol=1e-5, atol=1e-6).reshape(-1) for f, w in pairs])
    assert close.mean() >= least, f"{(~close).sum()} of {close.size} differ"


def alone(bits: int, signed: int, narrow: int, mode: str, zero: float, folder: Path) -> None:
    scale = FLOAT(0.11 if bits > 2 else 0.4)
    attributes = {"signed": signed, "narrow": narrow, "rounding_mode": mode}
    nodes = [node("Quant", "x s z b", "y", domain=DOMAIN, **attributes)]
    content = model(nodes, {"x": [1, 40]}, "y", domains={DOMAIN: 1}, s=scale, z=FLOAT(zero), b=FLOAT(bits))
    same(content, lambda x: quant(x, scale, zero, bits, signed, narrow, mode), folder, 0.97)


def network(bits: int, folder: Path) -> None:
    """Quantised input, weights per channel, convolution, ReLU, quantised again: computed on integers."""
    w = RNG.normal(0, 0.4, (5, 3, 3, 3)).astype(FLOAT)
    top = 2 ** (bits - 1) - 1
    w_scale = (np.abs(w).max(axis=(1, 2, 3), keepdims=True) / top).astype(FLOAT)
    x_scale, y_scale = FLOAT(2 / top), FLOAT(8 / (2**bits - 1))
    nodes = [
        node("Quant", "x xs zero bits", "xq", domain=DOMAIN, signed=1, narrow=0, rounding_mode="ROUND"),
        node("Quant", "w ws zero bits", "wq", domain=DOMAIN, signed=1, narrow=1, rounding_mode="ROUND"),
        node("Conv", "xq wq", "c"),
        node("Relu", "c", "r"),
        node("Quant", "r ys zero bits", "y", domain=DOMAIN, signed=0, narrow=0, rounding_mode="ROUND"),
    ]
    constants = {"xs": x_scale, "w": w, "ws": w_scale, "ys": y_scale, "zero": FLOAT(0), "bits": FLOAT(bits)}
    content = model(nodes, {"x": [1, 3, 6, 6]}, "y", domains={DOMAIN: 1}, **constants)

    def wanted(x: Array) -> Array:
        a, k = quant(x, x_scale, 0, bits, 1, 0), quant(w, w_scale, 0, bits, 1, 1)
        windows = np.lib.stride_tricks.sliding_window_view(a, (3, 3), axis=(2, 3))
        sums = np.einsum("nchwij,ocij->nohw", windows.astype(np.float64), k.astype(np.float64))
        return quant(np.maximum(sums, 0).astype(FLOAT), y_scale, 0, bits, 0, 0)

    same(content, wanted, folder, 0.99)
    graph = compile_model(folder / "q.onnx", Options("q", "host")).graph
    (conv,) = [layer for layer in graph.layers() if isinstance(layer.op, Conv)]
    assert conv.input(1).dtype.value == "int8", "the convolution computes in float"
    assert conv.output.quant is not None


def bipolar(folder: Path) -> None:
    nodes = [
        node("BipolarQuant", "x s", "b", domain=DOMAIN),
        node("BipolarQuant", "w t", "k", domain=DOMAIN),
        node("MatMul", "b k", "y"),
    ]
    w = RNG.normal(0, 1, (6, 4)).astype(FLOAT)
    s, t = FLOAT(0.5), FLOAT(0.25)
    content = model(nodes, {"x": [1, 6]}, "y", domains={DOMAIN: 1}, w=w, s=s, t=t)
    same(content, lambda x: (np.where(x >= 0, s, -s) @ np.where(w >= 0, t, -t)).astype(FLOAT), folder)


def trunc(version: int, folder: Path) -> None:
    s, out = FLOAT(0.125), FLOAT(0.5)
    first = [FLOAT(v) for v in ((0, 8, 6) if version == 1 else (0, 8))]
    names = "x s z i o" if version == 1 else "x s z i os oz o"
    constants = {"s": s, "z": first[0], "i": first[1], "o": FLOAT(6), "os": out, "oz": FLOAT(0)}
    used = {name: value for name, value in constants.items() if name in names.split()}
    content = model([node("Trunc", names, "y", domain=DOMAIN, rounding_mode="FLOOR")], {"x": [1, 30]}, "y",
                    domains={DOMAIN: version}, **used)  # fmt: skip

    def wanted(x: Array) -> Array:
        steps = np.rint(x / s) / 4
        if version == 1:
            return (np.floor(steps) * s).astype(FLOAT)
        return (np.floor(np.clip(steps, -32, 31)) * out).astype(FLOAT)

    same(content, wanted, folder, 0.96)


def odd(**attributes: object) -> bytes:
    nodes = [node("Quant", "x s z b", "y", domain=DOMAIN, **attributes)]
    return model(nodes, {"x": [1, 4]}, "y", domains={DOMAIN: 1}, s=FLOAT(1), z=FLOAT(0), b=FLOAT(4))


CASES: list[Case] = [
    *(
        Holds(
            f"quant_{bits}_{signed}{narrow}_{mode.lower()}_{zero}",
            partial(alone, bits, signed, narrow, mode, zero),
        )
        for bits, signed, narrow, mode, zero in (
            (8, 1, 1, "ROUND", 0),
            (8, 0, 0, "ROUND", 3),
            (4, 1, 0, "ROUND", 0),
            (3, 0, 1, "ROUND", 0),
            (2, 1, 1, "FLOOR", 0),
            (12, 1, 0, "ROUND", 0),
            (4, 1, 0, "CEIL", -2),
        )
    ),
    *(Holds(f"network_{bits}", partial(network, bits)) for bits in (8, 4, 3)),
    Holds("bipolar", bipolar),
    *(Holds(f"trunc_{version}", partial(trunc, version)) for version in (1, 2)),
    Refused("half_up", lambda: odd(rounding_mode="HALF_UP"), ("rounds 'HALF_UP' at run time", "FLOOR")),
]
