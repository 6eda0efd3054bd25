# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The west workspace for samples and tests: Zephyr and its modules, in a cache folder outside the tree.

west requires the manifest repository to be inside the workspace. A link to this clone achieves that without
copying it, so ``west tinyml`` and the Zephyr module are always the ones being worked on. Each clone therefore
has its own workspace; the second one takes its git objects from the first.
"""

from __future__ import annotations

import configparser
import hashlib
import os
import subprocess
from pathlib import Path

from tools.console import StepError, run_logged, step
from tools.environment import ROOT, VENV

MANIFEST_FOLDER = "west-tinyml"
PROBE_SECONDS = 20


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "west-tinyml"


def location() -> Path:
    """Where this clone's workspace is, or would be."""
    given = os.environ.get("TINYML_WORKSPACE")
    if given:
        return Path(given).expanduser().absolute()
    around = ROOT.parent
    if (around / ".west").is_dir() and _manifest_folder(around) == ROOT:
        return around  # created with `west init -m`: this clone is already a workspace's manifest
    return cache_folder() / f"workspace-{hashlib.sha256(str(ROOT).encode()).hexdigest()[:12]}"


def is_cached(place: Path) -> bool:
    """Whether a workspace is one that we created in the cache folder and may change or remove."""
    return place.parent == cache_folder()


def find() -> Path | None:
    """The workspace, if it is complete."""
    place = location()
    return place if why_not(place) is None else None


def why_not(place: Path) -> str | None:
    """Why ``place`` is not a workspace that can build this clone; None if it is one."""
    if not (place / ".west" / "config").is_file():
        return f"no west workspace at {place}"
    if _manifest_folder(place) != ROOT:
        return f"the west workspace at {place} belongs to another manifest, not to {ROOT}"
    if not (place / "zephyr" / "VERSION").is_file():
        return f"no Zephyr in the west workspace at {place}"
    return None


def environment(place: Path) -> dict[str, str]:
    """The environment in which west, CMake and Twister build in a workspace, from any folder."""
    settings = {
        **os.environ,
        "TINYML_WORKSPACE": str(place),
        "ZEPHYR_BASE": str(place / "zephyr"),
        "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
    }
    if "ZEPHYR_TOOLCHAIN_VARIANT" not in settings and "ZEPHYR_SDK_INSTALL_DIR" not in settings:
        settings["ZEPHYR_TOOLCHAIN_VARIANT"] = "gnuarmemb"
        settings["GNUARMEMB_TOOLCHAIN_PATH"] = "/usr"
    return settings


def _manifest_folder(place: Path) -> Path | None:
    config = configparser.ConfigParser()
    config.read(place / ".west" / "config")
    path = config.get("manifest", "path", fallback=None)
    return (place / path).resolve() if path else None


def _unreachable(place: Path) -> str | None:
    """The first project's address if it does not answer. Checked before anything is fetched."""
    west = [str(VENV / "bin" / "west"), "list", "-f", "{url}", "zephyr"]
    answer = subprocess.run(west, cwd=place, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise StepError(f"west does not accept west.yml: {answer.stderr.strip()}", "correct west.yml")
    url = answer.stdout.strip()
    probe = ["git", "ls-remote", "--quiet", url, "HEAD"]
    quiet = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        code = subprocess.run(
            probe, env=quiet, capture_output=True, timeout=PROBE_SECONDS, check=False
        ).returncode
    except (subprocess.TimeoutExpired, FileNotFoundError):
        return url
    return url if code else None


def _create(place: Path) -> None:
    """Make a folder a workspace of this clone: write west's configuration and the link."""
    (place / ".west").mkdir(parents=True, exist_ok=True)
    link = place / MANIFEST_FOLDER
    if link.is_symlink():
        link.unlink()
    link.symlink_to(ROOT, target_is_directory=True)
    (place / ".west" / "config").write_text(f"[manifest]\npath = {MANIFEST_FOLDER}\nfile = west.yml\n")


def _sibling(place: Path) -> Path | None:
    """Another clone's workspace to take git objects from instead of downloading them again."""
    others = [other for other in cache_folder().glob("workspace-*") if other != place]
    return next((other for other in others if (other / "zephyr" / ".git").exists()), None)


def ensure(log: Path) -> Path | None:
    """Create or update the workspace. If that fails, print the reason and return None."""
    place = location()
    with step("west workspace", "fetching Zephyr and CMSIS-NN; takes minutes the first time") as current:
        ours = is_cached(place) or not place.exists() or not any(place.iterdir())
        stamp = place / ".west" / "tinyml-ready"
        wanted = hashlib.sha256((ROOT / "west.yml").read_bytes()).hexdigest()
        if why_not(place) is None and (not ours or (stamp.is_file() and stamp.read_text() == wanted)):
            current.result = f"{place} is up to date"
            return place
        if not ours and (problem := why_not(place)):
            current.skip(f"{problem}; samples and tests continue without Zephyr")
            return None
        _create(place)
        if url := _unreachable(place):
            current.skip(f"cannot reach {url}; samples and tests continue without Zephyr")
            return None
        patient = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_HTTP_LOW_SPEED_LIMIT": "1000"}
        patient["GIT_HTTP_LOW_SPEED_TIME"] = "60"
        update = [str(VENV / "bin" / "west"), "update", "--narrow", "-o=--depth=1"]
        if sibling := _sibling(place):
            update += ["--path-cache", str(sibling)]
        try:
            run_logged(update, log, "run make again to resume", place, patient)
        except StepError as error:
            current.skip(f"{error}; samples and tests continue without Zephyr ({log})")
            return None
        stamp.write_text(wanted)
        current.result = f"ready in {place}"
        return place
