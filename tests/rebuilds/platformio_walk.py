# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Walks through the edits of a PlatformIO user: after each one, what `pio run` builds must be up to date.

The library is a copy of this repository's, so that the compiler can change too. The program prints what the
models compute, which is compared with numpy; now and then all of it is built again from nothing.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.platformio.conftest import Project, platform
from tests.rebuilds.walk import ROOT, at_once, save
from tests.support.interpret import interpret
from tinyml.base.errors import TinymlError
from tinyml.pipeline import Compiled, compile_model
from tinyml.projects import manifest
from tinyml.projects.platformio.boards import Board

MODELS = ("conv", "dense", "tanh", "external", "rubbish")
RAM_BYTES = (1_000_000, 200)
OUTPUTS = (".c", ".h", "_weights.h", ".json", ".o")
SAMPLES = "samples.npy"
CLOSE = 1e-4


@dataclass
class Entry:
    """A model: its file, and its lines in tinyml.yaml."""

    file: Path
    optimize: str = "balanced"
    arena: int = 0  # its budget, if it has one
    quantized: bool = False

    def text(self, name: str) -> str:
        lines = [f"  - name: {name}", f"    file: {self.file.name}", f"    optimize: {self.optimize}"]
        lines += [f"    budget: {{arena: {self.arena}}}"] if self.arena else []
        lines += [f"    quantize: {{calibration: {SAMPLES}}}"] if self.quantized else []
        return "".join(f"{line}\n" for line in lines)


@dataclass
class Walker:
    """A project, and what its user has written into it."""

    project: Project
    entries: dict[str, Entry] = field(default_factory=dict)
    kernels: str = "auto"  # in platformio.ini
    ram_bytes: int = RAM_BYTES[0]  # of the board
    edits: int = 0

    @property
    def folder(self) -> Path:
        return self.project.folder

    @property
    def library(self) -> Path:
        return self.folder.with_name("library")

    def start(self) -> None:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "plugin", self.library / "plugin", ignore=ignored)
        shutil.copy(ROOT / "library.json", self.library)
        self.folder.mkdir(parents=True)
        self.write_model("one", "conv")
        self.write_samples()
        self.write_all()

    def write_all(self) -> None:
        """All texts; those that stay the same keep their times."""
        ini = f"[env]\nlib_deps = symlink://{self.library}\n[env:host]\n{platform('host')}\nboard = here\n"
        self.write("platformio.ini", f"{ini}custom_tinyml_kernels = {self.kernels}\n")
        upload = {"maximum_ram_size": self.ram_bytes, "maximum_size": 10_000_000}
        board = {"name": "here", "vendor": "-", "url": "-", "platforms": "host", "frameworks": []}
        self.write("boards/here.json", json.dumps({**board, "build": {}, "upload": upload}))
        entries = "".join(entry.text(name) for name, entry in self.entries.items())
        self.write("tinyml.yaml", f"models:\n{entries}")
        self.write("src/main.c", program(list(self.entries)))

    def write(self, file: str, text: str) -> None:
        path = self.folder / file
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            self.project.write(file, text)

    def write_model(self, name: str, kind: str, same_time: bool = False) -> None:
        entry = self.entries.setdefault(name, Entry(self.folder / f"{name} ü.onnx"))
        before = entry.file.stat() if entry.file.exists() else None
        self.edits += 1
        if kind == "rubbish":
            entry.file.write_bytes(b"rubbish")
        else:
            save(entry.file, kind, self.edits)
        if before and same_time:
            os.utime(entry.file, ns=(before.st_atime_ns, before.st_mtime_ns))

    def write_samples(self) -> None:
        self.edits += 1
        drawn = np.random.default_rng(self.edits).normal(0, self.edits, (20, 1, 6, 6))
        np.save(self.folder / SAMPLES, drawn.astype(np.float32))

    def compiled(self) -> dict[str, Compiled] | None:
        """All models from scratch, without PlatformIO; None if one cannot be compiled."""
        made = {}
        for name, entry in self.entries.items():
            try:
                written = manifest.load(self.folder / manifest.FILE_NAME).find(name)
                assert written is not None
                options = written.options(self.folder, target=Board().target, kernels=self.kernels)
                made[name] = compile_model(entry.file, options)
            except TinymlError:
                return None
            arena = int(made[name].summary["arena_bytes"])
            if arena > self.ram_bytes or (entry.arena and arena > entry.arena):
                return None
        return made

    def check(self, from_nothing: bool) -> str:
        """Build; what is wrong with the result, or nothing."""
        wanted = self.compiled()
        done, again = self.project.pio("run"), self.project.pio("run")
        if "Traceback" in done.stdout + again.stdout:
            return f"a traceback:\n{done.stdout[-2000:]}"
        if wanted is None:
            return "" if done.returncode and again.returncode else "it builds what cannot be compiled"
        if done.returncode:
            return f"it does not build:\n{done.stdout[-2000:]}"
        if again.returncode or "is up to date" not in again.stdout:
            return f"a second build does not leave everything as it is:\n{again.stdout[-2000:]}"
        if wrong := self.outdated(wanted) or self.differs(wanted):
            return wrong
        return self.differs_from_nothing() if from_nothing else ""

    def outdated(self, wanted: dict[str, Compiled]) -> str:
        folder = self.project.generated(".")
        for made in wanted.values():
            for file, text in made.files.items():
                if (folder / file).read_text(encoding="utf-8") != text:
                    return f"{file} is out of date"
        left = {path.name.split(".")[0].removesuffix("_weights") for path in folder.glob("*.*")}
        return f"files are left of {left - set(wanted)}" if left - set(wanted) else ""

    def differs(self, wanted: dict[str, Compiled]) -> str:
        lines = subprocess.run([self.project.program()], capture_output=True, text=True, check=True).stdout
        for line in lines.splitlines():
            name, *values = line.split()
            graph = wanted[name].graph
            source = graph.tensors[graph.inputs[0]]
            count = int(np.prod(source.shape))
            image = (np.arange(count) % 7 / 7).astype(np.float32).reshape(source.shape)
            (expected,) = interpret(graph, {source.name: image}).values()
            if not np.allclose(np.array(values, float), np.ravel(expected), CLOSE, CLOSE):
                return f"the program computes {name} as {values}, not {expected}"
        return "" if len(lines.splitlines()) == len(wanted) else f"the program prints {lines!r}"

    def differs_from_nothing(self) -> str:
        before = self.project.program().read_bytes()
        shutil.rmtree(self.folder / ".pio")
        done = self.project.pio("run")
        if done.returncode:
            return f"it does not build from nothing:\n{done.stdout[-2000:]}"
        same = before == self.project.program().read_bytes()
        return "" if same else "a build from nothing gives another program"


