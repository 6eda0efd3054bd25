# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The records of calls, byte by byte, as <tinyml/play_records.h> declares them."""

from __future__ import annotations

from tinyml.ops.framework.play_loops import LOOPS
from tinyml.player.layout import Layout

WINDOW = (
    *("h .window.batches", "h .window.in_h", "h .window.in_w", "h .window.in_c"),
    *("h .window.out_h", "h .window.out_w", "h .window.out_c", "h .window.kernel_h", "h .window.kernel_w"),
    *("h .window.stride_h", "h .window.stride_w", "h .window.dilation_h", "h .window.dilation_w"),
    *("h .window.pad_top", "h .window.pad_left"),
)

CONV_STREAM = Layout(
    (
        *WINDOW,
        *("h .groups", "h .in_zero", "h .weight_zero", "h .out_zero", "h .out_min", "h .out_max"),
        *("B .round_once", "B .from_the_end", "I* .filters"),
    )
)
DEPTHWISE = Layout(
    (
        *WINDOW,
        *("h .in_zero", "h .weight_zero", "h .out_zero", "h .out_min", "h .out_max"),
        *("B .round_once", "B .transposed", "2x"),
        *("I* .weights", "I* .bias", "I* .multiplier", "I* .shift"),
    )
)
CONV_MVE = Layout(
    (
        *WINDOW,
        *("h .in_zero", "h .out_zero", "h .out_min", "h .out_max", "B .round_once", "B .from_the_end"),
        *("I* .weights", "I* .channels"),
    )
)
DEPTHWISE_MVE = Layout(
    (
        *WINDOW,
        *("h .in_zero", "h .out_zero", "h .out_min", "h .out_max", "B .round_once", "x"),
        *("I* .weights", "I* .bias", "I* .multiplier", "I* .shift"),
    )
)
CONV_RVV = Layout(
    (
        *WINDOW,
        *("h .in_zero", "h .out_zero", "h .out_min", "h .out_max", "B .round_once", "B .from_the_end"),
        *("I* .weights", "I* .bias", "I* .multiplier", "I* .shift"),
    )
)
DENSE_STREAM = Layout(
    (
        *("i .rows", "i .inputs", "i .outputs", "I* .filters"),
        *("h .weight_zero", "h .out_zero", "h .out_min", "h .out_max", "B .round_once", "3x"),
    )
)
DENSE_MVE = Layout(
    (
        *("i .rows", "i .inputs", "i .outputs"),
        *("I* .weights", "I* .bias", "I* .multiplier", "I* .shift"),
        *("h .out_zero", "h .out_min", "h .out_max", "B .round_once", "x"),
    )
)
POOL = Layout((*WINDOW, "h .shift", "h .out_min", "h .out_max", "i .factor", "i .offset"))
SOFTMAX = Layout(("i .rows", "i .depth", "i .multiplier", "i .left_shift", "i .least_difference"))
COPY = Layout(("I .rows", "I .bytes", "I .from_step", "I .to_step"))
FILL = Layout(("I .bytes", "I .value"))
LOOP = Layout(("I .turns", "I .words", "H .bounded", "H .unless"))
LOOKUP = Layout(("I .count", "I* .table"))


def _loops(code: str, name: str) -> tuple[str, ...]:
    """An array with an entry for each loop of a nest."""
    return tuple(f"{code} .{name}.{i}" for i in range(LOOPS))


