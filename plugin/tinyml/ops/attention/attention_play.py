# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the player's record of attention has of a mask and of a bias, and which operands hold them."""

from __future__ import annotations

from collections.abc import Mapping

from tinyml.ops.attention.attention_int8 import ALL, EARLIER, EVERY, MEAN, ONCE, ZEROS

_NUMBERS = {  # those of the enumerations in <tinyml/attention.h>
    f"TINYML_ATTENTION_{word.upper()}": number
    for words in ((ZEROS, MEAN, ALL), (EVERY, EARLIER, ONCE))
    for number, word in enumerate(words)
}


def added(
    mask: Mapping[str, object], bias: Mapping[str, object]
) -> tuple[dict[str, object], tuple[str, str]]:
    """From the members of their structures in C; without a mask or a bias there are none."""
    operands = (str(mask.get(".visible", "NULL")), str(bias.get(".values", "NULL")))
    members = {f".mask{name}": value for name, value in mask.items() if name != ".visible"}
    members |= {f".bias{name}": value for name, value in bias.items() if name != ".values"}
    return {name: _NUMBERS.get(str(value), value) for name, value in members.items()}, operands
