# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Test the module with each supported Zephyr version and record the results.

``python -m tools.zephyr_versions [VERSION ...]`` creates a workspace per version in the cache folder, with
the CMSIS that this Zephyr pins and the CMSIS-NN that our west.yml pins. It runs the digits sample there
with Twister and updates the version's lines in docs/ZEPHYR_VERSIONS.md.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tools.environment import ROOT
from tools.workspace import cache_folder, environment

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import __version__
from tinyml.setup import zephyr_descriptor

VERSIONS = {"v3.7.0": "cmsis", "v4.0.0": "cmsis", "v4.3.1": "cmsis_6", "v4.4.0": "cmsis_6"}
"""The versions, each with its name for the module that has the Cortex-M headers."""
BOARDS = ("qemu_cortex_m3", "native_sim/native/64")
BIN = Path(sys.executable).parent  # a Zephyr version may require another Python: run this tool with it
WEST = str(BIN / "west")
PAGE = ROOT / "docs" / "ZEPHYR_VERSIONS.md"
HEADER = """\
# Zephyr versions

Twister runs the digits sample and compares all outputs byte for byte with the host's, with the CMSIS that
each Zephyr pins and the CMSIS-NN that our west.yml pins. `python -m tools.zephyr_versions` writes this page.

Zephyr 3.7 and 4.0 refuse the key `package-managers` of `zephyr/module.yml`. They are tested with the
descriptor that the tags with `-zephyr-3.7` at their end have, and require such a tag in the manifest:

```yaml
    - name: west-tinyml
      url: https://github.com/<owner>/west-tinyml
      revision: v{version}-zephyr-3.7
```

| Zephyr | board | result |
|---|---|---|
"""
MANIFEST = """\
manifest:
  projects:
    - name: zephyr
      url: https://github.com/zephyrproject-rtos/zephyr
      revision: {version}
      import:
        name-allowlist: [{cmsis}]
    - name: cmsis-nn
      url: https://github.com/zephyrproject-rtos/cmsis-nn
      revision: {cmsis_nn}
      path: modules/lib/cmsis-nn
  self:
    path: manifest
"""


def _pinned(project: str) -> str:
    """The revision of a project in our own manifest."""
    found = re.search(rf"name: {project}\n\s+revision: (\S+)", (ROOT / "west.yml").read_text())
    if found is None:
        raise SystemExit(f"west.yml pins no {project}")
    return found[1]


def make_workspace(version: str) -> Path:
    """The version's workspace, up to date."""
    place = cache_folder() / f"zephyr-{version}"
    for path, text in {
        ".west/config": "[manifest]\npath = manifest\nfile = west.yml\n",
        "manifest/west.yml": MANIFEST.format(
            version=version, cmsis=VERSIONS.get(version, "cmsis_6"), cmsis_nn=_pinned("cmsis-nn")
        ),
    }.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    update = [WEST, "update", "--narrow", "-o=--depth=1"]
    subprocess.run(update, cwd=place, check=True)
    return place


def module_for(version: str, place: Path) -> Path:
    """This clone as a module for a version of Zephyr: with the descriptor that it accepts."""
    descriptor = (ROOT / zephyr_descriptor.FILE).read_text()
    if not zephyr_descriptor.is_refused(descriptor, version.removeprefix("v")):
        return ROOT
    module = place / "west-tinyml"
    (module / "zephyr").mkdir(parents=True, exist_ok=True)
    (module / zephyr_descriptor.FILE).write_text(zephyr_descriptor.without_packages(descriptor))
    for part in ("boards", "plugin", "samples", "tests", "zephyr_module"):
        (module / part).unlink(missing_ok=True)
        (module / part).symlink_to(ROOT / part, target_is_directory=True)
    return module


def try_boards(place: Path, module: Path) -> dict[str, str]:
    """The result of the sample on each board."""
    out = place / "twister-out"
    command = [WEST, "twister", "-T", str(ROOT / "samples" / "digits"), "-j", "2"]
    command += ["-O", str(out), "--clobber-output", "-x", f"EXTRA_ZEPHYR_MODULES={module}"]
    command += [word for board in BOARDS for word in ("-p", board)]
    settings = {**environment(place), "EXTRA_ZEPHYR_MODULES": str(module)}
    settings["PATH"] = f"{BIN}{os.pathsep}{settings['PATH']}"
    del settings["TINYML_WORKSPACE"]
    report = out / "twister.json"
    report.unlink(missing_ok=True)  # if Twister does not start, an old report must not count
    subprocess.run(command, cwd=place, env=settings, check=False)
    if not report.exists():
        return dict.fromkeys(BOARDS, "Twister did not run")
    results = {}
    for suite in json.loads(report.read_text())["testsuites"]:
        board = next((board for board in BOARDS if suite["platform"].startswith(board)), suite["platform"])
        results[board] = f"{suite['status']} {suite.get('reason', '')}".strip()
    return {board: results.get(board, "not run") for board in BOARDS}


def needed_python(place: Path) -> str | None:
    """Why this Python cannot build that Zephyr; None if it can."""
    text = (place / "zephyr" / "cmake" / "modules" / "python.cmake").read_text()
    found = re.search(r"PYTHON_MINIMUM_REQUIRED (\d+)\.(\d+)", text)
    if found and sys.version_info[:2] < (int(found[1]), int(found[2])):
        return f"not tested: it requires Python {found[1]}.{found[2]}, this is {sys.version.split()[0]}"
    return None


def renew(page: str, version: str, results: dict[str, str]) -> str:
    """The page with this version's lines replaced."""
    kept = [
        line for line in page.splitlines() if line.startswith("| v") and not line.startswith(f"| {version} ")
    ]
    new = [f"| {version} | {board} | {result} |" for board, result in results.items()]
    return HEADER.format(version=__version__) + "\n".join(sorted([*kept, *new])) + "\n"


def main(versions: list[str]) -> int:
    fine = True
    for version in versions or VERSIONS:
        place = make_workspace(version)
        problem = needed_python(place)
        results = dict.fromkeys(BOARDS, problem) if problem else try_boards(place, module_for(version, place))
        PAGE.write_text(renew(PAGE.read_text() if PAGE.exists() else "", version, results))
        for board, result in results.items():
            print(f"{version} {board}: {result}")
            fine = fine and result == "passed"
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
