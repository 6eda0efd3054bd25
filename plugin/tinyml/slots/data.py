# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Images without code: a compiled model as data for the player."""

from __future__ import annotations

import struct
from dataclasses import replace

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import find_target
from tinyml.pipeline import Compiled, program_of
from tinyml.player.call_work import work_of
from tinyml.player.encode import checksum, encode
from tinyml.player.kernels import KERNELS
from tinyml.player.playable import Playable
from tinyml.slots import image
from tinyml.slots.data_test import ALIGNMENT as TEST_ALIGNMENT
from tinyml.slots.data_test import compared_step, test_bytes
from tinyml.slots.families import family_of
from tinyml.slots.image_layout import lay_out
from tinyml.slots.pack import facts_of
from tinyml.slots.version import Version


@dataclass(frozen=True)
class DataImage:
    """An image, and the kernels that a firmware needs to play it."""

    content: bytes
    kernels: tuple[Playable, ...]
    constants_bytes: int
    calls: int
    state_bytes: int


def data_image(compiled: Compiled, version: Version, key: image.Key | None = None) -> DataImage:
    """The image of a compiled model; it can lie at any address."""
    program = program_of(compiled)
    layout = lay_out(compiled)
    target = find_target(str(compiled.summary["target"]))
    facts = replace(facts_of(compiled, layout, version, family_of(target).core), interface=image.DATA)
    start = image.code_offset(facts)
    work = max(work_of(program.run), work_of(program.reset))
    encoded = encode(program, start, work, compared_step(compiled.graph))
    content = encoded.content + bytes(-(start + len(encoded.content)) % TEST_ALIGNMENT)
    test = start + len(content)
    content += test_bytes(compiled.graph, test)
    entries = image.Entries(start, start if program.reset else 0, test)
    payload = bytearray(image.payload(facts, entries, content))
    place = start - image.HEADER_BYTES
    struct.pack_into("<I", payload, place, checksum(bytes(payload), place))
    calls = list(program.calls())
    kernels = {KERNELS[call.function] for call in calls}
    return DataImage(
        image.seal(0, version, bytes(payload), key, flags=0),
        tuple(sorted(kernels, key=lambda kernel: kernel.number)),
        encoded.constants,
        len(calls),
        layout.state_bytes,
    )
