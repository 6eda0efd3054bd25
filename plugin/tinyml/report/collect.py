# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Collects a report: compiles the model, records the passes, and measures it if a machine is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tinyml import bounds, harness
from tinyml.base.errors import TinymlError, ToolError
from tinyml.cost.cycles import Cycles, run_files
from tinyml.cost.estimate import errors_of, estimate_for
from tinyml.cost.hints import hints
from tinyml.datasets.model_inputs import load_samples
from tinyml.harness import stack
from tinyml.harness.footprint import CMSIS_NN, LIBRARY, MODEL, RUNTIME
from tinyml.harness.zephyr import Cost
from tinyml.ir import Tensor
from tinyml.ir.text import attribute_texts
from tinyml.pipeline import Compiled, Options, compile_model
from tinyml.report.facts import (
    SCHEMA,
    Estimated,
    LayerFacts,
    Measured,
    OperandFacts,
    Profile,
    Report,
    TensorFacts,
)
from tinyml.report.html import page
from tinyml.report.stages import StageFacts, Watch


def collect(path: Path, options: Options, machine: str | None = None) -> Report:
    """The report of a model; with ``machine``, including what each layer costs there."""
    watch = Watch()
    compiled = compile_model(path, options, watch)
    report = describe(compiled, path.name, options.kernels, watch.stages)
    return measured(report, compiled, machine) if machine else report


def report_files(compiled: Compiled, file: str, kernels: str, stages: list[StageFacts]) -> dict[str, str]:
    """The report of a build: a page, and the same content as JSON."""
    report = describe(compiled, file, kernels, stages)
    name = f"{compiled.name}_report"
    return {f"{name}.html": page(report), f"{name}.json": report.to_json()}


def describe(compiled: Compiled, file: str, kernels: str, stages: list[StageFacts]) -> Report:
    """What is known without running anything."""
    summary, problem = compiled.summary, compiled.plan.problem
    steps = len(compiled.selected)
    live = [problem.live_bytes(step) for step in range(steps + 1)]
    return Report(
        schema=SCHEMA,
        model=compiled.name,
        file=file,
        sha256=summary["sha256"],
        version=summary["version"],
        target=summary["target"],
        kernels=kernels,
        inputs=summary["inputs"],
        outputs=summary["outputs"],
        macs=summary["macs"],
        weights_bytes=summary["weights_bytes"],
        arena_bytes=summary["arena_bytes"],
        arena_lower_bound_bytes=summary["arena_lower_bound_bytes"],
        state_bytes=summary["state_bytes"],
        peak_step=max(range(steps + 1), key=live.__getitem__),
        layers=_layers(compiled, live),
        tensors=_tensors(compiled),
        stages=_changes(stages),
        notes=[*compiled.graph.notes, *hints(compiled), *_watched(compiled)],
        accuracy=[f"Quantised: {compiled.quantization.headline()}"] if compiled.quantization else [],
        estimated=_estimated(compiled),
    )


def _watched(compiled: Compiled) -> list[str]:
    """What the counters of a watched model take; the totals contain it."""
    found = compiled.summary.get("watch")
    if not found:
        return []
    flash = found["flash_bytes"] + found["code_bytes"]
    return [f"watched: {found['ram_bytes']:,} bytes of RAM (state) and about {flash:,} bytes of flash"]


def _estimated(compiled: Compiled) -> Estimated | None:
    found = estimate_for(compiled)
    if found is None:
        return None
    note = errors_of(compiled)
    return Estimated(
        found.instructions, found.cycles, found.constants_bytes, found.code_bytes, note, found.error
    )


def measured(
    report: Report,
    compiled: Compiled,
    machine: str,
    inputs: Path | None = None,
    files: Mapping[str, str] | None = None,
) -> Report:
    """The report with the cost of a run on ``machine``. Builds twice, because profiling adds instructions.

    ``files`` are built instead of those of ``compiled``: another form of the same layers.
    """
    samples = load_samples(inputs, compiled.graph)[:1]
    files = compiled.files if files is None else files
    plain = harness.run_files(files, machine, samples, reset_before={0})
    if plain.instructions is None or plain.footprint is None or plain.stack_bytes is None:
        raise ToolError(
            f"{machine} does not count instructions",
            f"one of: {', '.join(name for name, m in harness.MACHINES.items() if m.clock)}",
        )
    profiled, estimate = run_files(
        files, machine, samples, reset_before={0}, options=harness.Options(profile=True)
    )
    costs = profiled.layers or {}
    parts = plain.footprint
    facts = Measured(
        machine,
        plain.instructions[0],
        plain.stack_bytes,
        constants_bytes=parts.weights_bytes,
        kernels_bytes=parts.part(RUNTIME).flash + parts.part(CMSIS_NN).flash,
        glue_bytes=parts.part(MODEL).flash - parts.weights_bytes,
        library_bytes=parts.part(LIBRARY).flash,
        other_ram_bytes=parts.total.ram - report.arena_bytes - report.state_bytes,
        cycles_estimated=estimate.total if isinstance(estimate, Cycles) else None,
        cycles_note=estimate.how if isinstance(estimate, Cycles) else f"no estimate: {estimate.why}",
        **_bounds(files, machine),
    )
    cycles = estimate.layers if isinstance(estimate, Cycles) else {}
    layers = [
        replace(
            layer,
            instructions=costs.get(layer.step, 0),
            cycles_estimated=cycles.get(layer.step, 0) if cycles else None,
        )
        for layer in report.layers
    ]
    return replace(report, measured=facts, layers=layers, estimated=None)


