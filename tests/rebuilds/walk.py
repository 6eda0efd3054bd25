# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A walk: after every edit the build must give what a build from scratch gives, or fail where that fails."""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
NOTHING_TO_DO = "ninja: no work to do."
TIMEOUT_SECONDS = 300.0
MODELS = ("conv", "dense", "tanh", "external", "rubbish")
OPTIONS = ("", "--optimize=size", "--kernels=portable", "--limit=arena=64,the budget", "--optimize=best")
OUTPUTS = (
    ".c",
    ".h",
    "_weights.h",
    ".json",
    ".kernels",
    ".d",
    ".kernels.d",
    ".command",
    ".fresh",
    ".sources",
)


@dataclass
class Entry:
    """A model of the application: its file, and the options in its settings."""

    file: Path
    options: list[str]


@dataclass
class Project:
    """An application, and what its user has written into it."""

    folder: Path
    entries: dict[str, Entry] = field(default_factory=dict)
    edits: int = 0

    @property
    def build(self) -> Path:
        return self.folder / "build"

    def start(self) -> None:
        self.folder.mkdir(parents=True)
        shutil.copy(Path(__file__).parent / "CMakeLists.txt", self.folder)
        self.write_compiler()
        self.write_model("one", "conv")
        self.write_settings()
        self.configure()

    def configure(self) -> str:
        words = ["cmake", "-G", "Ninja", "-S", str(self.folder), "-B", str(self.build)]
        return run([*words, f"-DREPOSITORY={ROOT}", f"-DPYTHON={sys.executable}"])[1]

    def write_compiler(self) -> None:
        """A file of another name, as an update of the compiler brings it."""
        self.edits += 1
        shutil.rmtree(self.folder / "compiler", ignore_errors=True)
        (self.folder / "compiler").mkdir()
        (self.folder / "compiler" / f"part{self.edits}.py").touch()

    def write_settings(self) -> None:
        lines = [
            f'model({name} "{entry.file.as_posix()}" {" ".join(map(quoted, entry.options))})\n'
            for name, entry in self.entries.items()
        ]
        (self.folder / "settings.cmake").write_text("".join(lines), encoding="utf-8")

    def write_model(self, name: str, kind: str) -> None:
        """New content for the file of a model, which is added if there is none."""
        entry = self.entries.setdefault(name, Entry(self.folder / f"{name} ü.onnx", []))
        self.edits += 1
        if kind == "rubbish":
            entry.file.write_bytes(b"rubbish")
        else:
            save(entry.file, kind, self.edits)

    def date(self, name: str, how: str) -> None:
        """Make the files of a model older than the last build, as those of an archive, or as old as ever."""
        files = [self.entries[name].file, *self.folder.glob("*.data")]
        old = 1_500_000_000_000_000_000 + (self.edits % 7 if how == "older" else 0) * 10**12
        for path in files:
            os.utime(path, ns=(old, old))

    def wanted(self) -> dict[str, str] | None:
        """The C of all models, compiled from scratch; None if one cannot be compiled."""
        found = {}
        for name, entry in self.entries.items():
            out = self.folder / "scratch"
            shutil.rmtree(out, ignore_errors=True)
            words = ["compile", str(entry.file), "-o", str(out), "--name", name, "--target", "host"]
            if not compiles([*words, *entry.options]):
                return None
            found[name] = (out / f"{name}.c").read_text(encoding="utf-8")
        return found

    def check(self) -> str:
        """Build; what is wrong with the result, or nothing."""
        wanted = self.wanted()
        status, said = run(["ninja", "-C", str(self.build)])
        again, said_again = run(["ninja", "-C", str(self.build)])
        if wanted is None:
            return "" if status and again else "it builds what cannot be compiled"
        if status:
            return f"it does not build:\n{said[-2000:]}"
        for name, text in wanted.items():
            made = self.build / "tinyml" / name / f"{name}.c"
            if made.read_text(encoding="utf-8") != text:
                return f"the C of {name} is out of date"
        if again or NOTHING_TO_DO not in said_again:
            return f"a second build does not leave everything as it is:\n{said_again[-2000:]}"
        return ""


def quoted(option: str) -> str:
    return f'"{option}"'


