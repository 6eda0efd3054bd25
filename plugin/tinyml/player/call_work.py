# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The work of calls, in the units of the player's checks: multiplications, or elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tinyml.ops.framework.play_loops import LOOPS
from tinyml.ops.framework.program import Call, Repeat, Step, Turns
from tinyml.player import records
from tinyml.player.kernels import KERNELS
from tinyml.player.layout import Layout

Members = Mapping[str, str]
CALL = 16
"""Of making a call: TINYML_PLAY_WORK."""


def work_of(steps: Sequence[Step]) -> int:
    """Of all calls together."""
    return sum(map(_step, steps))


def _step(step: Step) -> int:
    if isinstance(step, Repeat):
        return step.count * sum(map(_work, step.calls))
    if isinstance(step, Turns):
        return step.most * (_work(step.call) + work_of(step.steps))
    return _work(step)


def _work(call: Call) -> int:
    kernel = KERNELS[call.function]
    work = _BY_CHECK.get(kernel.check, _WORK[kernel.record])
    return CALL + work(call.record.members)


def _number(members: Members, *names: str) -> int:
    """The product of members."""
    result = 1
    for name in names:
        result *= int(members[name])
    return result


def _outputs(members: Members) -> int:
    return _number(members, ".window.batches", ".window.out_h", ".window.out_w", ".window.out_c")


def _taps(members: Members) -> int:
    return _number(members, ".window.kernel_h", ".window.kernel_w")


def _conv(members: Members) -> int:
    ins = int(members[".window.in_c"])
    channels = ins // (int(members.get(".groups", "1")) or ins)  # 0 groups: each channel is one
    return _outputs(members) * (_taps(members) * channels + 1)


def _reach(members: Members, axis: str) -> int:
    """Elements of an axis that windows reach, with padding."""
    out, stride, kernel, dilation = (
        int(members[f".window.{name}_{axis}"]) for name in ("out", "stride", "kernel", "dilation")
    )
    return (out - 1) * stride + (kernel - 1) * dilation + 1


def _depthwise(members: Members) -> int:
    """Products, and for each channel a plane."""
    planes = (
        _number(members, ".window.batches", ".window.out_c") * _reach(members, "h") * _reach(members, "w")
    )
    return _outputs(members) * (_taps(members) + 1) + planes


def _ring(members: Members) -> int:
    """Products, and rows that are copied with their padding."""
    given = int(members[".window.pad_left"]) + int(members[".window.in_w"])
    row = max(_reach(members, "w"), given) * int(members[".window.in_c"])
    rows = int(members[".window.batches"]) * _reach(members, "h")
    return _outputs(members) * (_taps(members) + 1) + rows * row


def _dense(members: Members) -> int:
    return _number(members, ".rows", ".outputs") * (int(members[".inputs"]) + 1)


def _count(members: Members, name: str = "extents") -> int:
    return _number(members, *(f".{name}.{i}" for i in range(LOOPS)))


def _reduce(members: Members) -> int:
    return _count(members) * (_count(members, "inner_extents") + 1)


def _nests(members: Members, each: int, once: int) -> int:
    """``each`` for an element that inner loops visit, ``once`` for what they make of them."""
    return _count(members) * (_count(members, "inner_extents") * each + once)


def _into_float(members: Members) -> int:
    elements = int(members[".filters.inputs"])
    outputs = _number(members, ".rows", ".outputs") if ".rows" in members else _outputs(members)
    return outputs * (elements + 1)


def _gather(members: Members) -> int:
    return _number(members, ".batches", ".count") * (int(members[".bytes"]) + 16)


def _matmul(members: Members) -> int:
    return _count(members) * (int(members[".depth"]) + 4)


def _recurrent(gates: int) -> Callable[[Members], int]:
    def work(members: Members) -> int:
        inputs, hidden = int(members[".inputs"]), int(members[".hidden"])
        return _number(members, ".steps", ".batches") * gates * hidden * (inputs + hidden + 16)

    return work


def _recurrent_bytes(gates: int) -> Callable[[Members], int]:
    """Rows come in groups of four, elements in vectors of at most 16."""

    def work(members: Members) -> int:
        inputs, hidden = int(members[".inputs"]), int(members[".hidden"])
        return _number(members, ".steps", ".batches") * gates * (hidden + 3) * (inputs + hidden + 46)

    return work


