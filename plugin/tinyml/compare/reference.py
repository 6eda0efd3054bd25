# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Somebody else's runtime on the same model: onnxruntime, or an interpreter of TFLite.

Values inside the model go by the names that imported nodes have: for ONNX the node's name (or its first
output's, where it has none), for TFLite the name of the tensor that an operator computes.
"""

from __future__ import annotations

import functools
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tinyml.base.errors import ConfigError, ModelError, ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.progress import Progress, silent
from tinyml.compare.growing_caches import GrowingCaches
from tinyml.compare.litert_dense import with_their_dense_layers
from tinyml.importers.growing_states import growing_model
from tinyml.importers.states import states_of
from tinyml.ir import Array, Graph, Node
from tinyml.ir.interpreter import Interpreter, initial_state, interpret
from tinyml.ops.framework.registration import is_from_outside
from tinyml.ops.indexing.tensor_scatter import TensorScatter
from tinyml.ops.reduce.reduce import Reduce
from tinyml.pipeline import ModelFile, read_onnx
from tinyml.reference.halves import widen
from tinyml.reference.session import Session

DENSE_CAUSE = (
    "its fully connected layers round once, ours twice, as CMSIS-NN and TensorFlow Lite Micro do (computed "
    "with one rounding, ours are equal too)"
)
DENSE_NOTE = f"{DENSE_CAUSE}; --reference numpy rounds twice"
OPTIMISED = "ai-edge-litert with optimised kernels ({})"
CHOICES = ("auto", "onnxruntime", "litert", "numpy")


@dataclass(frozen=True)
class Answer:
    """What a reference computes in one run: outputs in the model's order, inner values by node."""

    outputs: list[Array]
    inner: Mapping[str, Array]


class Reference(ABC):
    """A runtime that has loaded the model."""

    name: str
    exact: bool  # integer models must agree to the last bit
    hint: str = ""  # how to get a better one

    def run(self, samples: Sequence[Mapping[str, Array]], progress: Progress = silent) -> list[Answer]:
        """Consecutive runs; inputs by the names that the imported graph gives them."""
        progress(self.name, 0, len(samples))
        found: list[Answer] = []
        for answer in self.answers(samples):
            found.append(answer)
            progress(self.name, len(found), len(samples))
        return found

    @abstractmethod
    def answers(self, samples: Sequence[Mapping[str, Array]]) -> Iterator[Answer]:
        """One run after the other."""

    def note(self, graph: Graph, samples: Sequence[Mapping[str, Array]], answers: Sequence[Answer]) -> str:
        """Why ``answers`` are not equal to ours: a cause that was checked, or nothing."""
        return ""


class Numpy(Reference):
    """The operators of this compiler, straight after the import: no second opinion on the operators."""

    name = "the compiler's own numpy operators"
    exact = True

    def __init__(self, graph: Graph, name: str = "") -> None:
        self.graph = graph
        self.name = name or self.name

    def answers(self, samples: Sequence[Mapping[str, Array]]) -> Iterator[Answer]:
        machine = Interpreter(self.graph)
        for sample in samples:
            values = machine.run(sample)
            yield Answer([values[name] for name in self.graph.outputs], {})