MOVE = Layout(
    (
        *(*_loops("I", "extents"), *_loops("i", "from_steps"), *_loops("i", "to_steps")),
        *("I .from_start", "I .to_start", "I .bytes", "I .unit"),
    )
)
FILL_LOOPS = Layout((*_loops("I", "extents"), *_loops("i", "steps"), "I .start", "I .bytes", "I .value"))
ADD = Layout(
    (
        *("i .count", "i .a_factor", "i .b_factor", "i .offset"),
        *("h .shift", "h .out_min", "h .out_max", "2x"),
    )
)
BINARY = Layout(
    (
        *(*_loops("I", "extents"), *_loops("i", "a_steps"), *_loops("i", "b_steps")),
        *("i .a_factor", "i .b_factor", "i .y_factor"),
        *("h .a_zero", "h .b_zero", "h .out_zero", "h .out_min", "h .out_max"),
        *("b .a_shift", "b .b_shift", "b .y_shift", "B .headroom", "h .sign"),
    )
)
MEAN_ANY = Layout((*WINDOW, "h .zero", "h .out_min", "h .out_max", "H .halves", "2x"))
MAX_POOL = Layout((*WINDOW, "h .out_min", "h .out_max", "2x"))
SUMS = Layout(("I .positions", "I .channels"))
MEANS = Layout(
    ("I .count", "i .factor", "i .offset", "h .shift", "h .out_min", "h .out_max", "2x"),
)
REDUCE = Layout(
    (
        *(*_loops("I", "extents"), *_loops("i", "steps")),
        *(*_loops("I", "inner_extents"), *_loops("i", "inner_steps")),
        *("i .offset", "i .multiplier", "h .shift", "h .out_zero", "h .out_min", "h .out_max"),
        "I .rounding",
    )
)
TAKE = Layout(
    (
        *(*_loops("I", "extents"), *_loops("I", "steps"), *_loops("I*", "tables")),
        *("I .start", "I .bytes"),
    )
)
SOFTMAX_TABLE = Layout(
    (
        *("I .rows", "I .columns", "I .row_step", "I .depth", "I .step", "I* .exps", "I .size"),
        *("I .numerator", "I .numerator_high", "I .shift", "h .zero", "h .out_max"),
    )
)
CONV_FLOAT = Layout(
    (
        *(*WINDOW, "h .groups", "I .from_the_end"),
        *("f .out_min", "f .out_max", "I* .weights", "I* .bias"),
    )
)
CONV_APART_F32 = Layout(
    (*(member.replace(".", ".conv.", 1) for member in CONV_FLOAT.members), "i .step", "i .line")
)
DENSE_FLOAT = Layout(
    (
        *("i .rows", "i .inputs", "i .outputs", "I* .weights", "I* .bias"),
        *("f .out_min", "f .out_max"),
    )
)
BINARY_FLOAT = Layout(
    (
        *(*_loops("I", "extents"), *_loops("i", "a_steps"), *_loops("i", "b_steps")),
        *("f .out_min", "f .out_max"),
    )
)
UNARY_FLOAT = Layout(("I .count", "f .low", "f .high"))
SOFTMAX_FLOAT = Layout(("I .rows", "I .columns", "I .row_step", "I .depth", "I .step", "f .beta"))
POOL_FLOAT = Layout((*WINDOW, "2x", "f .divisor", "f .out_min", "f .out_max"))
QUANTIZE = Layout(("I .count", "f .scale", "h .zero", "h .out_min", "h .out_max", "H .to_even"))
DEQUANTIZE = Layout(("I .count", "f .scale", "i .zero"))
QUANTIZE_FLOATS = Layout(("i .count", "i .zero", "f .scale"))


