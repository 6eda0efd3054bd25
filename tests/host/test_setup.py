# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The set-up of the make targets: it is quick if there is nothing to do, and it explains failures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import environment, packages, workspace
from tools.console import StepError, run_logged, step

GIT = ["git", "-c", "user.name=test", "-c", "user.email=test@example.org"]


def test_a_failing_command_shows_the_end_of_its_log(tmp_path: Path) -> None:
    with pytest.raises(StepError, match="sh failed with code 3") as caught:
        run_logged(["sh", "-c", "echo this is why; exit 3"], tmp_path / "log", "look here:")
    assert caught.value.hint.startswith("look here:")
    assert "this is why" in caught.value.hint


def test_a_step_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with step("paint", "painting") as current:
        current.result = "green"
    with step("wash") as current:
        current.skip("no water")
    with pytest.raises(StepError), step("dry"):
        raise StepError("no wind")
    assert capsys.readouterr().out.splitlines() == [
        "[ok] paint: green",
        "[--] wash: no water",
        "[!!] dry: no wind",
    ]


def test_missing_packages_are_named_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no programs, so no apt-get either
    still_missing = packages.ensure(tmp_path / "log")
    assert {"gcc", "ninja-build", "qemu-system-arm", "libnewlib-arm-none-eabi"} <= set(still_missing)
    line = capsys.readouterr().out
    assert line.count("\n") == 1
    assert "apt-get install -y --no-install-recommends" in line
    assert "qemu-system-arm" in line


def test_apt_installs_only_missing_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = {"fake-a": False, "fake-b": True}
    monkeypatch.setattr(packages, "PACKAGES", {name: lambda name=name: here[name] for name in here})
    monkeypatch.setattr(packages, "OPTIONAL", {})
    monkeypatch.setattr(
        packages, "_prefix", lambda: ["sh", "-c", 'echo "$@" >> "$0"', str(tmp_path / "calls")]
    )
    assert packages.ensure(tmp_path / "log") == ["fake-a"]
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[0].endswith("apt-get -q update")
    assert calls[1].endswith("apt-get -q install -y --no-install-recommends fake-a")


def test_optional_packages_are_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Installed by themselves, so that an unknown one does not keep the others out, and for tests only."""
    monkeypatch.setattr(packages, "PACKAGES", {"fake-a": lambda: (tmp_path / "fake-a").exists()})
    monkeypatch.setattr(packages, "OPTIONAL", {"fake-o": lambda: False})
    fake = f'case "$*" in *fake-o) exit 100;; *fake-a) touch {tmp_path}/fake-a;; esac'
    monkeypatch.setattr(packages, "_prefix", lambda: ["sh", "-c", fake])
    assert packages.ensure(tmp_path / "log", for_tests=True) == []
    assert (
        "packages: installed fake-a; cannot install for tests (optional): fake-o" in capsys.readouterr().out
    )
    assert packages.ensure(tmp_path / "log") == []
    assert "packages: all installed" in capsys.readouterr().out


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of its own whose manifest names a small local repository in the place of Zephyr."""
    if not (environment.VENV / "bin" / "west").exists():
        pytest.skip("no .venv with west: run make setup")
    upstream = tmp_path / "upstream" / "zephyr"
    upstream.mkdir(parents=True)
    (upstream / "VERSION").write_text("VERSION_MAJOR = 4\n")
    for command in (["init", "-q", "-b", "main"], ["add", "VERSION"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*GIT, *command], cwd=upstream, check=True)
    root = tmp_path / "clone"
    root.mkdir()
    manifest(root, upstream)
    monkeypatch.setattr(workspace, "ROOT", root)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("TINYML_WORKSPACE", "ZEPHYR_BASE"):
        monkeypatch.delenv(name, raising=False)
    return root


def manifest(root: Path, url: Path, revision: str = "main") -> None:
    project = f"{{name: zephyr, url: 'file://{url}', revision: {revision}}}"
    (root / "west.yml").write_text(
        f"manifest:\n  projects:\n    - {project}\n  self: {{path: west-tinyml}}\n"
    )


def test_a_workspace_is_made_once(clone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = workspace.ensure(tmp_path / "log")
    assert place is not None
    assert place.parent == tmp_path / "cache" / "west-tinyml"
    assert (place / "zephyr" / "VERSION").is_file()
    assert (place / "west-tinyml").resolve() == clone
    assert workspace.find() == place
    (tmp_path / "log").unlink()
    assert workspace.ensure(tmp_path / "log") == place
    assert not (tmp_path / "log").exists(), "nothing was to be done, and west ran"
    assert capsys.readouterr().out.splitlines()[-1] == f"[ok] west workspace: {place} is up to date"


def test_a_changed_manifest_updates_the_workspace(clone: Path, tmp_path: Path) -> None:
    place = workspace.ensure(tmp_path / "log")
    assert place is not None
    upstream = tmp_path / "upstream" / "zephyr"
    (upstream / "VERSION").write_text("VERSION_MAJOR = 5\n")
    subprocess.run([*GIT, "commit", "-q", "-a", "-m", "second"], cwd=upstream, check=True)
    head = subprocess.run(
        [*GIT, "rev-parse", "HEAD"], cwd=upstream, check=True, capture_output=True, text=True
    )
    manifest(clone, upstream, head.stdout.strip())
    assert workspace.ensure(tmp_path / "log") == place
    assert "5" in (place / "zephyr" / "VERSION").read_text()


def test_an_unreachable_address_is_one_line(
    clone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest(clone, tmp_path / "nowhere")
    assert workspace.ensure(tmp_path / "log") is None
    assert workspace.find() is None
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert f"cannot reach file://{tmp_path / 'nowhere'}" in out


def test_a_foreign_workspace_is_left_alone(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = tmp_path / "theirs"
    (theirs / ".west").mkdir(parents=True)
    (theirs / ".west" / "config").write_text("[manifest]\npath = zephyr\nfile = west.yml\n")
    monkeypatch.setenv("TINYML_WORKSPACE", str(theirs))
    assert workspace.ensure(tmp_path / "log") is None
    assert "belongs to another manifest" in capsys.readouterr().out
    assert [path.name for path in theirs.iterdir()] == [".west"]


def test_a_clone_that_is_a_manifest_repository_uses_the_workspace_around_it(clone: Path) -> None:
    (clone.parent / ".west").mkdir()
    (clone.parent / ".west" / "config").write_text("[manifest]\npath = clone\nfile = west.yml\n")
    assert workspace.location() == clone.parent


def test_the_module_without_its_packages(tmp_path: Path) -> None:
    """`python -m tinyml` in a clone, as `west tinyml` there: one message with the command that helps."""
    (tmp_path / "yaml.py").write_text("raise ModuleNotFoundError(\"No module named 'yaml'\", name='yaml')\n")
    plugin = str(Path(__file__).parents[2] / "plugin")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), plugin])}
    command = [sys.executable, "-m", "tinyml", "list"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "does not have: No module named 'yaml'\n  try: " in done.stderr
    assert "Traceback" not in done.stderr