def run(words: list[str]) -> tuple[int, str]:
    done = subprocess.run(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout


def at_once(words: list[str], rng: random.Random, environment: dict[str, str] | None = None) -> str:
    """Two builds of the same folder at the same time, or one that is killed; says which.

    What they print and return does not matter: the build after them must be right.
    """
    killed = rng.random() < 0.5
    builds = [
        subprocess.Popen(
            words,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # its compilers die with it
        )
        for _ in range(1 if killed else 2)
    ]
    if killed:
        time.sleep(rng.uniform(0, 3))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(builds[0].pid, signal.SIGKILL)
    for build in builds:
        build.wait(TIMEOUT_SECONDS)
    return "a build is killed" if killed else "two builds run at once"


def compiles(words: list[str]) -> bool:
    from tinyml.verbs.cli import main

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            return main(words) == 0
        except SystemExit as ended:  # the command line itself is wrong
            return not ended.code


def save(path: Path, kind: str, seed: int) -> None:
    """A model; each kind needs other kernels."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(0, 1, (4, 1, 3, 3) if kind == "conv" else (36, 5)).astype(np.float32)
    nodes = {
        "conv": [helper.make_node("Conv", ["x", "w"], ["y"])],
        "tanh": [helper.make_node("Tanh", ["x"], ["y"])],
    }.get(kind, [helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["y"])])
    shape = {"conv": [1, 4, 4, 4], "tanh": [1, 1, 6, 6]}.get(kind, [1, 5])
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 6, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [] if kind == "tanh" else [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    data = path.with_suffix(".data")
    data.unlink(missing_ok=True)
    if kind == "external":
        onnx.save(model, path, save_as_external_data=True, location=data.name, size_threshold=0)
    else:
        onnx.save(model, path)


def edit(project: Project, rng: random.Random) -> str:
    """Change something as a user would; says what."""
    name = rng.choice(list(project.entries))
    entry = project.entries[name]
    kinds = ["model", "model", "options", "options", "rename", "output", "output", "data", "cmake", "second"]
    kinds += ["compiler", "at once", "at once"]
    kind = rng.choice(kinds)
    if kind == "model":
        project.write_model(name, chosen := rng.choice(MODELS))
        how = rng.choice(("", "older", "as old as before"))
        if how:
            project.date(name, how)
        return f"{name} becomes {chosen}{', ' if how else ''}{how}"
    if kind == "options":
        option = rng.choice(OPTIONS)
        entry.options = [option] if option else []
        project.write_settings()
        return f"{name} gets {option or 'no options'}"
    if kind == "rename":
        project.edits += 1
        entry.file = entry.file.rename(project.folder / f"{name}_{project.edits}.onnx")
        project.write_settings()
        return f"the file of {name} has another name"
    if kind == "output":
        end = rng.choice(OUTPUTS)
        (project.build / "tinyml" / name / f"{name}{end}").unlink(missing_ok=True)
        return f"{name}{end} is deleted"
    if kind == "data":
        for data in project.folder.glob("*.data"):
            content = bytearray(data.read_bytes())
            content[1] ^= 1
            data.write_bytes(content)
        return "external data change"
    if kind == "at once":
        return at_once(["ninja", "-C", str(project.build)], rng)
    if kind == "compiler":
        project.write_compiler()
        return "the compiler changes"
    if kind == "cmake":
        project.configure()
        return "CMake runs"
    if len(project.entries) > 1:
        del project.entries[name]
    else:
        project.write_model("two" if name == "one" else "one", rng.choice(MODELS))
    project.write_settings()
    return f"the models are {', '.join(project.entries)}"


def walk(folder: Path, seed: int, steps: int, tell: bool = False) -> list[str]:
    """Take some steps; each may be several edits. Returns what was done, and at the end what is wrong."""
    rng = random.Random(seed)
    project = Project(folder)
    project.start()
    done: list[str] = []
    for step in range(steps):
        done += [edit(project, rng) for _ in range(rng.choice((1, 1, 2, 3)))] if step else []
        wrong = project.check()
        if tell:
            print(f"{step}: {', '.join(done[-3:])}: {wrong or 'right'}", flush=True)
        if wrong:
            return [*done, f"WRONG: {wrong}"]
    return done
