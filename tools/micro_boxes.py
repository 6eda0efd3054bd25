# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The end of a detector beside TensorFlow Lite Micro's: instructions and memory on a Cortex-M4.

``python -m tools.micro_boxes TFLITE_MICRO FLATBUFFERS GEMMLOWP RUY``

The four folders are checkouts of tensorflow/tflite-micro and of what it is built with (its
tensorflow/lite/micro/tools/make names the versions). Compiles TFLite_Detection_PostProcess for a few numbers
of boxes and classes with this project, and the interpreter with its own kernel of that operator, both with
-O2; runs both in QEMU on the same random boxes, and prints a table in Markdown. Requires Debian's
libstdc++-arm-none-eabi-newlib.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.host.test_detection import USUAL, detector
from tests.support.tflite_writer import Value
from tinyml import harness
from tinyml.cores.machines import Stamp
from tinyml.emit.model import Provenance
from tinyml.harness import generated
from tinyml.importers import tflite_graph
from tinyml.ir import Array
from tinyml.pipeline import Options, compile_graph

MACHINE = "qemu-cortex-m4"
CORE = ("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard")
C_PLUS_PLUS = (
    *("-std=c++17", "-fno-rtti", "-fno-exceptions", "-fno-threadsafe-statics", "-w"),
    *("-ffunction-sections", "-fdata-sections"),
    *("-DTF_LITE_STATIC_MEMORY", "-DTF_LITE_DISABLE_X86_NEON", "-DTF_LITE_STRIP_ERROR_STRINGS", "-DNDEBUG"),
)
PARTS = (
    "micro",
    "micro/arena_allocator",
    "micro/memory_planner",
    "micro/tflite_bridge",
    "core/api",
    "core/c",
)
KERNELS = (
    *("micro/kernels/detection_postprocess.cc", "micro/kernels/kernel_util.cc"),
    *("kernels/kernel_util.cc", "kernels/internal/common.cc", "kernels/internal/quantization_util.cc"),
    *("kernels/internal/tensor_ctypes.cc", "../compiler/mlir/lite/schema/schema_utils.cc"),
)
NOT_NEEDED = re.compile(r"_test\.cc$|test_helper|recording|hexdump|mock_|fake_")
HARNESS = Path(generated.__file__).parent / "c"
HEAD = "| boxes | classes | suppression | instructions | there | RAM, bytes | there |"


@dataclass(frozen=True)
class Case:
    """The boxes of one detector; ``regular``: class by class."""

    boxes: int
    classes: int
    regular: bool

    def model(self) -> tuple[bytes, list[Array]]:
        """The last operator of the detector as a file, and its inputs."""
        rng = np.random.default_rng(1)
        options = {
            **USUAL,
            "max_detections": 10,
            "detections_per_class": 10,
            "num_classes": self.classes,
            "use_regular_nms": self.regular,
            "nms_iou_threshold": 0.6,
        }
        places, sizes = rng.uniform(0, 1, (self.boxes, 2)), rng.uniform(0.1, 0.5, (self.boxes, 2))
        anchors = Value.constant("anchors", np.column_stack([places, sizes]).astype(np.float32))
        likely = rng.normal(-3, 1.5, (1, self.boxes, self.classes + 1))
        inputs = [rng.normal(0, 1, (1, self.boxes, 4)), 1 / (1 + np.exp(-likely))]
        content = detector(options, self.boxes, self.classes + 1, anchors)
        return content, [array.astype(np.float32) for array in inputs]


CASES = tuple(
    Case(boxes, classes, regular)
    for boxes, classes in ((100, 4), (1917, 20), (1917, 90))
    for regular in (False, True)
)


@dataclass(frozen=True)
class Spent:
    """What one run took, and the classes that it found."""

    instructions: int
    ram: int
    classes: list[int]


def ours(content: bytes, inputs: Sequence[Array]) -> Spent:
    graph = tflite_graph.read(Path("boxes.tflite"), content, {})
    origin = Provenance("boxes.tflite", "0" * 64, "")
    compiled = compile_graph(graph, "boxes", origin, Options(target="cortex-m4"))
    result = harness.run_files(compiled.files, MACHINE, [dict(zip(graph.inputs, inputs, strict=True))])
    (values,) = result.outputs
    assert result.instructions is not None
    assert result.footprint is not None
    found = values[graph.outputs[1]].ravel()[: int(values[graph.outputs[3]][0])]
    return Spent(result.instructions[0], result.footprint.parts["model"].bss, [int(one) for one in found])


