# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Masks of attention that are inputs, as PyTorch, Keras and onnxruntime write them: no matrix of scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.transformers import Writer
from tinyml import harness
from tinyml.cost.assumptions import MOST_KEYS
from tinyml.cost.estimate import errors_of
from tinyml.ir import Array
from tinyml.ops.attention.attention import Attention
from tinyml.ops.attention.attention_int8 import ALL, EARLIER, EVERY, MEAN, ONCE, ZEROS, AttentionInt8
from tinyml.ops.attention.heads import BIAS, MASK
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.quantize.engine import quantize
from tinyml.reference.session import answers
from tinyml.settings.quantize_request import Request
from tinyml.slots import data_pack
from tinyml.slots.families import PLAIN
from tinyml.slots.play import play_files
from tinyml.slots.version import Version

STEPS, HEADS, DEPTH = 24, 3, 4
WIDTH = HEADS * DEPTH
LOWEST = float(np.finfo(np.float32).min)
QUERY_ROW = HEADS * STEPS * STEPS
"""Elements of a matrix of scores."""


class File(Writer):
    """A model that is written operator by operator."""

    def of(self, op: str, *inputs: Any, **attributes: Any) -> str:
        names = [x if isinstance(x, str) else self.fixed(x) for x in inputs]
        return self.add(op, names, f"{op}{len(self.nodes)}", **attributes)

    def fixed(self, value: Any) -> str:
        array = np.asarray(value)
        name = f"c{len(self.constants)}"
        if array.dtype == np.bool_:
            self.constants.append(onnx.numpy_helper.from_array(array, name))
            return name
        return self.constant(name, array)


