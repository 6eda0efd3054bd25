# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""docs/external_module.rst, our page for Zephyr's list of external modules agrees with both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tinyml.pipeline import Options, compile_model
from tinyml.verbs import VERBS
from tools import workspace, zephyr_docs

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "external_module.rst").read_text()
README = (ROOT / "README.md").read_text()
TEMPLATE = Path("zephyr", "doc", "develop", "manifest", "external", "external.rst.tmpl")
SECTIONS = ["Introduction", "Usage with Zephyr", "Reference"]
"""Those of the template in Zephyr 4.3.1."""


def titles(text: str, line: str) -> list[str]:
    """The titles that are underlined with this character; the line must be long enough."""
    found = re.findall(rf"(?m)^(\S.*)\n(\{line}{{3,}})$", text)
    assert all(len(under) >= len(title) for title, under in found)
    return [title for title, _ in found]


def blocks(language: str) -> list[str]:
    """The code blocks in a language, without their indentation."""
    found = re.findall(rf"\.\. code-block:: {language}\n\n((?:   .*\n|\n)+)", PAGE)
    return [re.sub(r"(?m)^   ", "", block).strip() for block in found]


def commands(text: str) -> list[str]:
    """Command lines without comments, and with MODEL for the file of a model."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [re.sub(r"\S+\.onnx", "MODEL", line) for line in lines if line]


def test_it_has_the_form_of_the_template() -> None:
    assert PAGE.startswith(".. _external_module_west_tinyml:\n\n")
    assert titles(PAGE, "#") == ["west-tinyml"]
    assert titles(PAGE, "*") == SECTIONS
    assert ".. target-notes::" in PAGE
    targets = set(re.findall(r"(?m)^\.\. _([\w-]+):\n   https://", PAGE))
    assert targets == set(re.findall(r"`([\w-]+)`_\W", PAGE)), "every link has its address"


def test_the_template_is_still_the_one_of_zephyr() -> None:
    template = workspace.location() / TEMPLATE
    if not template.is_file():
        pytest.skip("no Zephyr in the workspace")
    text = template.read_text()
    assert titles(text, "*") == SECTIONS
    assert text.startswith(".. _external_module_<name>:\n")


def test_what_it_names_exists() -> None:
    files = re.findall(r":file:`([^`]+)`", PAGE)
    ours = [name for name in files if name.startswith("docs/")]
    assert len(ours) >= 4
    assert [name for name in ours if not (ROOT / name).is_file()] == []
    symbols = {f"CONFIG_{each.name}" for each in zephyr_docs.symbols(zephyr_docs.KCONFIG.read_text())}
    assert set(re.findall(r":kconfig:option:`(\w+)`", PAGE)) <= symbols
    verbs = set(re.findall(r"west tinyml ([\w-]+)", PAGE))
    assert verbs >= {"add", "test", "verify", "remove"}
    assert verbs <= {verb.name for verb in VERBS}
    assert "tinyml,arena" in PAGE
    assert '"tinyml,arena"' in (ROOT / "zephyr_module" / "cmake" / "memory.cmake").read_text()


def test_its_commands_are_those_of_the_readme() -> None:
    named = [line for block in blocks("console") for line in commands(block)]
    assert named == ["west update", "pip install modules/lib/west-tinyml", "west tinyml add MODEL"]
    assert set(named) <= set(commands(README))
    (manifest,) = (yaml.safe_load(block)["manifest"]["projects"] for block in blocks("yaml"))
    ours = re.search(r"(?s)```yaml\n(manifest:.*?)```", README)
    assert ours is not None
    assert manifest == yaml.safe_load(ours[1])["manifest"]["projects"][:1]


def test_its_code_uses_what_a_header_has() -> None:
    (code,) = blocks("c")
    compiled = compile_model(ROOT / "samples" / "digits" / "model.onnx", Options(name="kws"))
    header = compiled.files["kws.h"]
    names = set(re.findall(r"\b(?:kws_|KWS_)\w+", code))
    assert {"kws_input", "kws_run", "kws_output", "KWS_INPUT_TYPE"} <= names
    assert [name for name in names if not re.search(rf"\b{name}\b", header)] == []


def test_its_versions_of_zephyr_are_those_that_passed() -> None:
    (words,) = re.findall(r"(?m)^Zephyr (.*?) have been tested", PAGE)
    table = (ROOT / "docs" / "ZEPHYR_VERSIONS.md").read_text()
    results = re.findall(r"(?m)^\| v(\d+\.\d+)\.\d+ \| .* \| (.*) \|$", table)
    passed = {version for version, result in results if result == "passed"}
    assert {result for _, result in results} == {"passed"}
    assert set(re.findall(r"\d+\.\d+", words)) == passed