_NESTS = (
    *(*_loops("I", "extents"), *_loops("i", "steps")),
    *(*_loops("I", "inner_extents"), *_loops("i", "inner_steps")),
)
_FILTERS = (
    *("I* .filters.weights", "I* .filters.zeros", "I* .filters.scales", "I* .filters.bias"),
    *("f .filters.out_min", "f .filters.out_max", "i .filters.inputs", "i .filters.weight_zero"),
)
_MATMUL = (
    *(*_loops("I", "extents"), *_loops("i", "a_steps"), *_loops("i", "b_steps")),
    *("I .depth", "I .b_step"),
)
REDUCE_F32 = Layout((*_NESTS, "f .count", "I .compensated"))
NORMALIZE_F32 = Layout((*_NESTS, "f .count", "f .epsilon", "I .centred"))
REDUCE_WHOLE = Layout((*_NESTS, "H .type", "H .function"))
ARG_REDUCE = Layout(
    (
        *(*_loops("I", "extents"), *_loops("i", "steps")),
        *("I .depth", "I .step", "H .from", "H .to", "H .largest", "H .last"),
    )
)
CAST = Layout(("I .count", "H .from", "H .to"))
GATHER = Layout(
    (
        *("I .batches", "I .batch_step", "I .count", "I .index_step", "I .depth"),
        *(*_loops("I", "sizes"), *_loops("I", "steps"), "I .bytes", "I .type"),
    )
)
CONV_F32_S8 = Layout(
    (
        *(*WINDOW, "h .groups", "I .from_the_end", "f .out_min", "f .out_max"),
        *("I* .weights", "I* .scales", "I* .bias"),
    )
)
DENSE_F32_S8 = Layout(
    (
        *("i .rows", "i .inputs", "i .outputs", "I* .weights", "I* .scales", "I* .bias"),
        *("f .out_min", "f .out_max"),
    )
)
DENSE_S8_TO_F32 = Layout(("i .rows", "i .outputs", *_FILTERS))
CONV_S8_TO_F32 = Layout((*WINDOW, "h .groups", "h .in_zero", "2x", *_FILTERS))
MATMUL_F32 = Layout(_MATMUL)
MATMUL_S8 = Layout(
    (
        *(*_MATMUL, "i .multiplier", "h .shift", "h .a_zero", "h .b_zero", "h .out_zero"),
        "I .to_even",
    )
)
RECURRENT = Layout(
    (
        *("i .steps", "i .batches", "i .inputs", "i .hidden", "f .clip"),
        *("f .f_alpha", "f .f_beta", "f .g_alpha", "f .g_beta", "f .h_alpha", "f .h_beta"),
        *("I* .w", "I* .w_scales", "I* .r", "I* .r_scales", "I* .b", "I* .peepholes"),
        *("B .f", "B .g", "B .h", "B .reverse", "B .linear_before_reset", "B .input_forget", "2x"),
    )
)
RECURRENT_S8 = Layout(
    (
        *("i .steps", "i .batches", "i .inputs", "i .hidden", "I* .w", "I* .r", "I* .rows", "I* .again"),
        *("h .out_factor", "b .out_shift", "b .out_zero", "b .x_left", "b .h_left", "b .cell_bits"),
        "B .reverse",
    )
)
_LSTM = ("i .step_stride", "i .batch_stride")
LSTM_S8 = Layout(
    (
        *("i .steps", "i .batches", "i .inputs", "i .cells", *_LSTM),
        *(
            f"{member.split()[0]} .gates[{gate}].{member.split()[1]}"
            for gate in range(4)
            for member in (
                *("I* weights", "I* recurrent", "I* bias", "I* recurrent_bias"),
                *("i multiplier", "i shift", "i recurrent_multiplier", "i recurrent_shift"),
            )
        ),
        *("i .hidden_multiplier", "i .hidden_shift", "i .state_zero", "i .cell_integer_bits"),
        "i .cell_limit",
    )
)
LSTM_F32 = Layout(
    (
        *("i .steps", "i .batches", "i .inputs", "i .cells", "i .outputs", *_LSTM),
        *(
            f"I* .gates[{gate}].{member}"
            for gate in range(4)
            for member in ("weights", "recurrent", "bias", "peephole")
        ),
        *("f .cell_clip", "f .projection_clip", "I* .projection", "I* .projection_bias"),
    )
)
BINARY_WHOLE = Layout(
    (
        *(*_loops("I", "extents"), *_loops("i", "a_steps"), *_loops("i", "b_steps")),
        *("H .type", "H .function"),
    )
)
CONV_TRANSPOSE_F32 = Layout(
    (*WINDOW, "h .groups", "f .out_min", "f .out_max", "I* .weights", "I* .bias"),
)
CONV_TRANSPOSE_S8 = Layout(
    (
        *(*WINDOW, "h .groups", "h .in_zero", "h .weight_zero", "h .out_zero", "h .out_min", "h .out_max"),
        *("H .round_once", "I* .weights", "I* .bias", "I* .multiplier", "I* .shift"),
    )
)
TREES = Layout(
    (
        *("I .rows", "I .features", "I .outputs", "I .trees", "I* .nodes", "I .node_bytes", "I* .roots"),
        *("I .leaves", "I* .starts", "I* .targets", "I* .weights", "I .count", "I .last_head", "f .scale"),
        *("B .from", "B .to", "B .keys", "B .missing", "B .head_bytes", "B .distance_bytes"),
        *("B .number_bytes", "B .root_bytes", "B .start_bytes", "B .target_bytes", "2x"),
    )
)
CONV_S16 = Layout(
    (
        *(*WINDOW, "h .groups", "h .out_min", "h .out_max", "I .round_once"),
        *("I* .weights", "I* .bias", "I* .multiplier", "I* .shift"),
    )
)
DENSE_S16 = Layout(
    (
        *("i .rows", "i .inputs", "i .outputs", "I* .weights", "I* .bias", "I* .multiplier", "I* .shift"),
        *("h .out_min", "h .out_max", "I .round_once"),
    )
)
SOFTMAX_S16 = Layout(("i .rows", "i .depth", "i .multiplier", "i .shift", "I* .exp", "I* .reciprocal"))
LEAKY_S16 = Layout(
    (
        *("I .count", "i .multiplier", "i .below_multiplier", "i .offset", "h .shift", "h .below_shift"),
        *("h .out_min", "h .out_max", "I .to_even"),
    )
)
SIGMOID_S16 = Layout(("I .count", "i .multiplier", "I .shift", "I* .table"))
REQUANTIZE = Layout(
    (
        *("I .count", "i .multiplier", "h .shift", "h .in_zero", "h .out_zero", "H .to_even"),
        *("H .from", "H .to"),
    )
)
COMPARE = BINARY_WHOLE  # which has the same members
COMPARE_BYTES = Layout(
    (
        *(*_loops("I", "extents"), *_loops("i", "a_steps"), *_loops("i", "b_steps")),
        *("i .a_multiplier", "i .b_multiplier", "h .a_zero", "h .b_zero", "h .a_shift", "h .b_shift"),
        "I .function",
    )
)
WHERE = Layout(
    (
        *(*_loops("I", "extents"), *_loops("i", "steps"), *_loops("i", "a_steps")),
        *(*_loops("i", "b_steps"), "I .bytes"),
    )
)
UPDATE = Layout(
    (
        *(*_loops("I", "extents"), *_loops("i", "steps"), "I .bytes"),
        *(*_loops("I", "last"), *_loops("I", "last_steps"), *_loops("I", "starts"), "I .type"),
    )
)
GATHER_ELEMENTS = Layout(
    (*_loops("I", "extents"), *_loops("i", "steps"), "I .size", "I .step", "I .bytes", "I .type")
)
TOP_K = Layout(("I .rows", "I .step", "I .depth", "I .count", "H .type", "H .largest"))
RESIZE_BILINEAR = Layout(
    (
        *("I .batches", "I .in_h", "I .in_w", "I .channels", "I .out_h", "I .out_w"),
        *("I* .rows", "I* .rows_by", "I* .columns", "I* .columns_by", "I .type"),
    )
)
_LIMITS = ("I* .bias", "f .out_min", "f .out_max")
_DENSE = ("i .rows", "i .inputs", "i .outputs", "I* .weights")
DENSE_SPARSE = Layout((*_DENSE, "I* .places", "I* .counts", "I* .scales", *_LIMITS))
DENSE_RUNS = Layout((*_DENSE, "I* .runs", "I* .counts", "I* .scales", *_LIMITS))


