"""Node + target → kernel. Before planning, because scratch memory depends on the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyml.errors import UnsupportedError
from tinyml.ir import Graph, Layer
from tinyml.kernel import Kernel, Library, kernels_of
from tinyml.targets import Target


@dataclass(frozen=True, eq=False)
class Selected:
    """A layer and the kernel that will compute it."""

    layer: Layer
    kernel: Kernel
    scratch_bytes: int

    @property
    def overwrites(self) -> tuple[int, ...]:
        """Inputs that output 0 may be written over."""
        return self.kernel.overwrites(self.layer)


def select(graph: Graph, target: Target, libraries: frozenset[Library]) -> tuple[Selected, ...]:
    """The first kernel of each operator that the target, the libraries and the layer allow."""
    chosen: list[Selected] = []
    problems: list[str] = []
    for layer in graph.layers():
        kernel = _first_fit(layer, target, libraries)
        if isinstance(kernel, Kernel):
            chosen.append(Selected(layer, kernel, kernel.scratch_bytes(layer, target)))
        else:
            problems.append(f"  {layer.op.kind} {layer.name!r} ({_types(layer)}): {kernel}")
    if problems:
        unique = list(dict.fromkeys(problems))
        raise UnsupportedError(
            "no kernel takes these layers:\n" + "\n".join(unique), "`tinyml ops` lists what is supported"
        )
    return tuple(chosen)


def _first_fit(layer: Layer, target: Target, libraries: frozenset[Library]) -> Kernel | str:
    """A kernel, or why there is none: what each candidate asks for."""
    refusals: list[str] = []
    for kernel in kernels_of(type(layer.op)):
        if kernel.library not in libraries or not kernel.runs_on(target):
            continue
        refusal = kernel.refusal(layer)
        if refusal is None:
            return kernel
        refusals.append(f"{kernel.name} asks: {refusal}")
    return "; ".join(refusals) or "this operator has no kernel"


def _types(layer: Layer) -> str:
    operands: Sequence[str] = [t.dtype.value for t in layer.inputs if t is not None]
    return f"{', '.join(operands)} -> {', '.join(t.dtype.value for t in layer.outputs)}"
