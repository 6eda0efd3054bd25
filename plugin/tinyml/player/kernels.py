# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The kernels that a player can call, and their numbers in programs.

Numbers and records never change once they are published: a firmware plays the packs of later compilers. A
kernel whose record changes gets a new number.
"""

from __future__ import annotations

from dataclasses import replace

from tinyml.player import (
    attention_kernels,
    float_kernels,
    int16_kernels,
    more_kernels,
    nibble_kernels,
    records,
    recurrent_kernels,
)
from tinyml.player.layout import Layout
from tinyml.player.playable import Playable, own

ALWAYS = "player"
"""The group of what every firmware with a player has: the folder of copies, constants, tables."""
LOOP = 0
"""Repeats the calls that follow: see <tinyml/play_loop.h>."""
WINDOW = ("window.c", "nest.c")


def _bytes(number: int, name: str, record: Layout, operands: int) -> Playable:
    play = f"tinyml_play_{name}"
    return Playable(
        number, play, record, operands, play, f"tinyml_check_{name}", "", ("player/play_bytes.c",)
    )


def _binary(number: int, name: str, check: str = "binary_s8") -> Playable:
    return own(number, f"{name}_s8", records.BINARY, 3, "play_binary_s8.c", check)


def _conv(number: int, name: str) -> Playable:
    return Playable(
        number,
        f"tinyml_{name}",
        records.CONV_STREAM,
        3,
        "tinyml_play_conv_stream_s8",
        f"tinyml_check_{name}",
        "tinyml/conv.h",
        (f"conv/{name}.c", "player/play_conv_s8.c", "player/window.c"),
    )


def _depthwise(number: int, function: str, loop: str, check: str) -> Playable:
    return Playable(
        number,
        f"tinyml_{function} tinyml_{loop}",
        records.DEPTHWISE,
        3,
        "tinyml_play_depthwise_conv_s8",
        f"tinyml_check_{check}_s8",
        "tinyml/depthwise_conv.h",
        (f"conv/{function}.c", "player/play_depthwise_s8.c", "player/window.c"),
    )


def _dsp(number: int, loop: str, check: str) -> Playable:
    return _depthwise(number, "depthwise_conv_dsp_s8", f"depthwise_dsp_{loop}", f"depthwise_dsp_{check}")


def _halves(number: int, loop: str, check: str) -> Playable:
    return _depthwise(number, "depthwise_halves_s8", f"depthwise_halves_{loop}", check)


def _dense(number: int, name: str, check: str, *sources: str) -> Playable:
    return Playable(
        number,
        f"tinyml_{name}",
        records.DENSE_STREAM,
        2,
        "tinyml_play_dense_stream_s8",
        f"tinyml_check_{check}",
        "tinyml/dense.h",
        (f"dense/{name}.c", *sources, "player/play_dense_s8.c", "player/window.c"),
    )


def _vectors(number: int, name: str, check: str, record: Layout, operands: int, loop: str = "") -> Playable:
    """For Helium or vectors of RISC-V; ``loop`` for kernels that have several."""
    family = "dense" if name.startswith("dense") else "conv"
    kind = "depthwise" if name.startswith("depthwise") else family
    needed = () if family == "dense" else ("player/window.c",)
    files = (f"{family}/{name}.c", f"player/play_{kind}_vectors_s8.c", *needed)
    return Playable(
        number,
        f"tinyml_{name} tinyml_{loop}" if loop else f"tinyml_{name}",
        record,
        operands,
        "tinyml_play_conv_rvv_s8" if record is records.CONV_RVV else f"tinyml_play_{name}",
        f"tinyml_check_{check}_s8",
        f"tinyml/{'depthwise_conv' if kind == 'depthwise' else kind}.h",
        (*files, "player/play_conv_vectors_s8.c") if record is records.CONV_RVV else files,
    )


def _conv_mve(number: int, loop: str) -> Playable:
    name = f"conv_mve_{loop}"
    return _vectors(number, "conv_mve_s8", name, records.CONV_MVE, 3, name)


def _depthwise_mve(number: int, loop: str, check: str) -> Playable:
    name = "depthwise_conv_mve_s8"
    return _vectors(number, name, f"depthwise_mve_{check}", records.DEPTHWISE_MVE, 3, f"depthwise_mve_{loop}")


def _dense_mve(number: int, loop: str, check: str) -> Playable:
    return _vectors(number, "dense_mve_s8", f"dense_mve_{check}", records.DENSE_MVE, 2, f"dense_mve_{loop}")


def _only(number: int, name: str, record: Layout, header: str, *sources: str) -> Playable:
    return Playable(
        number,
        f"tinyml_{name}",
        record,
        2,
        f"tinyml_play_{name}",
        f"tinyml_check_{name}",
        header,
        sources,
        named_in_play=True,
    )


def _quantize(number: int, way: str, kind: str, family: str) -> Playable:
    """Of four floats at a time."""
    return Playable(
        number,
        f"tinyml_quantize_{way}_f32_{kind}",
        records.QUANTIZE_FLOATS,
        2,
        f"tinyml_play_quantize_floats_{kind}",
        f"tinyml_check_quantize_floats_{kind}",
        "tinyml/quantize_f32.h",
        ("quantization/quantize_f32.c", "player/play_quantize.c"),
        family=family,
    )


_WHOLE = replace(
    _only(
        48,
        "depthwise_whole_s8",
        records.DEPTHWISE,
        "tinyml/depthwise_conv.h",
        *("conv/depthwise_whole_s8.c", "player/play_depthwise_s8.c", "player/window.c"),
    ),
    named_in_play=False,
)

_ALL = (
    own(LOOP, "loop", records.LOOP, 1, "play_loop.c", needs=(), family="loops"),
    _bytes(1, "copy", records.COPY, 2),
    _bytes(2, "fill", records.FILL, 1),
    _bytes(3, "lookup", records.LOOKUP, 2),
    own(4, "move", records.MOVE, 2, "play_move.c"),
    own(5, "fill_loops", records.FILL_LOOPS, 1, "play_move.c"),
    own(6, "quantize_bytes", records.QUANTIZE, 2, "play_quantize.c"),
    own(7, "dequantize_s8", records.DEQUANTIZE, 2, "play_quantize.c", "dequantize_bytes"),
    own(8, "dequantize_u8", records.DEQUANTIZE, 2, "play_quantize.c", "dequantize_bytes"),
    own(9, "take", records.TAKE, 2, "play_take.c"),
    _quantize(10, "even", "s8", ALWAYS),
    _quantize(11, "away", "s8", ALWAYS),
    _quantize(12, "even", "s16", "int16"),
    _quantize(13, "away", "s16", "int16"),
    _conv(16, "conv_s8"),
    _conv(17, "conv_wide_s8"),
    _conv(18, "conv_halves_s8"),
    _conv(19, "conv_dsp_s8"),
    _conv(20, "conv_pairs_s8"),
    _conv_mve(21, "once"),
    _conv_mve(22, "twice"),
    _conv_mve(23, "relu"),
    _vectors(24, "conv_rvv_s8", "conv_rvv", records.CONV_RVV, 3),
    _depthwise(32, "depthwise_conv_s8", "depthwise_any", "depthwise_any"),
    _depthwise(33, "depthwise_conv_s8", "depthwise_3x3", "depthwise_3x3"),
    _depthwise(34, "depthwise_conv_s8", "depthwise_3x3_strided", "depthwise_3x3"),
    _halves(35, "3x3_once", "depthwise_halves_3x3"),
    _halves(36, "3x3_twice", "depthwise_halves_3x3"),
    _halves(37, "any_once", "depthwise_halves"),
    _halves(38, "any_twice", "depthwise_halves"),
    _dsp(39, "3x3", "3x3"),
    _dsp(40, "3x3_strided", "3x3"),
    _dsp(41, "3x3_by_1_once", "3x3_by_1"),
    _dsp(42, "3x3_by_1_twice", "3x3_by_1"),
    _dsp(43, "3x3_by_2_once", "3x3_by_2"),
    _dsp(44, "3x3_by_2_twice", "3x3_by_2"),
    _dsp(45, "two_words", "two_words"),
    _dsp(46, "two_words_strided", "two_words"),
    _dsp(47, "any", "any"),
    _WHOLE,
    _depthwise_mve(49, "3x3_once", "3x3_once"),
    _depthwise_mve(50, "3x3_twice", "3x3_twice"),
    _depthwise_mve(51, "3x3_relu", "3x3_twice"),
    _depthwise_mve(52, "any_once", "any_once"),
    _depthwise_mve(53, "any_twice", "any_twice"),
    _vectors(54, "depthwise_conv_rvv_s8", "depthwise_conv_rvv", records.CONV_RVV, 3),
    _dense(64, "dense_s8", "dense_s8"),
    _dense(65, "dense_quads_s8", "dense_s8"),
    _dense(66, "dense_dsp_s8", "dense_s8"),
    _dense(67, "dense_pairs_s8", "dense_pairs_s8"),
    _dense(68, "dense_sixes_s8", "dense_sixes_s8", "dense/dense_pairs_s8.c"),
    _dense_mve(69, "once", "once"),
    _dense_mve(70, "twice", "twice"),
    _dense_mve(71, "relu", "twice"),
    _vectors(72, "dense_rvv_s8", "dense_rvv", records.DENSE_MVE, 2),
    _only(
        *(80, "average_pool_s8", records.POOL, "tinyml/pool.h", "pool/average_pool_s8.c"),
        *("player/play_pool_s8.c", "player/window.c"),
    ),
    _only(
        *(81, "softmax_s8", records.SOFTMAX, "tinyml/softmax.h", "softmax/softmax_s8.c"),
        *("player/play_softmax_s8.c",),
    ),
    own(82, "mean_s8", records.POOL, 2, "play_windows_s8.c", needs=WINDOW),
    own(83, "mean_any_s8", records.MEAN_ANY, 2, "play_windows_s8.c", needs=WINDOW),
    own(84, "max_pool_s8", records.MAX_POOL, 2, "play_windows_s8.c", needs=WINDOW),
    own(85, "sums_s8", records.SUMS, 2, "play_sums_s8.c"),
    own(86, "means_s8", records.MEANS, 2, "play_sums_s8.c"),
    own(87, "reduce_s8", records.REDUCE, 2, "play_sums_s8.c"),
    own(88, "softmax_table_s8", records.SOFTMAX_TABLE, 2, "play_softmax_table_s8.c"),
    own(96, "sum_s8", records.ADD, 3, "play_sum_s8.c"),
    Playable(
        97,
        "tinyml_add_mve_s8",
        records.ADD,
        3,
        "tinyml_play_add_mve_s8",
        "tinyml_check_sum_s8",
        "tinyml/add.h",
        ("elementwise/add_mve_s8.c", "player/play_sum_s8.c", "player/nest.c"),
    ),
    _binary(98, "linear", "linear_s8"),
    _binary(99, "mul"),
    _binary(100, "mul_once"),
    _binary(101, "prelu"),
    _binary(102, "prelu_once"),
    _binary(103, "rescaled_sum"),
    _binary(104, "squared"),
    _binary(105, "sum_once", "sum_once_s8"),
    _binary(106, "max"),
    _binary(107, "min"),
    *float_kernels.ALL,
    *recurrent_kernels.ALL,
    *int16_kernels.ALL,
    *nibble_kernels.ALL,
    *more_kernels.ALL,
    *attention_kernels.ALL,
)

KERNELS = {kernel.name: kernel for kernel in _ALL}
BY_NUMBER = {kernel.number: kernel for kernel in _ALL}
CORE = (
    *("player/open.c", "player/word_sum.c", "player/player.c", "player/check.c", "player/pack.c"),
    "player/pack_file.c",
    *("player/self_test.c", "slot/error_text.c"),
)
"""What every firmware with a player compiles."""
