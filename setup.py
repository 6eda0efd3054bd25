# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Adds to the wheel what stands outside the Python package: the Zephyr module, the boards, the two hooks.

Everything else is in pyproject.toml. An editable install needs none of this: it has the clone.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent / "plugin"))

from tinyml.setup import zephyr_descriptor  # which requires nothing but the standard library

ROOT = Path(__file__).parent

FOLDERS = ("zephyr", "zephyr_module", "boards")
EXAMPLES = (
    Path("samples/digits/model.onnx"),  # of `tinyml demo`
    Path("samples/digits/model_float.onnx"),  # of `tinyml notebook`, and the notebook
    Path("docs/notebooks/quickstart.ipynb"),
)
HOOKS = ("west_commands.py", "platformio_hook.py")


class BuildWithModule(build_py):
    """Copies the folders to `tinyml/module`, where `tinyml zephyr-module` finds them.

    pip has installed the Python packages already, so the module suits every version of Zephyr.
    """

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        module = Path(self.build_lib) / "tinyml" / "module"
        for name in FOLDERS:
            shutil.copytree(ROOT / name, module / name, dirs_exist_ok=True)
        descriptor = module / zephyr_descriptor.FILE
        text = descriptor.read_text(encoding="utf-8")
        descriptor.write_text(zephyr_descriptor.without_packages(text), encoding="utf-8")
        for path in EXAMPLES:
            (module / path.parent).mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, module / path)
        for name in HOOKS:
            shutil.copy(ROOT / "plugin" / name, module / name)


setup(cmdclass={"build_py": BuildWithModule})
