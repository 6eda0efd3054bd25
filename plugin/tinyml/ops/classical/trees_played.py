# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Trees as a call of the player, which proves before the first run that every way ends at a leaf."""

from __future__ import annotations

import numpy as np

from tinyml.ir import DType, Layer
from tinyml.ops.classical.tree_stream import Stream
from tinyml.ops.framework.kernel import Sheet
from tinyml.ops.framework.play_sheet import NotPlayableError

DEPTH = 64  # TINYML_PLAY_TREE_DEPTH


def play(layer: Layer, sheet: Sheet, stream: Stream, scale: float, keys: bool, missing: bool) -> None:
    x, outputs = layer.input(0), layer.output.shape[1]
    if layer.output.elements == 0:
        raise NotPlayableError("the player has no trees without rows")
    check(stream, x.shape[1], missing)
    starts, weights = stream.starts, stream.weights
    members: dict[str, object] = {
        ".rows": x.shape[0],
        ".features": x.shape[1],
        ".outputs": outputs,
        ".trees": len(stream.roots),
        ".nodes": sheet.table("nodes", stream.nodes),
        ".node_bytes": len(stream.nodes),
        ".roots": sheet.table("roots", stream.roots),
        ".leaves": len(weights) if starts is None else len(starts) - 1,
        ".weights": sheet.table("weights", weights),
        ".count": len(weights),
        ".last_head": stream.last_head,
        ".scale": sheet.number(scale),
        ".from": x.dtype.code,
        ".to": DType.of(weights).code,
        ".keys": int(keys),
        ".missing": int(missing),
        ".head_bytes": stream.head_bytes,
        ".distance_bytes": stream.distance_bytes,
        ".number_bytes": stream.number_bytes,
        ".root_bytes": stream.roots.itemsize,
        ".start_bytes": 1 if starts is None else starts.itemsize,
        ".target_bytes": stream.targets.itemsize,
        ".longest": 1 if starts is None else max(1, int(np.diff(starts.astype(np.int64)).max(initial=0))),
    }
    if starts is not None:
        members[".starts"] = sheet.table("starts", starts)
    if outputs > 1:
        members[".targets"] = sheet.table("targets", stream.targets)
    scratch = sheet.scratch if keys or weights.dtype.kind != "f" else "NULL"
    sheet.note("tinyml_play_trees", members, sheet.x(0), sheet.y(), scratch)


def check(stream: Stream, features: int, missing: bool) -> None:
    """What the player requires: trees one after the other, each in depth-first order, none too deep."""
    content = stream.nodes.tobytes()
    no = stream.head_bytes + stream.limit_bytes
    mark = 1 << (8 * stream.distance_bytes - 1) if missing else 0
    end = 0
    for root in stream.roots:
        at = int(root)
        if at < end:
            raise NotPlayableError("its trees do not follow each other")
        ends: list[int] = []
        while True:
            head = int.from_bytes(content[at : at + stream.head_bytes], "little")
            if head < features:
                distance = int.from_bytes(content[at + no : at + no + stream.distance_bytes], "little")
                ends.append(at + (distance & ~mark))
                at += no + stream.distance_bytes
                if len(ends) > DEPTH:
                    raise NotPlayableError(f"a tree has more than {DEPTH} levels")
                continue
            number = stream.number_bytes if stream.number_bytes and head >= stream.last_head else 0
            at += stream.head_bytes + number
            if not ends:
                break
            if ends.pop() != at:
                raise NotPlayableError("its trees are not in depth-first order")
        end = at
