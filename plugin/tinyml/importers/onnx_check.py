# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""An ONNX file against the rules of the format, before anything of it is used."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import onnx
from onnx import defs

from tinyml.base import limits
from tinyml.base.errors import ModelError

HINT = "the file is malformed: export the model again"
UNKNOWN_SIZE = -1


def check(model: onnx.ModelProto, path: Path) -> None:
    """Names are text, tensors have data of their shapes, attributes have the types of the standard."""
    try:
        opsets = _versions(path, model.opset_import)
        counter = _Check(path, opsets)
        counter.graph(model.graph, 0)
        for function in model.functions:
            inner = _Check(path, {**opsets, **_versions(path, function.opset_import)})
            for text in (function.name, function.domain, *function.input, *function.output):
                inner.text(text)
            inner.nodes(function.node, 1)
            counter.count += inner.count
        for entry in model.metadata_props:
            counter.text(entry.key)
            counter.text(entry.value)
    except UnicodeDecodeError:
        raise ModelError(f"{path} has a name that is not UTF-8 text", HINT) from None
    except RecursionError:
        raise ModelError(f"{path} has graphs that are nested too deeply", HINT) from None


def _versions(path: Path, imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """The version of each domain, which onnx's own functions take as an int of C."""
    found = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in imports}
    for domain, version in found.items():
        if not 0 <= version < 1 << 31:
            raise ModelError(
                f"{path} uses version {version:,} of the operators of {domain or 'ONNX'!r}", HINT
            )
    return found


class _Check:
    def __init__(self, path: Path, opsets: Mapping[str, int]) -> None:
        self.path, self.opsets, self.count = path, opsets, 0

    def text(self, text: str | bytes) -> None:
        """A name that is not UTF-8 comes as bytes, or raises; one with a NUL byte would end early in C."""
        if isinstance(text, bytes):
            raise ModelError(f"{self.path} has a name that is not UTF-8 text: {text[:40]!r}", HINT)
        if "\0" in text:
            raise ModelError(f"{self.path} has a NUL byte in the name {text[:40]!r}", HINT)

    def graph(self, graph: onnx.GraphProto, depth: int) -> None:
        limits.check("depth", depth, f"{self.path}: graphs inside graphs")
        for value in (*graph.input, *graph.output, *graph.value_info):
            self.text(value.name)
            for dim in value.type.tensor_type.shape.dim:
                self.text(dim.dim_param)
        for tensor in graph.initializer:
            self.tensor(tensor)
        if len(graph.sparse_initializer):
            raise ModelError(f"{self.path} stores constants in sparse form", "export it with dense ones")
        self.nodes(graph.node, depth)

    def nodes(self, nodes: Any, depth: int) -> None:
        self.count += len(nodes)
        limits.check("nodes", self.count, str(self.path))
        for node in nodes:
            for text in (node.name, node.op_type, node.domain, *node.input, *node.output):
                self.text(text)
            self.node(node, depth)

    def node(self, node: onnx.NodeProto, depth: int) -> None:
        what = f"{self.path}: {node.op_type} node {node.name or next(iter(node.output), '')!r}"
        known = self.schema(node)
        if known is not None and not known.min_input <= len(node.input) <= known.max_input:
            raise ModelError(
                f"{what} has {len(node.input)} inputs; {known.min_input} to {known.max_input} are allowed",
                HINT,
            )
        for attribute in node.attribute:
            self.text(attribute.name)
            expected = known.attributes.get(attribute.name) if known is not None else None
            if expected is not None and not attribute.ref_attr_name:
                found, wanted = attribute.type, int(expected.type.value)
                if found != wanted:
                    kinds = onnx.AttributeProto.AttributeType.Name
                    raise ModelError(
                        f"{what}: attribute {attribute.name!r} is {_kind(kinds, found)}, not {kinds(wanted)}",
                        HINT,
                    )
            if attribute.HasField("t"):
                self.tensor(attribute.t)
            for tensor in attribute.tensors:
                self.tensor(tensor)
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                self.graph(inner, depth + 1)
        for name, rule in known.attributes.items() if known is not None else ():
            if rule.required and all(attribute.name != name for attribute in node.attribute):
                raise ModelError(f"{what} lacks its attribute {name!r}", HINT)

    def schema(self, node: onnx.NodeProto) -> Any:
        """The schema of an operator in the standard, if it has one."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        version = self.opsets.get(domain, 0)
        if version < 1:
            return None
        try:
            return defs.get_schema(node.op_type, version, domain)
        except defs.SchemaError:
            return None

    def tensor(self, tensor: onnx.TensorProto) -> None:
        """Dimensions, element type, and as many bytes or numbers as they ask for."""
        self.text(tensor.name)
        what = f"{self.path}: tensor {tensor.name!r}"
        limits.check_shape(tensor.dims, what)
        if tensor.data_type not in _BITS:
            raise ModelError(f"{what} has elements of the unknown type {tensor.data_type}", HINT)
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            return
        count, bits = math.prod(tensor.dims), _BITS[tensor.data_type]
        if tensor.HasField("raw_data") and bits != UNKNOWN_SIZE:
            found, wanted, unit = len(tensor.raw_data), (count * bits + 7) // 8, "bytes"
        else:
            found, wanted, unit = _stored(tensor), _expected(tensor, count), "numbers"
        if found != wanted:
            shape = "x".join(map(str, tensor.dims)) or "a scalar"
            raise ModelError(f"{what} of shape {shape} has {found} {unit} of data, not {wanted}", HINT)


def _kind(kinds: Any, number: int) -> str:
    try:
        return str(kinds(number))
    except ValueError:
        return f"type {number}"


def _stored(tensor: onnx.TensorProto) -> int:
    """The number of elements in the typed field, which depends on the element type."""
    return max(
        len(tensor.float_data),
        len(tensor.int32_data),
        len(tensor.int64_data),
        len(tensor.double_data),
        len(tensor.uint64_data),
        len(tensor.string_data),
    )


def _expected(tensor: onnx.TensorProto, count: int) -> int:
    """Numbers in the typed field: complex ones take two, and small integers share one."""
    if tensor.data_type in (onnx.TensorProto.COMPLEX64, onnx.TensorProto.COMPLEX128):
        return 2 * count
    bits = _BITS[tensor.data_type]
    return (count * bits + 7) // 8 if 0 < bits < 8 else count


def _bits() -> dict[int, int]:
    """Of an element in raw data, by the number of its type."""
    kinds = onnx.TensorProto
    known = {
        8: "BOOL UINT8 INT8 FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ FLOAT8E8M0",
        16: "UINT16 INT16 FLOAT16 BFLOAT16",
        32: "FLOAT INT32 UINT32",
        64: "DOUBLE INT64 UINT64 COMPLEX64",
        128: "COMPLEX128",
        4: "UINT4 INT4 FLOAT4E2M1",
        2: "UINT2 INT2",
        UNKNOWN_SIZE: "STRING",
    }
    return {
        int(getattr(kinds, name)): bits
        for bits, names in known.items()
        for name in names.split()
        if hasattr(kinds, name)
    }


_BITS = _bits()
