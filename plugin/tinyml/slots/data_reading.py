# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""An image without code, read back: what it needs, its inputs and outputs, and its calls."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import DType
from tinyml.ops.framework.program import Memory
from tinyml.player.encode import HEADER, LOOPS_FORMAT, POSITION_BITS, checksum
from tinyml.player.kernels import BY_NUMBER, LOOP
from tinyml.player.playable import LAYOUTS, Playable
from tinyml.slots import image
from tinyml.slots.version import Version

TYPES = tuple(DType)
NEWER = "pack the model again with this version, or use the newer one"


@dataclass(frozen=True)
class ReadCall:
    """A call: kernel, layer, the members of its record, its operands; how often it is repeated."""

    kernel: Playable
    layer: int
    record: dict[str, int | float]
    operands: tuple[tuple[Memory, int], ...]
    steps: tuple[int, ...]  # what a turn of a repetition adds to each
    turns: int
    level: int  # loops around the call
    ways: tuple[tuple[int, ...], ...]  # the same as `steps` for each of these loops


@dataclass(frozen=True)
class ReadPort:
    name: str
    shape: tuple[int, ...]
    dtype: DType
    bytes: int
    scale: float
    zero_point: int
    memory: Memory
    position: int


@dataclass(frozen=True)
class DataModel:
    """What an image says about its model."""

    name: str
    version: Version
    core: int
    sha256: str
    arena_bytes: int
    state_bytes: int
    inputs: tuple[ReadPort, ...]
    outputs: tuple[ReadPort, ...]
    run: tuple[ReadCall, ...]
    reset: tuple[ReadCall, ...]
    work: int
    layouts: int  # what kernels expected in records and tables when it was made
    bytes: int
    signed: bool

    @property
    def kernels(self) -> tuple[Playable, ...]:
        found = {call.kernel for call in (*self.run, *self.reset)}
        return tuple(sorted(found, key=lambda kernel: kernel.number))


def check_layouts(model: DataModel) -> None:
    """Kernels of this version read the records and tables of a pack."""
    changed = [kernel.name for kernel in model.kernels if kernel.layouts > model.layouts]
    if changed:
        raise ConfigError(
            f"an older tinyml made the pack: since then {', '.join(changed)} expects other tables",
            "pack the model again",
        )


def is_data(content: bytes) -> bool:
    """Whether an image is one without code."""
    return len(content) > image.HEADER_BYTES + 8 and image.interface_of(content) == image.DATA


def read_data(content: bytes) -> DataModel:
    """Read an image; one that is damaged is a ConfigError."""
    wrong = ConfigError("this is not a model as data, or it is damaged", "pack the model again")
    facts = image.read(content)
    if not is_data(content):
        raise wrong
    try:
        return _read(content, facts)
    except (struct.error, KeyError, IndexError, ValueError):
        raise wrong from None


def _read(content: bytes, facts: image.Read) -> DataModel:
    fields = image.descriptor_of(content)
    total, form, layouts, _, work, run, run_words, reset, reset_words = HEADER.unpack_from(
        content, fields.run
    )
    (size,) = struct.unpack_from("<I", content, 12)
    payload = content[image.HEADER_BYTES : image.HEADER_BYTES + size]
    if checksum(payload, fields.run - image.HEADER_BYTES) != total:
        raise ValueError
    if form > LOOPS_FORMAT or layouts > LAYOUTS:
        raise ConfigError(
            f"the pack has format {form} and layouts {layouts}; this version of tinyml knows formats up to "
            f"{LOOPS_FORMAT} and layouts up to {LAYOUTS}: a newer one made it",
            NEWER,
        )
    ports = [_port(content, fields.tensors + i * image.TENSOR_BYTES) for i in range(sum(fields.counts))]
    return DataModel(
        name=facts.name,
        version=facts.version,
        core=facts.core,
        sha256=fields.sha256.hex(),
        arena_bytes=facts.arena_bytes,
        state_bytes=facts.state_bytes,
        inputs=tuple(ports[: fields.counts[0]]),
        outputs=tuple(ports[fields.counts[0] :]),
        run=tuple(_calls(content, _words(content, run, run_words))),
        reset=tuple(_calls(content, _words(content, reset, reset_words))),
        work=work,
        layouts=layouts,
        bytes=len(content),
        signed=facts.signed,
    )


def _kernel(number: int) -> Playable:
    if number not in BY_NUMBER:
        raise ConfigError(
            f"this tinyml does not have kernel {number}, which the pack calls: a newer one made it",
            NEWER,
        )
    return BY_NUMBER[number]


def _words(content: bytes, position: int, count: int) -> Sequence[int]:
    return struct.unpack_from(f"<{count}I", content, position)


def _text(content: bytes, position: int) -> str:
    return content[position : content.index(b"\0", position)].decode()


def _port(content: bytes, position: int) -> ReadPort:
    name, shape, offset, size, scale, zero, kind, rank, in_state = image.tensor_at(content, position)
    return ReadPort(
        _text(content, name),
        struct.unpack_from(f"<{rank}i", content, shape),
        TYPES[kind],
        size,
        scale,
        zero,
        Memory.STATE if in_state else Memory.ARENA,
        offset,
    )


def _calls(content: bytes, words: Sequence[int], turns: int = 1, level: int = 0) -> Iterator[ReadCall]:
    at = 0
    while at < len(words):
        head, second = words[at], words[at + 1]
        number, count, stepped = head & 0x3FF, head >> 10 & 7, bool(head & 0x2000)
        if number == LOOP and count == 0:
            yield from _calls(content, words[at + 2 : at + 2 + second], head >> 16, level)
            at += 2 + second
            continue
        kernel = _kernel(number)
        operands = words[at + 2 : at + 2 + count]
        after = at + 2 + count * (1 + (1 + level) * stepped)
        steps = words[at + 2 + count : after] if stepped else (0,) * count * (1 + level)
        record = kernel.record.decode(content, second)
        yield ReadCall(
            kernel,
            head >> 16,
            record,
            tuple((Memory(o >> POSITION_BITS), o & ((1 << POSITION_BITS) - 1)) for o in operands),
            tuple(steps[:count]),
            turns,
            level,
            tuple(tuple(steps[i : i + count]) for i in range(count, len(steps), count)),
        )
        at = after
        if number == LOOP:
            at += int(record[".words"])
            yield from _calls(content, words[after:at], 1, level + 1)
