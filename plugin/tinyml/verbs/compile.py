# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`compile`: a model file to a folder of C."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml import pinned
from tinyml.app.keys import IO
from tinyml.compiler_sources import compiler_sources
from tinyml.goals import BALANCED, GOALS
from tinyml.quantize.request import KEYS, from_items
from tinyml.targets import TARGETS
from tinyml.verbs.base import Verb, add_shape_argument, print_notes

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.pipeline import Options


def add_model_arguments(
    parser: argparse.ArgumentParser, target: bool = True, io: Sequence[str] = ("arena", *IO)
) -> None:
    """The model and the options that determine the generated code; the same for all verbs."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="the model file, .onnx or .tflite")
    add_option_arguments(parser, target, io)


def add_option_arguments(
    parser: argparse.ArgumentParser, target: bool = True, io: Sequence[str] = ("arena", *IO)
) -> None:
    """The options without the model."""
    parser.add_argument("--name", default="", metavar="N", help="its prefix in C (default: the file's name)")
    if target:
        parser.add_argument(
            "--target",
            default="cortex-m3",
            metavar="T",
            help=f"one of {', '.join(TARGETS)} (default: %(default)s)",
        )
    parser.add_argument(
        "--kernels",
        default="auto",
        choices=("auto", "portable", "cmsis-nn"),
        help="cmsis-nn: CMSIS-NN wherever it has a kernel; portable: never; auto: for each layer the one "
        "with fewer instructions among those available (default: %(default)s)",
    )
    add_optimize_argument(parser, BALANCED.name)
    parser.add_argument(
        "--io",
        default="arena",
        choices=io,
        help="int8: the inputs and outputs of a quantised model with a float interface become integers"
        + ("; rows: the application feeds the input in rows to NAME_feed_rows()" if "rows" in io else "")
        + ("; caller: they are in buffers given to NAME_run()" if "caller" in io else "")
        + " (default: %(default)s)",
    )
    add_shape_argument(parser)
    add_quantize_argument(parser)
    add_frontend_argument(parser)
    add_operators_argument(parser)
    add_npu_argument(parser)


def add_optimize_argument(parser: argparse.ArgumentParser, default: str | None) -> None:
    """`--optimize`, the same for all verbs that compile or write a manifest."""
    parser.add_argument(
        "--optimize",
        default=default,
        choices=tuple(GOALS),
        help="; ".join(f"{goal.name}: {goal.about}" for goal in GOALS.values()).replace("%", "%%")
        + (" (default: %(default)s)" if default else ""),
    )


def add_quantize_argument(parser: argparse.ArgumentParser) -> None:
    """`--quantize`, the same for all verbs that compile."""
    parser.add_argument(
        "--quantize",
        action="append",
        default=[],
        metavar="DATA|KEY=VALUE",
        help="make a float model int8 first, calibrated on DATA; KEY=VALUE (repeatable) as in tinyml.yaml: "
        + ", ".join(KEYS),
    )


def add_frontend_argument(parser: argparse.ArgumentParser) -> None:
    """`--frontend`, alike for all verbs that handle a model with its front end."""
    parser.add_argument(
        "--frontend",
        action="append",
        default=[],
        metavar="KIND|KEY=VALUE",
        help="add a front end, so that NAME_feed() takes samples: its kind, then KEY=VALUE (repeatable) as "
        "in tinyml.yaml",
    )


def add_operators_argument(parser: argparse.ArgumentParser) -> None:
    """`--operators`, the same for all verbs that read a model."""
    parser.add_argument(
        "--operators",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a Python file with operators of your own, or a C file that their kernels call (repeatable); "
        "see `new-operator`",
    )


def add_npu_argument(parser: argparse.ArgumentParser) -> None:
    """`--npu`, the same for all verbs that compile."""
    parser.add_argument(
        "--npu",
        default="",
        metavar="ACCELERATOR",
        help="the Arm Ethos-U that computes what it can of an int8 model, as ethos-u55-128; "
        "none: the CPU alone, whatever tinyml.yaml has",
    )


def options_from(args: argparse.Namespace, target: str) -> Options:
    """The pipeline's options from parsed arguments."""
    from tinyml.features import settings as frontends
    from tinyml.pipeline import Options
    from tinyml.verbs.shapes import shapes_by_input

    shapes = shapes_by_input(args.shape)
    request = from_items(args.quantize, "--quantize", Path())
    return Options(
        args.name,
        target,
        args.kernels,
        shapes,
        getattr(args, "io", "arena"),
        quantize=request,
        frontend=frontends.from_items(getattr(args, "frontend", []), "--frontend"),
        classes=class_names(getattr(args, "classes", "")),
        operators=tuple(getattr(args, "operators", ())),
        npu=accelerator(args),
        cmsis_nn=_has_cmsis_nn(args),
        optimize=args.optimize,
    )


def accelerator(args: argparse.Namespace) -> str:
    """`--npu`, empty for the CPU alone."""
    given: str = getattr(args, "npu", "")
    return "" if given == "none" else given


