# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Test the compiler on any operating system: tests that run no C compiler, and the bytes that it generates.

``python -m tools.portable [arguments for pytest]``
"""

from __future__ import annotations

import subprocess
import sys

from tools.environment import ROOT

FILES = (
    "app",
    "architecture",
    "arrays",
    "band_layout",
    "budget",
    "c_numbers",
    "constant_channels",
    "cost",
    "cycles",
    "every_pass",
    "features_commands",
    "folded_floats",
    "hooks",
    "interface",
    "inventory",
    "layout",
    "linear",
    "naming",
    "overlay",
    "pass_texts",
    "plan",
    "quantize_activations",
    "quantize_data",
)
"""Of ``tests/host``: those that pass where every C compiler fails."""


def main() -> int:
    tests = [f"tests/host/test_{name}.py" for name in FILES]
    commands = {
        "generated C": ["tests/golden/regenerate.py", "--check"],
        "pytest": ["-m", "pytest", "-q", "-n", "auto", *tests, *sys.argv[1:]],
    }
    failed = [
        name
        for name, words in commands.items()
        if subprocess.run([sys.executable, *words], cwd=ROOT, check=False).returncode
    ]
    print(f"failed: {', '.join(failed)}" if failed else "all checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
