# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The recurrent layers that a player can call."""

from __future__ import annotations

from tinyml.player import records
from tinyml.player.layout import Layout
from tinyml.player.playable import Playable


def _recurrent(number: int, name: str) -> Playable:
    shared = ("recurrent", "recurrent_activations", "recurrent_product_f32", "recurrent_product_f32_s8")
    return Playable(
        number,
        f"tinyml_{name}",
        records.RECURRENT,
        7,
        "tinyml_play_recurrent_f32",
        f"tinyml_check_{name}",
        "tinyml/recurrent.h",
        (
            f"recurrent/{name}.c",
            *(f"recurrent/{file}.c" for file in shared),
            "player/play_recurrent_f32.c",
        ),
    )


def _lstm(number: int, name: str, record: Layout, header: str) -> Playable:
    return Playable(
        number,
        f"tinyml_{name}",
        record,
        5,
        f"tinyml_play_{name}",
        f"tinyml_check_{name}",
        header,
        (f"recurrent/{name}.c", "player/play_lstm.c"),
    )


def _bytes(number: int, name: str, variant: str = "", layouts: int = 0) -> Playable:
    """RNN, GRU and LSTM of quantised ONNX models; ``variant``: of the instructions."""
    function = f"{name}{variant}_s8"
    table = "recurrent/gates_steps_s16.c" if variant == "_dsp" else "recurrent/gates_s16.c"
    return Playable(
        number,
        f"tinyml_{function}",
        records.RECURRENT_S8,
        7,
        "tinyml_play_recurrent_s8",
        f"tinyml_check_{function}",
        "tinyml/recurrent_s8.h",
        (f"recurrent/recurrent{variant}_s8.c", table, "player/play_recurrent_s8.c"),
        layouts=layouts,
    )


ALL = (
    _recurrent(218, "rnn_f32"),
    _recurrent(219, "gru_f32"),
    _recurrent(220, "recurrent_lstm_f32"),
    _lstm(221, "lstm_s8", records.LSTM_S8, "tinyml/lstm.h"),
    _lstm(222, "lstm_f32", records.LSTM_F32, "tinyml/lstm_f32.h"),
    _bytes(313, "rnn"),
    _bytes(314, "gru"),
    _bytes(315, "recurrent_lstm"),
    _bytes(316, "rnn", "_dsp", layouts=2),
    _bytes(317, "gru", "_dsp", layouts=2),
    _bytes(318, "recurrent_lstm", "_dsp", layouts=2),
    _bytes(319, "rnn", "_mve"),
    _bytes(320, "gru", "_mve", layouts=1),
    _bytes(321, "recurrent_lstm", "_mve"),
)
