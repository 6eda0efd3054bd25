# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Compile models with two versions of Python, in two folders, and compare the bytes.

``python -m tools.reproducible [--make]``

Uses another Python that it finds (on the path, of pyenv, in TINYML_OTHER_PYTHON) and that has the compiler's
packages; --make creates a virtual environment with these packages for one of them, in the cache folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.environment import OLDEST_PYTHON, ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml.setup.workspace import cache_folder

PACKAGES = "numpy, onnx, tflite, flatbuffers, jinja2, yaml, rich"
MODELS = ("samples/digits/model.onnx", "samples/digits/model_float.onnx")
OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
NEWEST = 20

SCRIPT = """
import hashlib, json, pathlib, sys
from tinyml.pipeline import Options, compile_model
found = {}
for name in sys.argv[1:]:
    for target in ("cortex-m4", "host"):
        for file, text in compile_model(pathlib.Path(name), Options("m", target)).files.items():
            found[f"{name} {target} {file}"] = hashlib.sha256(text.encode()).hexdigest()
print(json.dumps(found))
"""


def made() -> Path:
    """Where --make puts virtual environments."""
    return cache_folder() / "pythons"


def _answer(python: Path, code: str) -> str:
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def candidates() -> Iterator[tuple[str, Path]]:
    """Versions and paths of Pythons here that are not this one."""
    named = [Path(text) for text in os.environ.get("TINYML_OTHER_PYTHON", "").split(os.pathsep) if text]
    minors = range(OLDEST_PYTHON[1], NEWEST)
    on_path = [Path(found) for minor in minors if (found := shutil.which(f"python3.{minor}"))]
    pyenv = sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin/python"))
    for path in (*named, *sorted(made().glob("*/bin/python")), *on_path, *pyenv):
        version = _answer(path, "import sys; print('{0}.{1}'.format(*sys.version_info))")
        if version and version != OWN and int(version.split(".")[1]) >= OLDEST_PYTHON[1]:
            yield version, path


def ready() -> tuple[str, Path] | None:
    """Another Python that has the compiler's packages."""
    return next(
        ((v, path) for v, path in candidates() if _answer(path, f"import {PACKAGES}; print(1)")), None
    )


def make() -> None:
    """A virtual environment with the compiler's packages, for the newest other Python."""
    found = max(candidates(), key=lambda item: int(item[0].split(".")[1]), default=None)
    if found is None:
        sys.exit("there is no other Python here: install one, or name it in TINYML_OTHER_PYTHON")
    place = made() / found[0]
    subprocess.run([found[1], "-m", "venv", place], check=True)
    packages = PACKAGES.replace("yaml", "pyyaml").split(", ")
    subprocess.run([place / "bin" / "python", "-m", "pip", "install", "-q", *packages], check=True)


def digests(python: Path) -> dict[str, str]:
    """The hashes of files that ``python`` generates from copies of the models in a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="tinyml-") as folder:
        for name in MODELS:
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, Path(folder) / name)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "plugin"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [str(python), "-c", SCRIPT, *MODELS]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--make", action="store_true", help="make an environment for another Python first")
    if parser.parse_args().make:
        make()
    other = ready()
    if other is None:
        print("no other Python has the compiler's packages: python -m tools.reproducible --make")
        return 1
    ours, theirs = digests(Path(sys.executable)), digests(other[1])
    differing = [name for name in ours if ours[name] != theirs.get(name)]
    print(f"{len(ours)} files by Python {OWN} and {other[0]}: {len(differing)} differ")
    for name in differing:
        print(f"  {name}")
    return 1 if differing or not ours else 0


if __name__ == "__main__":
    sys.exit(main())
