# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A front end as C: what its kind contributes to the generated files."""

from __future__ import annotations

from collections.abc import Sequence

from tinyml.base.lazy_dataclass import dataclass
from tinyml.ops.framework.kernel import Record, Table
from tinyml.ops.signal.fft import FftTables


@dataclass(frozen=True)
class Written:
    """Constants, working memory, and the statement that computes a row."""

    headers: Sequence[str]
    sources: Sequence[str]  # of runtime/
    tables: Sequence[Table]
    records: Sequence[Record]
    memory: Sequence[Memory]
    statement: str  # fills NAME_row from NAME_samples


@dataclass(frozen=True)
class Memory:
    """An array in RAM; what it holds must survive from row to row if ``kept``."""

    type: str
    name: str
    length: int
    bytes: int
    comment: str
    kept: bool = False


def fft_members(prefix: str, plan: FftTables) -> tuple[dict[str, str], list[Table]]:
    """A transform as the member ``.fft`` of a structure, and its tables."""
    tables = {key: Table(f"{prefix}_fft_{key}", values) for key, values in plan.tables().items()}
    members = {f".fft.{key}": table.name for key, table in tables.items()}
    return members | {f".fft.{key}": value for key, value in plan.numbers().items()}, list(tables.values())
