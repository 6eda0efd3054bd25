# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The versions of every program that took part."""

from __future__ import annotations

import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

from tinyml import __version__
from tinyml.cores.toolchains import ARM
from tinyml.harness import tools

PACKAGES = (
    *("numpy", "onnx", "tflite", "flatbuffers", "jinja2", "pyyaml", "rich"),
    *("onnxruntime", "ai-edge-litert", "cyclonedx-python-lib"),
)


def tool_versions(build: Path, image: Path) -> dict[str, str]:
    """By name; programs that took no part, or that are not installed, are left out."""
    found = {"west-tinyml": __version__, "Python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    root = image.parent.parent
    found |= _of_cmake(root / "CMakeCache.txt")
    if (info := root / "build_info.yml").is_file():
        text = info.read_text(encoding="utf-8")
        for name, pattern in (
            ("Zephyr", r"^  zephyr:\n    version: '([^']+)'"),
            ("west", r"^west:\n(?:  .*\n)*?  version: '([^']+)'"),
        ):
            if match := re.search(pattern, text, re.MULTILINE):
                found[name] = match[1]
    found["compiler of the goldens"] = _first_line(tools.cross_compiler(ARM).path)
    found["emulator of the goldens"] = _first_line(tools.qemu(ARM))
    found["computer"] = f"{platform.system()} {platform.machine()}"
    return found


def _of_cmake(cache: Path) -> dict[str, str]:
    if not cache.is_file():
        return {}
    text = cache.read_text(encoding="utf-8")
    entries = dict(re.findall(r"^(\w+):\w+=(.*)$", text, re.MULTILINE))
    parts = [entries.get(f"CMAKE_CACHE_{part}_VERSION", "") for part in ("MAJOR", "MINOR", "PATCH")]
    found = {"CMake": ".".join(part for part in parts if part)}
    if compiler := entries.get("CMAKE_C_COMPILER"):
        found["compiler of the image"] = _first_line(Path(compiler))
    return found


def _first_line(program: Path) -> str:
    done = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0].strip() or "unknown"