class OnnxRuntime(Reference):
    """Node by node as in the file, exact on every CPU; see ``tinyml.reference``."""

    exact = False

    def __init__(self, file: ModelFile, graph: Graph) -> None:
        import onnxruntime

        self.name = f"onnxruntime {onnxruntime.__version__}"
        self.graph = graph
        model = read_onnx(file)
        widen(model.graph)  # float16 is computed in float32, by the C too
        self.states = states_of(model)
        self.model, self.growing = model, growing_model(model)
        self.steps = _rows_of_a_run(graph)
        firsts = first_states(graph) if self.growing is None else [*initial_state(graph).values()]
        self.first = {state.input: first for state, first in zip(self.states, firsts, strict=False)}
        updates = {state.output for state in self.states}
        self.outputs = [value.name for value in model.graph.output if value.name not in updates]
        self.inner = {
            node.name or next(iter(node.output), ""): node.output[0]
            for node in model.graph.node
            if node.output and node.output[0]
        }
        self.session = Session(model, [*self.inner.values()])

    def answers(self, samples: Sequence[Mapping[str, Array]]) -> Iterator[Answer]:
        state = self.first
        caches = None if self.growing is None else GrowingCaches(self.model, self.growing, self.first)
        for sample in samples:
            rows = {} if caches is None else caches.feed(sample, self.steps)
            try:
                results = self.session.run({**sample, **state, **rows})
            except ModelError as error:
                raise ModelError(error.message, "--reference numpy does without onnxruntime") from None
            found = {name: _array(value) for name, value in results.items()}
            if caches is not None:
                caches.take(found)
            state = {s.input: found[s.output] for s in self.states}
            inner = {node: found[output] for node, output in self.inner.items() if _is_number(found[output])}
            texts = [name for name in self.outputs if not _is_number(found[name])]
            if texts:
                raise ConfigError(
                    f"the output {texts[0]!r} of the model is text; the C has class numbers instead",
                    "--reference numpy",
                )
            outputs = self.graph.padded([found[name] for name in self.outputs])
            yield Answer(outputs, inner)


def _rows_of_a_run(graph: Graph) -> int:
    """How many rows a run writes into its caches."""
    scatters = [node for node in graph.nodes if isinstance(node.op, TensorScatter)]
    updates = {state.update for state in graph.states}
    for node in scatters:
        if node.outputs[0] in updates and isinstance(node.op, TensorScatter):
            return graph.tensors[node.inputs[1]].shape[node.op.axis]
    return 1


def first_states(graph: Graph) -> list[Array]:
    """Before the first run. In the file, a cache that grows has no rows yet."""
    producers, states = graph.producers(), {state.tensor for state in graph.states}
    found = []
    for state, first in zip(graph.states, initial_state(graph).values(), strict=True):
        node = producers.get(state.update)
        if node is not None and isinstance(node.op, TensorScatter) and len(node.inputs) > 2:
            start = producers.get(node.inputs[2])
            rows = node.inputs[2] if start is None else start.inputs[0]
            if rows in states:
                first = np.take(first, [], axis=node.op.axis)
        found.append(first)
    return found


def _array(value: Any) -> Array:
    """What a session returns as an array: probabilities by label (ZipMap) are a list of mappings."""
    if isinstance(value, list):
        return np.asarray([[*row.values()] if isinstance(row, dict) else row for row in value], np.float32)
    return np.asarray(value)


def _is_number(array: Array) -> bool:
    return array.dtype.kind in "biuf"


class LiteRt(Reference):
    """Google's interpreter with its reference kernels; the optimised ones round differently."""

    exact = False

    def __init__(self, file: ModelFile, graph: Graph) -> None:
        from ai_edge_litert import interpreter

        self.graph = graph
        types = interpreter.OpResolverType
        made = functools.partial(
            interpreter.Interpreter, model_content=file.content, experimental_preserve_all_tensors=True
        )
        optimised = types.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        self.name = "ai-edge-litert with reference kernels"
        self.model: Any
        try:
            if any(_adds_integers(graph, node) for node in graph.nodes):
                self.name = OPTIMISED.format("its reference kernel adds up in 8 bits")
                self.model = made(experimental_op_resolver_type=optimised)
            else:
                try:
                    self.model = made(experimental_op_resolver_type=types.BUILTIN_REF)
                except ValueError as error:  # ELU, for one
                    self.name = OPTIMISED.format(f"no reference kernel: {_first_sentence(error)}")
                    self.model = made(experimental_op_resolver_type=optimised)
            self.model.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise _not_by_litert(error) from None
        details = self.model.get_input_details()
        if file.outputs:  # the graph has the inputs that these need, and no others
            details = [d for d in details if d["name"] in graph.inputs]
        self.inputs = list(zip(details, graph.inputs, strict=True))
        self.outputs = self.model.get_output_details()
        if file.outputs:
            by_name = {detail["name"]: detail for detail in self.outputs}
            self.outputs = [by_name[name] for name in file.outputs]

    def answers(self, samples: Sequence[Mapping[str, Array]]) -> Iterator[Answer]:
        for sample in samples:
            for detail, name in self.inputs:
                self.model.set_tensor(detail["index"], sample[name].reshape(detail["shape"]))
            try:
                self.model.invoke()
            except RuntimeError as error:
                raise _not_by_litert(error) from None
            outputs = [self.model.get_tensor(d["index"]).copy() for d in self.outputs]
            yield Answer(self.graph.padded(outputs), self._inner())

    def note(self, graph: Graph, samples: Sequence[Mapping[str, Array]], answers: Sequence[Answer]) -> str:
        theirs = with_their_dense_layers(graph)
        if theirs is graph:
            return ""
        for values, answer in zip(interpret(theirs, samples), answers, strict=True):
            for name, wanted in zip(graph.outputs, answer.outputs, strict=True):
                if not np.array_equal(values[name], wanted):
                    return ""
        return DENSE_NOTE

    def _inner(self) -> dict[str, Array]:
        found = {}
        for detail in self.model.get_tensor_details():
            # Handles of variables claim to be arrays of strings: reading one follows whatever its bytes are.
            if not np.issubdtype(detail["dtype"], np.number):
                continue
            try:
                found[detail["name"]] = self.model.get_tensor(detail["index"]).copy()
            except ValueError:  # not computed
                continue
        return found


