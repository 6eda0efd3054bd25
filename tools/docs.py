# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation site: ``python -m tools.docs [FOLDER]`` (default: build/docs/html).

``--links`` asks every external address that the pages name instead, which requires a network.

The pages of docs/ are copied, and references made from the code are added: commands from the parser, the
Python API from docstrings, the C API from the headers, JSON files from their classes, error messages from
where they are raised. With clang and wasi-libc, samples to try in the browser are part of the site.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Literal, get_args, get_origin

import tinyml
from tinyml.api import choices, data, sources
from tinyml.api.choices import CompileSettings
from tinyml.settings import table
from tinyml.settings.schema import schema
from tinyml.settings.setting import PYTHON
from tinyml.verbs import VERBS
from tinyml.verbs.base import build_parser
from tinyml.verbs.settings import OF_THE_MODEL
from tools import (
    benchmark_bars,
    docs_c_api,
    docs_errors,
    docs_json,
    docs_llms,
    docs_notebook,
    docs_reports,
    docs_web,
    landing_figures,
)

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = "tinyml.schema.json"
"""Beside the first page: editors read it from there."""

NARROW = {
    "landing_narrow.svg": landing_figures.landing_narrow,
    "bars_narrow.svg": landing_figures.bars_narrow,
}
"""Pictures of the first page for phones, beside the style sheet that names them."""

BARS = """![Instructions, flash and RAM on a Cortex-M4, beside TensorFlow Lite Micro](figures/bars.svg)

The same models, the same outputs bit for bit. [](BENCHMARKS.md) has all figures, and how they are counted.
"""
"""On the first page, in place of a comment: the figures change with the record of the benchmarks."""

ALIASES = {"ModelLike": sources, "DataLike": data}
"""Names in signatures that stand for many types, and the modules that describe them."""

PACKAGES = {"sphinx": "sphinx", "myst_parser": "myst-parser", "furo": "furo"}


SETTINGS = """\
Commands that take a model have these options; the usage of a command lists those that it has.
[](../settings.md) has the same settings for `tinyml.yaml`, CMake, `platformio.ini` and Python.
"""


def commands() -> str:
    """Every verb with its help; the settings of a model, which many verbs have, once."""
    parser = build_parser(VERBS, "tinyml", tinyml.__version__)
    lines = ["# Commands", "", "`west tinyml` has the same commands as `tinyml`.", ""]
    lines += ["| command | what it does |", "|---|---|"]
    lines += [f"| [`{verb.name}`](#{verb.name}) | {verb.help} |" for verb in VERBS]
    own = next(action.choices for action in parser._actions if isinstance(action.choices, dict))
    sections: dict[str, list[str]] = {
        verb.name: own[verb.name].format_help().rstrip().split("\n\n") for verb in VERBS
    }
    settings = next(part for part in sections["compile"] if part.startswith(OF_THE_MODEL))
    lines += ["", "## Settings of the model", "", SETTINGS, "", "```text"]
    lines += [*settings.splitlines()[1:], "```", ""]
    for name, parts in sections.items():
        kept = [f"{OF_THE_MODEL}: above" if part.startswith(OF_THE_MODEL) else part for part in parts]
        lines += [f"## {name}", "", "```text", "\n\n".join(kept), "```", ""]
    return "\n".join(lines)


def _functions_first(name: str) -> tuple[int, str]:
    """What one calls, then what comes back, then what can go wrong."""
    found = getattr(tinyml, name)
    rank = 0 if not isinstance(found, type) else 2 if issubclass(found, Exception) else 1
    return rank, name


def python_api() -> str:
    """The public names of the package."""
    lines = ["# Python API", "", "[](../python.md) introduces it.", ""]
    lines += [f"`{name}`: {_described(name, module)}\n" for name, module in ALIASES.items()]
    lines += ["The other names of types stand for words:", ""]
    for name, kind in vars(choices).items():
        if get_origin(kind) is Literal:
            words = ", ".join(f"`{word}`" for word in get_args(kind))
            short = name.removesuffix("Name")  # a name that also stands for texts
            lines.append(f"- `{short if short in vars(choices) else name}`: {words}")
    lines.append("")
    lines += ["```{eval-rst}"]
    for name in sorted(set(tinyml.__all__) - {"__version__"}, key=_functions_first):
        kind = "autoclass" if isinstance(getattr(tinyml, name), type) else "autofunction"
        lines += [f".. {kind}:: tinyml.{name}", "   :members:" if kind == "autoclass" else ""]
        lines += ["", *_fields(getattr(tinyml, name))]
        lines += ["", *_settings(), ""] if name == "compile" else [""]
    return "\n".join([*lines, "```", ""])


