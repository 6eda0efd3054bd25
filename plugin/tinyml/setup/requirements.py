# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The Python packages that the compiler requires, for builds that run in another project's Python.

Standard library only: this module must load where those packages are missing.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

REQUIREMENTS = {
    "numpy": "numpy>=1.24",
    "onnx": "onnx>=1.15",
    "tflite": "tflite>=2.10",
    "flatbuffers": "flatbuffers>=23.5",
    "jinja2": "jinja2>=3.1",
    "yaml": "pyyaml>=6.0",
    "rich": "rich>=13.0",
}
"""Module -> the requirement that provides it; a test compares the table with pyproject.toml."""

QUANTIZE = {"onnxruntime": "onnxruntime>=1.17"}
"""What quantising requires in addition."""


def missing(needed: Mapping[str, str] = REQUIREMENTS) -> list[str]:
    """The requirements whose modules this Python cannot find."""
    return [wanted for module, wanted in needed.items() if importlib.util.find_spec(module) is None]
