# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The model's inputs and outputs as its header declares them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tinyml.base import c
from tinyml.base.errors import UnsupportedError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.limits import MOST_PORTS
from tinyml.base.naming import shape_text
from tinyml.emit.layers import Addresses
from tinyml.emit.names import unique_identifiers
from tinyml.ir import Graph, Tensor
from tinyml.memory.bands.row_arrangement import row_order


@dataclass(frozen=True)
class Port:
    """An input or output: C names and facts for the templates."""

    tensor: Tensor
    function: str  # kws_input or kws_input_<name>
    extents: str  # kws_input_shape or kws_input0_shape: a tensor may be called x_shape beside one called x
    macro: str  # KWS_INPUT or KWS_INPUT_<NAME>
    parameter: str  # of kws_run, if the caller provides the memory: input or input_<name>
    address: str  # NULL if it is in the caller's memory
    comment: str

    @property
    def c_type(self) -> str:
        return self.tensor.dtype.c

    @property
    def c_enum(self) -> str:
        return f"TINYML_{self.tensor.dtype.name}"

    @property
    def c_name(self) -> c.Code:
        return c.Code(c.string(self.tensor.name))

    @property
    def scale(self) -> str:
        quant = self.tensor.quant
        return c.floating(quant.scale) if quant is not None and not quant.per_channel else "0.0f"

    @property
    def zero_point(self) -> int:
        quant = self.tensor.quant
        return quant.zero_point if quant is not None and not quant.per_channel else 0

    @property
    def unusable(self) -> list[c.Code]:
        """The beginning of a statement for the case that the caller's buffer cannot be used."""
        test = f"if ({self.parameter} == NULL"
        if self.tensor.dtype.bytes > 1:
            test += f" || !TINYML_ALIGNED({self.parameter}, _Alignof({self.c_type}))"
        return c.code(c.wrap(f"{test}) {{", c.TAB, 2 * c.TAB))

    @property
    def quantized(self) -> bool:
        return self.tensor.quant is not None and not self.tensor.quant.per_channel


def parameters(graph: Graph) -> dict[str, str]:
    """Names of the caller's buffers, by tensor."""
    return {
        name: suffix
        for word, names in (("input", graph.inputs), ("output", graph.outputs))
        for name, suffix in zip(names, _suffixes(names, word), strict=True)
    }


def _suffixes(names: Sequence[str], word: str) -> list[str]:
    """``input`` for an only input, ``input_x`` and ``input_y`` for two; an ``input_x`` keeps its name."""
    if len(names) == 1:
        return [word]
    identifiers = unique_identifiers(names, word)
    short = [name if name.startswith(f"{word}_") else f"{word}_{name}" for name in identifiers]
    return short if len(set(short)) == len(short) else [f"{word}_{name}" for name in identifiers]


def ports(model: str, graph: Graph, names: Sequence[str], word: str, addresses: Addresses) -> list[Port]:
    """``word`` is "input" or "output"."""
    if len(names) > MOST_PORTS:
        raise UnsupportedError(
            f"the model has {len(names)} {word}s; at most {MOST_PORTS} are supported",
            f"export the model with one tensor of {len(names)} elements, which it takes apart itself"
            if word == "input"
            else "export the model with outputs that are joined (Concat)",
        )
    result = []
    for index, (name, suffix) in enumerate(zip(names, _suffixes(names, word), strict=True)):
        tensor = graph.tensors[name]
        says = c.printable(f"{name}: {shape_text(tensor.shape)} {tensor.dtype.value}")
        if word == "input" and (order := row_order(graph)):
            tensor = replace(tensor, shape=order.shape)
            file = shape_text(graph.tensors[name].shape)
            says = c.printable(
                f"{name}: {shape_text(tensor.shape)} {tensor.dtype.value} ({file} in the model file)"
            )
        result.append(
            Port(
                tensor,
                f"{model}_{suffix}",
                f"{model}_{word}{index if len(names) > 1 else ''}_shape",
                f"{model}_{suffix}".upper(),
                suffix,
                addresses.expression(tensor) if addresses.in_memory(tensor) else "NULL",
                says,
            )
        )
    return result