def program(names: list[str]) -> str:
    """A program that prints the outputs of all models, for an input that is always the same."""
    runs = "".join(
        f"\tfor (int i = 0; i < {name.upper()}_INPUT_ELEMENTS; i++)\n"
        f"\t\t{name}_input()[i] = (float)(i % 7) / 7;\n"
        f'\t{name}_run();\n\tprintf("{name}");\n'
        f"\tfor (int i = 0; i < {name.upper()}_OUTPUT_ELEMENTS; i++)\n"
        f'\t\tprintf(" %.7g", (double){name}_output()[i]);\n'
        '\tprintf("\\n");\n'
        for name in names
    )
    headers = "".join(f"#include <{name}.h>\n" for name in names)
    return f"#include <stdio.h>\n{headers}int main(void)\n{{\n{runs}\treturn 0;\n}}\n"


def edit(walker: Walker, rng: random.Random) -> str:
    """Change something as a user would; says what."""
    name = rng.choice(list(walker.entries))
    entry = walker.entries[name]
    kinds = ("model", "model", "same time", "settings", "settings", "rename", "output", "output", "data")
    kind = rng.choice(
        (*kinds, "samples", "touch", "board", "ini", "second", "compiler", "clean", "at once", "at once")
    )
    said = f"{name}: {kind}"
    if kind in ("model", "same time"):
        chosen = rng.choice(MODELS)
        walker.write_model(name, chosen, kind == "same time")
        said = f"{name} becomes {chosen}{', dated as before' if kind == 'same time' else ''}"
    elif kind == "settings":
        entry.optimize = rng.choice(("balanced", "speed", "size", "ram"))
        entry.arena = rng.choice((0, 0, 64, 5000))
        entry.quantized = rng.random() < 0.3
        said = f"{name} gets {entry.optimize}, arena {entry.arena}, quantised: {entry.quantized}"
    elif kind == "rename":
        walker.edits += 1
        entry.file = entry.file.rename(walker.folder / f"{name}_{walker.edits}.onnx")
    elif kind == "output":
        end = rng.choice(OUTPUTS)
        walker.project.generated(f"{name}{end}").unlink(missing_ok=True)
        said = f"{name}{end} is deleted"
    elif kind == "data":
        for data in walker.folder.glob("*.data"):
            content = bytearray(data.read_bytes())
            content[2] ^= 0x40
            data.write_bytes(content)
        said = "external data change"
    elif kind == "samples":
        walker.write_samples()
    elif kind == "touch":
        os.utime(entry.file)
    elif kind == "board":
        walker.ram_bytes = RAM_BYTES[walker.ram_bytes == RAM_BYTES[0]]
        said = f"the board has {walker.ram_bytes} bytes of RAM"
    elif kind == "ini":
        walker.kernels = "portable" if walker.kernels == "auto" else "auto"
        said = f"kernels: {walker.kernels}"
    elif kind == "compiler":
        with (walker.library / "plugin" / "tinyml" / "pipeline.py").open("a") as file:
            file.write("\n# an update\n")
    elif kind == "at once":
        words = [sys.executable, "-m", "platformio", "run", "-d", str(walker.folder)]
        said = at_once(words, rng, walker.project.environment)
    elif kind == "clean":
        walker.project.pio("run", "-t", "clean")
    elif len(walker.entries) > 1:
        del walker.entries[name]
        said = f"{name} goes"
    else:
        walker.write_model("two" if name == "one" else "one", rng.choice(MODELS))
        said = "a second model comes"
    walker.write_all()
    return said


def walk(project: Project, seed: int, steps: int, tell: bool = False, from_nothing: int = 8) -> list[str]:
    """Take some steps; each may be several edits. What was done, and at the end what is wrong."""
    rng = random.Random(seed)
    walker = Walker(project)
    walker.start()
    done: list[str] = []
    for step in range(steps):
        now = [edit(walker, rng) for _ in range(rng.choice((1, 1, 2, 3)))] if step else ["a new project"]
        done += now
        wrong = walker.check(step % from_nothing == from_nothing - 1 or step == steps - 1)
        if tell:
            print(f"{step}: {', '.join(now)}: {wrong or 'right'}", flush=True)
        if wrong:
            return [*done, f"WRONG: {wrong}"]
    return done
