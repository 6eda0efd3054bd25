# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Imports point one way: from layer to layer downwards, and never in a circle inside a layer."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from tinyml.ir import Op
from tinyml.ops.framework.kernel import Kernel
from tinyml.passes import PASSES, Pass

PLUGIN = Path(__file__).resolve().parents[2] / "plugin"
PACKAGE = PLUGIN / "tinyml"

# From the ground up. Rooms in one layer do not know each other; a room may import itself. A dotted name is a
# part of a room that has a layer of its own.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("base",),
    ("cores", "ir"),
    ("setup",),
    ("ops",),
    ("features", "importers", "plugin"),
    ("settings",),
    ("datasets", "npu", "passes", "reference", "watch"),
    ("adapt", "quantize"),
    ("memory.float16", "memory.four_bits"),
    ("memory.select",),
    ("memory.other_forms",),
    ("memory.schedule",),
    ("memory.plan",),
    ("memory.bands",),
    ("memory.less_scratch",),
    ("memory.loops",),
    ("memory.float16_sums",),
    ("memory.placement",),
    ("emit",),
    ("player",),
    ("projects",),
    ("pipeline",),
    ("harness",),
    ("cost",),
    ("bounds",),
    ("bench", "compare", "report"),
    ("slots",),
    ("projects.platformio",),
    ("api",),
    ("verbs",),
    ("__main__",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
STAGES = {"importers", "npu", "passes", "memory", "emit"}
"""Only pipeline.py calls them."""

OPEN = {
    ("importers", "growing_states"),
    ("importers", "states"),
    ("importers", "inventory"),
    ("quantize", "report"),
}
"""What others may import from stages and from the quantiser: facts about models, and figures that come back.

Quantising is a tool before the compiler: model file in, model file out. So no stage uses it either.
"""


def room(module: tuple[str, ...]) -> str:
    """The entry of LAYERS that a module, or a member of one, belongs to; its first name if there is none."""
    for length in (2, 1):
        if ".".join(module[:length]) in RANK:
            return ".".join(module[:length])
    return module[0]


# The entry points through which others load us hold no logic, so they may not bypass the pipeline.
SHELLS = [path for path in (PLUGIN / "west_commands.py", PLUGIN / "platformio_hook.py") if path.exists()]


@cache  # several tests ask for those of each module
def names(source: str, module: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """The modules of ours that ``source`` imports, and their members, as paths below ``tinyml``."""
    return tuple(_names(source, module))


def _names(source: str, module: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
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
    """The rooms that ``source`` imports from."""
    return {room(name) for name in names(source, module)}


def wrong_arrows(source: str, module: tuple[str, ...]) -> list[str]:
    """What is wrong with the imports of one module, in words."""
    own, place = room(module), ".".join(module)
    found = []
    for name in sorted({name[:2] for name in names(source, module)}):
        target, inside = room(name), name[0] == module[0] and room(name) == own
        if target not in RANK:
            found.append(f"{place} imports {target}, which has no place in LAYERS")
        elif target != own and RANK[target] >= RANK[own]:
            found.append(f"{place} imports {target}, which is not below it")
        elif name[0] == "quantize" and own not in ("quantize", "pipeline") and name not in OPEN:
            found.append(f"{place} calls {'.'.join(name)}; only the pipeline does")
        elif name[0] in STAGES and RANK[own] > RANK["pipeline"] and name not in OPEN and not inside:
            found.append(f"{place} calls the stage {target}; only the pipeline does")
    return list(dict.fromkeys(found))


def modules() -> list[tuple[tuple[str, ...], Path]]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts != ("__init__",):
            found.append((parts, path))
    return found


@pytest.mark.parametrize("module,path", [pytest.param(*item, id=".".join(item[0])) for item in modules()])
def test_imports_point_down(module: tuple[str, ...], path: Path) -> None:
    assert room(module) in RANK or module[1:] == ("__init__",), f"{module[0]} has no place in LAYERS"
    assert wrong_arrows(path.read_text(), module) == []


def test_the_package_itself_imports_only_the_api_and_lazily() -> None:
    source = (PACKAGE / "__init__.py").read_text()
    assert imports(source, ("__init__",)) == {"api", "base"}
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
        ("import tinyml.ir", ("base", "c"), "base.c imports ir, which is not below it"),
        (
            "if 1:\n from tinyml.emit import x",
            ("verbs",),
            "verbs calls the stage emit; only the pipeline does",
        ),
        (
            "from tinyml.memory.bands.join import x",
            ("verbs", "a"),
            "verbs.a calls the stage memory.bands; only the pipeline does",
        ),
        (
            "from tinyml.quantize import report, engine",
            ("verbs", "a"),
            "verbs.a calls quantize.engine; only the pipeline does",
        ),
        (
            "from tinyml.quantize.cache import x",
            ("memory", "select"),
            "memory.select calls quantize.cache; only the pipeline does",
        ),
        ("from tinyml.oops import x", ("verbs",), "verbs imports oops, which has no place in LAYERS"),
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
    assert known <= {"framework", "shared", "quantization"}


def test_right_arrows_are_accepted() -> None:
    ours = ("import tinyml", "from tinyml.base import c", "from tinyml.ops.shared.quant import Clamp")
    source = "\n".join(("import numpy", *ours))
    assert wrong_arrows(source, ("ops", "conv")) == []


WITHOUT_PACKAGES = """
import contextlib, io, sys
sys.modules.update(dict.fromkeys(("numpy", "onnx", "tflite", "onnxruntime")))  # not installed
from tinyml.verbs.cli import main
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


def test_the_package_has_few_rooms() -> None:
    """What a newcomer sees first: one word for each thing that the compiler does, and no loose modules."""
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and path.parent.name != "__pycache__"]
    tops = {PACKAGE / path.relative_to(PACKAGE).parts[0] for path in files}
    entries = [path for path in tops if path.name not in ("py.typed", "module")]
    assert len(entries) <= 33, sorted(path.name for path in entries)
    loose = {path.stem for path in entries if path.suffix == ".py"}
    assert loose == {"__init__", "__main__", "pipeline", "plugin"}


EVERY_OPERATOR_HAS = {
    *("attributes", "depends_on_cpu", "evaluate", "folds", "infer", "kind", "label", "macs", "operands")
}
"""What an operator is, rather than what others ask of it."""


def test_names_of_files_say_whose_they_are() -> None:
    """A name that three rooms have says nothing."""
    names = Counter(path.name for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
    assert not [name for name, count in names.items() if count > 2]


def test_the_architecture_page_lists_the_hooks() -> None:
    page = (PLUGIN.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    listed = re.findall(r"`(Op|Kernel)\.(\w+)`", page)
    assert [name for owner, name in listed if not hasattr({"Op": Op, "Kernel": Kernel}[owner], name)] == []
    hooks = {name for name in vars(Op) if not name.startswith("_")} - EVERY_OPERATOR_HAS
    assert hooks == {name for owner, name in listed if owner == "Op"} - EVERY_OPERATOR_HAS


def test_dataclasses_are_made_when_they_are_used() -> None:
    """The standard decorator takes a fifth of the time of a command; see ``base/lazy_dataclass.py``."""
    standard = re.compile(r"^\s*from dataclasses import .*\bdataclass\b", re.MULTILINE)
    found = [path for path in PACKAGE.rglob("*.py") if standard.search(path.read_text())]
    assert found == [PACKAGE / "base" / "lazy_dataclass.py"]
