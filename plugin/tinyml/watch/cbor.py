# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""CBOR as devices encode their counters: integers, texts, bytes, arrays and maps (RFC 8949)."""

from __future__ import annotations

from typing import Any

from tinyml.base.errors import ToolError

DEEPEST = 8
_MORE = {24: 1, 25: 2, 26: 4, 27: 8}


def decode(data: bytes) -> Any:
    """The value; ToolError if this is not all of one."""
    value, end = _item(data, 0, 0)
    if end != len(data):
        raise _broken()
    return value


def encode(value: Any) -> bytes:
    """The shortest form of a value."""
    if isinstance(value, int):
        return _head(1, -1 - value) if value < 0 else _head(0, value)
    if isinstance(value, bytes):
        return _head(2, len(value)) + value
    if isinstance(value, str):
        return _head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return _head(4, len(value)) + b"".join(map(encode, value))
    assert isinstance(value, dict), value
    return _head(5, len(value)) + b"".join(encode(key) + encode(item) for key, item in value.items())


def _head(major: int, number: int) -> bytes:
    if number < 24:
        return bytes([major << 5 | number])
    more = next(more for more, size in _MORE.items() if number < 1 << (8 * size))
    return bytes([major << 5 | more]) + number.to_bytes(_MORE[more], "big")


def _item(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    if at >= len(data) or depth > DEEPEST:
        raise _broken()
    major, number = data[at] >> 5, data[at] & 31
    at += 1
    if number >= 24:
        size = _MORE.get(number, 0)
        if not size or at + size > len(data):
            raise _broken()
        number = int.from_bytes(data[at : at + size], "big")
        at += size
    if major in (0, 1):
        return (number if major == 0 else -1 - number), at
    if major in (2, 3):
        part = data[at : at + number]
        if len(part) < number:
            raise _broken()
        return (part if major == 2 else part.decode(errors="replace")), at + number
    if major not in (4, 5) or number > len(data):
        raise _broken()
    items = []
    for _ in range(number * (major - 3)):
        item, at = _item(data, at, depth + 1)
        items.append(item)
    if major == 4:
        return items, at
    if not all(isinstance(key, int | str | bytes) for key in items[::2]):
        raise _broken()
    return dict(zip(items[::2], items[1::2], strict=True)), at


def _broken() -> ToolError:
    return ToolError("these are not the counters of a model", "the CBOR that tinyml_watch_encode() writes")