def _bounds(files: Mapping[str, str], machine: str) -> dict[str, Any]:
    """What no run exceeds: by a walk through the machine code, or the stack by the compiler's call graph."""
    try:
        found = bounds.bound_files(files, harness.find_machine(machine))
    except TinymlError as error:
        return {"stack_bound_bytes": stack.bound_of_files(files, machine), "bound_note": error.message}
    return {"stack_bound_bytes": found.stack_bytes, "most_instructions": found.instructions}


def profiled(report: Report, where: str, cost: Cost) -> Report:
    """The report with the cost of a run in a Zephyr image."""
    counts = [(layer, cost.layers[layer.step]) for layer in report.layers]
    if cost.unit == "cycles":
        layers = [replace(layer, cycles=count) for layer, count in counts]
    else:
        layers = [replace(layer, instructions=count) for layer, count in counts]
    return replace(report, profile=Profile(where, cost.unit, cost.total, cost.how), layers=layers)


def _layers(compiled: Compiled, live: list[int]) -> list[LayerFacts]:
    found = []
    noise = {n.name: n.decibels for n in compiled.quantization.layers} if compiled.quantization else {}
    for step, chosen in enumerate(compiled.selected):
        layer = chosen.layer
        found.append(
            LayerFacts(
                step=step,
                name=layer.name,
                op=layer.op.kind,
                label=layer.op.label(),
                kernel=chosen.kernel.name,
                library=chosen.kernel.library.value,
                free=step in compiled.plan.free,
                macs=layer.op.macs(layer),
                weights_bytes=compiled.summary["layers"][step]["weights_bytes"],
                scratch_bytes=chosen.scratch_bytes,
                scratch_offset=compiled.plan.scratch.get(step),
                live_bytes=live[step],
                inputs=[t.name for t in layer.inputs if t is not None and not t.is_constant],
                outputs=[t.name for t in layer.outputs],
                shape=list(layer.outputs[0].shape),
                operands=[_operand("constant" if t.is_constant else "input", t) for t in layer.inputs if t]
                + [_operand("output", t) for t in layer.outputs],
                snr_db=None if layer.op.movement else noise.get(layer.name),
                code=compiled.layer_functions[step],
                attributes=attribute_texts(layer.op),
            )
        )
    return found


def _operand(role: str, tensor: Tensor) -> OperandFacts:
    quant = tensor.quant
    scales = list(quant.scales) if quant else []
    zeros = list(quant.zero_points) if quant else []
    return OperandFacts(
        role,
        tensor.name,
        list(tensor.shape),
        tensor.dtype.value,
        tensor.bytes,
        scales=[min(scales), max(scales)] if len(scales) > 1 else scales,
        zero_points=[min(zeros), max(zeros)] if len(zeros) > 1 else zeros,
        channels=len(scales) if len(scales) > 1 else None,
    )


def _tensors(compiled: Compiled) -> list[TensorFacts]:
    """Everything in the arena with the steps at which it is needed; the step after the last is the end."""
    end = len(compiled.selected)
    first: dict[str, int] = dict.fromkeys(compiled.graph.inputs, 0)
    last: dict[str, int] = {}
    for step, chosen in enumerate(compiled.selected):
        for tensor in chosen.layer.outputs:
            first[tensor.name] = step
        for operand in chosen.layer.inputs:
            if operand is not None:
                last[operand.name] = step
    last.update(dict.fromkeys(compiled.graph.kept(), end))
    found = []
    for name, place in compiled.plan.places.items():
        if place.region.value == "arena":
            tensor = compiled.graph.tensors[name]
            begin = first.get(name, 0)
            found.append(
                TensorFacts(
                    *(name, list(tensor.shape), tensor.dtype.value, tensor.bytes, place.offset),
                    *(begin, last.get(name, begin)),
                )
            )
    return sorted(found, key=lambda t: (t.first, t.offset))


def _changes(stages: list[StageFacts]) -> list[StageFacts]:
    """The import, and every pass that changed what is counted."""
    kept = stages[:1]
    for stage in stages[1:]:
        if replace(stage, name="") != replace(kept[-1], name=""):
            kept.append(stage)
    return kept
