# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Lets builds share objects: Zephyr uses ccache where it is installed.

Paths in temporary folders are hashed relative to the build. Those outside are the same in every build, but
would not be if they were relative: builds are at different depths.

Zephyr writes the path of the build into a comment of the devicetree header, which most sources include. In
another folder, ccache would have to preprocess them all, which takes 9 of 15 CPU seconds of a build whose
objects it has. So it looks at what this header is made from instead: the devicetree, our bindings, Zephyr's
version. The builds of a file of tests also have the same paths in every run.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tiers import TESTS
from tests.zephyr.building import short_lived
from tools import workspace

BINDINGS = TESTS.parent / "zephyr_module" / "dts" / "bindings"
MADE_FROM = (
    "zephyr/zephyr.dts",  # of each build
    *map(str, sorted(path for path in BINDINGS.rglob("*") if path.is_file())),
    str(workspace.location() / "zephyr" / "VERSION"),
)

os.environ.setdefault("CCACHE_BASEDIR", tempfile.gettempdir())
os.environ.setdefault("CCACHE_NOHASHDIR", "1")


class Folders:
    """A ``tmp_path_factory`` whose folders have the same names in every run."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.made: Counter[str] = Counter()

    def mktemp(self, name: str) -> Path:
        folder = self.base / f"{name}{self.made[name]}"
        self.made[name] += 1
        folder.mkdir()
        return folder


def is_running(process: str) -> bool:
    try:
        os.kill(int(process), 0)  # raises where there is no such process
    except (OSError, ValueError):
        return False
    return True


def own_folder(name: str) -> Path:
    """An empty folder that is always the same one, unless another run of these tests has it just now."""
    clone = zlib.crc32(str(TESTS).encode())
    base = Path(tempfile.gettempdir()) / f"west-tinyml-{os.getuid()}-{clone:08x}" / name
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    owner = base / "owner"
    if owner.exists() and is_running(owner.read_text()):
        base = Path(tempfile.mkdtemp(prefix="west-tinyml-"))
    else:
        shutil.rmtree(base)
        base.mkdir()
    (base / "owner").write_text(str(os.getpid()))
    return base


@pytest.fixture(scope="module", autouse=True)
def shared_work() -> Iterator[None]:
    """Tells ccache what the devicetree header is made from, and lets scripts take what earlier builds found.

    For the builds of this tier alone, also for those that commands start in this process.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, value in short_lived().items():
            patch.setenv(name, value)
        patch.setenv("CCACHE_IGNOREHEADERS", "zephyr/include/generated/zephyr/devicetree_generated.h")
        patch.setenv("CCACHE_EXTRAFILES", os.pathsep.join(MADE_FROM))
        yield


@pytest.fixture(scope="module")
def tmp_path_factory(request: pytest.FixtureRequest) -> Iterator[Folders]:
    """In the place of pytest's."""
    base = own_folder(request.path.stem)
    yield Folders(base)
    (base / "owner").unlink()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: Folders) -> Path:
    return tmp_path_factory.mktemp(re.sub(r"\W+", "_", request.node.name))
