# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A front end as C: what its kind contributes to the generated files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyml.kernel import Record, Table


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