def add_classes_argument(parser: argparse.ArgumentParser) -> None:
    """`--classes`, alike for all verbs that write it into a header or a manifest."""
    parser.add_argument(
        "--classes",
        default="",
        metavar="A,B,..",
        help="names of the classes in the order of the outputs, or a file with one per line: NAME_LABELS",
    )


def class_names(text: str) -> tuple[str, ...]:
    """`--classes`: names separated by commas, or a file with one per line."""
    from tinyml.errors import ConfigError

    if not text:
        return ()
    path = Path(text)
    words = path.read_text(encoding="utf-8").splitlines() if path.is_file() else text.split(",")
    names = tuple(word.strip() for word in words if word.strip())
    if len(set(names)) < len(names):
        raise ConfigError(f"--classes names a class twice: {', '.join(names)}")
    return names


def _has_cmsis_nn(args: argparse.Namespace) -> bool:
    """`compile` has an option for it; verbs that build the model themselves search for it."""
    from tinyml.workspace import find_cmsis_nn

    if hasattr(args, "cmsis_nn"):
        return bool(args.cmsis_nn)
    return args.kernels == "auto" and find_cmsis_nn() is not None


def add_interface_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--interface",
        action="append",
        default=[],
        metavar="NAME=TYPE[SHAPE]",
        help="fail if an input or output is not this, as input=int8[1,49,10,1] (repeatable)",
    )


class Compile(Verb):
    """Compile a model to plain C.

    Writes NAME.c, NAME.h, NAME_weights.h and NAME.json (sizes, and the runtime sources to link)
    into a folder. The build systems do this for you; use it to inspect the code or in your own build.
    """

    name = "compile"
    help = "compile a model to a folder of plain C"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_model_arguments(parser, io=("arena", "caller", "caller,int8", *IO))
        parser.add_argument(
            "-o", "--output", type=Path, required=True, metavar="DIR", help="the folder to write to"
        )
        parser.add_argument(
            "--cmsis-nn",
            action="store_true",
            help="the build has CMSIS-NN: --kernels auto may choose from it",
        )
        add_classes_argument(parser)
        parser.add_argument(
            "--limit",
            action="append",
            default=[],
            metavar="arena|ram|flash=BYTES[,WHOSE]",
            help="fail if the model needs more; the message names WHOSE limit it is (repeatable)",
        )
        parser.add_argument(
            "--weights-in-ram", action="store_true", help="the build copies the weights to RAM"
        )
        parser.add_argument(
            "--no-fpu", action="store_true", help="the build leaves the core's FPU off: warn of float layers"
        )
        add_interface_argument(parser)
        parser.add_argument(
            "--depfile", type=Path, metavar="FILE", help="also write a Makefile-style dependency file"
        )
        parser.add_argument(
            "--report", action="store_true", help="also write NAME_report.html and NAME_report.json"
        )
        parser.add_argument(
            "--dump-ir",
            metavar="STAGE",
            nargs="?",
            const="all",
            help="print the graph after STAGE: import, the name of a pass, bands, or all",
        )

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml import outside
        from tinyml.api.compiled import build
        from tinyml.api.sources import as_model
        from tinyml.errors import ConfigError
        from tinyml.ir import Graph
        from tinyml.pipeline import STAGES
        from tinyml.report import budget
        from tinyml.text import dump

        if args.dump_ir not in (None, "all", *STAGES):
            raise ConfigError(f"unknown stage {args.dump_ir!r}", f"all, {', '.join(STAGES)}")

        def show(stage: str, graph: Graph) -> None:
            if args.dump_ir in ("all", stage):
                console.print(f"# after {stage}\n{dump(graph)}", markup=False, soft_wrap=True)

        limits = [budget.parse_limit(text) for text in args.limit]
        options = options_from(args, args.target)
        compiled = build(as_model(args.model), options, show)
        pinned.check(compiled.summary, pinned.from_items(args.interface, "--interface"))
        flash = compiled.flash_bytes if any(kind == "flash" for kind, _ in limits) else None
        budget.check_all(compiled.summary, limits, args.weights_in_ram, flash)
        data = options.quantize.files if options.quantize else []
        sources = [args.model, *data, *outside.sources(options.operators), *compiler_sources()]
        compiled.write(args.output, report=args.report, depfile=args.depfile, sources=sources)
        console.print(
            f"{compiled.name}: {len(compiled.built.selected)} layers, arena {compiled.arena_bytes:,} bytes, "
            f"weights {compiled.weights_bytes:,} bytes -> {args.output}",
            markup=False,
            soft_wrap=True,
        )
        print_notes(console, compiled.notes, f"{compiled.name}: ")
        layers = compiled.built.selected
        if args.no_fpu and (floats := sum(chosen.in_float for chosen in layers)):
            console.print(
                f"{compiled.name}: warning: {floats} of {len(layers)} layers compute in float, "
                "and CONFIG_FPU is off. Put CONFIG_FPU=y into prj.conf: they take about a tenth of the time.",
                markup=False,
                soft_wrap=True,
            )
        if compiled.quantization:
            for line in (f"int8: {compiled.quantization.headline()}", *compiled.quantization.advice()):
                console.print(f"{compiled.name}: {line}", markup=False, soft_wrap=True)
        return 0
