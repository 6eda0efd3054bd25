# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Estimates for a compiled model, from the fitted costs of its core: nothing is built or run."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.core_data import SAME_CODE
from tinyml.cost.assumptions import assumption_of
from tinyml.cost.error_bars import DOUBTFUL, find_bars
from tinyml.cost.model import Code, CostModel, Speed, find_model
from tinyml.cost.small_code import ratios
from tinyml.ir import Layer
from tinyml.ops.framework.kernel import Kernel
from tinyml.ops.framework.kernel_costs import weighted
from tinyml.ops.framework.tally import Tally
from tinyml.pipeline import Compiled, Selected, banded_layers, looped_layers
from tinyml.settings.optimize import BALANCED

_NAME = re.compile(r"\b(?<!struct )[A-Za-z_]\w*")
_COPY = re.compile(r"\b(mem(?:cpy|move|set))\(.*?, ([^;]*)\);", re.DOTALL)
_MEMBER = re.compile(r"\.\w+ = ")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
UNSURE = frozenset(("memcpy", "memmove", "memset", "tinyml_crc32"))
"""Functions that the C names and that are not always linked: the compiler writes short copies itself, and
only firmware that checks its constants computes their checksum."""
WATCH = "tinyml_watch_"
"""Functions that are counted apart: they are always compiled for size."""
_OPERATORS = {"__aeabi_fsub": "-", "__subsf3": "-", "__aeabi_fmul": "*", "__mulsf3": "*"}
"""Helpers that only C with this operator can need: not all layers of a kernel have the same."""
_DIVISIONS = ("__aeabi_fdiv", "__divsf3")
SHORT_LAYER = 100  # bytes of a function that it copies to its calls
SHORT_COPY = 64  # bytes that the compiler copies without a call


@dataclass(frozen=True)
class Estimate:
    """What one run and the code of a model cost. Figures that are not known are None."""

    instructions: int | None
    cycles: int | None
    code_bytes: int
    constants_bytes: int  # weights, and the descriptions of layers and tensors
    layers: dict[int, int] = field(default_factory=dict)  # instructions by step
    unmeasured: tuple[str, ...] = ()  # kernels of which nothing is known on the core
    error: float | None = None  # of the instructions, as a part of them; None if it is not known
    unchecked: tuple[str, ...] = ()  # kernels of which no layers were held out

    @property
    def is_sure(self) -> bool:
        """Whether the instructions are known well enough to be of use."""
        return self.instructions is not None and self.error is not None and self.error <= DOUBTFUL

    @property
    def flash_bytes(self) -> int:
        return self.constants_bytes + self.code_bytes


def estimate_for(model: Compiled) -> Estimate | None:
    """None if there are no costs of the core that a model was compiled for."""
    costs = find_model(str(model.summary["target"]))
    return estimate(model, costs) if costs else None


def errors_of(model: Compiled) -> str:
    """How far an estimate can be off, in words."""
    target = str(model.summary["target"])
    costs = find_model(target)
    if costs is None:
        return ""
    found = estimate_for(model)
    if found and found.unmeasured:
        return f"no estimate of instructions: never measured: {', '.join(found.unmeasured)}"
    if found is None or not found.is_sure:
        return _unknown(found)
    small = "; for -Os scaled by the averages of five models" if "compile_flag" in model.summary else ""
    core = f", with the figures of the {SAME_CODE[target]}" if target in SAME_CODE else ""
    assumption = assumption_of(model)
    run = f"; {assumption}" if assumption else ""
    return (
        f"estimated, not counted{core}; instructions within {found.error:.0%} (true of 95 % of the layers "
        f"held out: docs/COST_ERRORS.md), code within {costs.code.error:.0%} (docs/COSTS.md){small}{run}"
    )


def _unknown(found: Estimate | None) -> str:
    """Why an estimate says nothing about instructions."""
    if found is not None and found.error is not None:
        why = f"the error bar of layers like these is {found.error:.0%} of the estimate"
    else:
        names = ", ".join(found.unchecked) if found else ""
        why = f"estimates of these kernels were never compared with layers held out: {names}"
    return (
        f"instructions unknown: {why} (docs/COST_ERRORS.md); `tinyml cost --count` counts them on an emulator"
    )


def estimate(model: Compiled, costs: CostModel) -> Estimate:
    """``costs``: those of the model's core."""
    spent, unmeasured = _speeds(model, costs.instructions)
    cycles, untimed = _speeds(model, costs.cycles) if costs.cycles else ({}, ())
    code = costs.code
    amounts = own_amounts(code, model)
    own = weighted(code.whole, amounts)
    extra = weighted(code.constants, amounts)
    known = not unmeasured
    scale = ratios(costs.target, str(model.summary.get("compile_flag", BALANCED.flag)))
    return Estimate(
        round(scale.instructions * sum(spent.values())) if known else None,
        round(scale.cycles * sum(cycles.values())) if known and costs.cycles and not untimed else None,
        round(scale.code * (round(own) + code.linked(functions(model, code)))) + _watch_bytes(model),
        int(model.summary["weights_bytes"]) + round(extra),
        {step: round(scale.instructions * amount) for step, amount in spent.items()},
        unmeasured,
        *_error(model, costs, spent),
    )


