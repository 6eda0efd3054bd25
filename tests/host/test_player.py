# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models that are data: layers by the player and by numpy; the records of calls in Python and in C."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest

from tests.depth import is_deep
from tests.random_layers.batch import batch
from tests.random_layers.check import PLAYER, Choices, Place, check
from tests.support.cases import Case
from tests.support.played_layers import graphs, samples
from tinyml import harness
from tinyml.emit.model import Provenance
from tinyml.ir import Array, Graph
from tinyml.pipeline import Compiled, Options, compile_graph
from tinyml.player import records
from tinyml.player.call_work import _WORK
from tinyml.player.kernels import BY_NUMBER, KERNELS
from tinyml.player.layout import Layout
from tinyml.player.program import UnplayableError
from tinyml.setup.installation import runtime
from tinyml.slots.data import data_image
from tinyml.slots.play import play_files
from tinyml.slots.version import Version

OWN_STRUCTURES = {  # records that are a structure of a kernel, which has no pointers
    "POOL": "tinyml_pool_s8",
    "SOFTMAX": "tinyml_softmax_s8",
    "ADD": "tinyml_add_s8",
}
STRUCTURES = {
    "CONV_STREAM": "conv_stream_s8",
    "CONV_MVE": "conv_mve_s8",
    "CONV_RVV": "conv_rvv_s8",
    "CONV_FLOAT": "conv_f32",
    "DEPTHWISE": "depthwise_conv_s8",
    "DEPTHWISE_MVE": "depthwise_conv_mve_s8",
    "DENSE_STREAM": "dense_stream_s8",
    "DENSE_MVE": "dense_mve_s8",
    "DENSE_FLOAT": "dense_f32",
    "BINARY_FLOAT": "binary_f32",
    "UNARY_FLOAT": "unary_f32",
    "SOFTMAX_FLOAT": "softmax_f32",
    "POOL_FLOAT": "pool_f32",
    "BINARY": "binary_s8",
    "MEAN_ANY": "mean_any_s8",
    "MAX_POOL": "max_pool_s8",
    "REDUCE": "reduce_s8",
    "DENSE_SPARSE": "dense_runs",
}
MEMBERS = {"DENSE_SPARSE.places": "runs"}
"""Members that another record with the same structure calls otherwise."""
LAYOUTS = {name: value for name, value in vars(records).items() if isinstance(value, Layout)}


def structure(name: str) -> str:
    own = OWN_STRUCTURES.get(name)
    return own or f"tinyml_play_{STRUCTURES.get(name, name.lower())}"


def test_records_are_those_of_c(tmp_path: Path) -> None:
    """Sizes and places of all members, on this machine; records have no pointers and are alike on all."""
    expected: list[str] = []
    lines: list[str] = []
    for name, layout in LAYOUTS.items():
        kind = f"struct {structure(name)}"
        expected.append(f"{name} {layout.size}")
        lines.append(f'printf("{name} %zu\\n", sizeof({kind}));')
        codes = "<"
        for member in layout.members:
            code, _, field = member.partition(" ")
            if field:
                c_name = re.sub(r"\.(\d+)$", r"[\1]", field.removeprefix("."))
                c_name = MEMBERS.get(f"{name}.{c_name}", c_name)
                expected.append(f"{name}.{c_name} {struct.calcsize(codes)}")
                lines.append(f'printf("{name}.{c_name} %zu\\n", offsetof({kind}, {c_name}));')
            codes += code.rstrip("*")
    headers = ("stddef.h", "stdio.h", "tinyml/add.h", "tinyml/play_records.h", "tinyml/pool.h")
    includes = "".join(f"#include <{header}>\n" for header in (*headers, "tinyml/softmax.h"))
    source = tmp_path / "records.c"
    source.write_text(f"{includes}int main(void)\n{{\n" + "\n".join(lines) + "\nreturn 0;\n}\n")
    program = tmp_path / "records"
    command = ["gcc", "-Werror", f"-I{runtime() / 'include'}", str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    printed = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    assert printed.splitlines() == expected


def test_every_record_has_its_work() -> None:
    assert {kernel.record for kernel in KERNELS.values()} <= set(_WORK)


def test_numbers_are_unique_and_fit() -> None:
    assert len(BY_NUMBER) == len(KERNELS)
    assert all(0 <= number < 1 << 10 for number in BY_NUMBER)


def test_sources_and_declarations_exist() -> None:
    """A kernel's files are there, and its functions are declared where generated tables look for them."""
    declared = "".join(path.read_text() for path in (runtime() / "include/tinyml").glob("play_*.h"))
    for kernel in KERNELS.values():
        assert all((runtime() / source).is_file() for source in kernel.sources), kernel.name
        assert f" {kernel.play}(" in declared, kernel.name
        assert f" {kernel.check}(" in declared, kernel.name
        if kernel.function:
            header = (runtime() / "include" / kernel.header).read_text()
            assert f" {kernel.function}(" in header, kernel.name


@pytest.mark.parametrize("number", [0, *(pytest.param(i, marks=pytest.mark.deep) for i in range(1, 10))])
def test_random_layers(number: int) -> None:
    """Under sanitizers; the campaign (tools.random_layers --kernels player) has emulated cores."""
    tally = check(batch(34, number, size=40), Place("host", PLAYER), Choices.of(number))
    assert not tally.wrong
    assert tally.equal > 20


FILES = (
    *("quantised", "movement", "pools", "reduce", "binary", "convolution", "softmax", "unary"),
    *("attention", "normalization", "arg_reduce", "choice", "recurrent", "trees"),
)
PLAYED = 1000 if is_deep() else 1
"""Cases of a file that are played."""


def assert_equal(image: bytes, compiled: Compiled, inputs: Mapping[str, Array], name: str) -> None:
    """An image gives every bit that compiled code gives."""
    checked = harness.Options(sanitize=True, strict=True)
    (found,) = harness.run_files(play_files(image, "host"), "host", [inputs], options=checked).outputs
    (expected,) = harness.run_files(compiled.files, "host", [inputs]).outputs
    for output, values in expected.items():
        assert found[output].tobytes() == values.tobytes(), (name, output)


@pytest.mark.parametrize("graph", list(graphs()), ids=lambda graph: graph.name)
def test_layers_are_played_as_they_are_compiled(graph: Graph) -> None:
    compiled = compile_graph(graph, "model", Provenance(graph.name, "0" * 64, ""), Options(target="host"))
    image = data_image(compiled, Version(1, 0, 0, 0))
    assert_equal(image.content, compiled, samples(graph), graph.name)


@pytest.mark.parametrize("file", FILES)
def test_cases_are_played_as_they_are_compiled(file: str) -> None:
    """Every bit is the same."""
    cases: list[Case] = import_module(f"tests.ops.{file}").CASES
    played = 0
    for case in cases:
        origin = Provenance(case.name, "0" * 64, "")
        compiled = compile_graph(case.graph(), "model", origin, Options(target="host"))
        try:
            image = data_image(compiled, Version(1, 0, 0, 0))
        except UnplayableError:
            continue
        assert_equal(image.content, compiled, case.inputs, case.name)
        played += 1
        if played == PLAYED:
            return
    assert played, "none of them can be data"
