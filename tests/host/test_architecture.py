# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Imports point one way: from layer to layer downwards, and never in a circle inside a layer."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tinyml.passes import PASSES, Pass

PLUGIN = Path(__file__).resolve().parents[2] / "plugin"
PACKAGE = PLUGIN / "tinyml"

# From the ground up. Modules in one layer do not know each other; a package may import itself.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("c_keywords", "errors", "hooks"),
    (
        "accelerators",
        "c",
        "code_sizes",
        "compiler_sources",
        "fixed_point",
        "goals",
        "installation",
        "ir",
        "limits",
        "lock",
        "progress",
        "quantizing",
        "registration",
        "requirements",
        "whole_files",
        "zephyr_descriptor",
    ),
    ("maths", "rules", "targets", "templates", "toolchains", "workspace"),
    (
        "arrays",
        "doctor",
        "interpret",
        "kernel",
        "machines",
        "naming",
        "pinned",
        "reading",
        "states",
        "verify",
        "text",
        "writing",
    ),
    ("boards", "text_parser"),
    ("ops", "reference"),
    ("features", "outside", "plugin"),
    ("importers",),
    ("inventory", "npu"),
    ("passes",),
    ("quantize",),
    ("select",),
    ("schedule",),
    ("plan",),
    ("bands",),
    ("leaner",),
    ("placing",),
    ("emit",),
    ("app",),
    ("package",),
    ("pipeline",),
    ("harness",),
    ("cost",),
    ("bench", "report", "compare"),
    ("accuracy",),
    ("slots",),
    ("platformio",),
    ("api",),
    ("verbs",),
    ("cli",),
    ("__main__",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
STAGES = {
    "importers",
    "npu",
    "passes",
    "schedule",
    "select",
    "plan",
    "bands",
    "leaner",
    "placing",
    "emit",
    "package",
}
"""Only pipeline.py calls them."""

QUANTIZE_OPEN = {("quantize", "request"), ("quantize", "report")}
"""What others may import from quantize: the settings a user gives, and the figures that come back.

Quantising is a tool before the compiler: model file in, model file out. So no stage uses it either.
"""

# The entry points through which others load us hold no logic, so they may not bypass the pipeline.
SHELLS = [path for path in (PLUGIN / "west_commands.py", PLUGIN / "platformio_hook.py") if path.exists()]


def names(source: str, module: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The modules of ours that ``source`` imports, and their members, as paths below ``tinyml``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{'.'.join(module)}: write imports in full, from tinyml"
            targets = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in targets:
            parts = target.split(".")
            if parts[0] == "tinyml" and len(parts) > 1 and not parts[1].startswith("__version"):
                yield tuple(parts[1:])


def imports(source: str, module: tuple[str, ...]) -> set[str]:
    """The modules of ours that ``source`` imports, by their first name."""
    return {name[0] for name in names(source, module)}


def wrong_arrows(source: str, module: tuple[str, ...]) -> list[str]:
    """What is wrong with the imports of one module, in words."""
    own = module[0]
    found = []
    if own not in ("quantize", "pipeline"):
        inside = {name[:2] for name in names(source, module) if name[0] == "quantize"} - QUANTIZE_OPEN
        found += [
            f"{'.'.join(module)} calls {'.'.join(name)}; only the pipeline does" for name in sorted(inside)
        ]
    for target in sorted(imports(source, module)):
        if target not in RANK:
            found.append(f"{'.'.join(module)} imports {target}, which has no place in LAYERS")
        elif target != own and RANK[target] >= RANK[own]:
            found.append(f"{'.'.join(module)} imports {target}, which is not below it")
        elif target in STAGES and RANK[own] > RANK["pipeline"]:
            found.append(f"{'.'.join(module)} calls the stage {target}; only the pipeline does")
    return found


def modules() -> list[tuple[tuple[str, ...], Path]]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts != ("__init__",):
            found.append((parts, path))
    return found


@pytest.mark.parametrize("module,path", [pytest.param(*item, id=".".join(item[0])) for item in modules()])
def test_imports_point_down(module: tuple[str, ...], path: Path) -> None:
    assert module[0] in RANK, f"{module[0]} has no place in LAYERS: give it one"
    assert wrong_arrows(path.read_text(), module) == []


def test_the_package_itself_imports_only_the_api_and_lazily() -> None:
    source = (PACKAGE / "__init__.py").read_text()
    assert imports(source, ("__init__",)) == {"api", "errors"}
    tree = ast.parse(source)
    at_once = ast.unparse(ast.Module([node for node in tree.body if not isinstance(node, ast.If)], []))
    assert imports(at_once, ("__init__",)) == set()


def arrows() -> dict[str, set[str]]:
    """The modules that each module imports, wherever in its text."""
    files = {tuple(part for part in parts if part != "__init__"): path for parts, path in modules()}
    found: dict[str, set[str]] = {}
    for module, path in files.items():
        targets = (name if name in files else name[:-1] for name in names(path.read_text(), module))
        found[".".join(module)] = {".".join(target) for target in targets if target in files}
    return found


def circles(arrows: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The arrows that remain after removing modules that import none or that none imports."""
    left = {module: set(targets) for module, targets in arrows.items()}
    while True:
        imported = set().union(*left.values())
        kept = {module for module, targets in left.items() if targets and module in imported}
        if kept == left.keys():
            return left
        left = {module: left[module] & kept for module in kept}


def test_no_module_imports_itself_through_others() -> None:
    assert circles(arrows()) == {}


def test_circles_are_found() -> None:
    straight = {"top": {"a", "ground"}, "ground": set[str]()}
    assert circles({**straight, "a": {"b", "ground"}, "b": {"c"}, "c": {"a"}}) == {
        "a": {"b"},
        "b": {"c"},
        "c": {"a"},
    }
    assert circles({**straight, "a": {"b", "ground"}, "b": {"c"}, "c": set()}) == {}


@pytest.mark.parametrize("path", SHELLS, ids=lambda path: path.name)
def test_shells_call_no_stage(path: Path) -> None:
    assert (STAGES | {"quantize"}).isdisjoint(imports(path.read_text(), (path.stem,)))


@pytest.mark.parametrize(
    "source,module,complaint",
    [
        ("from tinyml import pipeline", ("ops", "conv"), "ops.conv imports pipeline, which is not below it"),
        ("import tinyml.ir", ("c",), "c imports ir, which is not below it"),
        ("if 1:\n from tinyml.emit import x", ("cli",), "cli calls the stage emit; only the pipeline does"),
        (
            "from tinyml.bands.join import x",
            ("verbs", "a"),
            "verbs.a calls the stage bands; only the pipeline does",
        ),
        (
            "from tinyml.package import x",
            ("verbs", "a"),
            "verbs.a calls the stage package; only the pipeline does",
        ),
        (
            "from tinyml.quantize import request, engine",
            ("verbs", "a"),
            "verbs.a calls quantize.engine; only the pipeline does",
        ),
        (
            "from tinyml.quantize.cache import x",
            ("select",),
            "select calls quantize.cache; only the pipeline does",
        ),
        ("from tinyml.oops import x", ("cli",), "cli imports oops, which has no place in LAYERS"),
    ],
)
def test_wrong_arrows_are_found(source: str, module: tuple[str, ...], complaint: str) -> None:
    assert wrong_arrows(source, module) == [complaint]


WITHOUT_OPERATORS = (STAGES | {"quantize", "pipeline"}) - {"importers", "passes", "npu"}
"""Importers build operators, passes rewrite them, npu writes them as TFLite. Other stages know only hooks."""


@pytest.mark.parametrize(
    "module,path",
    [pytest.param(*item, id=".".join(item[0])) for item in modules() if item[0][0] in WITHOUT_OPERATORS],
)
def test_stages_name_no_operator(module: tuple[str, ...], path: Path) -> None:
    known = {name[1] for name in names(path.read_text(), module) if name[0] == "ops" and len(name) > 1}
    assert known <= {"shared", "quantization"}


def test_right_arrows_are_accepted() -> None:
    source = "import numpy\nfrom tinyml import __version__, c\nfrom tinyml.ops.shared.quant import Clamp"
    assert wrong_arrows(source, ("ops", "conv")) == []


WITHOUT_PACKAGES = """
import contextlib, io, sys
sys.modules.update(dict.fromkeys(("numpy", "onnx", "tflite", "onnxruntime")))  # not installed
from tinyml.cli import main
from tinyml.verbs import VERBS
for verb in VERBS:
    with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.suppress(SystemExit):
        main([verb.name, "--help"])
    assert "usage: tinyml " + verb.name in text.getvalue(), verb.name
"""


def test_help_works_before_packages_are_installed() -> None:
    """`tinyml doctor` shows what is missing, so parsing its command line must not require it."""
    environment = {**os.environ, "PYTHONPATH": str(PLUGIN), "COLUMNS": "100"}
    subprocess.run([sys.executable, "-c", WITHOUT_PACKAGES], check=True, env=environment)


@pytest.mark.parametrize("step", dict.fromkeys(PASSES), ids=lambda step: step.__name__)
def test_a_pass_is_in_the_file_of_its_name(step: Pass) -> None:
    assert step.__module__ == f"tinyml.passes.{step.__name__}"
