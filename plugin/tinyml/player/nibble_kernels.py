# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Kernels for weights of four bits that a player can call. Records are those of kernels for bytes."""

from __future__ import annotations

from tinyml.player import records
from tinyml.player.playable import Playable


def _conv(number: int, name: str, check: str) -> Playable:
    return Playable(
        number,
        f"tinyml_{name}",
        records.CONV_STREAM,
        3,
        "tinyml_play_conv_stream_s8",
        f"tinyml_check_{check}",
        "tinyml/conv.h",
        (f"conv/{name}.c", "player/play_conv_s8.c", "player/window.c"),
    )


def _depthwise(number: int, name: str, source: str, loop: str, check: str, play: str = "conv") -> Playable:
    return Playable(
        number,
        f"tinyml_depthwise_{name}_s8 tinyml_depthwise_{loop}",
        records.DEPTHWISE,
        3,
        f"tinyml_play_depthwise_{play}_s8",
        f"tinyml_check_nibbles_{check}_s8",
        "tinyml/depthwise_conv.h",
        (f"conv/{source}.c", "player/play_depthwise_s8.c", "player/window.c"),
    )


def _any(number: int, loop: str, check: str) -> Playable:
    return _depthwise(number, "nibbles", "depthwise_conv_s8", loop, check)


def _halves(number: int, loop: str, check: str) -> Playable:
    name = "nibbles_halves"
    return _depthwise(number, name, "depthwise_halves_s8", f"halves_{loop}", check, play=name)


def _dsp(number: int, loop: str, check: str) -> Playable:
    return _depthwise(number, "nibbles_dsp", "depthwise_conv_dsp_s8", f"dsp_{loop}", f"dsp_{check}")


def _dense(number: int, name: str) -> Playable:
    return Playable(
        number,
        f"tinyml_{name}",
        records.DENSE_STREAM,
        2,
        "tinyml_play_dense_stream_s8",
        f"tinyml_check_{name}",
        "tinyml/dense.h",
        (f"dense/{name}.c", "player/play_dense_s8.c", "player/window.c"),
    )


def _helium(number: int, family: str, loop: str, check: str) -> Playable:
    conv = family == "conv"
    return Playable(
        number,
        f"tinyml_{family}_nibbles_mve_s8 tinyml_{family}_mve_nibbles_{loop}",
        records.CONV_MVE if conv else records.DENSE_MVE,
        3 if conv else 2,
        f"tinyml_play_{family}_mve_s8",
        f"tinyml_check_{family}_mve_nibbles_{check}_s8",
        f"tinyml/{family}.h",
        (f"{family}/{family}_mve_s8.c", f"player/play_{family}_vectors_s8.c", "player/window.c"),
    )


def _vectors(number: int, family: str) -> Playable:
    conv = family == "conv"
    return Playable(
        number,
        f"tinyml_{family}_nibbles_rvv_s8",
        records.CONV_RVV if conv else records.DENSE_MVE,
        3 if conv else 2,
        f"tinyml_play_{family}_rvv_s8",
        f"tinyml_check_{family}_nibbles_rvv_s8",
        f"tinyml/{family}.h",
        (f"{family}/{family}_rvv_s8.c", f"player/play_{family}_vectors_s8.c", "player/window.c"),
    )


ALL = (
    _conv(264, "conv_nibbles_s8", "conv_nibbles_s8"),
    _conv(265, "conv_nibbles_halves_s8", "conv_nibbles_halves_s8"),
    _conv(266, "conv_nibbles_dsp_s8", "conv_nibbles_s8"),
    _helium(267, "conv", "once", "once"),
    _helium(268, "conv", "twice", "twice"),
    _helium(269, "conv", "relu", "relu"),
    _vectors(270, "conv"),
    _any(271, "any", "any"),
    _any(272, "3x3", "3x3"),
    _any(273, "3x3_strided", "3x3"),
    _halves(274, "3x3_once", "halves_3x3"),
    _halves(275, "3x3_twice", "halves_3x3"),
    _halves(276, "any_once", "halves"),
    _halves(277, "any_twice", "halves"),
    _dsp(278, "3x3", "3x3"),
    _dsp(279, "3x3_strided", "3x3"),
    _dsp(280, "3x3_by_1_once", "3x3_by_1"),
    _dsp(281, "3x3_by_1_twice", "3x3_by_1"),
    _dsp(282, "3x3_by_2_once", "3x3_by_2"),
    _dsp(283, "3x3_by_2_twice", "3x3_by_2"),
    _dsp(284, "two_words", "two_words"),
    _dsp(285, "two_words_strided", "two_words"),
    _dsp(286, "any", "any"),
    _dense(287, "dense_nibbles_s8"),
    _dense(288, "dense_nibbles_dsp_s8"),
    _helium(289, "dense", "once", "once"),
    _helium(290, "dense", "twice", "twice"),
    _helium(291, "dense", "relu", "twice"),
    _vectors(292, "dense"),
)
