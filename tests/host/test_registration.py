# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Readers, writers and kernels register themselves: once, at one place, and only if they can succeed."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tinyml.base.errors import RegistrationError
from tinyml.ir import Layer, Op, Tensor
from tinyml.ops import catalog
from tinyml.ops.conv.conv import Conv
from tinyml.ops.framework import kernel, quantization_facts, reading, writing
from tinyml.ops.framework.kernel import Kernel, Sheet, kernels_of, register_kernels
from tinyml.ops.framework.quantization_facts import quantizes
from tinyml.ops.framework.reading import (
    ONNX_READERS,
    TFLITE_READERS,
    Builder,
    OnnxNode,
    TfliteNode,
    onnx_op,
    tflite_op,
)
from tinyml.ops.framework.writing import OnnxWriter, onnx_writer


@pytest.fixture(autouse=True)
def registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test registers is gone after it."""
    for module, name in (
        (reading, "ONNX_READERS"),
        (reading, "TFLITE_READERS"),
        (writing, "ONNX_WRITERS"),
        (quantization_facts, "_DECLARED"),
        (quantization_facts, "_PLACES"),
        (kernel, "_KERNELS"),
        (kernel, "_PLACES"),
    ):
        monkeypatch.setattr(module, name, dict(getattr(module, name)))


def identity(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
    return [node.input(0)]


def tflite_identity(node: TfliteNode, build: Builder) -> Sequence[Tensor]:
    return [node.input(0)]


def test_a_second_onnx_reader_is_refused() -> None:
    with pytest.raises(RegistrationError, match="ONNX operator Conv is registered twice") as error:
        onnx_op("Conv")(identity)
    assert Path("ops", "conv", "conv.py").as_posix() in error.value.message.replace("\\", "/")
    assert Path(__file__).name in error.value.message


def test_the_same_name_in_another_domain_is_another_operator() -> None:
    onnx_op("Conv", domain="com.example")(identity)
    assert reading.ONNX_READERS[("com.example", "Conv")] is identity
    assert reading.ONNX_READERS[("", "Conv")] is not identity


def test_a_second_tflite_reader_is_refused() -> None:
    with pytest.raises(RegistrationError, match="TFLite operator CONV_2D is registered twice"):
        tflite_op("CONV_2D")(tflite_identity)


def test_a_second_writer_is_refused() -> None:
    with pytest.raises(RegistrationError, match="the ONNX writer of Conv is registered twice"):

        @onnx_writer(Conv)
        def write(op: Conv, layer: Layer, x: list[str], y: str, out: OnnxWriter) -> None:
            out.node("Conv", x, y)


def test_facts_for_the_quantiser_are_declared_once() -> None:
    quantizes("Invented", moves=True)
    assert quantization_facts.quantizing("Invented").moves
    assert not quantization_facts.quantizing("Unknown").activations
    with pytest.raises(RegistrationError, match="the quantising of Conv is registered twice"):
        quantizes("Conv")


def test_what_is_quantised_can_be_read() -> None:
    names = {op_type for _, op_type in ONNX_READERS}
    assert names >= set(quantization_facts._DECLARED)


def test_a_module_may_be_imported_again() -> None:
    """It defines the same functions at the same places once more."""

    def again() -> Callable[..., Sequence[Tensor]]:
        def read(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
            return [node.input(0)]

        return onnx_op("Invented")(read)

    assert again() is not again()


@dataclass(frozen=True)
class Invented(Op):
    """An operator from outside the package."""


class InventedKernel(Kernel[Invented]):
    name = "invented"

    def emit(self, layer: Layer[Invented], sheet: Sheet) -> None:
        sheet.line("/* nothing */")


def test_an_operator_from_outside_gets_kernels_once() -> None:
    register_kernels(Invented, InventedKernel())
    assert [each.name for each in kernels_of(Invented)] == ["invented"]
    with pytest.raises(RegistrationError, match="kernels of Invented is registered twice") as error:
        register_kernels(Invented, InventedKernel())
    assert error.value.message.count(Path(__file__).name) == 2


def test_kernels_of_a_known_operator_are_not_replaced() -> None:
    before = kernels_of(Conv)
    with pytest.raises(RegistrationError, match="kernels of Conv"):
        register_kernels(Conv)
    assert kernels_of(Conv) == before


def can_succeed(reader: Callable[..., Any]) -> bool:
    """Whether a reader returns anything at all: one that only raises must not be listed as supported."""
    tree = ast.parse(dedent(inspect.getsource(reader)))
    return any(isinstance(node, ast.Return) for node in ast.walk(tree))


@pytest.mark.parametrize("formats", [ONNX_READERS, TFLITE_READERS], ids=["onnx", "tflite"])
def test_no_reader_always_refuses(formats: dict[Any, Callable[..., Any]]) -> None:
    assert len(formats) > 100, catalog.__name__
    assert [name for name, reader in formats.items() if not can_succeed(reader)] == []


def test_a_reader_that_always_refuses_is_found() -> None:
    def refuse(node: OnnxNode, build: Builder) -> Sequence[Tensor]:
        raise ValueError("never")

    assert not can_succeed(refuse)
    assert can_succeed(identity)
