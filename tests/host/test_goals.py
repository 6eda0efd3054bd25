# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`optimize:`: what each choice changes, and that the default changes nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tinyml
from tests.support.chains import Chain
from tinyml import harness
from tinyml.base.errors import ConfigError
from tinyml.cores import core_data
from tinyml.cost.estimate import estimate_for
from tinyml.datasets.arrays import pattern_inputs
from tinyml.emit.model import Provenance
from tinyml.emit.output_folder import write_files
from tinyml.harness.generated import read_generated
from tinyml.memory.bands.banded import Banded
from tinyml.ops.conv.conv import Conv
from tinyml.ops.framework.kernel_costs import instructions
from tinyml.pipeline import Compiled, Options, compile_graph, compile_model
from tinyml.projects import cmake, edit, manifest
from tinyml.settings.optimize import GOALS

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"


def compiled(optimize: str, target: str = "cortex-m4") -> Compiled:
    return compile_model(DIGITS, Options(target=target, optimize=optimize))


def linked(model: Compiled) -> int:
    return core_data.linked_bytes(
        model.summary["target"], [name for one in model.selected for name in one.kernel.functions(one.layer)]
    )


def chain_of(saving: str) -> Chain:
    """Three layers with a wide tensor between them, which bands save: much of it, or little."""
    width = {"much": 40, "little": 12}[saving]
    chain = Chain(1)
    chain.add("conv", width)
    chain.add("depthwise", 0)
    chain.add("conv", 4)
    return chain


def in_bands(saving: str, optimize: str) -> tuple[bool, int]:
    """Whether a chain is computed in bands, and its arena."""
    origin = Provenance("chain", "0" * 64, "")
    options = Options(target="cortex-m4", optimize=optimize)
    found = compile_graph(chain_of(saving).graph(), "chain", origin, options)
    return any(isinstance(one.layer.op, Banded) for one in found.selected), found.plan.arena_bytes


def test_the_default_is_balanced_and_leaves_no_trace() -> None:
    assert compiled("balanced").files == compile_model(DIGITS, Options(target="cortex-m4")).files
    assert next(iter(GOALS)) == "balanced" == Options().optimize
    assert "optimize" not in compiled("balanced").summary


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m33"])
def test_size_links_less_code_at_a_bounded_price(target: str) -> None:
    small, default = compiled("size", target), compiled("balanced", target)
    assert linked(small) < linked(default)
    assert (small.summary["optimize"], small.summary["compile_flag"]) == ("size", "-Os")
    assert "optimize size" in small.files["model.c"]
    core = harness.find_machine("qemu-cortex-m4").target
    for one, other in zip(small.selected, default.selected, strict=True):
        price, least = (instructions(each.kernel, one.layer, core) for each in (one, other))
        assert (price is None) == (least is None)
        assert (price or 0) <= GOALS["size"].slower * (least or 0)


def test_estimates_know_the_compilers_option() -> None:
    small, default = estimate_for(compiled("size")), estimate_for(compiled("balanced"))
    assert small
    assert default
    assert small.instructions
    assert default.instructions
    assert small.code_bytes < 0.9 * default.code_bytes
    assert default.instructions < small.instructions < 2 * default.instructions


def test_speed_has_no_bands_and_ram_has_them_for_little() -> None:
    for goal in ("balanced", "size", "ram"):
        assert in_bands("much", goal)[0], goal
    assert not in_bands("much", "speed")[0]
    assert not in_bands("little", "balanced")[0]
    assert in_bands("little", "ram")[0]
    assert in_bands("little", "ram")[1] < in_bands("little", "balanced")[1]


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55"])
def test_ram_gives_less_on_every_core(target: str) -> None:
    assert compiled("ram", target).plan.arena_bytes < 0.75 * compiled("balanced", target).plan.arena_bytes


def test_ram_takes_slower_kernels_at_the_peak_alone() -> None:
    """Without bands: the layer with the most memory gets another kernel, all others the fastest."""
    chain = Chain(1, extents=(8, 8))
    for channels in (48, 32, 4, 4):
        chain._weighted(Conv((1, 1)), (channels, 1, 1, chain.end.shape[3]), 0)
    origin = Provenance("chain", "0" * 64, "")
    found = {
        goal: compile_graph(
            chain.graph(), goal, origin, Options(target="cortex-m3", optimize=goal, bands=False)
        )
        for goal in ("balanced", "ram")
    }
    kernels = {goal: [one.kernel.name for one in model.selected] for goal, model in found.items()}
    assert kernels["balanced"] == ["tinyml_conv_halves_s8"] * 4
    assert kernels["ram"] == ["tinyml_conv_halves_s8", "tinyml_conv_s8", *["tinyml_conv_halves_s8"] * 2]
    assert found["ram"].plan.arena_bytes < found["balanced"].plan.arena_bytes


def test_the_results_are_the_same() -> None:
    outputs = []
    for goal in GOALS:
        model = compiled(goal, "host")
        outputs.append(harness.run_files(model.files, "host", [pattern_inputs(model.graph)]).outputs[0])
    for found in outputs[1:]:
        for name, expected in outputs[0].items():
            np.testing.assert_array_equal(found[name], expected)


def test_the_harness_compiles_as_the_summary_says(tmp_path: Path) -> None:
    for goal in ("size", "balanced"):
        folder = tmp_path / goal
        write_files(folder, compiled(goal).files)
        assert read_generated(folder).compile_flag == GOALS[goal].flag


def test_tinyml_yaml_and_cmake(tmp_path: Path) -> None:
    (entry,) = manifest.parse("models: [{name: a, file: a.onnx, optimize: ram}]", "x").models
    assert entry.optimize == "ram"
    assert manifest.parse(edit.add_model("", entry), "x").models == (entry,)
    path = tmp_path / "tinyml.yaml"
    path.write_text("models: [{name: a, file: a.onnx, optimize: size}]")
    assert "[=[OPTIMIZE]=] [=[size]=]" in cmake.calls(path)
    with pytest.raises(ConfigError, match="x:1:34: model 1: cannot optimize for 'sped'; did you mean speed"):
        manifest.parse("models: [{name: a, file: a.onnx, optimize: sped}]", "x")


def test_the_api() -> None:
    assert tinyml.compile(DIGITS, target="cortex-m4", optimize="size").summary["optimize"] == "size"
    small, default = (tinyml.cost(DIGITS, "cortex-m4", optimize=goal) for goal in ("size", "balanced"))
    assert small.flash_bytes is not None
    assert default.flash_bytes is not None
    assert small.flash_bytes < default.flash_bytes
    with pytest.raises(ConfigError, match="cannot optimize for 'fast'"):
        tinyml.compile(DIGITS, optimize="fast")  # type: ignore[arg-type]
