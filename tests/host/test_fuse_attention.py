# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What exporters write for attention becomes one operator: bytes stay the same, floats nearly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tinyml.ops.catalog  # noqa: F401  the parser knows operators that are imported
from tests.support.interpret import interpret
from tests.support.layer_kinds import random_values
from tinyml.emit.model import Provenance
from tinyml.ir import Graph
from tinyml.ir.constraints import operand_problem
from tinyml.ir.text_parser import parse
from tinyml.ir.verifier import verify
from tinyml.ops.attention.attention import Attention
from tinyml.ops.attention.attention_int8 import AttentionInt8
from tinyml.passes.fuse_attention import fuse_attention
from tinyml.pipeline import Options, compile_graph, program_of

ADD, MUL, DIV = (f"clamp=-infxinf, function={name}, round_once=False" for name in ("add", "mul", "div"))


def joined(kind: str, quant: str = "") -> list[str]:
    """Queries, keys and values of two heads from one tensor, as PyTorch and Keras export them."""
    lines = [f"input x: {kind}[1x9x24]{quant}"]
    for number, name in enumerate("qkv"):
        lines.append(
            f"{name}0: {kind}[1x9x8]{quant} = Slice(x; starts=0x0x{8 * number}, extents=1x9x8, steps=1x1x1)"
        )
        lines.append(f"{name}1: {kind}[1x9x2x4]{quant} = Reshape({name}0; shape=1x9x2x4)")
        turn, shape = ("0x2x3x1", "1x2x4x9") if name == "k" else ("0x2x1x3", "1x2x9x4")
        lines.append(f"{name}: {kind}[{shape}]{quant} = Transpose({name}1; perm={turn})")
    return lines


def rest(kind: str, quant: str = "") -> list[str]:
    """Heads side by side again."""
    return [
        f"turned: {kind}[1x9x2x4]{quant} = Transpose(o; perm=0x2x1x3)",
        f"y: {kind}[1x9x8]{quant} = Reshape(turned; shape=1x9x8)",
        "output y",
    ]


def floats(*between: str, name: str = "s") -> list[str]:
    return [
        *joined("float32"),
        "s: float32[1x2x9x9] = MatMul(q, k; round_once=False)",
        *between,
        f"p: float32[1x2x9x9] = Softmax({name}; axis=3, beta=1.0)",
        "o: float32[1x2x9x4] = MatMul(p, v; round_once=False)",
        *rest("float32"),
    ]


def graph_of(lines: list[str]) -> Graph:
    graph = parse("graph g\n" + "".join(f"  {line}\n" for line in lines))
    verify(graph, "parse")
    return graph


def fused(lines: list[str]) -> tuple[Graph, Graph]:
    before = graph_of(lines)
    after = fuse_attention(before)
    verify(after, "fuse_attention")
    return before, after


def compare(before: Graph, after: Graph) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        sample = {name: random_values(rng, before.tensors[name]) for name in before.inputs}
        old, new = interpret(before, sample), interpret(after, sample)
        for name, array in old.items():
            if array.dtype.kind == "f":
                np.testing.assert_allclose(new[name], array, rtol=1e-5, atol=1e-5)
            else:
                np.testing.assert_array_equal(new[name], array)


def swapped(lines: list[str], kind: str, quant: str, score: str, once: bool) -> list[str]:
    """The same with keys by queries, transposed: as Keras's einsum of both becomes."""
    product = [
        f"kk: {kind}[1x2x9x4]{quant} = Transpose(k; perm=0x1x3x2)",
        f"qq: {kind}[1x2x4x9]{quant} = Transpose(q; perm=0x1x3x2)",
        f"t: {kind}[1x2x9x9]{score} = MatMul(kk, qq; round_once={once})",
        f"s: {kind}[1x2x9x9]{score} = Transpose(t; perm=0x1x3x2)",
    ]
    return [new for line in lines for new in (product if line.startswith("s:") else [line])]


GUARD = [
    "n: bool[1x2x9x9] = Unary(p; function=is_nan, parameters=)",
    "w: float32[1x2x9x9] = Where(n, const float32[scalar] {0}, p)",
]


def guarded(lines: list[str]) -> list[str]:
    """PyTorch's zeros for queries that see no key."""
    return [
        new.replace("MatMul(p, v", "MatMul(w, v")
        for line in lines
        for new in ([*GUARD, line] if line.startswith("o:") else [line])
    ]


