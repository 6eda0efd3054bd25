# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Writes the images that the test sends to the slots of a build: ``make_images.py BUILD HEADER``.

Versions 1 to 3 of a model with state, version 4, which fails its self-test, and version 5, for another core.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from tinyml.ir.interpreter import interpret
from tinyml.pipeline import Options
from tinyml.slots import image
from tinyml.slots.golden import golden_inputs
from tinyml.slots.pack import Packed, Slot, pack_model
from tinyml.slots.places import slots_of_build, target_of_build
from tinyml.slots.version import Version

MODEL = Path(__file__).parents[1] / "userspace" / "stream.tflite"


def failing(packed: Packed, content: bytes) -> bytes:
    """An image that expects something else of itself than it computes."""
    graph = packed.compiled.graph
    (answer,) = interpret(graph, [golden_inputs(graph)])
    expected = b"".join(answer[name].tobytes() for name in graph.outputs)
    address, payload_bytes = (struct.unpack_from("<I", content, at)[0] for at in (4, 12))
    payload = content[32 : 32 + payload_bytes]
    assert payload.count(expected) == 1
    changed = payload.replace(expected, bytes(byte ^ 0x40 for byte in expected))
    return image.seal(address, packed.facts.version, changed)


def images(slots: tuple[Slot, ...], target: str) -> dict[str, list[bytes]]:
    def made(version: int, target: str = target) -> Packed:
        return pack_model(MODEL, Options(name="stream", target=target), slots, Version(version))

    bad = made(4)
    found = {f"V{version}": list(made(version).pack.images.values()) for version in (1, 2, 3)}
    found["BAD"] = [failing(bad, content) for content in bad.pack.images.values()]
    found["OTHER_CORE"] = list(made(5, "cortex-m55").pack.images.values())
    return found


def header(found: dict[str, list[bytes]]) -> str:
    rows = []
    for pack, contents in found.items():
        parts = (f"{{(const uint8_t[]){{{','.join(map(str, each))}}}, {len(each)}}}" for each in contents)
        rows.append(f"\t[{pack}] = {{{', '.join(parts)}}},\n")
    names = ", ".join(found)
    table = "static const struct arriving images[][2] = {\n"
    return f"#ifdef DEFINE_IMAGES\n{table}{''.join(rows)}}};\n#else\nenum pack {{ {names} }};\n#endif\n"


def main(build: Path, out: Path) -> None:
    target = target_of_build(build)
    slots = slots_of_build(build, ("model_a", "model_b"))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(header(images(slots, "cortex-m3" if target == "host" else target)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
