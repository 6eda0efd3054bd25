"""Workspaces that are not ours: this project as one of several in the user's own manifest (T2 and T3)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.zephyr.building import ROOT, copy_of_digits
from tools import workspace

PROJECTS = """\
manifest:
  projects:
    - name: zephyr
      url: https://github.com/zephyrproject-rtos/zephyr
      revision: v4.3.1
      west-commands: scripts/west-commands.yml
    - name: cmsis_6
      url: https://github.com/zephyrproject-rtos/CMSIS_6
      revision: main
      path: modules/hal/cmsis_6
    - name: west-tinyml
      url: https://example.com/west-tinyml
      revision: main
      path: modules/lib/west-tinyml
"""
T2 = f"{PROJECTS}      west-commands: plugin/west-commands.yml\n  self:\n    path: app\n"
T3 = """\
manifest:
  projects:
    - name: west-tinyml
      url: https://example.com/west-tinyml
      revision: main
      path: modules/lib/west-tinyml
      import: true
  self:
    path: manifest
"""


def make_workspace(top: Path, manifest_folder: str, manifest: str) -> None:
    (top / ".west").mkdir(parents=True)
    (top / ".west" / "config").write_text(f"[manifest]\npath = {manifest_folder}\nfile = west.yml\n")
    (top / manifest_folder).mkdir(exist_ok=True)
    (top / manifest_folder / "west.yml").write_text(manifest)


def linked_copy(source: Path, copy: Path) -> None:
    """A tree of hard links: Zephyr finds its workspace by its own real path, so no symbolic link."""

    def link(one: str, other: str) -> None:
        try:
            os.link(one, other)
        except OSError:  # another file system
            shutil.copy2(one, other)

    shutil.copytree(source, copy, symlinks=True, copy_function=link)


def west(top: Path, *words: str | Path) -> str:
    """Run west inside a workspace, with nothing in the environment that would lead it to another one."""
    environment = workspace.environment(top)
    del environment["TINYML_WORKSPACE"]
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


def test_application_as_manifest_without_cmsis_nn(tmp_path: Path) -> None:
    """T2: the user's application holds the manifest. Without cmsis-nn: portable kernels, and a word of it."""
    top = tmp_path / "t2"
    app = copy_of_digits(top / "app")
    (app / "tinyml.yaml").unlink()
    make_workspace(top, "app", T2)
    linked_copy(workspace.location() / "zephyr", top / "zephyr")
    linked_copy(workspace.location() / "modules" / "hal" / "cmsis_6", top / "modules" / "hal" / "cmsis_6")
    (top / "modules" / "lib").mkdir(parents=True)
    (top / "modules" / "lib" / "west-tinyml").symlink_to(ROOT, target_is_directory=True)

    west(top, "tinyml", "add", app / "model.onnx", "--name", "digits", "--app", app)
    said = west(top, "build", "-b", "native_sim/native/64", "-d", top / "build", app)
    assert "TinyML: this workspace has no project cmsis-nn; models use the portable kernels" in said
    assert not list((top / "build").rglob("libtinyml_cmsis_nn.a"))
    image = subprocess.run(
        [top / "build" / "zephyr" / "zephyr.exe", "-stop_at=5"], capture_output=True, check=False
    )
    assert b"of 40 right" in image.stdout


def test_manifest_that_imports_ours(tmp_path: Path) -> None:
    """T3: a manifest repository of its own imports ours, and with it Zephyr, CMSIS-NN and our command."""
    if not (ROOT / ".git").exists():
        pytest.skip("west imports from git, and this is not a clone")
    top = tmp_path / "t3"
    make_workspace(top, "manifest", T3)
    project = top / "modules" / "lib" / "west-tinyml"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(project)], check=True)
    subprocess.run(["git", "-C", str(project), "update-ref", "refs/heads/manifest-rev", "HEAD"], check=True)

    listed = west(top, "list", "-f", "{name} {path}").split("\n")
    assert {"zephyr zephyr", "cmsis-nn modules/lib/cmsis-nn", "west-tinyml modules/lib/west-tinyml"} <= set(
        listed
    )
    app = copy_of_digits(top / "app")
    assert "digits" in west(top, "tinyml", "list", "--app", app)
