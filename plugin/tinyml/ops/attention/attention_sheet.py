# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What all kernels of attention write in C: places, and a call with structures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tinyml.ops.attention.heads import Heads, K, Q, V, layout, starts_table
from tinyml.ops.framework.kernel import Sheet


def places(op: Heads, sheet: Sheet, table: str = "starts") -> dict[str, object]:
    sheet.include("<tinyml/attention.h>")
    starts = sheet.table(table, starts_table(op), holds="for each head: queries, keys, values, outputs")
    return {f".at{member}": value for member, value in layout(op, starts).items()}


def call(sheet: Sheet, function: str, others: Sequence[str], type_: str, more: Mapping[str, str]) -> None:
    tensors = {"q": sheet.x(Q), "k": sheet.x(K), "v": sheet.x(V), **more, "y": sheet.y()}
    members = {f".{member}": value for member, value in {**tensors, "scratch": sheet.scratch}.items()}
    structure(sheet, f"const {type_} t", members)
    sheet.line(f"{function}({', '.join([*others, '&t'])});")


def structure(sheet: Sheet, name: str, members: Mapping[str, object]) -> None:
    sheet.line(f"{name} = {{")
    sheet.depth += 1
    for member, value in members.items():
        sheet.line(f"{member} = {value},")
    sheet.depth -= 1
    sheet.line("};")
    sheet.line()
