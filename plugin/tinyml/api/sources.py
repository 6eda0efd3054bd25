# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a model may be: a file, bytes, an ONNX object, or a model of a training framework."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from tinyml.api.printed_tables import table
from tinyml.base import whole_files
from tinyml.base.errors import ConfigError, called
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.naming import model_name
from tinyml.ir import Graph, Shape, Tensor
from tinyml.pipeline import read_graph, read_model, with_outputs
from tinyml.settings.options import of_options

ModelLike: TypeAlias = Any
"""A path, the bytes of a file, an ``onnx.ModelProto``, a ``Model``, a ``torch.nn.Module`` with example
inputs, a ``torch.export.ExportedProgram``, a Keras model, a function of JAX or a module of Flax or Equinox
with example inputs, a fitted scikit-learn estimator, or a model of XGBoost, LightGBM or CatBoost."""

TFLITE_MAGIC = b"TFL3"


@dataclass(frozen=True)
class Port:
    """An input or output of a model."""

    name: str
    shape: Shape
    dtype: str

    @staticmethod
    def of(tensor: Tensor) -> Port:
        return Port(tensor.name, tensor.shape, tensor.dtype.value)

    def __str__(self) -> str:
        return f"{self.name}: {'x'.join(map(str, self.shape)) or 'scalar'} {self.dtype}"


@dataclass(frozen=True)
class Model:
    """A model as a file: on disk (``path``) or in memory (``stored``)."""

    name: str  # the prefix in C
    path: Path | None = None  # None: in memory
    stored: bytes = field(default=b"", repr=False)
    shapes: Mapping[str, Shape] = field(default_factory=dict)  # of inputs that the file leaves open
    chosen: tuple[str, ...] = ()  # the outputs to keep; none: all

    @property
    def content(self) -> bytes:
        """The bytes of the file."""
        return self.path.read_bytes() if self.path else self.stored

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Name, shape and type of each input."""
        return tuple(Port.of(self._graph.tensors[name]) for name in self._graph.inputs)

    @property
    def outputs(self) -> tuple[Port, ...]:
        """Name, shape and type of each output."""
        return tuple(Port.of(self._graph.tensors[name]) for name in self._graph.outputs)

    def save(self, path: str | Path) -> None:
        """Write the model file.

        :param path: where
        """
        whole_files.save(Path(path), self.content)

    @contextmanager
    def file(self) -> Iterator[Path]:
        """The model as a file; a model in memory becomes a temporary one."""
        if self.path is not None:
            yield self.path
            return
        with tempfile.TemporaryDirectory(prefix="tinyml-") as folder:
            suffix = ".tflite" if self.stored[4:8] == TFLITE_MAGIC else ".onnx"
            path = Path(folder) / f"{self.name}{suffix}"
            path.write_bytes(self.stored)
            with called(path, f"{self.name} (in memory)"):
                yield path

    @cached_property
    def _graph(self) -> Graph:
        with self.file() as path:
            return read_graph(with_outputs(read_model(path), self.chosen), self.shapes)

    def _repr_html_(self) -> str:
        rows = [("input", str(port)) for port in self.inputs]
        return table([("model", self.name), *rows, *(("output", str(port)) for port in self.outputs)])


def load(
    model: ModelLike,
    example: Any = None,
    *,
    name: str = "",
    shapes: Mapping[str, Shape] | None = None,
    outputs: Sequence[str] = (),
) -> Model:
    """Read a model and check that the compiler understands it.

    :param model: a file, bytes, or a model of a training framework
    :param example: example inputs of a PyTorch module or a JAX function, which determine the shapes: an
        array or tensor, a tuple of them, or one shape
    :param name: the prefix in C (default: the file's name)
    :param shapes: shapes of inputs that the model leaves open: ``{"input": (1, 16, 8)}``; default: 1 for
        each open axis
    :param outputs: the outputs to keep, with what they need (default: all)
    """
    found = as_model(model, example, name=name, shapes=shapes)
    if outputs:
        found = replace(found, chosen=(outputs,) if isinstance(outputs, str) else tuple(outputs))
    found._graph  # noqa: B018 (reports a broken or unsupported model now)
    return found


def paths(files: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    """Files; a single one need not be in a list."""
    return tuple(map(Path, [files] if isinstance(files, str | Path) else files))


def _shapes(shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    """Shapes by input; those of the command line, "1x16x8", are understood too."""
    if not isinstance(shapes, Mapping):
        raise ConfigError(f"shapes is {type(shapes).__name__}, not a dictionary", '{"input": (1, 16, 8)}')
    texts = {name: shape for name, shape in shapes.items() if isinstance(shape, str)}
    form = of_options()["shapes"].form
    return {**shapes, **form.option(form.read(texts, "shapes"), Path())}


def as_model(
    model: ModelLike, example: Any = None, *, name: str = "", shapes: Mapping[str, Shape] | None = None
) -> Model:
    """``load`` without reading: the first use of the model reads it."""
    shapes = _shapes(shapes or {})
    if isinstance(model, Model):
        return Model(name or model.name, model.path, model.stored, {**model.shapes, **shapes}, model.chosen)
    if isinstance(model, str | Path):
        return Model(name or model_name(Path(model)), Path(model), shapes=shapes)
    if isinstance(model, bytes | bytearray | memoryview):
        return Model(name or "model", stored=bytes(model), shapes=shapes)
    from tinyml.api import frameworks  # takes a while, and files do without

    content = frameworks.to_onnx(model, example)
    if content is None:
        raise ConfigError(
            f"{type(model).__module__}.{type(model).__qualname__} is not a model",
            "a path, bytes, an onnx.ModelProto, a torch.nn.Module with example inputs, a "
            "torch.export.ExportedProgram, a Keras model, a function of JAX (after import jax), a "
            "scikit-learn estimator, or a model of XGBoost, LightGBM or CatBoost",
        )
    return Model(name or "model", stored=content, shapes=shapes)