MASK = "input m: float32[1x1x9x9]"
SCALED = f"a: float32[1x2x9x9] = Binary(s, const float32[scalar] {{0.5}}; {MUL})"
DIVIDED = f"a: float32[1x2x9x9] = Binary(s, const float32[1] {{2}}; {DIV})"
FLOATS: dict[str, tuple[list[str], dict[str, float]]] = {
    "plain": (floats(), {"scale": 1.0}),
    "scaled": (floats(SCALED, name="a"), {"scale": 0.5}),
    "divided": (floats(DIVIDED, name="a"), {"scale": 0.5}),
    "mask": (
        [MASK, *floats(SCALED, f"b: float32[1x2x9x9] = Binary(m, a; {ADD})", name="b")],
        {"mask_step": 9},
    ),
    "mask_of_keys": (
        ["input m: float32[9]", *floats(f"b: float32[1x2x9x9] = Binary(s, m; {ADD})", name="b")],
        {"mask_step": 0},
    ),
    "capped": (
        floats(
            SCALED,
            "t: float32[1x2x9x9] = Unary(a; function=tanh)",
            f"b: float32[1x2x9x9] = Binary(t, const float32[scalar] {{3}}; {MUL})",
            name="b",
        ),
        {"scale": 1.5, "softcap": 3.0},
    ),
    "scaled_before": (
        [
            line.replace("MatMul(q, k", "MatMul(qs, ks")
            for line in floats()
            for line in (
                [
                    f"qs: float32[1x2x9x4] = Binary(q, const float32[1] {{0.5}}; {MUL})",
                    f"ks: float32[1x2x4x9] = Binary(const float32[scalar] {{0.25}}, k; {MUL})",
                    line,
                ]
                if line.startswith("s:")
                else [line]
            )
        ],
        {"scale": 0.125},
    ),
    "nothing_seen": (
        [
            line.replace("MatMul(p, v", "MatMul(w, v")
            for line in [MASK, *floats(f"b: float32[1x2x9x9] = Binary(s, m; {ADD})", name="b")]
            for line in (
                [
                    "r: float32[1x1x9x1] = Reduce(m; function=max, axes=3, round_once=False)",
                    "e: bool[1x1x9x1] = Binary(r, const float32[1] {-inf}; clamp=-infxinf, function=equal, "
                    "round_once=False)",
                    "w: float32[1x2x9x9] = Where(e, const float32[1] {0}, p)",
                    line,
                ]
                if line.startswith("o:")
                else [line]
            )
        ],
        {"empty": True},
    ),
    "keys_by_queries": (swapped(floats(SCALED, name="a"), "float32", "", "", False), {"scale": 0.5}),
    "keys_by_queries_and_a_mask": (
        [
            MASK,
            *swapped(
                floats(f"b: float32[1x2x9x9] = Binary(s, m; {ADD})", name="b"), "float32", "", "", False
            ),
        ],
        {"mask_step": 9},
    ),
    "guarded": (
        [MASK, *guarded(floats(f"b: float32[1x2x9x9] = Binary(s, m; {ADD})", name="b"))],
        {"empty": True},
    ),
    "guarded_without_a_mask": (guarded(floats()), {"empty": False}),
    "visible": (
        [
            "input m: bool[1x1x9x9]",
            *floats("b: float32[1x2x9x9] = Where(m, s, const float32[scalar] {-2.5})", name="b"),
        ],
        {"mask_step": 9, "low": -2.5},
    ),
}


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str) -> None:
    lines, attributes = FLOATS[name]
    before, after = fused(lines)
    (node,) = after.nodes
    assert isinstance(node.op, Attention)
    assert set(node.inputs) == {*before.inputs}
    for attribute, value in attributes.items():
        assert getattr(node.op, attribute) == value
    compare(before, after)


@pytest.mark.parametrize("by", ["addition", "choice"])
def test_a_guarded_query_that_sees_no_key_is_zero(by: str) -> None:
    hidden = np.ones((1, 1, 9, 9), np.bool_)
    hidden[..., 4, :] = False
    if by == "addition":
        mask, line = np.where(hidden, np.float32(0), np.float32(-np.inf)), f"Binary(s, m; {ADD})"
    else:
        mask, line = hidden, "Where(m, s, const float32[scalar] {-inf})"
    first = MASK if by == "addition" else "input m: bool[1x1x9x9]"
    before, after = fused([first, *guarded(floats(f"b: float32[1x2x9x9] = {line}", name="b"))])
    assert [node.op.kind for node in after.nodes] == ["Attention"]
    sample = {"x": random_values(np.random.default_rng(4), before.tensors["x"]), "m": mask}
    with np.errstate(invalid="ignore"):
        old, new = interpret(before, sample)["y"], interpret(after, sample)["y"]
    assert not old[0, 4].any()
    np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)