def padding(random: np.random.Generator) -> Array:
    """One for keys that count."""
    return (np.arange(STEPS) < random.integers(STEPS // 3, STEPS + 1))[None]


def any_keys(random: np.random.Generator) -> Array:
    return (random.random((1, STEPS, STEPS)) < 0.5) | np.eye(STEPS, dtype=np.bool_)


def wide(file: File, mask: str) -> str:
    return file.of("Unsqueeze", mask, np.array([1, 2]))


def lowered(file: File, mask: str, low: float) -> str:
    """(1 - mask) * low; -inf times nothing is no number"""
    low = low if np.isfinite(low) else LOWEST
    real = file.of("Cast", mask, to=TensorProto.FLOAT)
    return file.of("Mul", file.of("Sub", 1.0, real), low)


def added(low: float) -> Callable[[File, str, str], str]:
    """As BERT is exported."""
    return lambda file, scores, mask: file.of("Add", scores, lowered(file, wide(file, mask), low))


def expanded(file: File, scores: str, mask: str) -> str:
    """As transformers make four axes of two."""
    axes = file.of("Expand", wide(file, mask), np.array([1, 1, STEPS, STEPS]))
    inverted = file.of("Sub", 1.0, file.of("Cast", axes, to=TensorProto.FLOAT))
    hidden = file.of("Cast", inverted, to=TensorProto.BOOL)
    return file.of("Add", scores, file.of("Where", hidden, LOWEST, inverted))


def filled(file: File, scores: str, mask: str) -> str:
    """As DistilBERT's masked_fill."""
    hidden = wide(file, file.of("Equal", mask, np.array(0)))
    hidden = file.of("Expand", hidden, np.array([1, HEADS, STEPS, STEPS]))
    return file.of("Where", hidden, -np.inf, scores)


def both_padded(file: File, scores: str, mask: str) -> str:
    """As Keras masks queries and keys."""
    pair = file.of("And", *(file.of("Unsqueeze", mask, np.array([axis])) for axis in (2, 1)))
    return file.of("Add", scores, lowered(file, file.of("Unsqueeze", pair, np.array([1])), -1e9))


def chosen(file: File, scores: str, mask: str) -> str:
    return file.of("Where", file.of("Unsqueeze", mask, np.array([1])), scores, -3e38)


def nothing_or_infinity(file: File, scores: str, mask: str) -> str:
    """As PyTorch's scaled_dot_product_attention is exported."""
    visible = file.of("Unsqueeze", mask, np.array([1]))
    return file.of("Add", scores, file.of("Where", visible, 0.0, -np.inf))


CAUSAL = np.tri(STEPS, dtype=np.bool_)[None, None]


def causal_too(file: File, scores: str, mask: str) -> str:
    visible = file.of("And", wide(file, file.of("Cast", mask, to=TensorProto.BOOL)), CAUSAL)
    return file.of("Add", scores, file.of("Where", visible, 0.0, LOWEST))


def causal_before(file: File, scores: str, mask: str) -> str:
    """As GPT-2: one mask replaces scores, the other is added."""
    kept = file.of("Where", CAUSAL, scores, LOWEST)
    return file.of("Add", kept, lowered(file, wide(file, mask), LOWEST))


def hidden_twice(low: float) -> Callable[[File, str, str], str]:
    """As OPT adds both masks up."""

    def masked(file: File, scores: str, mask: str) -> str:
        causal = file.fixed(np.where(CAUSAL, 0, low).astype(np.float32))
        return file.of("Add", scores, file.of("Add", causal, lowered(file, wide(file, mask), low)))

    return masked


def causal_after(low: float) -> Callable[[File, str, str], str]:
    """As GPT-Neo: the mask of later keys replaces what padding has lowered."""

    def masked(file: File, scores: str, mask: str) -> str:
        hidden = file.of("Add", scores, lowered(file, wide(file, mask), low))
        return file.of("Where", CAUSAL, hidden, low)

    return masked


def behind(random: np.random.Generator) -> Array:
    """Padding is before the first token, so that the first queries see no key."""
    return (np.arange(STEPS) >= random.integers(2, STEPS // 2))[None]


def a_little(file: File, scores: str, mask: str) -> str:
    return file.of("Where", file.of("Unsqueeze", mask, np.array([1])), scores, -8.0)


def tokens(file: File, scores: str, mask: str) -> str:
    """Padding is what has the number of a token, 1, which other numbers are compared with late."""
    axes = file.of("Expand", wide(file, mask), np.array([1, 1, STEPS, STEPS]))
    visible = file.of("Not", file.of("Equal", axes, np.array(1)))
    return file.of("Where", visible, scores, LOWEST)


Form = tuple[int, Callable[[np.random.Generator], Array], Callable[[File, str, str], str]]
INT, BOOL, FLOAT = TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT
FORMS: dict[str, Form] = {
    "integers": (INT, padding, added(-1e4)),
    "integers_lowest": (INT, padding, added(LOWEST)),
    "floats": (FLOAT, padding, added(-1e4)),
    "truths": (BOOL, padding, added(-1e9)),
    "four_axes": (INT, padding, expanded),
    "filled": (INT, padding, filled),
    "queries_and_keys": (BOOL, padding, both_padded),
    "each_query": (BOOL, any_keys, chosen),
    "each_query_infinite": (BOOL, any_keys, nothing_or_infinity),
    "causal_too": (INT, padding, causal_too),
    "causal_before": (INT, padding, causal_before),
    "tokens": (INT, lambda random: np.where(padding(random), random.integers(2, 9, (1, STEPS)), 1), tokens),
}


def relative(file: File) -> str:
    """A number for each head and distance, as T5 has it."""
    places = np.arange(STEPS)[:, None] - np.arange(STEPS)
    numbers = np.random.default_rng(3).normal(0, 2, (HEADS, 2 * STEPS))
    return file.fixed(numbers[:, places + STEPS][None])


def biased_before(low: float) -> Callable[[File, str, str], str]:
    """As T5 adds both at once."""

    def masked(file: File, scores: str, mask: str) -> str:
        both = file.of("Add", relative(file), lowered(file, wide(file, mask), low))
        return file.of("Add", scores, both)

    return masked


def biased_after(file: File, scores: str, mask: str) -> str:
    return file.of("Add", expanded(file, scores, mask), relative(file))


BIASED: dict[str, Form] = {
    "lowest": (INT, padding, biased_before(LOWEST)),
    "a_little": (INT, padding, biased_before(-1e4)),
    "after": (INT, padding, biased_after),
}
LITTLE: Form = (BOOL, any_keys, a_little)


def attention(form: Form) -> onnx.ModelProto:
    file = File(0)
    kind, drawn, masked = form
    parts = {}
    for word, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        apart = file.of("Reshape", file.dense("x", WIDTH, WIDTH, word), np.array([1, STEPS, HEADS, DEPTH]))
        parts[word] = file.of("Transpose", apart, perm=perm)
    scores = file.of("Mul", file.of("MatMul", parts["q"], parts["k"]), DEPTH**-0.5)
    weights = file.of("Softmax", masked(file, scores, "mask"), axis=-1)
    rows = file.of("Transpose", file.of("MatMul", weights, parts["v"]), perm=[0, 2, 1, 3])
    y = file.dense(file.of("Reshape", rows, np.array([1, STEPS, WIDTH])), WIDTH, WIDTH, "out")
    shape = [1, STEPS, WIDTH]
    mask_shape = list(drawn(np.random.default_rng(0)).shape)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        file.nodes,
        "attention",
        [value("x", FLOAT, shape), value("mask", kind, mask_shape)],
        [value(y, FLOAT, shape)],
        file.constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def samples(form: Form, count: int, seed: int) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    kind, drawn, _ = form
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    masks = np.stack([drawn(random) for _ in range(count)]).astype(dtype)
    return {"x": random.normal(0, 1, (count, 1, STEPS, WIDTH)).astype(np.float32), "mask": masks}


def quantised(form: Form, folder: Path) -> onnx.ModelProto:
    onnx.save(attention(form), folder / "real.onnx")
    np.savez(folder / "samples.npz", **samples(form, 16, 1))  # type: ignore[arg-type]
    return quantize(folder / "real.onnx", Request(folder / "samples.npz", method="minmax")).model


def compiled(model: onnx.ModelProto, folder: Path, target: str = "host") -> Compiled:
    onnx.save(model, folder / "model.onnx")
    return compile_model(folder / "model.onnx", Options("m", target))


def compare(model: onnx.ModelProto, made: Compiled, given: dict[str, Array], steps: float | None) -> None:
    """With onnxruntime on the same file: within this number of steps of the result; None: floats."""
    inputs = [{name: array[i] for name, array in given.items()} for i in range(len(given["x"]))]
    results = harness.run_files(made.files, "host", inputs, options=harness.Options(sanitize=True)).outputs
    for sample, found in zip(inputs, results, strict=True):
        (wanted,) = answers(model, sample)
        (y,) = found.values()
        step = 1e-5 if steps is None else steps * float(np.min(np.diff(np.unique(wanted))))
        assert float(np.abs(y - wanted).max()) < step


@pytest.mark.parametrize("name", FORMS)
def test_bytes(name: str, tmp_path: Path) -> None:
    form = FORMS[name]
    model = quantised(form, tmp_path)
    made = compiled(model, tmp_path)
    (layer,) = (layer for layer in made.graph.layers() if isinstance(layer.op, AttentionInt8))
    assert not layer.input(MASK).is_constant
    assert getattr(layer.op, "causal", None) == name.startswith("causal")
    each = name.startswith("each") or name in ("queries_and_keys", "tokens")
    assert layer.input(MASK).elements == (STEPS * STEPS if each else STEPS)
    assert not any(t.elements == QUERY_ROW for t in made.graph.tensors.values())
    compare(model, made, samples(form, 4, 2), 1.01)


@pytest.mark.parametrize("name", FORMS)
def test_floats(name: str, tmp_path: Path) -> None:
    form = FORMS[name]
    model = attention(form)
    made = compiled(model, tmp_path)
    assert any(isinstance(layer.op, Attention) for layer in made.graph.layers())
    assert not any(t.elements == QUERY_ROW for t in made.graph.tensors.values())
    compare(model, made, samples(form, 4, 2), None)


@pytest.mark.parametrize("name", BIASED)
def test_a_bias_besides_a_mask(name: str, tmp_path: Path) -> None:
    model = attention(BIASED[name])
    made = compiled(model, tmp_path)
    (layer,) = (layer for layer in made.graph.layers() if isinstance(layer.op, Attention))
    assert layer.input(BIAS).is_constant
    computed = [t.elements for t in made.graph.tensors.values() if not t.is_constant]
    assert QUERY_ROW not in computed
    assert STEPS * STEPS not in computed
    compare(model, made, samples(BIASED[name], 3, 2), None)


@pytest.mark.parametrize("name,blind", [("integers", ALL), ("each_query", MEAN), ("filled", ZEROS)])
def test_a_query_that_sees_no_key(name: str, blind: str, tmp_path: Path) -> None:
    """What ONNX computes, but for -inf, of which there the softmax is no number."""
    form = FORMS[name]
    model = quantised(form, tmp_path)
    made = compiled(model, tmp_path)
    (op,) = (layer.op for layer in made.graph.layers() if isinstance(layer.op, AttentionInt8))
    assert op.blind == blind
    given = samples(form, 2, 3)
    given["mask"][0] = 0
    if blind == ZEROS:
        (y, _) = harness.run_files(
            made.files, "host", [{n: a[i] for n, a in given.items()} for i in range(2)]
        ).outputs
        (rows,) = y.values()
        assert np.unique(rows.reshape(STEPS, WIDTH), axis=0).shape[0] == 1  # the bias alone
    else:
        compare(model, made, given, 1.01)


CAUSAL_TOO: dict[str, tuple[Form, tuple[str, str] | None, bool]] = {
    "one_mask": ((INT, behind, causal_too), (MEAN, EVERY), True),
    "causal_before": ((INT, behind, causal_before), (MEAN, ONCE), True),
    "twice": ((INT, behind, hidden_twice(-1e4)), (ALL, ONCE), True),
    "twice_lowest": ((INT, behind, hidden_twice(LOWEST)), (MEAN, ONCE), True),
    "causal_after": ((INT, behind, causal_after(LOWEST)), (MEAN, EVERY), True),
    "later_keys_level": ((INT, behind, causal_after(-1e4)), None, False),
    "later_keys_gone": ((INT, behind, causal_after(-np.inf)), (MEAN, EARLIER), True),
}
"""Masks, what bytes compute where they hide all keys, and whether floats keep no matrix of scores."""


@pytest.mark.parametrize("name", CAUSAL_TOO)
def test_queries_in_front_of_the_first_token(name: str, tmp_path: Path) -> None:
    """Their own keys are hidden, and so are later ones, perhaps twice: they compute what ONNX computes."""
    form, wanted, in_floats = CAUSAL_TOO[name]
    model = quantised(form, tmp_path)
    made = compiled(model, tmp_path)
    forms = [
        (layer.op.blind, layer.op.blind_keys)
        for layer in made.graph.layers()
        if isinstance(layer.op, AttentionInt8)
    ]
    assert forms == ([] if wanted is None else [wanted])
    compare(model, made, samples(form, 3, 2), 1.01)
    real = attention(form)
    made = compiled(real, tmp_path)
    assert any(isinstance(layer.op, Attention) for layer in made.graph.layers()) == in_floats
    compare(real, made, samples(form, 3, 2), None)


def test_what_may_not_hide_stays_apart(tmp_path: Path) -> None:
    model = quantised(LITTLE, tmp_path)
    made = compiled(model, tmp_path)
    assert not any(isinstance(layer.op, AttentionInt8) for layer in made.graph.layers())
    compare(model, made, samples(LITTLE, 2, 2), 1.01)


@pytest.mark.parametrize("is_quantised,says", [(True, True), (False, False)])
def test_the_estimate_names_its_run(is_quantised: bool, says: bool, tmp_path: Path) -> None:
    """Attention on bytes skips hidden keys; attention on floats computes them."""
    form = FORMS["integers"]
    model = quantised(form, tmp_path) if is_quantised else attention(form)
    made = compiled(model, tmp_path, "cortex-m4")
    assert (MOST_KEYS in errors_of(made)) == says


@pytest.mark.parametrize(
    "name,in_bytes", [("integers", True), ("causal_before", True), ("causal_before", False)]
)
def test_players_play_it_as_one_layer(name: str, in_bytes: bool, tmp_path: Path) -> None:
    form = FORMS[name]
    model = quantised(form, tmp_path) if in_bytes else attention(form)
    onnx.save(model, tmp_path / "given.onnx")
    packed = data_pack.played(tmp_path / "given.onnx", Options(), PLAIN, Version(1, 0, 0, 0))
    kind = AttentionInt8 if in_bytes else Attention
    assert any(isinstance(layer.op, kind) for layer in packed.compiled.graph.layers())
    made = compiled(model, tmp_path)
    given = {name: array[0] for name, array in samples(form, 1, 2).items()}
    (found,) = harness.run_files(play_files(packed.image.content, "host"), "host", [given]).outputs
    (wanted,) = harness.run_files(made.files, "host", [given]).outputs
    for name, expected in wanted.items():
        np.testing.assert_array_equal(found[name], expected)
