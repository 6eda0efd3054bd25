# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Attention that a player can call."""

from __future__ import annotations

from tinyml.player import records
from tinyml.player.layout import Layout
from tinyml.player.playable import Playable


def _attention(number: int, name: str, record: Layout, operands: int, play: str, *sources: str) -> Playable:
    return Playable(
        number,
        f"tinyml_{name}",
        record,
        operands,
        f"tinyml_play_{play}",
        f"tinyml_check_{name}",
        "tinyml/attention.h",
        (f"attention/{name}.c", "player/play_attention.c", *sources),
    )


def _biased(number: int, name: str, record: Layout, play: str) -> Playable:
    """With a bias and perhaps a mask; on int8 also with a mask alone."""
    return _attention(number, name, record, 7, play, "player/play_attention_biased.c")


ALL = (
    _attention(323, "attention_f32", records.ATTENTION_F32, 6, "attention_f32"),
    _attention(324, "attention_s8", records.ATTENTION_S8, 5, "attention_s8"),
    _attention(325, "attention_dsp_s8", records.ATTENTION_S8, 5, "attention_s8"),
    Playable(
        293,
        "tinyml_attention_masked_s8",
        records.ATTENTION_MASKED_S8,
        5,
        "tinyml_play_attention_masked_s8",
        "tinyml_check_attention_masked_s8",
        "tinyml/attention.h",
        ("attention/attention_masked_s8.c", "player/play_attention.c"),
    ),
    _attention(326, "attention_mve_s8", records.ATTENTION_S8, 5, "attention_s8"),
    *(
        _biased(number, f"attention_biased{variant}_s8", records.ATTENTION_BIASED_S8, "attention_biased_s8")
        for number, variant in ((335, ""), (336, "_dsp"), (337, "_mve"))
    ),
    _biased(338, "attention_biased_f32", records.ATTENTION_BIASED_F32, "attention_biased_f32"),
)