def _lstm(members: Members) -> int:
    inputs, cells = int(members[".inputs"]), int(members[".cells"])
    outputs = int(members.get(".outputs", members[".cells"]))
    projected = outputs * cells if ".outputs" in members else 0
    return _number(members, ".steps", ".batches") * (4 * cells * (inputs + outputs + 16) + projected)


def _transposed(members: Members) -> int:
    taps = _taps(members)
    channels = int(members[".window.in_c"]) // int(members[".groups"])
    return _outputs(members) * (taps * channels + 4 * taps + 4)


def _trees(members: Members) -> int:
    rows, features, outputs, trees, stream, longest = (
        int(members[f".{name}"]) for name in ("rows", "features", "outputs", "trees", "node_bytes", "longest")
    )
    return rows * (features + outputs + 2 * stream + trees * (4 * longest + 16))


def _blocks(members: Members) -> int:
    rows, outputs, inputs = (int(members[name]) for name in (".rows", ".outputs", ".steps.inputs"))
    return (rows * outputs + rows) * (inputs + 1) * 2


def _resize(members: Members) -> int:
    return 16 * _number(members, ".batches", ".channels", ".out_h", ".out_w")


def _resize_weighted(members: Members) -> int:
    outputs, taps = 1, 1
    for axis in range(LOOPS):
        place = f".axes[{axis}]."
        outputs *= int(members[f"{place}out"])
        taps *= int(members[f"{place}taps"]) if f"{place}places" in members else 1
    return outputs * (4 * taps + 32)


def _top_k(members: Members) -> int:
    return _number(members, ".rows", ".step", ".depth") * (int(members[".count"]) + 1) * 4


def _packed_rows(members: Members) -> int:
    return int(members[".count"]) * (2 * int(members[".steps.inputs"]) + 16)


def _attention(members: Members) -> int:
    """Two queries at a time; sixteen keys, or elements of a row."""
    heads, queries, keys, depth, values = (
        int(members[f".at.{name}"]) for name in ("heads", "queries", "keys", "depth", "values")
    )
    return heads * (queries + 1) * (keys + 16) * (depth + values + 32)


def _part(members: Members, name: str) -> Members:
    """The members of a structure that is a part of the record."""
    return {member.removeprefix(name): value for member, value in members.items()}


def _apart(members: Members) -> int:
    return _conv(_part(members, ".conv"))


def _pool(members: Members) -> int:
    return _outputs(members) * (_taps(members) + 1)