def _first_sentence(error: Exception) -> str:
    return str(error).partition(". ")[0]


def _not_by_litert(error: Exception) -> ConfigError:
    return ConfigError(
        f"ai-edge-litert cannot run the model: {error}",
        "check how the model was converted; --reference numpy does without ai-edge-litert",
    )


def _foreign(file: ModelFile) -> list[str]:
    """Operators of a file that are neither ONNX's nor onnxruntime's nor functions of the file, as QONNX's."""
    model = read_onnx(file)
    functions = {(function.domain, function.name) for function in model.functions}
    return sorted(
        {
            node.op_type
            for node in model.graph.node
            if not node.domain.startswith(("ai.onnx", "com.microsoft"))
            and node.domain
            and (node.domain, node.op_type) not in functions
        }
    )


def _adds_integers(graph: Graph, node: Node) -> bool:
    """A quantised SUM, whose reference kernel in LiteRT is wrong."""
    quantized = graph.tensors[node.inputs[0]].quant is not None if node.inputs else False
    return isinstance(node.op, Reduce) and node.op.function == "sum" and quantized


def find_reference(file: ModelFile, graph: Graph, choice: str = "auto") -> Reference:
    """The runtime called ``choice``; ``auto``: the one for the file's format, or numpy without it."""
    if choice not in CHOICES:
        raise ConfigError(f"there is no reference called {choice!r}", ", ".join(CHOICES))
    if choice == "numpy":
        return Numpy(graph)
    fitting = "litert" if file.is_tflite else "onnxruntime"
    own = sorted({node.op.kind for node in graph.nodes if is_from_outside(type(node.op))})
    if own and choice == "auto":
        return Numpy(graph, f"numpy, because {fitting} does not know {', '.join(own)}")
    foreign = _foreign(file) if choice == "auto" and not file.is_tflite else []
    if foreign:
        return Numpy(graph, f"numpy, because onnxruntime does not know {', '.join(foreign)}")
    if choice not in ("auto", fitting):
        raise ConfigError(f"{choice} does not read {file.path.name}", f"auto, {fitting} or numpy")
    try:
        return LiteRt(file, graph) if file.is_tflite else OnnxRuntime(file, graph)
    except ImportError as error:
        problem, remedy = _why_not(file.is_tflite, error)
        if choice == "auto":
            substitute = Numpy(graph)
            substitute.hint = f"{problem}; {remedy} gives an independent reference"
            return substitute
        raise ToolError(problem, remedy) from None


def _why_not(is_tflite: bool, error: ImportError) -> tuple[str, str]:
    """Why a reference runtime cannot be imported, and what to do. One that is broken is installed, too."""
    package, module = ("ai-edge-litert", "ai_edge_litert") if is_tflite else ("onnxruntime", "onnxruntime")
    if importlib.util.find_spec(module) is None:
        return f"{package} is not installed", f"pip install {package}"
    first = str(error).strip().partition("\n")[0]
    return (
        f"{package} is installed, but cannot be imported: {first}",
        f"pip install --force-reinstall {package}",
    )