def test_a_constant_mask_that_hides_what_follows_is_no_tensor() -> None:
    lines = floats("b: float32[1x2x9x9] = Binary(s, const float32[9x9]; " + ADD + ")", name="b")
    graph = graph_of(lines)
    (name,) = [t.name for t in graph.tensors.values() if t.is_constant]
    hidden = np.where(np.tril(np.ones((9, 9))) > 0, 0, -np.inf).astype(np.float32)
    before = graph.with_nodes(
        graph.nodes, [t if t.name != name else t.constant(name, hidden) for t in graph.tensors.values()]
    )
    after = fuse_attention(before)
    (node,) = after.nodes
    assert isinstance(node.op, Attention)
    assert node.op.causal
    assert node.op.past == 0
    assert len(node.inputs) == 3
    compare(before, after)


def decoder(*lines: str, by: str = "add", position: str = "int64[1]") -> list[str]:
    """One query of two heads and a cache of nine keys, masked by ``m``, which the lines make of ``p``."""
    masked = (
        f"b: float32[2x1x9] = Binary(s, m; {ADD})"
        if by == "add"
        else "b: float32[2x1x9] = Where(m, s, const float32[scalar] {-inf})"
    )
    return [
        f"input p: {position}",
        *(f"input {name}: float32[2x{rows}x4]" for name, rows in (("q", 1), ("k", 9), ("v", 9))),
        "kt: float32[2x4x9] = Transpose(k; perm=0x2x1)",
        "s: float32[2x1x9] = MatMul(q, kt; round_once=False)",
        *lines,
        masked,
        "w: float32[2x1x9] = Softmax(b; axis=2, beta=1.0)",
        "y: float32[2x1x4] = MatMul(w, v; round_once=False)",
        "output y",
    ]


def compared(function: str, left: str, right: str, name: str = "c", to: str = "bool") -> str:
    return f"{name}: {to}[9] = Binary({left}, {right}; clamp=-infxinf, function={function}, round_once=False)"