_WORK: dict[Layout, Callable[[Members], int]] = {
    records.CONV_STREAM: _conv,
    records.CONV_MVE: _conv,
    records.CONV_RVV: _conv,
    records.DEPTHWISE: _depthwise,
    records.DEPTHWISE_MVE: _ring,
    records.DENSE_STREAM: _dense,
    records.DENSE_MVE: _dense,
    records.POOL: _pool,
    records.MEAN_ANY: _pool,
    records.MAX_POOL: _pool,
    records.SUMS: lambda members: _number(members, ".positions", ".channels"),
    records.MEANS: lambda members: int(members[".count"]),
    records.REDUCE: _reduce,
    records.ADD: lambda members: int(members[".count"]),
    records.BINARY: lambda members: 4 * _count(members),
    records.TAKE: lambda members: _count(members) * (int(members[".bytes"]) + 4),
    records.SOFTMAX_TABLE: lambda members: (
        _number(members, ".rows", ".columns") * (16 * int(members[".depth"]) + 1)
    ),
    records.CONV_FLOAT: _conv,
    records.CONV_APART_F32: _apart,
    records.DENSE_FLOAT: _dense,
    records.BINARY_FLOAT: lambda members: 4 * _count(members),
    records.UNARY_FLOAT: lambda members: 16 * int(members[".count"]),
    records.SOFTMAX_FLOAT: lambda members: (
        _number(members, ".rows", ".columns") * (16 * int(members[".depth"]) + 1)
    ),
    records.POOL_FLOAT: _pool,
    records.REDUCE_F32: lambda members: _nests(members, 16, 1),
    records.REDUCE_WHOLE: lambda members: _nests(members, 16, 16),
    records.NORMALIZE_F32: lambda members: _nests(members, 16, 16),
    records.ARG_REDUCE: lambda members: _count(members) * (4 * int(members[".depth"]) + 1),
    records.CAST: lambda members: 16 * int(members[".count"]),
    records.GATHER: _gather,
    records.CONV_F32_S8: _conv,
    records.DENSE_F32_S8: _dense,
    records.CONV_S8_TO_F32: _into_float,
    records.DENSE_S8_TO_F32: _into_float,
    records.MATMUL_F32: _matmul,
    records.MATMUL_S8: _matmul,
    records.BINARY_WHOLE: lambda members: 32 * _count(members),
    records.CONV_TRANSPOSE_F32: _transposed,
    records.CONV_TRANSPOSE_S8: _transposed,
    records.TREES: _trees,
    records.CONV_S16: _conv,
    records.DENSE_S16: _dense,
    records.SOFTMAX_S16: lambda members: 16 * _number(members, ".rows", ".depth") + 513,
    records.LEAKY_S16: lambda members: 4 * int(members[".count"]),
    records.SIGMOID_S16: lambda members: 8 * int(members[".count"]),
    records.REQUANTIZE: lambda members: 8 * int(members[".count"]),
    records.COMPARE_BYTES: lambda members: 16 * _count(members),
    records.WHERE: lambda members: 16 * _count(members),
    records.GATHER_ELEMENTS: lambda members: 16 * _count(members),
    records.UPDATE: lambda members: _count(members) * (int(members[".bytes"]) + 16),
    records.SCATTER: lambda members: 16 * int(members[".count"]) * (int(members[".elements"]) + 1),
    records.SCATTER_ELEMENTS: lambda members: 32 * _count(members),
    records.RESIZE_WEIGHTED: _resize_weighted,
    records.TOP_K: _top_k,
    records.RESIZE_BILINEAR: _resize,
    records.DENSE_SPARSE: _dense,
    records.DENSE_RUNS: _dense,
    records.DENSE_BLOCKS: _blocks,
    records.PACKED_ROWS: _packed_rows,
    records.ATTENTION_S8: _attention,
    records.ATTENTION_MASKED_S8: lambda members: _attention(_part(members, ".all")),
    records.ATTENTION_BIASED_S8: lambda members: _attention(_part(members, ".all")),
    records.ATTENTION_F32: _attention,
    records.ATTENTION_BIASED_F32: lambda members: _attention(_part(members, ".all")),
    records.RECURRENT: _recurrent(1),
    records.RECURRENT_S8: _recurrent_bytes(1),
    records.LSTM_S8: _lstm,
    records.LSTM_F32: _lstm,
    records.QUANTIZE_FLOATS: lambda members: 4 * int(members[".count"]),
    records.QUANTIZE: lambda members: 16 * int(members[".count"]),
    records.DEQUANTIZE: lambda members: 4 * int(members[".count"]),
    records.MOVE: lambda members: _count(members) * (int(members[".bytes"]) + 1),
    records.FILL_LOOPS: lambda members: 2 * _count(members),
    records.SOFTMAX: lambda members: 16 * _number(members, ".rows", ".depth"),
    records.COPY: lambda members: int(members[".rows"]) * (int(members[".bytes"]) + 1),
    records.LOOP: lambda members: 0,
    records.FILL: lambda members: int(members[".bytes"]),
    records.LOOKUP: lambda members: int(members[".count"]),
}

_BY_CHECK: dict[str, Callable[[Members], int]] = {  # by the check of kernels whose records others have too
    "tinyml_check_table_s16": lambda members: 8 * int(members[".count"]),
    "tinyml_check_gru_f32": _recurrent(3),
    "tinyml_check_recurrent_lstm_f32": _recurrent(4),
    **{f"tinyml_check_gru{variant}_s8": _recurrent_bytes(3) for variant in ("", "_dsp", "_mve")},
    **{f"tinyml_check_recurrent_lstm{variant}_s8": _recurrent_bytes(4) for variant in ("", "_dsp", "_mve")},
    "tinyml_check_depthwise_conv_rvv_s8": _ring,
    "tinyml_check_depthwise_conv_f32": lambda members: _outputs(members) * (_taps(members) + 1),
}
