# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a Zephyr maintainer looks for in a module's samples and in the files that its tools write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.host.test_external_module import titles
from tinyml.pipeline import Options, compile_model

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted(path.parent for path in (ROOT / "samples").glob("*/sample.yaml"))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_sample_is_described_as_those_of_zephyr(sample: Path) -> None:
    """The directive, name and one sentence, then the sections in Zephyr's order; and what Twister lists."""
    text = (sample / "README.rst").read_text()
    form = r"\.\. zephyr:code-sample:: (tinyml-[\w-]+)\n   :name: .+\n(?:   :relevant-api: .+\n)?\n   [^\n]+"
    found = re.match(form, text)
    assert found is not None
    assert found[1] == f"tinyml-{sample.name.replace('_', '-')}"
    assert titles(text, "*")[:3] == ["Overview", "Requirements", "Building and Running"]
    assert ".. code-block:: console" in text
    listed = yaml.safe_load((sample / "sample.yaml").read_text())
    assert listed["sample"]["name"]
    assert all(name.startswith("sample.tinyml") for name in listed["tests"])


def test_there_is_a_readme_for_every_sample() -> None:
    assert len(SAMPLES) >= 9
    assert {path.parent for path in (ROOT / "samples").glob("*/CMakeLists.txt")} == set(SAMPLES)


def test_generated_c_states_its_licence() -> None:
    files = compile_model(ROOT / "samples" / "digits" / "model.onnx", Options(name="digits")).files
    written = {name: text for name, text in files.items() if name.endswith((".c", ".h"))}
    assert len(written) == 3
    assert [name for name, text in written.items() if "SPDX-License-Identifier: " not in text[:200]] == []


def test_the_assertion_of_the_readme_is_one_that_the_build_can_check() -> None:
    """Its macros are in the header; samples use the same idiom."""
    readme = (ROOT / "README.md").read_text()
    (line,) = re.findall(r"(?m)^BUILD_ASSERT\(.*$", readme)
    model = ROOT / "samples" / "digits" / "model.onnx"
    header = compile_model(model, Options(name="model")).files["model.h"]
    macros = re.findall(r"\bMODEL_\w+", line)
    assert macros
    assert [name for name in macros if f"#define {name} " not in header] == []
    sources = (ROOT / "samples").glob("*/src/main.c")
    asserting = {path.parent.parent.name for path in sources if "BUILD_ASSERT(" in path.read_text()}
    assert {"digits", "gesture", "person", "two_models"} <= asserting
