# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Layers whose weights fit into four bits: which of them take kernels for that, and which keep bytes.

Both compute the same outputs. Four bits halve the weights of a layer, and cost code if its kernel is not
linked otherwise: layers that are small keep their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tinyml.cores import core_data
from tinyml.cores.targets import Target, find_target
from tinyml.ir import Layer
from tinyml.ops.framework.kernel import Kernel
from tinyml.ops.framework.kernel_costs import instructions

UNKNOWN_CODE_BYTES = 2048
"""What a kernel is taken to link if its code was never measured on the core."""

LEAST_WEIGHTS = 256
"""Layers with fewer weights keep their bytes: there is nothing to gain."""

LEAST_GAIN = LEAST_WEIGHTS // 2
"""Bytes that another kernel for four bits must save to be taken."""

SHORT_CODE = 1 / 400
"""The part of a run that kernels which are chosen for their short code may add."""

Choice = tuple[Layer, Kernel[Any]]


def few_bits(kernel: Kernel[Any]) -> bool:
    """Whether the kernel reads weights that are smaller than bytes."""
    return kernel.weight_bits < 8


def fast_enough(four: Kernel[Any], eight: Kernel[Any], layer: Layer, target: Target, slower: float) -> bool:
    """Whether ``four`` takes at most ``slower`` times the instructions of ``eight``, as far as is known.

    If no factor above 1 is allowed, both must be known. A kernel with vectors is several times faster than
    any other.
    """
    if _loses_vectors(four, eight):
        return False
    less, more = instructions(eight, layer, target), instructions(four, layer, target)
    if less is None or more is None:
        return slower > 1
    return more <= slower * less


def hardly_slower(
    eights: Sequence[Choice], slow: Mapping[int, Kernel[Any]], target: Target, more: float
) -> tuple[list[int], float]:
    """Steps of the ``slow`` kernels that together add at most the part ``more`` to the known run.

    Those that save the most bytes for an instruction come first. Also returns the instructions that are left.
    """
    left = more * sum(instructions(eight, layer, target) or 0 for layer, eight in eights)
    extra: dict[int, float] = {}
    for step, four in slow.items():
        layer, eight = eights[step]
        added = _added(eight, four, layer, target)
        if added is not None:
            extra[step] = added
    saved = {step: saved_bytes(slow[step], eights[step][1], eights[step][0]) for step in extra}
    steps = []
    for step in sorted(extra, key=lambda step: extra[step] / max(saved[step], 1)):
        if extra[step] <= left:
            left -= extra[step]
            steps.append(step)
    return steps, left


def _added(before: Kernel[Any], after: Kernel[Any], layer: Layer, target: Target) -> float | None:
    """How many instructions more ``after`` takes, if that is known and it does not do without vectors."""
    less, more = instructions(before, layer, target), instructions(after, layer, target)
    return None if less is None or more is None or _loses_vectors(after, before) else more - less


def large_enough(layer: Layer) -> bool:
    """Whether four bits save anything worth mentioning."""
    return len(layer.inputs) > 1 and layer.inputs[1] is not None and layer.input(1).elements >= LEAST_WEIGHTS


def made_for_core(four: Kernel[Any], eight: Kernel[Any]) -> bool:
    """Whether ``four`` uses instructions of the core, and ``eight`` is plain C because it must.

    Small weights come with large outputs, which most kernels for bytes do not support.
    """
    plain = find_target("host")
    return eight.runs_on(plain) and not four.runs_on(plain)


def _loses_vectors(four: Kernel[Any], eight: Kernel[Any]) -> bool:
    return _with_vectors(eight) and not _with_vectors(four)


def _with_vectors(kernel: Kernel[Any]) -> bool:
    return "_mve_" in kernel.name or "_rvv_" in kernel.name


def saved_bytes(four: Kernel[Any], eight: Kernel[Any], layer: Layer) -> int:
    """What the constants of a layer take less."""
    bits = eight.weight_bits - four.weight_bits
    return layer.input(1).elements * bits // 8 - four.repeated_bytes(layer)


def worth_storing(
    eights: Sequence[Choice],
    fours: Sequence[Kernel[Any] | None],
    target: Target,
    others: Sequence[Sequence[Kernel[Any]]] = (),
    left: float = 0,
) -> list[Kernel[Any]]:
    """For each layer the kernel with which weights and code are smallest, one kind of kernel at a time.

    Kernels for bytes replace those for four bits that do not save what their code takes. ``others`` are
    further kernels for four bits of each layer, short ones in plain C, or those that other layers link
    anyway, for a layer with few weights. They replace any kernel if that makes the image noticeably smaller
    and all of them add at most ``left`` instructions to a run.
    """
    best = [four or eight for (_, eight), four in zip(eights, fours, strict=True)]
    left = min(left, SHORT_CODE * sum(instructions(eight, layer, target) or 0 for layer, eight in eights))
    while True:
        least = _size(eights, best, target)
        in_bytes = [
            [
                eight if kernel.name == name else kernel
                for (_, eight), kernel in zip(eights, best, strict=True)
            ]
            for name in dict.fromkeys(kernel.name for kernel in best if few_bits(kernel))
        ]
        smallest = min(in_bytes, key=lambda each: _size(eights, each, target), default=best)
        if smallest is not best and _size(eights, smallest, target) <= least:
            best = smallest
            continue
        replaced = [
            (_size(eights, kernels, target), added, kernels)
            for added, kernels in _replaced(eights, best, others, target)
            if added <= left
        ]
        size, added, kernels = min(replaced, key=lambda each: each[:2], default=(least, 0, best))
        if size > least - LEAST_GAIN:
            return best
        best, left = kernels, left - max(added, 0)


def _replaced(
    eights: Sequence[Choice],
    kernels: Sequence[Kernel[Any]],
    others: Sequence[Sequence[Kernel[Any]]],
    target: Target,
) -> Iterator[tuple[float, list[Kernel[Any]]]]:
    """One kernel replaced by another where layers allow it: the instructions that adds, and all kernels."""
    pairs = {
        (kernel.name, other.name)
        for kernel, more in zip(kernels, others, strict=False)
        for other in more
        if other is not kernel
    }
    for before, after in sorted(pairs):
        found, added = list(kernels), 0.0
        for step, (kernel, more) in enumerate(zip(kernels, others, strict=True)):
            other = next((one for one in more if one.name == after), None) if kernel.name == before else None
            if other is None:
                continue
            extra = _added(kernel, other, eights[step][0], target)
            if extra is not None:
                found[step], added = other, added + extra
        yield added, found


def _size(eights: Sequence[Choice], kernels: Sequence[Kernel[Any]], target: Target) -> int:
    """Bytes of code, less those that weights save."""
    functions = {
        name for (layer, _), kernel in zip(eights, kernels, strict=True) for name in kernel.functions(layer)
    }
    unknown = {
        kernel.name
        for kernel in kernels
        if few_bits(kernel) and not core_data.linked_bytes(target.name, [kernel.name])
    }
    saved = sum(
        saved_bytes(kernel, eight, layer)
        for (layer, eight), kernel in zip(eights, kernels, strict=True)
        if few_bits(kernel)
    )
    return core_data.linked_bytes(target.name, functions) + UNKNOWN_CODE_BYTES * len(unknown) - saved
