# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""One run of Twister over all applications: outputs on the device are those of the host; our own tests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.datasets import load_digits

from tests.depth import is_deep
from tests.zephyr.applications import LEFT_TO_DEEP, NATIVE, TOGETHER, Pair, left_out, pairs, why_not
from tests.zephyr.building import DIGITS, ROOT, TWISTER_SECONDS, change_model, copy_of_digits, run, twister
from tests.zephyr.feed import make_expected
from tests.zephyr.played import sample_for
from tests.zephyr.userspace import make_model

pytestmark = pytest.mark.timeout(2 * TWISTER_SECONDS)

PAIRS = [pytest.param(pair, id=str(pair), marks=() if pair.always else pytest.mark.deep) for pair in pairs()]


GUARD = "tinyml.digits"
NEW = ("app.digits", GUARD)
PLAYED = "sample.tinyml.player.dsp"
PLAYED_BOARD = "qemu_cortex_m4"
GUARD_BOARDS = ("qemu_cortex_m3", NATIVE) if is_deep() else (NATIVE,)


@dataclass(frozen=True)
class Run:
    """How each test ended, by its name and the platform; and the new application with its written test."""

    results: dict[tuple[str, str], str]
    guarded: Path
    folder: Path


@pytest.fixture(scope="module")
def twister_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The sample digits names the boards that every workspace has; here it runs on ours, too."""
    chosen = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    wanted = [parameters["pair"] for parameters in chosen if "pair" in parameters]
    wanted = [pair for pair in wanted if why_not(pair) is None]
    folder = tmp_path_factory.mktemp("twister")
    app = copy_of_digits(folder / "digits")
    sample = yaml.safe_load((DIGITS / "sample.yaml").read_text())
    of_digits = [pair.board for pair in wanted if pair.folder == DIGITS]
    sample["tests"] = {
        "sample.tinyml.digits": {"platform_allow": of_digits, "integration_platforms": of_digits}
    }
    (app / "sample.yaml").write_text(yaml.safe_dump(sample))
    guarded = new_application(folder / "guarded")
    player = sample_for(PLAYED_BOARD, folder / "player", PLAYED)
    boards = sorted({pair.board for pair in wanted}.union(GUARD_BOARDS, [PLAYED_BOARD]))
    others = [f"{board}(/.*)?" for board in boards if board not in GUARD_BOARDS]
    left = {"scenarios": list(NEW), "platforms": others, "comment": "not in this run"}
    quarantine = folder / "quarantine.yaml"
    quarantine.write_text(yaml.safe_dump([*left_out(wanted, boards), left]))
    folders = sorted({app if pair.folder == DIGITS else pair.folder for pair in wanted})
    options = ["--quarantine-list", str(quarantine), "--timeout-multiplier", "5"]
    return Run(twister([*folders, guarded, player], boards, folder, *options), guarded, folder)


@pytest.fixture(scope="module")
def results(twister_run: Run) -> dict[tuple[str, str], str]:
    return twister_run.results


def new_application(app: Path) -> Path:
    """An application that `west tinyml new` makes; then its test also gets rows of a test set."""
    words: list[str | Path] = ["--model", DIGITS / "model.onnx", "--name", "digits", "-b", NATIVE]
    run(["west", "tinyml", "new", app, *words], app.parent)
    made = contents(app / "tests")
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[:, np.newaxis]
    np.savez(app / "test.npz", image=images[::5], y=digits.target[::5])
    with (app / "tinyml.yaml").open("a") as manifest:
        manifest.write("    evaluate: {data: test.npz, labels: y, min_accuracy: 0.95, rows: 32}\n")
    run(["west", "tinyml", "test", "digits", "--force"], app)
    written = contents(app / "tests")
    assert made.keys() <= written.keys()
    assert made["digits/src/golden.h"] == written["digits/src/golden.h"]
    assert made != written, "rows were added"
    return app


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("pair", PAIRS)
def test_application(results: dict[tuple[str, str], str], pair: Pair) -> None:
    """Samples with emulated devices, also with data that are lost, counted and reported; the shell; threads
    with shared and exclusive arenas and with the check of claims; user mode; a front end in an interrupt; and
    slots: updates, trials, hostile images, a power failure at each write and erase, signatures.

    Twister names a platform in full, with the SoC where a board has only one.
    """
    if reason := why_not(pair):
        pytest.skip(reason)
    ended = [
        status
        for (test, place), status in results.items()
        if test == pair.test and place.startswith(pair.board)
    ]
    assert ended == ["passed"], results


def test_every_board_runs_something_in_make_test() -> None:
    """What `make test` leaves out is the same application on another board, or has its parts elsewhere."""
    always = {pair.test for pair in pairs() if pair.always}
    assert always == {pair.test for pair in pairs()} - LEFT_TO_DEEP.keys()
    own = {pair.folder for pair in pairs() if pair.folder.parent.name == "zephyr"}
    built = {ROOT / "tests" / "zephyr" / part for part in TOGETHER}  # by test_together.py
    assert own - built == own & {pair.folder for pair in pairs() if pair.always}
    boards = {pair.board for pair in pairs() if pair.always}
    elsewhere = {"qemu_cortex_m4", "qemu_cortex_m7"}  # test_memories.py has the first; the second has its C
    assert boards == {pair.board for pair in pairs()} - elsewhere
    assert left_out(pairs()[:1], [pairs()[0].board]) == []


def test_the_expected_features_are_those_of_numpy() -> None:
    assert (make_expected.FOLDER / "src" / "expected.h").read_text(encoding="utf-8") == make_expected.header()


def test_the_model_with_state_is_the_one_that_is_described() -> None:
    assert make_model.FILE.read_bytes() == make_model.model()


def test_the_player_with_dsp_instructions(twister_run: Run) -> None:
    """The sample of the player on our own emulated board, which its sample.yaml does not name."""
    ended = [status for (test, _), status in twister_run.results.items() if test == PLAYED]
    assert ended == ["passed"], twister_run.results
    logs = [path for path in twister_run.folder.rglob("handler.log") if PLAYED in path.parts]
    (said,) = (path.read_text(errors="replace") for path in logs)
    assert "version 2: digits with an arena of 1376 bytes" in said  # 1680 on a Cortex-M3


def test_a_new_application_passes_its_own_tests(twister_run: Run) -> None:
    """`west tinyml new` makes it; `test_new.py` has it as it is, on more boards."""
    ended = [
        (test, status)
        for (test, place), status in sorted(twister_run.results.items())
        if test in NEW and place.startswith(GUARD_BOARDS)
    ]
    assert ended == [(test, "passed") for test in NEW for _ in GUARD_BOARDS], twister_run.results


def test_a_written_test_guards_a_model(twister_run: Run) -> None:
    """Passes with the model it was written for, fails with another."""
    logs = [path for path in twister_run.folder.rglob("handler.log") if GUARD in path.parts]
    said = [path.read_text(errors="replace") for path in logs]
    assert len(re.findall(r"3[12] of 32 decisions are right; 31 are required", "".join(said))) == len(logs)
    change_model(twister_run.guarded / "models" / "model.onnx")
    (build,) = (path.parent for path in logs if (path.parent / "zephyr" / "zephyr.exe").exists())
    run(["ninja", "-C", build], build)
    program: list[str | Path] = [build / "zephyr" / "zephyr.exe", "-stop_at=60"]
    wrong = run(program, build, check=False)
    assert "PROJECT EXECUTION FAILED" in wrong, wrong
