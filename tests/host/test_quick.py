# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`make quick`: which tests a change reaches, and which come first."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests import tiers
from tools import portable, quick, reach
from tools.reach import FAR, NEAR, distances, module_of, read, readers

FILES = {
    "plugin/tinyml/ir.py": "",
    "plugin/tinyml/ops/__init__.py": "for found in folder('ops'): import_module(found)",
    "plugin/tinyml/ops/softmax.py": "from tinyml import ir\nSOURCES = ('softmax/softmax_s8.c',)",
    "tests/host/test_ir.py": "def test():\n    from tinyml.ir import Graph",
    "tests/host/test_ops.py": "import tinyml.ops",
    "tests/host/test_other.py": "import os",
}


def reached(*changed: str) -> dict[str, int]:
    known = {path: read(text) for path, text in FILES.items()}
    return distances(changed, readers(known, [path for path in changed if path not in known]))


def test_imports_are_followed_from_anywhere_in_a_file() -> None:
    found = reached("plugin/tinyml/ir.py")
    assert found["tests/host/test_ir.py"] == NEAR
    assert found["tests/host/test_ops.py"] == NEAR + FAR + NEAR, "an operator, its discovery, the test"
    assert "tests/host/test_other.py" not in found


def test_files_that_are_named_or_discovered() -> None:
    found = reached("plugin/tinyml/runtime/softmax/softmax_s8.c")
    assert found["plugin/tinyml/ops/softmax.py"] == NEAR
    assert "tests/host/test_ops.py" in found
    assert "tests/host/test_ir.py" not in found


def test_names_of_modules() -> None:
    assert module_of("plugin/tinyml/ops/__init__.py") == "tinyml.ops"
    assert module_of("tests/host/test_quick.py") == "tests.host.test_quick"
    assert read("this is no Python").imports == set()


def test_of_this_project() -> None:
    assert "tests/host/test_pass_texts.py" in reach.host_tests(["tests/passes/fold_constants.txt"])[:10]
    assert "tests/host/test_report_page.py" in reach.host_tests(["plugin/tinyml/report/html.py"])[:10]
    assert "tests/host/test_quick.py" in reach.host_tests(["tools/reach.py"])[:3]
    reached = reach.host_tests(["plugin/tinyml/ir/__init__.py"])
    assert len(reached) > 50, "nearly everything"


def test_what_has_changed() -> None:
    assert quick.changed("HEAD") == sorted(quick.changed("HEAD"))
    assert quick.git("no-such-command") == []


def test_nothing_starts_after_the_deadline(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::{NAMED}"]
    counts = tmp_path / "counts"
    late = {**os.environ, quick.DEADLINE: str(time.time() - 1), quick.COUNTS: str(counts)}
    done = subprocess.run(
        command, cwd=tiers.TESTS.parent, env=late, capture_output=True, text=True, check=False
    )
    assert "1 skipped" in done.stdout, done.stdout
    assert "no time left: `make test` runs it" in done.stdout
    assert "left out, for want of time: 1 tests" in done.stdout
    assert counts.read_text() == "0 1"


def test_what_did_not_run_is_said() -> None:
    tests = [f"tests/host/test_{number}.py" for number in range(9)]
    assert quick.summary(12, 0, 0, 100, tests) == ""
    some = quick.summary(12, 1300, 4, 100, tests)
    assert "1,300 of 1,312 tests did not run, and the tests of 4 of 9 files were not even read" in some
    assert "nothing is known about what they test.\n12 tests ran." in some
    assert some.endswith("test_3.py tests/host/test_4.py")
    none = quick.summary(0, 0, 9, 100, tests)
    assert "no test ran, so this says nothing about the change" in none


def test_the_nearest_come_first() -> None:
    tests = [str(number) for number in range(100)]
    first, *others = quick.groups(tests)
    assert first == tests[: quick.FIRST]
    assert [*first, *(test for group in others for test in group)] == tests
    assert quick.groups(tests[:3]) == [tests[:3]]
    assert quick.groups([]) == []


NAMED = test_names_of_modules.__name__


def test_tests_for_every_operating_system_exist() -> None:
    for name in portable.FILES:
        assert (tiers.TESTS / "host" / f"test_{name}.py").is_file(), name
