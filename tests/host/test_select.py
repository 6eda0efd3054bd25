# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which library computes a layer, depending on the request, the build and the costs on the core."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.weighted_layers import Layers, Weighted
from tinyml.base.errors import UnsupportedError
from tinyml.cores.core_data import measured
from tinyml.cores.targets import TARGETS, find_target
from tinyml.emit.model import Provenance
from tinyml.memory import select
from tinyml.ops.conv.conv import Conv
from tinyml.ops.conv.convolution import Convolution
from tinyml.ops.conv.depthwise import DepthwiseConv
from tinyml.ops.dense.dense import Dense
from tinyml.ops.framework.kernel import Library, kernels_of
from tinyml.ops.framework.kernel_costs import instructions
from tinyml.pipeline import Options, compile_graph, compile_model

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"


def convolutions(options: Options) -> set[Library]:
    compiled = compile_model(DIGITS, options)
    return {each.kernel.library for each in compiled.selected if isinstance(each.layer.op, Conv)}


@pytest.mark.parametrize("target", ["cortex-m3", "cortex-m4", "cortex-m55"])
def test_a_choice_is_kept(target: str) -> None:
    assert convolutions(Options(target=target, kernels="portable", cmsis_nn=True)) == {Library.PORTABLE}
    assert convolutions(Options(target=target, kernels="cmsis-nn")) == {Library.CMSIS_NN}


def test_auto_takes_only_what_the_build_has() -> None:
    assert convolutions(Options(target="cortex-m55")) == {Library.PORTABLE}


@pytest.mark.parametrize("target", ["cortex-m3", "cortex-m4", "cortex-m55"])
def test_auto_takes_the_cheaper(target: str) -> None:
    def costs(options: Options) -> list[float]:
        selected = compile_model(DIGITS, options).selected
        core = find_target(target)
        found = (instructions(each.kernel, each.layer, core) for each in selected)
        return [amount for amount in found if amount is not None]

    auto = costs(Options(target=target, cmsis_nn=True, optimize="speed"))
    for kernels in ("portable", "cmsis-nn"):
        others = costs(Options(target=target, kernels=kernels))
        assert all(best <= other for best, other in zip(auto, others, strict=True))


@pytest.mark.parametrize("wide, library", [(True, Library.PORTABLE), (False, Library.CMSIS_NN)])
def test_a_library_is_linked_for_what_it_saves(wide: bool, library: Library) -> None:
    """CMSIS-NN is faster at a single output: alone worth its code, beside a large layer not."""
    sketch = Layers()
    sketch.weighted("single", Weighted(Dense(), (1, 512), (1, 512)), once=False)
    if wide:
        sketch.weighted("wide", Weighted(Dense(), (1, 512), (256, 512)), once=False)
    origin = Provenance("a", "0" * 64, "")
    found = compile_graph(sketch.graph(), "a", origin, Options(target="cortex-m4", cmsis_nn=True)).selected
    assert found[0].kernel.library is library
    fast = Options(target="cortex-m4", cmsis_nn=True, optimize="speed")
    assert compile_graph(sketch.graph(), "a", origin, fast).selected[0].kernel.library is Library.CMSIS_NN


def test_provenance_tells_the_two_autos_apart() -> None:
    assert Options(cmsis_nn=True).describe() == "with CMSIS-NN"
    assert Options().describe() == ""
    assert Options(kernels="portable", cmsis_nn=True).describe() == "kernels portable"


@pytest.mark.parametrize("target", [name for name, target in TARGETS.items() if target.arm])
def test_every_competing_kernel_was_measured(target: str) -> None:
    """A kernel without figures would never be chosen."""
    core = find_target(target)
    kernels = measured(target)["instructions"]["kernels"]
    listed = (kernel for op in (Conv, DepthwiseConv, Dense) for kernel in kernels_of(op))
    competing = (kernel for kernel in listed if kernel.weight_bits == 8)  # others are taken for their size
    names = {kernel.name for kernel in competing if kernel.name.endswith("_s8") and kernel.runs_on(core)}
    known = {name.split(" ")[0] for name in kernels}
    assert not {name for name in names if "_f32_" not in name} - known


def test_a_kernel_that_was_never_measured_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless there is no other."""
    case = Weighted(Conv(), (1, 4, 4, 8), (8, 1, 1, 8))
    monkeypatch.setattr(select, "instructions", lambda kernel, layer, target: None)
    assert selected(case, "cortex-m4", "auto") == [Library.PORTABLE]
    assert selected(case, "cortex-m4", "cmsis-nn") == [Library.CMSIS_NN]


def test_wide_convolutions_where_there_are_registers_for_them() -> None:
    """Not with three positions, which suit three windows at a time, and not where code must be small."""

    def chosen(target: str, width: int, optimize: str = "balanced") -> str:
        sketch = Layers()
        sketch.weighted("conv", Weighted(Conv(), (1, 1, width, 8), (8, 1, 1, 8)), once=False)
        compiled = compile_graph(
            sketch.graph(),
            "conv",
            Provenance("conv", "0" * 64, ""),
            Options(target=target, optimize=optimize),
        )
        return str(compiled.summary["layers"][-1]["kernel"])

    assert chosen("riscv32", 4) == "tinyml_conv_wide_s8"
    assert chosen("riscv32", 4, "size") == "tinyml_conv_s8"
    assert chosen("riscv32-zve32x", 4, "size") == "tinyml_conv_rvv_s8"
    assert chosen("riscv32", 3) == "tinyml_conv_s8"
    assert chosen("generic", 4) == "tinyml_conv_s8"


def selected(case: Weighted, target: str, kernels: str) -> list[Library]:
    sketch = Layers()
    sketch.weighted("a", case, once=False)
    origin = Provenance("a", "0" * 64, "")
    options = Options(target=target, kernels=kernels, cmsis_nn=True)
    compiled = compile_graph(sketch.graph(), "a", origin, options)
    return [each.kernel.library for each in compiled.selected]


@pytest.mark.parametrize("channels, library", [(255, Library.CMSIS_NN), (256, Library.PORTABLE)])
def test_filters_that_cmsis_nn_cannot_count(channels: int, library: Library) -> None:
    """On cores without DSP instructions it counts the elements of a filter in 16 bits."""
    case = Weighted(Conv(), (1, 16, 16, channels), (1, 16, 16, channels))
    assert selected(case, "cortex-m3", "cmsis-nn") == [library]


@pytest.mark.parametrize(
    "op",
    [
        Conv((1, 19_999), pads=(0, 40_000, 0, 40_000)),
        Conv((70_000, 65_536)),
        Conv(dilations=(65_536, 1)),
        DepthwiseConv((1, 19_999), pads=(0, 40_000, 0, 40_000)),
    ],
)
def test_windows_beyond_16_bits_are_refused(op: Convolution) -> None:
    kernel = (1, 1, 3, 1)
    with pytest.raises(UnsupportedError, match="strides and dilations are all below 32,768"):
        selected(Weighted(op, (1, 1, 10, 1), kernel), "cortex-m4", "portable")
