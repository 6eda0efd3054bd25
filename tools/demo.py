# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``make demo``: build a model file into a running image, with the commands that a user would type.

With a west workspace, this runs ``west tinyml add`` and ``west build`` for qemu_cortex_m3, and shows the
application's own output. Without one, it runs the same model on bare-metal QEMU.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tinyml import harness
from tinyml.base.errors import TinymlError
from tinyml.ir import Array
from tools import packages, workspace
from tools.console import StepError, run_logged, step
from tools.demo_view import Figure, Image, gallery, read_images
from tools.environment import ROOT, VENV

SAMPLE = ROOT / "samples" / "digits"
MODEL = SAMPLE / "model.onnx"
NAME = "digits"
BOARD = "qemu_cortex_m3"
MACHINE = "qemu-cortex-m3"
DEMO = ROOT / "build" / "demo"
LOG = DEMO / "log.txt"
RUN_SECONDS = 60
BOARD_FLASH_BYTES = 256 * 1024  # of a real board of this kind; QEMU's machine has more
BOARD_RAM_BYTES = 64 * 1024


def main() -> int:
    place = workspace.find()
    if absent := packages.missing(None if place else packages.FOR_BARE_METAL):
        print(f"the demo requires {', '.join(absent)}: {packages.install_command(absent)}", file=sys.stderr)
        return 1
    DEMO.mkdir(parents=True, exist_ok=True)
    LOG.unlink(missing_ok=True)
    os.environ["PATH"] = f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}"
    os.chdir(ROOT)
    try:
        return on_zephyr(place) if place else on_harness()
    except (StepError, TinymlError) as error:
        print(f"the demo stopped: {error}\n{error.hint}", file=sys.stderr)
        return 1