def _steps(prefix: str) -> tuple[str, ...]:
    counts = tuple(f"i {prefix}{name}" for name in ("inputs", "block"))
    return (*counts, *(f"I* {prefix}{name}" for name in ("weights", "scales", "zeros")))


DENSE_BLOCKS = Layout(("i .rows", "i .outputs", *_steps(".steps."), *_LIMITS))
PACKED_ROWS = Layout(("I .rows", "I .count", "I .type", *_steps(".steps.")))
_HEADS = (
    *("i .at.heads", "i .at.queries", "i .at.keys", "i .at.depth", "i .at.values", "I* .at.starts"),
    *("i .at.q_step", "i .at.k_step", "i .at.v_step", "i .at.y_step", "i .at.past"),
)
ATTENTION_S8 = Layout(
    (
        *(*_HEADS, "i .q_zero", "i .k_zero", "i .v_zero"),
        *("i .score_multiplier", "i .score_shift", "i .score_zero", "I* .table", "I* .exps"),
        *("I .numerator", "I .numerator_high", "i .shift", "i .weight_zero"),
        *("i .out_multiplier", "i .out_shift", "i .out_zero", "H .by_table", "H .once"),
    )
)
ATTENTION_MASKED_S8 = Layout(
    (*(member.replace(".", ".all.", 1) for member in ATTENTION_S8.members), "I* .visible")
)
ATTENTION_BIASED_S8 = Layout(
    (
        *(member.replace(".", ".all.", 1) for member in ATTENTION_S8.members),
        *("I* .mask.starts", "i .mask.step"),
        *("B .mask.inverted", "B .mask.blind", "B .mask.blind_keys", "x"),
        *("I* .bias.starts", "i .bias.step", "i .bias.score_factor", "i .bias.value_factor"),
        *("i .bias.offset", "i .bias.shift"),
    )
)
ATTENTION_F32 = Layout(
    (
        *(*_HEADS, "f .scale", "f .softcap", "I* .mask_starts", "i .mask_step", "f .low"),
        *("H .empty", "H .hides"),
    )
)
ATTENTION_BIASED_F32 = Layout(
    (
        *(member.replace(".", ".all.", 1) for member in ATTENTION_F32.members),
        *("I* .bias_starts", "i .bias_step", "f .later", "H .later_replaces", "2x"),
    )
)
_HOW = ("H .how.bytes", "H .how.type", "H .how.index", "H .how.function")
SCATTER = Layout(("I .count", "I .elements", "I .depth", *_loops("I", "sizes"), *_loops("I", "steps"), *_HOW))
SCATTER_ELEMENTS = Layout((*_loops("I", "extents"), *_loops("i", "steps"), "I .size", "I .step", *_HOW))
RESIZE_WEIGHTED = Layout(
    (
        *(
            f"{code} .axes[{axis}].{name}"
            for axis in range(LOOPS)
            for code, name in (
                *(("I", "in"), ("I", "out"), ("I", "step"), ("I", "out_step"), ("I", "taps")),
                *(("I*", "places"), ("I*", "factors"), ("I*", "outside")),
            )
        ),
        "f .extrapolation",
    )
)
