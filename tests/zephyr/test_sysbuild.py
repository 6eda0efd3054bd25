# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""sysbuild: our variables reach the image, and it runs."""

from __future__ import annotations

import json
from pathlib import Path

from tests.depth import is_deep
from tests.zephyr.building import Build, copy_of_digits, run

MANIFEST = """\
models:
  - name: digits
    file: model.onnx
    budget: {ram: 20K}
"""


def test_variables_reach_the_image(tmp_path: Path) -> None:
    """CMake decides this. `make test-deep` builds and runs the image, too."""
    app = copy_of_digits(tmp_path / "app")
    (app / "tinyml.yaml").unlink()
    (app / "other.yaml").write_text(MANIFEST)
    words: list[str | Path] = [
        "west",
        "build",
        "--sysbuild",
        *([] if is_deep() else ["--cmake-only"]),
        "-b",
        "qemu_cortex_m3",
        "-d",
        tmp_path / "build",
    ]
    run([*words, app, "--", "-DTINYML_MANIFEST=other.yaml", "-DTINYML_TARGET=cortex-m0"], app)
    image = Build(app, tmp_path / "build" / "app")
    assert json.loads(image.generated("digits.json"))["target"] == "cortex-m0"
    told = run(["ninja", "-C", image.folder, "-t", "commands", "tinyml/digits/digits.c"], app)
    assert "--limit=ram=20480,the budget of model digits" in told
    if is_deep():
        assert "PASS: 0 of 40 outputs differ" in image.in_qemu(until="right")
