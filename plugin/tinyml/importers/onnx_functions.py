# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators that ONNX itself defines as a composition of others, replaced by that composition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import defs, helper

from tinyml.ir import Tensor


def schema_body(
    node: onnx.NodeProto, opset: int, inputs: Sequence[Tensor | None]
) -> onnx.FunctionProto | None:
    """ONNX's own function body for ``node``, or None if it is a primitive."""
    schema = _schema(node, opset)
    if schema is None:
        return None
    if schema.has_function:
        return _with_defaults(schema.function_body, schema)
    if not schema.has_context_dependent_function:
        return None
    types = [
        helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(t.dtype.numpy), t.shape)
        if t is not None
        else onnx.TypeProto()
        for t in inputs
    ]
    text = schema.get_context_dependent_function(
        node.SerializeToString(), [t.SerializeToString() for t in types]
    )
    body = onnx.FunctionProto()
    body.ParseFromString(text)
    return _with_defaults(body, schema)


def has_schema_body(node: onnx.NodeProto, opset: int) -> bool:
    """Whether ONNX defines ``node`` by other operators, at least for some inputs."""
    schema = _schema(node, opset)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def _schema(node: onnx.NodeProto, opset: int) -> Any:
    """What ONNX says of an operator; None if it does not know it."""
    try:
        return defs.get_schema(node.op_type, opset, node.domain)
    except defs.SchemaError:
        return None


def _with_defaults(body: onnx.FunctionProto, schema: Any) -> onnx.FunctionProto | None:
    """The body with the schema's default attributes, which the body refers to."""
    if not body.node:
        return None
    function = onnx.FunctionProto()
    function.CopyFrom(body)
    for attribute in schema.attributes.values():
        if attribute.default_value.type != onnx.AttributeProto.UNDEFINED:
            function.attribute_proto.append(attribute.default_value)
    return function


def bind_attributes(function: onnx.FunctionProto, call: onnx.NodeProto) -> list[onnx.NodeProto]:
    """The body's nodes, with references to attributes replaced by the call's attributes."""
    given = {attribute.name: attribute for attribute in call.attribute}
    for default in function.attribute_proto:
        given.setdefault(default.name, default)
    nodes = []
    for template in function.node:
        node = onnx.NodeProto()
        node.CopyFrom(template)
        del node.attribute[:]
        for attribute in template.attribute:
            if not attribute.ref_attr_name:
                node.attribute.append(attribute)
            elif attribute.ref_attr_name in given:
                bound = onnx.AttributeProto()
                bound.CopyFrom(given[attribute.ref_attr_name])
                bound.name = attribute.name
                node.attribute.append(bound)
        nodes.append(node)
    return nodes