def say(command: Sequence[str]) -> None:
    """Show a command as it could be typed."""
    print(f"\n$ {shlex.join(command)}", flush=True)


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Show a command and run it with its own output."""
    say(command)
    if subprocess.run(command, env=environment, check=False).returncode:
        raise StepError(f"{command[0]} {command[1]} failed", "see its output above")


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


# ---------------------------------------------------------------------------- with Zephyr


def on_zephyr(place: Path) -> int:
    environment = workspace.environment(place)
    app, build = DEMO / NAME, DEMO / "build"
    if copy_application(app):
        print(f"\n{relative(app)} is a copy of {relative(SAMPLE)} without its model.")
        add = ["west", "tinyml", "add", relative(MODEL), "--app", relative(app), "--name", NAME]
        run(add, environment)
    else:
        print(f"\n{relative(app)} has its model from the last demo; remove the folder to see it added.")
        run(["west", "tinyml", "list", "--app", relative(app)], environment)
    make = ["west", "build", "-b", BOARD, "-d", relative(build), relative(app)]
    say(make)
    with step("build", "building the model and Zephyr; takes half a minute the first time") as current:
        run_logged(make, LOG, "the end of the log:", ROOT, environment)
        current.result = relative(build / "zephyr" / "zephyr.elf")
    play = ["west", "build", "-d", relative(build), "-t", "run"]
    say(play)
    output = run_until(play, rf"^{NAME}: \d+ of \d+ right", environment)
    predictions = [int(digit) for digit in re.findall(r"^image \d+: (\d)", output, re.MULTILINE)]
    print(gallery(read_images(SAMPLE / "src" / "inputs.h"), predictions))
    print("\n".join(line for line in output.splitlines() if line.startswith(("PASS", "FAIL", f"{NAME}:"))))
    show_figures(zephyr_figures(build))
    if not re.search(r"^PASS", output, re.MULTILINE):
        raise StepError("the outputs on the device differ from those of the host", output)
    print(f"\nThe generated C: {relative(find_summary(build).with_suffix('.c'))}")
    return 0


def copy_application(app: Path) -> bool:
    """Copy the sample without its model; return False if an up-to-date copy with a model exists."""
    wanted = {path.relative_to(SAMPLE): path.read_bytes() for path in (SAMPLE / "src").iterdir()}
    wanted[Path("CMakeLists.txt")] = (SAMPLE / "CMakeLists.txt").read_bytes()
    if (app / "tinyml.yaml").is_file() and all(
        (app / name).is_file() and (app / name).read_bytes() == data for name, data in wanted.items()
    ):
        return False
    shutil.rmtree(app, ignore_errors=True)
    for name, data in {**wanted, Path("prj.conf"): b"# Nothing is needed before a model is added.\n"}.items():
        (app / name).parent.mkdir(parents=True, exist_ok=True)
        (app / name).write_bytes(data)
    return True


def run_until(command: Sequence[str], last: str, environment: Mapping[str, str]) -> str:
    """Run an emulator, which does not exit on its own, until a line of its output matches ``last``."""
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        alarm = signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
        signal.alarm(RUN_SECONDS)
        lines: list[str] = []
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if re.search(last, line):
                os.killpg(process.pid, signal.SIGTERM)
                break
        signal.alarm(0)
        signal.signal(signal.SIGALRM, alarm)
    output = "".join(lines).replace("\r", "")
    if not re.search(last, output, re.MULTILINE):
        raise StepError(f"no line like {last!r} within {RUN_SECONDS} s", output[-2000:])
    return output


def find_summary(folder: Path) -> Path:
    """The machine-readable summary next to the generated C."""
    return next(path for path in sorted(folder.rglob(f"{NAME}.json")) if path.with_suffix(".c").is_file())


def zephyr_figures(build: Path) -> list[Figure]:
    config = (build / "zephyr" / ".config").read_text()
    flash, ram = (
        int(re.findall(rf"^CONFIG_{key}_SIZE=(\d+)", config, re.MULTILINE)[0]) for key in ("FLASH", "SRAM")
    )
    size = subprocess.run(
        ["arm-none-eabi-size", str(build / "zephyr" / "zephyr.elf")],
        capture_output=True,
        text=True,
        check=True,
    )
    text, data, bss = (int(value) for value in size.stdout.splitlines()[1].split()[:3])
    return [
        *model_figures(json.loads(find_summary(build).read_text()), flash * 1024, ram * 1024),
        Figure("flash, whole image", text + data, flash * 1024),
        Figure("RAM, whole image", data + bss, ram * 1024),
    ]


# ---------------------------------------------------------------------------- without Zephyr


def on_harness() -> int:
    print("\nThere is no Zephyr here, so the same model runs bare-metal on an emulated Cortex-M3:")
    images = read_images(SAMPLE / "src" / "inputs.h")
    generated, one = DEMO / "generated", DEMO / "image.npz"
    model = [relative(MODEL), "--name", NAME]
    run(["tinyml", "compile", *model, "--target", "cortex-m3", "-o", relative(generated)])
    arrays = as_inputs(images)
    np.savez(one, in0=arrays[0])
    run(["tinyml", "run", *model, "--on", MACHINE, "--input", relative(one)])
    with step(f"all {len(images)} images", "building and running") as current:
        summary = json.loads((generated / f"{NAME}.json").read_text())
        inputs, outputs = (summary[kind][0]["name"] for kind in ("inputs", "outputs"))
        result = harness.run(generated, MACHINE, [{inputs: array} for array in arrays])
        predictions = [int(sample[outputs].argmax()) for sample in result.outputs]
        right = sum(image.label == guess for image, guess in zip(images, predictions, strict=True))
        current.result = f"{right} of {len(images)} right"
    print(gallery(images, predictions))
    figures = model_figures(summary, BOARD_FLASH_BYTES, BOARD_RAM_BYTES)
    if result.footprint is not None and result.stack_bytes is not None:
        figures.append(Figure("flash, model and kernels", result.footprint.total.flash, BOARD_FLASH_BYTES))
        figures.append(Figure("stack", result.stack_bytes, BOARD_RAM_BYTES))
    show_figures(figures)
    print(f"\nThe generated C: {relative(generated / f'{NAME}.c')}")
    return 0


def as_inputs(images: Sequence[Image]) -> Array:
    """The images as the model takes them: float32, 1x1x8x8, from 0 to 1."""
    return np.array([image.pixels for image in images], np.float32).reshape(-1, 1, 1, 8, 8) / np.float32(16)


def model_figures(summary: Mapping[str, Any], flash: int, ram: int) -> list[Figure]:
    return [
        Figure("arena (RAM, planned)", summary["arena_bytes"], ram),
        Figure("  smallest possible", summary["arena_lower_bound_bytes"]),
        Figure("weights and tables (flash)", summary["weights_bytes"], flash),
    ]


def show_figures(figures: Sequence[Figure]) -> None:
    print(f"\nMemory, compared with {BOARD}:")
    for figure in figures:
        print(figure.line())


if __name__ == "__main__":
    sys.exit(main())