def _error(
    model: Compiled, costs: CostModel, spent: Mapping[int, float]
) -> tuple[float | None, tuple[str, ...]]:
    """How far off the sum of all layers may be, and the kernels that say nothing about it."""
    bars = find_bars(costs.target)
    layers = [
        (costs.instructions.bar_name(model.selected[step].kernel, model.tallies.get(step)), amount)
        for step, amount in spent.items()
    ]
    if bars is None:
        return None, tuple(dict.fromkeys(name for name, _ in layers))
    unchecked = dict.fromkeys(
        name for name, amount in layers if amount and bars.of_layer(name, amount) is None
    )
    return bars.of_model(layers), tuple(unchecked)


def _watch_bytes(model: Compiled) -> int:
    """The code that counts what a watched model sees and decides."""
    return int(model.summary.get("watch", {}).get("code_bytes", 0))


def _speeds(model: Compiled, speed: Speed) -> tuple[dict[int, float], tuple[str, ...]]:
    """The cost of each layer, and the kernels whose cost is not known."""
    spent: dict[int, float] = {}
    unmeasured: dict[str, None] = {}
    for step, chosen in enumerate(model.selected):
        if step in model.plan.free:
            continue
        found = speed.of_layer(chosen.layer, chosen.kernel, model.tallies.get(step))
        if found is None:
            unmeasured[chosen.kernel.name] = None
        spent[step] = found or 0.0
    return spent, tuple(unmeasured)


def _functions(model: Compiled) -> Iterator[tuple[Selected, Tally]]:
    """The layers that have a function, with what it does; those inside loops too."""
    for step, tally in model.tallies.items():
        yield from _with_inner(model.selected[step], tally)


def _with_inner(chosen: Selected, tally: Tally) -> Iterator[tuple[Selected, Tally]]:
    yield chosen, tally
    if (inside := looped_layers(chosen.layer)) is not None:
        for one, own in zip(inside[1], tally.inside, strict=True):
            yield from _with_inner(one, own)


def own_amounts(code: Code, model: Compiled) -> dict[str, float]:
    """What decides how large the model's own code and constants are."""
    text = model.files[f"{model.name}.c"]
    written = list(_functions(model))
    found = {"model": 1.0, "layers": float(len(written))}
    seen: set[str] = set()
    for chosen, tally in written:
        size = code.of_loops(chosen.layer, chosen.kernel, tally)
        kind = "bytes" if banded_layers(chosen.layer) is None else "bands"
        if tally.body in seen:  # the compiler merges equal functions, unless it copies them to their calls
            kind = "short repeated bytes" if size <= SHORT_LAYER else "repeated bytes"
        seen.add(tally.body)
        found[kind] = found.get(kind, 0.0) + size
    return found | {
        "ports": float(len(model.graph.inputs) + len(model.graph.outputs)),
        "states": float(len(model.graph.states)),
        "members": float(len(_MEMBER.findall(text))),
    }


def functions(model: Compiled, code: Code) -> set[str]:
    """The functions that a model's C names, or that the compiler calls for it."""
    text = _COMMENT.sub("", model.files[f"{model.name}.c"])
    named = {name for name in _NAME.findall(text) if not name.startswith(WATCH)}
    found = {name for name in named if name in code.functions} - UNSURE
    found |= {copy[1] for copy in _COPY.finditer(text) if not _is_short(copy[2])} & code.functions.keys()
    for chosen, tally in _functions(model):
        for name in inner_names(chosen.layer, chosen.kernel):
            found |= {helper for helper in code.helpers.get(name, ()) if _may_need(helper, tally)}
    return found


def _may_need(helper: str, tally: Tally) -> bool:
    """Whether a layer's C can call a helper: functions in it might; else it has the operator of the helper.

    To divide by a power of two is to multiply.
    """
    if any(name.endswith("()") for name in tally.written):
        return True
    if helper in _DIVISIONS:
        return not all(_is_power_of_two(divisor.rstrip("f")) for divisor in tally.divisors)
    return helper not in _OPERATORS or _OPERATORS[helper] in tally.operators


def _is_power_of_two(text: str) -> bool:
    try:
        return math.frexp(float(text))[0] == 0.5
    except ValueError:
        return False


def _is_short(size: str) -> bool:
    last = size.rsplit(", ", 1)[-1]
    return last.isdigit() and int(last) <= SHORT_COPY


def inner_names(layer: Layer, kernel: Kernel[Any]) -> list[str]:
    """The names under which the helpers of a layer are kept."""
    if (inside := banded_layers(layer)) is not None:
        return [name for part, own in inside for name in inner_names(part, own)]
    used = dict.fromkeys(t.dtype.value for t in (*layer.inputs, *layer.outputs) if t is not None)
    return [f"{kernel.name} {layer.op.label()} {' '.join(used)}"]
