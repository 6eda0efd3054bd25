# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`test`: a Twister test for a model of an application."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.app import files, folder
from tinyml.app.manifest import ModelEntry
from tinyml.errors import ConfigError
from tinyml.verbs.base import Verb, add_app_argument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from tinyml.app.twister import Golden
    from tinyml.ir import Array, Graph
    from tinyml.quantize.request import Request

MOST_SAMPLES = 8
ENOUGH_BYTES = 24 * 1024  # of flash for samples; at least one is always used


class MakeTest(Verb):
    """Write a Twister test for a model of an application.

    The test is a separate application in tests/NAME: it runs the model on known inputs and compares
    the outputs, integers exactly. The inputs are yours (--input) or generated; the outputs are those in
    your file (out0, out1, ... or by name) or those that the model's C computes on this machine.

    `west twister --integration -T tests` then runs it as a numeric regression test, also in CI: on an
    emulated Cortex-M3 and on native_sim. After an intended change of the model, run this again with --force.
    """

    name = "test"
    help = "write a Twister test for a model of an application"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("name", metavar="NAME", help="the model's name, as `list` shows it")
        add_app_argument(parser)
        parser.add_argument("--input", type=Path, metavar="X.npz", help="inputs, and outputs if it has them")
        parser.add_argument(
            "--platform",
            action="append",
            default=[],
            metavar="BOARD",
            help="also build and run it for this board with `west twister --integration` (repeatable)",
        )
        parser.add_argument("--force", action="store_true", help="overwrite an existing test")

    def run(self, args: argparse.Namespace, console: Console) -> int:
        app = folder.find_application(args.app, Path.cwd())
        entry = app.model(args.name)
        place = place_for(app, entry.name)
        if not args.force:
            refuse_existing(place, "--force overwrites it")
        files.replace_all(contents(app, entry, args.input, place, platforms=args.platform))
        said(console, app, place)
        return 0


def place_for(app: folder.Application, name: str) -> Path:
    """The folder of a model's test."""
    return app.root / "tests" / name


def refuse_existing(place: Path, hint: str) -> None:
    if place.exists():
        raise ConfigError(f"there is already a test in {place}", hint)


def contents(
    app: folder.Application,
    entry: ModelEntry,
    given: Path | None,
    place: Path,
    model: Path | None = None,
    quantize: Request | None = None,
    platforms: Sequence[str] = (),
) -> dict[Path, bytes | None]:
    """The files of the test. ``model``, ``quantize``: the current files, if they have not been copied yet."""
    from tinyml.app.twister import test_files
    from tinyml.pipeline import Options, compile_model

    shapes = {name: tuple(map(int, shape.split("x"))) for name, shape in entry.shapes.items()}
    options = Options(
        name=entry.name, target="host", kernels="portable", shapes=shapes, frontend=entry.frontend
    )
    options = replace(
        options,
        quantize=quantize or entry.request(app.root),
        operators=tuple(app.root / operator for operator in entry.operators),
    )
    compiled = compile_model(model or entry.path(app.root), options)
    golden = _golden(compiled.graph, compiled.files, given)
    file = folder.relative(app.root / entry.file, place)
    operators = tuple(folder.relative(app.root / operator, place) for operator in entry.operators)
    texts = test_files(replace(entry, operators=operators), file, compiled.summary, golden, platforms)
    return {place / path: text.encode() for path, text in texts.items()}


def said(console: Console, app: folder.Application, place: Path) -> None:
    where = folder.relative(place, app.root)
    console.print(
        f"wrote a test to {where}; run it with: west twister --integration -T {where}",
        markup=False,
        soft_wrap=True,
    )


def _golden(graph: Graph, files: Mapping[str, str], given: Path | None) -> Golden:
    """Inputs and the corresponding outputs."""
    from tinyml import arrays, harness
    from tinyml.app.twister import Golden
    from tinyml.compare.samples import generated

    samples = arrays.load_samples(given, graph) if given else generated(graph, _count(graph))
    inputs = [[sample[name] for name in graph.inputs] for sample in samples]
    expected = _given_outputs(graph, given, len(samples)) if given else None
    if expected is not None:
        return Golden(inputs, expected, "given by the user")
    computed = harness.run_files(files, "host", samples, reset_before={0}).outputs
    outputs = [[sample[name] for name in graph.outputs] for sample in computed]
    return Golden(inputs, outputs, "computed by the model's C on the host")


def _count(graph: Graph) -> int:
    """As many samples as fit into a reasonable amount of flash."""
    one = sum(graph.tensors[name].bytes for name in (*graph.inputs, *graph.outputs))
    return max(1, min(MOST_SAMPLES, ENOUGH_BYTES // max(one, 1)))


def _given_outputs(graph: Graph, given: Path, runs: int) -> list[list[Array]] | None:
    """The outputs of each run in the user's file; None if it has none."""
    from tinyml import arrays

    try:
        stored = arrays.read_numpy(given)
    except arrays.UNREADABLE:  # replaced since its inputs were read
        raise ConfigError(f"{given} is not a .npz file", "numpy.savez(file, in0=array, out0=array)") from None
    found = [stored.get(name, stored.get(f"out{i}")) for i, name in enumerate(graph.outputs)]
    if all(array is None for array in found):
        return None
    checked = []
    for name, array in zip(graph.outputs, found, strict=True):
        tensor = graph.tensors[name]
        if array is None or array.size != runs * tensor.elements or array.dtype != tensor.dtype.numpy:
            has = "nothing" if array is None else f"{array.dtype} {array.shape}"
            raise ConfigError(
                f"{given}: the output {name!r} must be {tensor.dtype.value} {tensor.shape}, found {has}",
                "store all outputs of the model, or none",
            )
        checked.append(array.reshape(runs, *tensor.shape))
    return [list(outputs) for outputs in zip(*checked, strict=True)]