KEYS = "const int64[9] {0 1 2 3 4 5 6 7 8}"
LOW, NONE = "const float32[scalar] {-inf}", "const float32[scalar] {0}"
FURTHER = "l: int64[1] = Binary(p, const int64[1] {1}; clamp=-infxinf, function=add, round_once=False)"
POSITIONS: dict[str, tuple[list[str], int]] = {
    "hidden": (decoder(compared("greater", KEYS, "p"), f"m: float32[9] = Where(c, {LOW}, {NONE})"), 0),
    "visible": (decoder(compared("less_equal", KEYS, "p", "m"), by="where"), 0),
    "length": (decoder(compared("less", KEYS, "p", "m"), by="where"), -1),
    "length_of_a_position": (decoder(FURTHER, compared("less", KEYS, "l", "m"), by="where"), -1),
    "two_masks": (
        decoder(
            FURTHER,
            compared("less", KEYS, "l", "c"),
            compared("less_equal", KEYS, "p", "d"),
            "m: bool[9] = Binary(c, d; clamp=-infxinf, function=and, round_once=False)",
            by="where",
        ),
        0,
    ),
    "finite": (
        decoder(
            compared("greater", KEYS, "p"),
            f"m: float32[9] = Where(c, const float32[scalar] {{-3.4e+38}}, {NONE})",
        ),
        0,
    ),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_a_mask_of_a_position_is_a_position(name: str) -> None:
    lines, past = POSITIONS[name]
    before, after = fused(lines)
    node = after.nodes[-1]
    assert isinstance(node.op, Attention)
    assert (node.op.causal, node.op.past, node.inputs[3]) == (True, past, "")
    rng = np.random.default_rng(1)
    tensors = {n: random_values(rng, before.tensors[n]) for n in before.inputs if n != "p"}
    first = 1 if past and name == "length" else 0
    for position in range(first, 9 + first):  # all at which a key is seen
        sample = tensors | {"p": np.array([position])}
        np.testing.assert_allclose(interpret(after, sample)["y"], interpret(before, sample)["y"], rtol=1e-5)


MASKS = {
    "a_window": [compared("equal", KEYS, "p", "m")],
    "the_other_end": [compared("greater", KEYS, "p", "m")],
    "no_order": [compared("less_equal", "const int64[9] {0 2 1 3 4 5 6 7 8}", "p", "m")],
    "two_keys_at_a_time": [compared("less_equal", "const int64[9] {0 0 1 1 2 2 3 3 4}", "p", "m")],
}


@pytest.mark.parametrize("name", MASKS)
def test_another_mask_stays(name: str) -> None:
    _, after = fused(decoder(*MASKS[name], by="where"))
    node = after.nodes[-1]
    assert isinstance(node.op, Attention)
    assert node.inputs[3] == "m"
    assert len(node.inputs) == 4


def alone(heads: int, queries: int, keys: int, *lines: str) -> list[str]:
    """Heads that are inputs, with a mask ``m``, which the lines define."""
    return [
        *(
            f"input {name}: float32[{heads}x{rows}x4]"
            for name, rows in zip("qkv", (queries, keys, keys), strict=True)
        ),
        f"kt: float32[{heads}x4x{keys}] = Transpose(k; perm=0x2x1)",
        f"s: float32[{heads}x{queries}x{keys}] = MatMul(q, kt; round_once=False)",
        *lines,
        f"b: float32[{heads}x{queries}x{keys}] = Binary(s, m; {ADD})",
        f"w: float32[{heads}x{queries}x{keys}] = Softmax(b; axis=2, beta=1.0)",
        f"y: float32[{heads}x{queries}x4] = MatMul(w, v; round_once=False)",
        "output y",
    ]


def test_a_constant_mask_with_a_row_for_each_head_is_not_causal() -> None:
    """As many heads as queries: the numbers are those of a causal mask, the axes are not."""
    lines = [line.replace("(s, m;", "(s, const float32[3x1x3];") for line in alone(3, 3, 3)]
    graph = graph_of(lines)
    (name,) = [t.name for t in graph.tensors.values() if t.is_constant]
    hidden = np.where(np.tril(np.ones((3, 3))) > 0, 0, -1e9).astype(np.float32).reshape(3, 1, 3)
    tensors = [t if t.name != name else t.constant(name, hidden) for t in graph.tensors.values()]
    before = graph.with_nodes(graph.nodes, tensors)
    compare(before, fuse_attention(before))


PREFIX = "const bool[4x4] {1 0 0 0 1 1 0 0 1 1 1 0 1 1 1 1}"
OTHERS = {
    "further_for_each_head": (
        2,
        f"r: int64[2x1x1] = Binary(p, const int64[2x1x1] {{0 1}}; {ADD})",
        "c: bool[2x1x4] = Binary(const int64[4] {0 1 2 3}, r; clamp=-infxinf, function=greater, "
        "round_once=False)",
        f"m: float32[2x1x4] = Where(c, {LOW}, {NONE})",
    ),
    "a_prefix_that_all_queries_see": (
        4,
        "c: bool[4] = Binary(const int64[4] {0 1 2 3}, p; clamp=-infxinf, function=less, round_once=False)",
        f"d: bool[4x4] = Binary(c, {PREFIX}; clamp=-infxinf, function=or, round_once=False)",
        f"m: float32[4x4] = Where(d, {NONE}, {LOW})",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_masks_that_resemble_one_of_a_position_stay(name: str) -> None:
    queries, *lines = OTHERS[name]
    before, after = fused(["input p: int64[1]", *alone(2, queries, 4, *lines)])
    assert after.nodes[-1].inputs[3:] in (("m",), ("c",), ("d",))  # or the truths that it is made of
    rng = np.random.default_rng(1)
    tensors = {n: random_values(rng, before.tensors[n]) for n in before.inputs if n != "p"}
    for position in range(4):
        sample = tensors | {"p": np.array([position])}
        np.testing.assert_allclose(interpret(after, sample)["y"], interpret(before, sample)["y"], rtol=1e-5)


def test_a_mask_after_a_reshape_follows_the_axes_that_it_meets() -> None:
    before, after = fused(
        [
            *(f"input {name}: float32[2x2x2x3x4]" for name in "qv"),
            "input k: float32[2x2x2x4x3]",
            "input m: float32[2x1x3x3]",
            "s: float32[2x2x2x3x3] = MatMul(q, k; round_once=False)",
            "r: float32[2x4x3x3] = Reshape(s; shape=2x4x3x3)",
            f"b: float32[2x4x3x3] = Binary(r, m; {ADD})",
            "w: float32[2x4x3x3] = Softmax(b; axis=3, beta=1.0)",
            "u: float32[2x2x2x3x3] = Reshape(w; shape=2x2x2x3x3)",
            "y: float32[2x2x2x3x4] = MatMul(u, v; round_once=False)",
            "output y",
        ]
    )
    assert isinstance(after.nodes[-1].op, Attention)
    compare(before, after)


def bytes_(round_once: bool, softmax: str, *between: str, name: str = "s") -> list[str]:
    quant = " q(0.02, -3)"
    axis = 3 if softmax == "SoftmaxTable" else -1
    score, weights, out = " q(0.05, 4)", " q(0.00390625, -128)", " q(0.006, 5)"
    return [
        *joined("int8", quant),
        f"s: int8[1x2x9x9]{score} = MatMul(q, k; round_once={round_once})",
        *between,
        f"p: int8[1x2x9x9]{weights} = {softmax}({name}; axis={axis}, beta=1.0)",
        f"o: int8[1x2x9x4]{out} = MatMul(p, v; round_once={round_once})",
        *rest("int8", out),
    ]


TIMES = (
    "a: int8[1x2x9x9] q(0.03, -7) = Binary(s, const int8[scalar] q(0.01, -20) {30}; clamp=-infxinf, "
    "function=mul, round_once=True)"
)
BYTES = {
    "onnx": bytes_(True, "SoftmaxTable"),
    "onnx_scaled": bytes_(True, "SoftmaxTable", TIMES, name="a"),
    "tflite": bytes_(False, "Softmax"),
    "keys_by_queries": swapped(bytes_(False, "Softmax"), "int8", " q(0.02, -3)", " q(0.05, 4)", False),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes_stay_the_same(name: str) -> None:
    before, after = fused(BYTES[name])
    (node,) = after.nodes
    assert isinstance(node.op, AttentionInt8)
    assert node.inputs == ("x", "x", "x")
    assert bool(node.op.table) == (name == "onnx_scaled")
    compare(before, after)


def test_keys_that_come_transposed_are_transposed() -> None:
    lines = floats()
    lines = [line for line in lines if not line.startswith(("k0", "k1", "k:"))]
    before, after = fused(["input k: float32[1x2x4x9]", *lines])
    assert [node.op.kind for node in after.nodes] == ["Transpose", "Attention"]
    compare(before, after)


def test_one_head_of_keys_for_several_of_queries() -> None:
    before, after = fused(
        [
            "input q: float32[4x5x6]",
            "input k: float32[2x1x7x6]",
            "input v: float32[2x1x7x3]",
            "k1: float32[2x2x7x6] = Tile(k; repeats=1x2x1x1)",
            "k2: float32[4x7x6] = Reshape(k1; shape=4x7x6)",
            "k3: float32[4x6x7] = Transpose(k2; perm=0x2x1)",
            "v1: float32[2x2x7x3] = Tile(v; repeats=1x2x1x1)",
            "v2: float32[4x7x3] = Reshape(v1; shape=4x7x3)",
            "s: float32[4x5x7] = MatMul(q, k3; round_once=False)",
            "p: float32[4x5x7] = Softmax(s; axis=2, beta=1.0)",
            "y: float32[4x5x3] = MatMul(p, v2; round_once=False)",
            "output y",
        ]
    )
    (node,) = after.nodes
    assert isinstance(node.op, Attention)
    assert node.op.k_starts == (0, 0, 42, 42)
    compare(before, after)


STAYS = {
    "scores_are_an_output": [*floats(), "output s"],
    "weights_are_an_output": [*floats(), "output p"],
    "another_axis": [line.replace("axis=3", "axis=2") for line in floats()],
    "another_axis_between_reshapes": [
        "input q: float32[2x9x4]",
        "input k: float32[2x4x9]",
        "input v: float32[2x9x4]",
        "s: float32[2x9x9] = MatMul(q, k; round_once=False)",
        "a: float32[2x1x9x9] = Reshape(s; shape=2x1x9x9)",
        "p: float32[2x1x9x9] = Softmax(a; axis=2, beta=1.0)",
        "b: float32[2x9x9] = Reshape(p; shape=2x9x9)",
        "o: float32[2x9x4] = MatMul(b, v; round_once=False)",
        "output o",
    ],
    "another_function": floats("a: float32[1x2x9x9] = Unary(s; function=exp)", name="a"),
    "a_mask_before_the_scale": [
        MASK,
        *floats(
            f"a: float32[1x2x9x9] = Binary(m, s; {ADD})",
            f"b: float32[1x2x9x9] = Binary(a, const float32[scalar] {{0.5}}; {MUL})",
            name="b",
        ),
    ],
    "a_guard_whose_weights_are_an_output": [*guarded(floats()), "output p"],
    "another_guard": [line.replace("is_nan", "is_inf") for line in guarded(floats())],
    "limits": floats(
        SCALED.replace("-infxinf", "-1.0x1.0"),
        name="a",
    ),
    "a_quotient_by_scores": floats(
        f"a: float32[1x2x9x9] = Binary(const float32[scalar] {{2}}, s; {DIV})", name="a"
    ),
}


@pytest.mark.parametrize("name", STAYS)
def test_stays(name: str) -> None:
    before, after = fused(STAYS[name])
    assert after.is_unchanged(before)


@pytest.mark.parametrize("apart", [True, False])
def test_the_player_computes_both(apart: bool) -> None:
    origin = Provenance("g", "0" * 64, "")
    compiled = compile_graph(graph_of(BYTES["onnx"]), "g", origin, Options(attention_apart=apart))
    kinds = {node.op.kind for node in compiled.graph.nodes}
    assert ("MatMul" in kinds, "AttentionInt8" in kinds) == (apart, not apart)
    calls = {call.function for call in program_of(compiled).calls()}
    assert ("tinyml_attention_s8" in calls) == (not apart)


@pytest.mark.parametrize("seed", range(12))
def test_random_sizes(seed: int) -> None:
    """Heads, lengths and depths of all kinds, with and without a batch, on bytes and on floats."""
    rng = np.random.default_rng(seed)
    heads, queries, keys, depth, values = (int(n) for n in rng.integers(1, 9, 5))
    keys += 1
    kind, once = ("int8", bool(seed % 4 == 0)) if seed % 2 == 0 else ("float32", False)
    q, k, v, s, p, y = (
        f" q({scale}, {zero})" if kind == "int8" else ""
        for scale, zero in (
            *((float(rng.uniform(0.005, 0.05)), int(rng.integers(-128, 128))) for _ in range(4)),
            (1 / 256, -128),
            (0.01, int(rng.integers(-128, 128))),
        )
    )
    lead = f"{heads}x" if seed % 3 else f"2x{heads}x"
    turn = "0x2x1" if seed % 3 else "0x1x3x2"
    axis = 2 if seed % 3 else 3
    softmax = f"{'SoftmaxTable' if once else 'Softmax'}(s; axis={axis}, beta=1.0)"
    before, after = fused(
        [
            f"input q: {kind}[{lead}{queries}x{depth}]{q}",
            f"input k0: {kind}[{lead}{keys}x{depth}]{k}",
            f"input v: {kind}[{lead}{keys}x{values}]{v}",
            f"k: {kind}[{lead}{depth}x{keys}]{k} = Transpose(k0; perm={turn})",
            f"s: {kind}[{lead}{queries}x{keys}]{s} = MatMul(q, k; round_once={once})",
            f"p: {kind}[{lead}{queries}x{keys}]{p} = {softmax}",
            f"y: {kind}[{lead}{queries}x{values}]{y} = MatMul(p, v; round_once={once})",
            "output y",
        ]
    )
    assert len(after.nodes) == 1
    compare(before, after)


@pytest.mark.parametrize(
    "change",
    [
        {"q_starts": (-1, 0)},
        {"k_step": 1 << 40},
        {"v_starts": (0, 1 << 62)},
        {"y_starts": (0, 0)},
        {"y_starts": (0,)},
        {"y_step": 3},
        {"shape": (1, 9, 9)},
        {"keys": 10},
        {"depth": 0},
        {"values": -4},
        {"past": -1},
        {"q_starts": (), "k_starts": (), "v_starts": (), "y_starts": ()},
    ],
    ids=str,
)
def test_rows_outside_are_refused(change: dict[str, object]) -> None:
    _, after = fused(BYTES["onnx"])
    (node,) = after.nodes
    tensors = [after.tensors[name] for name in node.inputs]
    assert operand_problem(node.op, tensors) is None
    assert operand_problem(replace(node.op, **change), tensors) is not None
