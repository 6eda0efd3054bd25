# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Move quantisation and dequantisation next to the operators that compute.

Operators that only move elements (reshape, transpose, slice, …) do the same on integers, so a Dequantize
before one moves after it, and a Quantize after one moves before it. So do operators that choose elements by
their order (max-pool, largest and smallest elements, limits) and concatenations, if all of their operands
have one quantisation: ``Op.selects``.
"""

from __future__ import annotations

from dataclasses import replace

from tinyml.ir import Graph, Node, Quant, Tensor, TensorType
from tinyml.ops.quantization.quantize import Dequantize, Quantize
from tinyml.passes.editor import Editor, sweep_until_stable


def move_quantization(graph: Graph) -> Graph:
    """Repeat the swaps until none applies."""
    edit = Editor(graph)
    rules = (_sink_dequantize, _sink_through_selection, _raise_quantize, _raise_through_selection)
    sweep_until_stable(edit, lambda e, node: any(rule(e, node) for rule in rules))
    return edit.graph()


def _sink_dequantize(edit: Editor, node: Node) -> bool:
    """movement(dequantize(q)) becomes dequantize(movement(q))."""
    source = edit.producer(node.inputs[0]) if node.op.movement else None
    if source is None or not isinstance(source.op, Dequantize) or len(node.outputs) != 1:
        return False
    stored = edit.tensors[source.inputs[0]]
    others = [edit.tensors[name] if name else None for name in node.inputs[1:]]
    type_ = node.op.infer([stored, *others])[0]
    if type_.quant is None:
        return False
    moved = edit.tensor(f"{node.outputs[0]}/q", TensorType(type_.shape, stored.dtype, type_.quant))
    edit.replace(
        node,
        [
            replace(node, inputs=(stored.name, *node.inputs[1:]), outputs=(moved.name,)),
            Node(node.name, Dequantize(), (moved.name,), node.outputs),
        ],
    )
    return True


def _sink_through_selection(edit: Editor, node: Node) -> bool:
    """max_pool(dequantize(q)) becomes dequantize(max_pool(q)), unless a Quantize fuses with the pool."""
    sources = [edit.producer(name) for name in node.inputs]
    stored = [edit.tensors[s.inputs[0]] for s in sources if s is not None and isinstance(s.op, Dequantize)]
    if node.op.movement or not sources or len(stored) != len(sources) or len(node.outputs) != 1:
        return False
    first = stored[0]
    if first.quant is None or any((t.dtype, t.quant) != (first.dtype, first.quant) for t in stored):
        return False
    border = edit.only_reader(node.outputs[0])
    if border is not None and isinstance(border.op, Quantize) and _fuses(edit, node, border):
        return False
    moved = Tensor.of(
        edit.fresh(f"{node.outputs[0]}/q"),
        TensorType(edit.tensors[node.outputs[0]].shape, first.dtype, first.quant),
    )
    chosen = _chosen(node, stored, moved)
    if chosen is None:
        return False
    edit.tensors[moved.name] = moved
    edit.replace(node, [chosen, Node(node.name, Dequantize(), (moved.name,), node.outputs)])
    return True


def _fuses(edit: Editor, node: Node, border: Node) -> bool:
    """Whether the node between Dequantize and the Quantize has an integer form as it is."""
    sources = [edit.producer(name) for name in node.inputs]
    stored = [edit.tensors[s.inputs[0]] for s in sources if s is not None and isinstance(s.op, Dequantize)]
    if len(stored) != len(sources):
        return False
    return node.op.quantized(stored, [edit.tensors[border.outputs[0]]]) is not None


def _chosen(node: Node, stored: list[Tensor], result: Tensor) -> Node | None:
    """The same selection of stored integers; None if it is not the same."""
    if result.quant is None or result.quant.per_channel or not node.op.selects(stored):
        return None
    form = node.op.quantized(stored, [result])
    if form is None:
        return None
    return Node(node.name, form[0], tuple(tensor.name for tensor in stored), (result.name,))


def _raise_quantize(edit: Editor, node: Node) -> bool:
    """quantize(movement(x)) becomes movement(quantize(x)), where the border is the only reader."""
    source = _quantized_alone(edit, node)
    if source is None or not source.op.movement:
        return False
    before = edit.tensors[source.inputs[0]]
    if before.is_constant:
        return False
    stored = _stored(edit, before, node)
    edit.tensors[stored.name] = stored
    edit.replace(
        [source, node],
        [
            replace(node, inputs=(before.name,), outputs=(stored.name,)),
            replace(source, inputs=(stored.name, *source.inputs[1:]), outputs=node.outputs),
        ],
    )
    return True


def _raise_through_selection(edit: Editor, node: Node) -> bool:
    """quantize(max_pool(x)) becomes max_pool(quantize(x)), if an integer layer can then compute x."""
    source = _quantized_alone(edit, node)
    if source is None or source.op.movement or not source.inputs or _fuses(edit, source, node):
        return False
    if not all(_ends_integer_layer(edit, name, source) for name in source.inputs):
        return False
    result = edit.tensors[node.outputs[0]]
    stored = {name: _stored(edit, edit.tensors[name], node) for name in source.inputs}
    chosen = _chosen(source, [stored[name] for name in source.inputs], result)
    if chosen is None:
        return False
    edit.tensors.update({tensor.name: tensor for tensor in stored.values()})
    borders = [replace(node, inputs=(name,), outputs=(tensor.name,)) for name, tensor in stored.items()]
    edit.replace([source, node], [*borders, chosen])
    return True


def _quantized_alone(edit: Editor, node: Node) -> Node | None:
    """The node with one output that this Quantize alone reads; None if it is no such Quantize."""
    if not isinstance(node.op, Quantize) or node.op.quant.per_channel:
        return None
    source = edit.producer(node.inputs[0])
    if source is None or edit.only_reader(node.inputs[0]) is not node or len(source.outputs) != 1:
        return None
    return source


def _ends_integer_layer(edit: Editor, name: str, reader: Node) -> bool:
    """Whether a tensor is dequantised, or computed for this reader alone from a dequantised one."""
    source = edit.producer(name) if name else None
    if source is None:
        return False
    if isinstance(source.op, Dequantize):
        return True
    single = len(source.outputs) == 1 or source.op.spare_outputs
    if edit.only_reader(name) is not reader or not single or not source.inputs:
        return False
    if source.op.movement:
        return _ends_integer_layer(edit, source.inputs[0], source)
    before = edit.producer(source.inputs[0]) if source.inputs[0] else None
    return before is not None and isinstance(before.op, Dequantize)


def _stored(edit: Editor, before: Tensor, border: Node) -> Tensor:
    """What a Quantize makes of another tensor."""
    assert isinstance(border.op, Quantize)
    quant: Quant = border.op.quant
    dtype = edit.tensors[border.outputs[0]].dtype
    return Tensor.of(edit.fresh(f"{before.name}/q"), TensorType(before.shape, dtype, quant))
