# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A compiled model as a package for other build systems: its C, and the sources of the runtime that it needs.

The tree is the same in all of them: NAME.c and NAME.h beside ``tinyml/`` (public headers) and ``runtime/``
(kernels with their own headers). Only what describes it differs.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tinyml.base.errors import ConfigError
from tinyml.base.naming import shape_text
from tinyml.base.templates import render
from tinyml.cores.targets import find_target

ARDUINO, ESP_IDF, CMSIS_PACK = "arduino", "esp-idf", "cmsis-pack"
DATE = (1980, 1, 1, 0, 0, 0)  # of files in an archive: the same input gives the same bytes
CORES = {
    "cortex-m0": "Cortex-M0",
    "cortex-m3": "Cortex-M3",
    "cortex-m4": "Cortex-M4",
    "cortex-m7": "Cortex-M7",
    "cortex-m33": "Cortex-M33",
    "cortex-m55": "Cortex-M55",
    "cortex-m85": "Cortex-M85",
}
"""Names of cores in a CMSIS-Pack."""


def sources_of(generated: Mapping[str, str], summary: Mapping[str, Any], runtime: Path) -> dict[str, bytes]:
    """The C of a model and what it needs of the runtime, by path."""
    if others := summary["sources"]["cmsis-nn"]:
        raise ConfigError(f"the model needs sources of CMSIS-NN: {', '.join(others)}", "--kernels portable")
    files = {name: text.encode() for name, text in generated.items() if name.endswith((".c", ".h"))}
    for header in sorted((runtime / "include" / "tinyml").rglob("*.h")):
        files[f"tinyml/{header.relative_to(runtime / 'include' / 'tinyml').as_posix()}"] = header.read_bytes()
    families = {Path(name).parts[0] for name in summary["sources"]["runtime"]}
    for header in sorted(runtime.rglob("*.h")):
        place = header.relative_to(runtime)
        if place.parts[0] in families | {"weighted"}:
            files[f"runtime/{place.as_posix()}"] = header.read_bytes()
    for name in sorted(set(summary["sources"]["runtime"])):
        files[f"runtime/{name}"] = (runtime / name).read_bytes()
    return files


def package(
    kind: str, sources: Mapping[str, bytes], summary: Mapping[str, Any], labels: Sequence[str]
) -> Any:
    """All files of a package, by path."""
    context = _context(summary, labels, [name for name in sources if name.endswith(".c")])
    if kind == ARDUINO:
        name = context["library"]
        return {
            **{f"src/{path}": content for path, content in sources.items()},
            "library.properties": render("projects", "arduino_library.j2", context).encode(),
            f"examples/{name}/{name}.ino": render("projects", "arduino_sketch.ino.j2", context).encode(),
        }
    if kind == ESP_IDF:
        return {
            **sources,
            "CMakeLists.txt": render("projects", "esp_idf_cmake.txt.j2", context).encode(),
            "idf_component.yml": render("projects", "esp_idf_component.yml.j2", context).encode(),
        }
    context["headers"] = [name for name in sources if name.endswith(".h")]
    return {
        **sources,
        f"tinyml.{context['name']}.pdsc": render("projects", "cmsis_pack.pdsc.j2", context).encode(),
    }


def archived(files: Mapping[str, bytes]) -> bytes:
    """A zip archive, with the same bytes for the same files."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(path, DATE), content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def _context(summary: Mapping[str, Any], labels: Sequence[str], sources: Sequence[str]) -> dict[str, Any]:
    target = find_target(summary["target"])
    elements = 1
    for extent in summary["outputs"][0]["shape"]:
        elements *= extent
    return {
        "name": summary["name"],
        "macro": summary["name"].upper(),
        "library": f"tinyml_{summary['name']}",
        "version": summary["version"],
        "target": target.name,
        "core": CORES.get(target.name, ""),
        "sources": list(sources),
        "elements": min(elements, 256),
        "labels": len(labels) == elements,
        "ram": f"{summary['arena_bytes'] + summary['state_bytes']:,}",
        "weights": f"{summary['weights_bytes']:,}",
        "inputs": ", ".join(f"{one['name']} {shape_text(one['shape'])}" for one in summary["inputs"]),
    }
