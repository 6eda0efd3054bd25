# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A front end alone as a model: a window of samples in, a row of features out. For tests and measurements."""

from __future__ import annotations

import json
from typing import Any

from tinyml.base import c
from tinyml.base.templates import render
from tinyml.cores.targets import Target
from tinyml.features.settings import FrontEnd
from tinyml.ir import DType


def probe_files(name: str, frontend: FrontEnd, target: Target) -> dict[str, str]:
    """Generated files as for a model, their text by name. State is kept from run to run."""
    settings, kind = frontend.settings, frontend.of
    written = kind.write(name, settings)
    sample = DType(kind.sample)
    row = DType.UINT16 if kind.integer else DType.FLOAT32
    ports = [
        _port("samples", sample, [settings.window, settings.axes]),
        _port("row", row, [settings.width]),
    ]
    context = {
        "name": name,
        "description": frontend.describe(),
        "written": written,
        "headers": sorted({"<string.h>", "<tinyml/stream.h>", "<tinyml/tinyml.h>", *written.headers}),
        "initializer": lambda members: c.code(c.initializer(members)),
        "statement": c.code(c.wrap(written.statement, c.TAB)),
        "tables": [
            {
                "declaration": f"static const {DType.of(table.values).c} {table.name}[{table.values.size}]",
                "rows": c.code(c.table_rows(table.values)),
            }
            for table in written.tables
        ],
        "sample": sample.c,
        "row": row.c,
        "samples": settings.window * settings.axes,
        "settings": settings,
        "ports": ports,
    }
    summary = {
        "name": name,
        "target": target.name,
        "sha256": "",
        "inputs": ports[:1],
        "outputs": ports[1:],
        "sources": {"runtime": sorted(written.sources), "cmsis-nn": []},
    }
    return {
        f"{name}.c": render("emit", "probe.c.j2", context),
        f"{name}.json": json.dumps(summary, indent=2) + "\n",
    }


def _port(name: str, dtype: DType, shape: list[int]) -> dict[str, Any]:
    size = dtype.bytes
    for extent in shape:
        size *= extent
    return {"name": name, "dtype": dtype.value, "shape": shape, "bytes": size, "type": f"TINYML_{dtype.name}"}