class Micro:
    """TensorFlow Lite Micro, compiled once; each case is linked with it."""

    def __init__(self, micro: Path, libraries: Sequence[Path], folder: Path) -> None:
        self.folder = folder
        self.include = [f"-I{path}" for path in (micro, *libraries, HARNESS)]
        lite = micro / "tensorflow" / "lite"
        sources = [path for part in PARTS for path in sorted((lite / part).glob("*.cc"))]
        sources = [path for path in sources if not NOT_NEEDED.search(path.name)]
        sources += [path for name in KERNELS if (path := lite / name).is_file()]
        here = Path(__file__).parent
        self.objects = [self.compiled(path) for path in (*sources, here / "micro_boxes.cc")]
        self.objects += [
            self.compiled(HARNESS / name) for name in ("startup_arm.c", "clock_mps2.c", "port_qemu.c")
        ]

    def compiled(self, source: Path) -> Path:
        made = self.folder / f"{'_'.join(source.parts[-3:])}.o"  # two folders have a kernel_util.cc
        flags = C_PLUS_PLUS if source.suffix == ".cc" else ()
        compiler = "arm-none-eabi-g++" if source.suffix == ".cc" else "arm-none-eabi-gcc"
        command = [compiler, *flags, *CORE, "-O2", *self.include, "-c", source, "-o", made]
        subprocess.run(command, check=True)
        return made

    def run(self, content: bytes, inputs: Sequence[Array]) -> Spent:
        data = self.folder / "data.c"
        data.write_text("".join(tables(content, inputs)), encoding="utf-8")
        image = self.folder / "image.elf"
        link = ["-nostartfiles", "--specs=nosys.specs", "-Wl,--gc-sections", f"-L{HARNESS}", "-T", "mps2.ld"]
        command: list[str | Path] = [
            "arm-none-eabi-g++",
            *CORE,
            *link,
            *self.objects,
            self.compiled(data),
            "-o",
            image,
            "-lm",
        ]
        subprocess.run(command, check=True, cwd=HARNESS, stderr=subprocess.DEVNULL)
        clock = harness.find_machine(MACHINE).clock
        assert clock is not None
        qemu: list[str | Path] = [
            *(
                "qemu-system-arm",
                "-M",
                "mps2-an386",
                "-display",
                "none",
                "-monitor",
                "none",
                "-serial",
                "none",
            ),
            *("-semihosting", "-icount", f"shift={clock.shift}", "-kernel", image),
        ]
        done = subprocess.run(qemu, capture_output=True, text=True, check=True)
        said = [line.split() for line in (done.stdout + done.stderr).splitlines()]
        numbers = {words[0]: int(words[1]) for words in said}
        before, after = (clock.instructions(Stamp(numbers[name], 0)) for name in ("before", "after"))
        classes = [int(words[1]) for words in said if words[0] == "class"]
        return Spent(after - before, numbers["arena"], classes)


def tables(content: bytes, inputs: Sequence[Array]) -> Iterator[str]:
    """The model and its inputs as C."""
    names = ("model", "boxes", "scores")
    for name, values in zip(names, (content, *(array.tobytes() for array in inputs)), strict=True):
        numbers = ",".join(map(str, values))
        yield f"const unsigned char {name}_data[] __attribute__((aligned(16))) = {{{numbers}}};\n"
        yield f"const unsigned {name}_bytes = {len(values)};\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("tflite_micro", "flatbuffers", "gemmlowp", "ruy"):
        parser.add_argument(name, type=Path, metavar=name.upper())
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        libraries = [args.flatbuffers / "include", args.gemmlowp, args.ruy]
        micro = Micro(args.tflite_micro.resolve(), [path.resolve() for path in libraries], Path(folder))
        print(HEAD)
        print("|---:|---:|---|---:|---:|---:|---:|")
        for case in CASES:
            content, inputs = case.model()
            own, theirs = ours(content, inputs), micro.run(content, inputs)
            if own.classes != theirs.classes:
                print(f"{case}: {own.classes} here, {theirs.classes} there")
                return 1
            kind = "class by class" if case.regular else "over all classes"
            cells = (own.instructions, theirs.instructions, own.ram, theirs.ram)
            print(f"| {case.boxes:,} | {case.classes} | {kind} | {' | '.join(f'{n:,}' for n in cells)} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
