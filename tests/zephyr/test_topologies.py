# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Other workspaces: this project as one of several in the user's own manifest (T2 and T3).

`west init` and `west update` are real. Zephyr and its modules are not fetched again: the new workspace has
hard links to ours, with the revisions that its manifest names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.depth import is_deep
from tests.zephyr.building import ROOT, Build, copy_of_digits, short_lived
from tools import workspace

PROJECT = "modules/lib/west-tinyml"

T2 = """\
manifest:
  projects:
    - name: zephyr
      url: https://github.com/zephyrproject-rtos/zephyr
      revision: {zephyr}
      west-commands: scripts/west-commands.yml
    - name: cmsis_6
      url: https://github.com/zephyrproject-rtos/CMSIS_6
      revision: {cmsis_6}
      path: modules/hal/cmsis_6
    - name: west-tinyml
      url: {url}
      revision: {revision}
      path: modules/lib/west-tinyml
      west-commands: plugin/west-commands.yml
  self:
    path: app
"""
T3 = """\
manifest:
  projects:
    - name: west-tinyml
      url: {url}
      revision: {revision}
      path: modules/lib/west-tinyml
      import: true
  self:
    path: manifest
"""


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(autouse=True)
def clone() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("west fetches with git, and this is not a clone")


def ours() -> dict[str, str]:
    """This project as a manifest names it: what is committed."""
    return {"url": ROOT.as_uri(), "revision": git(ROOT, "rev-parse", "HEAD")}


def linked_copy(top: Path, path: str) -> str:
    """A project as a tree of hard links; its revision. Files that git writes into are copied."""

    def link(one: str, other: str) -> None:
        mutable = "/.git/" in one and "/objects/" not in one
        try:
            if mutable:
                shutil.copy2(one, other)
            else:
                os.link(one, other)
        except OSError:  # another file system
            shutil.copy2(one, other)

    # Zephyr finds its workspace by its own real path, so a symbolic link would lead to ours.
    shutil.copytree(workspace.location() / path, top / path, symlinks=True, copy_function=link)
    return git(top / path, "rev-parse", "HEAD")


def west(top: Path, *words: str | Path) -> str:
    """Run west inside a workspace, with nothing in the environment that would lead it to another one."""
    environment = {**workspace.environment(top), **short_lived()}
    del environment["TINYML_WORKSPACE"], environment["ZEPHYR_BASE"]
    done = subprocess.run(
        ["west", *map(str, words)],
        cwd=top,
        env={**environment, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def update(top: Path) -> None:
    """`west update`, which finds what is there already; only this project is cloned."""
    west(top, "update", "--fetch", "smart")
    assert git(top / PROJECT, "rev-parse", "HEAD") == ours()["revision"]


def test_application_as_manifest_without_cmsis_nn(tmp_path: Path) -> None:
    """T2: the user's application holds the manifest. Without cmsis-nn: portable kernels, and a note.

    CMake chooses them, and compiles the model. `make test-deep` builds and runs the image, too.
    """
    top = tmp_path / "t2"
    app = copy_of_digits(top / "app")
    (app / "tinyml.yaml").unlink()
    revisions = {"zephyr": linked_copy(top, "zephyr"), "cmsis_6": linked_copy(top, "modules/hal/cmsis_6")}
    (app / "west.yml").write_text(T2.format(**revisions, **ours()))
    west(top, "init", "-l", "app")
    update(top)
    assert west(top, "packages", "pip").split()[-1] == str(top / PROJECT / "zephyr" / "requirements.txt")

    west(top, "tinyml", "add", app / "model.onnx", "--name", "digits", "--app", app)
    until = [] if is_deep() else ["--cmake-only"]
    said = west(top, "build", *until, "-b", "native_sim/native/64", "-d", top / "build", app)
    assert "TinyML: this workspace has no project cmsis-nn; models use the portable kernels" in said
    assert "libtinyml_cmsis_nn.a" not in (top / "build" / "build.ninja").read_text()
    assert "#define DIGITS_" in (top / "build" / "tinyml" / "digits" / "digits.h").read_text()
    if not is_deep():
        return
    program: list[str | Path] = [top / "build" / "zephyr" / "zephyr.exe", "-stop_at=5"]
    image = subprocess.run(program, cwd=top / "build", capture_output=True, check=False)
    assert b"of 40 right" in image.stdout


@pytest.mark.deep
def test_manifest_that_imports_ours(tmp_path: Path) -> None:
    """T3: a manifest repository of its own imports ours, and with it Zephyr, CMSIS-NN and our command."""
    top = tmp_path / "t3"
    linked_copy(top, "zephyr")
    git(top / "zephyr", "tag", "--force", "v4.3.1")
    for path in ("modules/hal/cmsis_6", "modules/lib/cmsis-nn"):
        linked_copy(top, path)
    (top / "manifest").mkdir()
    (top / "manifest" / "west.yml").write_text(T3.format(**ours()))
    west(top, "init", "-l", "manifest")
    update(top)

    listed = west(top, "list", "-f", "{name} {path}").split("\n")
    assert {"zephyr zephyr", "cmsis-nn modules/lib/cmsis-nn", f"west-tinyml {PROJECT}"} <= set(listed)
    assert not [line for line in listed if line.startswith("hal_")], "a group that is off"
    app = copy_of_digits(top / "app")
    assert "digits" in west(top, "tinyml", "list", "--app", app)
    west(top, "build", "-b", "qemu_cortex_m3", "-d", top / "build", app)
    assert "PASS: 0 of 40 outputs differ" in Build(app, top / "build").in_qemu(until="right")