def _fields(found: object) -> list[str]:
    """The fields of a dataclass with their comments, of which Sphinx knows nothing."""
    if not isinstance(found, type) or not is_dataclass(found):
        return []
    notes = docs_json.comments(found)
    names = [field.name for field in fields(found) if notes.get(field.name) and field.repr]
    return [*(f"   - ``{name}``: {notes[name].replace('`', '``')}" for name in names), ""]


def _described(name: str, module: ModuleType) -> str:
    """The text below an alias, for a page in Markdown."""
    found = re.search(rf'^{name}: [^\n]*\n"""(.*?)"""', inspect.getsource(module), re.M | re.S)
    assert found, f"{name} has no description"
    return " ".join(found[1].replace("``", "`").split())


def _settings() -> list[str]:
    """What ``compile`` takes as ``settings``, one by one, from the table."""
    known = {
        key: one for key, one in table.settings(PYTHON).items() if key in CompileSettings.__annotations__
    }
    lines = ["   The settings:", ""]
    for key, setting in known.items():
        about = re.sub(r"\[([^]]+)\]\(([^)]+)\.md\)", r"docs/\2.md", setting.about)
        kind = CompileSettings.__annotations__[key].__forward_arg__
        lines.append(f"   - **{key}** (*{kind}*): {about.replace('`', '``')}")
    return lines


REFERENCES = {
    "commands": commands,
    "python_api": python_api,
    "c_api": docs_c_api.page,
    "json": docs_json.page,
    "errors": docs_errors.page,
    "notebook": docs_notebook.page,
}
"""Pages made from the code."""


def build(out: Path, builder: str = "html") -> int:
    """Build the site into ``out``; warnings are errors."""
    with tempfile.TemporaryDirectory(prefix="tinyml-docs-") as scratch:
        pages = Path(scratch) / "pages"
        shutil.copytree(ROOT / "docs", pages)
        (pages / "repository.txt").write_text(str(ROOT), encoding="utf-8")
        reference = pages / "reference"
        reference.mkdir()
        for name, text in REFERENCES.items():
            (reference / f"{name}.md").write_text(text(), encoding="utf-8")
        published = pages / "published"
        published.mkdir()
        (published / SCHEMA).write_text(json.dumps(schema(), indent=1), encoding="utf-8")
        (published / docs_llms.FILE).write_text(docs_llms.text(pages), encoding="utf-8")
        (pages / "figures" / "bars.svg").write_text(landing_figures.bars(), encoding="utf-8")
        for name, draw in NARROW.items():  # the style sheet shows them on phones
            (pages / "static" / name).write_text(draw(), encoding="utf-8")
        benchmarks = pages / "BENCHMARKS.md"
        drawn = benchmark_bars.with_bars(benchmarks.read_text(encoding="utf-8"), pages / "figures")
        benchmarks.write_text(drawn, encoding="utf-8")
        first = (pages / "index.md").read_text(encoding="utf-8").replace("<!-- bars -->", BARS)
        (pages / "index.md").write_text(first, encoding="utf-8")
        shown = docs_reports.pages(published / docs_reports.FOLDER)
        guide = (pages / "measure.md").read_text(encoding="utf-8").replace("<!-- pages -->", shown)
        (pages / "measure.md").write_text(guide, encoding="utf-8")
        with (pages / "web.md").open("a", encoding="utf-8") as tried:
            tried.write(docs_web.pages(published / docs_web.FOLDER))
        sphinx = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", builder]
        return subprocess.run([*sphinx, str(pages), str(out)], check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "build" / "docs" / "html")
    parser.add_argument("--links", action="store_true", help="check external links, build nothing")
    args = parser.parse_args()
    if absent := [
        package for module, package in PACKAGES.items() if importlib.util.find_spec(module) is None
    ]:
        print(f"the documentation requires {', '.join(absent)}: pip install -e '.[docs]'", file=sys.stderr)
        return 1
    if args.links:
        return build(ROOT / "build" / "docs" / "links", "linkcheck")
    code = build(args.folder)
    if code == 0:
        print(f"open {args.folder / 'index.html'}")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
