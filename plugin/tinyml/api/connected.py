# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``tinyml.connect``: the models of a running device, as an object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyml.api.choices import Task
from tinyml.api.compiled import as_compiled
from tinyml.api.connected_adapter import DeviceAdapter
from tinyml.api.data import DataLike, check_data, data_file, test_set
from tinyml.api.evaluated import Answers, Evaluation, Question, judge
from tinyml.api.example_labels import for_device
from tinyml.api.printed_tables import table
from tinyml.api.running import EVERY, RunResult
from tinyml.api.sources import ModelLike, Port, as_model
from tinyml.base.errors import ConfigError, ToolError, did_you_mean
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.naming import shape_text
from tinyml.base.progress import Progress, silent
from tinyml.compare.accuracy.answers import original_answers
from tinyml.cores.machines import MACHINES, find_machine
from tinyml.datasets.arrays import pattern_inputs, real
from tinyml.harness.device_session import EMULATOR_SECONDS, DeviceModel, Ran, Session
from tinyml.harness.links import Link, MissingPortError
from tinyml.harness.opening import BareMachine, open_device
from tinyml.harness.samples import input_bytes, output_arrays
from tinyml.ir import Array, DType, Graph, Quant, State, Tensor
from tinyml.ir.row_order import RowOrder
from tinyml.pipeline import read_samples
from tinyml.settings.quantize_request import Request, Scaling
from tinyml.watch.figures import Figures, of_cbor

if TYPE_CHECKING:
    from tinyml.slots.deploy import Deployed

PROFILED_RUNS = 3


@dataclass(frozen=True)
class DeviceProfile:
    """Cycles of a run and of its layers, on the clock of the device."""

    model: str  # its name on the device
    cycles: int  # of one run
    layers: tuple[int, ...]  # those of each layer
    clock_hz: int  # of the counter

    @property
    def milliseconds(self) -> float:
        """One run, by the clock of the device."""
        return 1000 * self.cycles / self.clock_hz

    def _repr_html_(self) -> str:
        total = (self.model, f"{self.cycles:,}", f"{self.milliseconds:.3f} ms")
        return table([total, *((i, f"{count:,}", "") for i, count in enumerate(self.layers))])


class Device:
    """A device whose firmware has CONFIG_TINYML_HOST. Close it, or use it in a ``with`` statement."""

    def __init__(
        self,
        link: Link,
        where: str,
        first_answer_seconds: float,
        timeout_seconds: float,
        known: Mapping[str, Any] | None = None,
    ) -> None:
        """``known``: the summary of the only model, if the caller has compiled it."""
        self.where = where
        self.timeout_seconds = timeout_seconds
        self._link = link
        self._session = Session(link, where)
        try:
            self._session.greet(first_answer_seconds)
            self._models = self._session.models()
            if known is not None and (order := RowOrder.of_summary(known.get("rows", {}))):
                shape = tuple(known["inputs"][0]["shape"])
                self._models = [model.of_file(shape, order) for model in self._models]
        except BaseException:
            link.close()
            raise

    @property
    def models(self) -> dict[str, DeviceModel]:
        """The models that the device can run, by name."""
        return {model.name: model for model in self._models if model.runs}

    def run(self, model: str | None, inputs: DataLike | None = None, *, reset: bool = True) -> RunResult:
        """Run a model of the device once per row.

        :param model: its name; None if the device has only one
        :param inputs: an array, or arrays by input name; default: one run on a fixed pattern
        :param reset: forget the state first
        """
        chosen = self._find(model)
        graph = _graph(chosen)
        if inputs is None:
            samples: Sequence[Mapping[str, Array]] = [pattern_inputs(graph)]
        else:
            with data_file(inputs, "inputs") as path:
                assert path is not None
                check_data(path)
                samples = read_samples(Request(path, samples=EVERY), graph).inputs
        outputs, cycles = [], []
        for index, sample in enumerate(samples):
            ran, arrays = self._run(chosen, sample, index, reset and index == 0)
            cycles.append(ran.cycles)
            outputs.append(arrays)
        counted = tuple(cycles) if self._session.greeting.clock_hz else None
        return RunResult(tuple(outputs), self.where, chosen.arena_bytes, cycles=counted)

    def profile(self, model: str | None = None, inputs: DataLike | None = None) -> DeviceProfile:
        """Cycles of the fastest of three runs; of its layers if the firmware has CONFIG_TINYML_PROFILING.

        :param model: its name; default: the only one
        :param inputs: as for ``run``; the last row counts
        """
        greeting = self._session.greeting
        if not greeting.clock_hz:
            raise ConfigError(f"the firmware of {self.where} has no clock", "provide `cycles` in its port")
        chosen = self._find(model)
        totals, counts = [], []
        for _ in range(PROFILED_RUNS):
            result = self.run(chosen.name, inputs)
            assert result.cycles is not None
            totals.append(max(0, result.cycles[-1] - greeting.empty_cycles))
            cycles = self._session.layer_cycles() if greeting.has_layers else []
            counts.append([max(0, count - greeting.empty_cycles) for count in cycles])
        layers = tuple(min(runs) for runs in zip(*counts, strict=True))
        return DeviceProfile(chosen.name, min(totals), layers, greeting.clock_hz)

    def evaluate(
        self,
        data: DataLike,
        labels: DataLike | None = None,
        *,
        model: str | None = None,
        against: ModelLike | None = None,
        classes: Sequence[str] = (),
        task: Task = "auto",
        output: str = "",
        samples: int | None = None,
        range: tuple[float, float] | None = None,
        mean: Sequence[float] = (),
        std: Sequence[float] = (),
        progress: Progress | None = None,
    ) -> Evaluation:
        """Run a test set on the device: ``tinyml.evaluate`` for a model that is there already.

        :param data: the inputs of the test set
        :param labels: class numbers, names or one-hot rows, or values to predict; default: those in the
            data
        :param model: its name; default: the only one
        :param against: the original model, if decisions are to be compared with its own
        :param classes: the names of the classes in the order of the outputs
        :param task: what the labels are; ``auto`` decides by them
        :param output: the output that decides (default: the first)
        :param samples: use at most so many samples, evenly spread
        :param range: what the smallest and the largest pixel or sample become: ``(0, 1)``
        :param mean: is subtracted after the range, per channel
        :param std: divides after the mean, per channel
        :param progress: is called with the name of a step, how much of it is done, and how much there is
        """
        chosen, report = self._find(model), progress or silent
        graph = _graph(chosen)
        with test_set(data, labels) as (path, truth_file):
            low, high = range if range is not None else (None, None)
            scaling = Scaling(low, high, tuple(mean), tuple(std))
            count = EVERY if samples is None else samples
            test = read_samples(Request(path, labels=truth_file, scaling=scaling, samples=count), graph)
            found = []
            for index, sample in enumerate(test.inputs):
                report(f"on {self.where}", index, len(test))
                _, arrays = self._run(chosen, sample, index, index in test.starts | {0})
                found.append([real(arrays[name], graph.tensors[name]) for name in graph.outputs])
            original = None
            if against is not None:
                theirs = as_model(against)
                _check_order(chosen, theirs.inputs, self.where)
                with theirs.file() as file:
                    runtime, wanted = original_answers(
                        file, theirs.shapes, graph, test.inputs, test.starts, report
                    )
                    original = Answers(file.name, runtime, wanted)
            question = Question(tuple(classes), task, output)
            return judge(chosen.name, self.where, graph, found, original, test.labels, path, question)

    def deploy(self, pack: str | Path, *, confirm: bool = True) -> Deployed:
        """Send a pack to a device with slots; it checks, tries and keeps the model.

        :param pack: a file from ``tinyml pack``
        :param confirm: keep the model if its trial run succeeds; False: the application decides
        """
        from tinyml.slots import container
        from tinyml.slots.deploy import Slots, deploy

        slots = Slots(self._session)
        before = slots.state()  # complains if there are no slots
        content = container.load(Path(pack))
        try:
            return deploy(slots, content, confirm=confirm)
        finally:
            if slots.state() != before:
                self._models = self._session.models()

    def watch(self, model: str | None = None, *, reset: bool = False) -> Figures:
        """What a model with ``watch: true`` has seen and decided.

        :param model: its name; default: the only one
        :param reset: then start the next period
        """
        chosen = self._find(model)
        if not chosen.is_watched:
            raise ConfigError(
                f"{chosen.name} on {self.where} counts nothing",
                "watch: true in tinyml.yaml, CONFIG_TINYML_WATCH=y",
            )
        return of_cbor(self._session.counters(chosen.index, reset))

    def adapter(self, model: str | None = None) -> DeviceAdapter:
        """What a model with ``adapt:`` has learnt on the device, and how it learns more.

        :param model: its name; default: the only one
        """
        chosen = self._find(model)
        if not chosen.learns:
            raise ConfigError(
                f"{chosen.name} on {self.where} does not learn",
                "compile it with adapt:, and pass requests to tinyml_adapt_request() in its port",
            )
        return DeviceAdapter(self._session, chosen.index, self.where)

    def learn(
        self, x: DataLike, y: DataLike | None = None, *, model: str | None = None, batch: bool = False
    ) -> list[int]:
        """Run each row on the device and let it learn the label; returns what it answered to each.

        ``adapter()`` has the rest: learnt bytes, classes, the factory.

        :param x: the examples, one per row
        :param y: their labels; default: those in ``x``
        :param model: its name; default: the only one
        :param batch: one step with all rows instead of one for each
        """
        chosen, adapter = self._find(model), self.adapter(model)
        with test_set(x, y) as (path, truth_file):
            check_data(path)
            test = read_samples(Request(path, labels=truth_file, samples=EVERY), _graph(chosen))
        if test.labels is None and adapter.needs_labels:
            raise ConfigError("there are no labels to learn from", "learn(x, y)")
        given = np.zeros(len(test), np.int64) if test.labels is None else np.asarray(test.labels)
        labels = for_device(given, adapter.targets)
        if batch:
            adapter.begin()
        found = []
        for index, (sample, label) in enumerate(zip(test.inputs, labels, strict=True)):
            self._run(chosen, sample, index, index in test.starts | {0})
            found.append(adapter.learn(label))
        if batch:
            adapter.end()
        return found

    def release(self) -> None:
        """Let the firmware use a model again that this program has filled or read."""
        self._session.bye()

    def close(self) -> None:
        """Release the model that was in use, and end an emulator that ``connect`` has started."""
        with suppress(ToolError):  # it may be gone
            self._session.bye()
        self._link.close()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Device({self.where!r}, models: {', '.join(self.models) or 'none'})"

    def _find(self, name: str | None) -> DeviceModel:
        models = self.models
        known = f"it has: {', '.join(models) or 'none'}"
        if name is None and len(models) == 1:
            return next(iter(models.values()))
        if name is None:
            raise ConfigError(f"{self.where} has {len(models)} models: name one of them", known)
        if name not in models:
            raise ConfigError(f"{self.where} has no model called {name!r}", known)
        return models[name]

    def _run(
        self, model: DeviceModel, sample: Mapping[str, Array], index: int, reset: bool
    ) -> tuple[Ran, dict[str, Array]]:
        if reset:
            self._session.reset(model.index)
        data = input_bytes(model, sample, index)
        self._session.feed(model, data, self.timeout_seconds, reset or index > 0)
        ran = self._session.run(model.index, self.timeout_seconds)
        if ran.status != 0:
            raise ToolError(f"{model.name}_run() returned {ran.status} on sample {index}")
        return ran, output_arrays(model, self._session.outputs(model.index, model.output_bytes))


def connect(
    to: str | Path,
    *,
    model: ModelLike | None = None,
    baud: int = 115200,
    timeout_seconds: float = 300,
) -> Device:
    """Connect to a device whose firmware has ``CONFIG_TINYML_HOST=y``, or to a model on an emulated core.

    :param to: a serial port, a pseudo terminal, or a URL of pyserial such as ``socket://localhost:4321``;
        or the build folder of a Zephyr application for an emulated board or native_sim, which is then
        started; or the name of a machine (``host``, ``qemu-cortex-m4``, ...), which gets a program with
        ``model`` and nothing else, whose cycles are instructions
    :param model: the model for a machine
    :param baud: the speed of a serial port
    :param timeout_seconds: how long one run of a model may take
    """
    if str(to) in MACHINES:
        if model is None:
            raise ConfigError(f"{to} has no model of its own", "connect(..., model=FILE)")
        compiled = as_compiled(model, find_machine(str(to)).target.name)
        link: Link = BareMachine(compiled.built.files, str(to))
        return Device(link, str(to), EMULATOR_SECONDS, timeout_seconds, compiled.summary)
    if model is not None:
        raise ConfigError(f"{to} has its own models", f"model= is for machines: {', '.join(MACHINES)}")
    try:
        link, seconds = open_device(to, baud)
    except MissingPortError as error:
        raise MissingPortError(f"{error.message}{did_you_mean(str(to), MACHINES)}", error.hint) from None
    return Device(link, str(to), seconds, timeout_seconds)


def _check_order(model: DeviceModel, inputs: Sequence[Port], where: str) -> None:
    """Samples in the order of a device's rows are not those of a model file with channels first."""
    if not model.takes_rows or model.row_order is not None or len(inputs) != 1:
        return
    theirs, ours = inputs[0].shape, model.inputs[0].shape
    if [extent for extent in theirs if extent > 1] != [extent for extent in ours if extent > 1]:
        raise ConfigError(
            f"{model.name} on {where} takes its input in rows, as {shape_text(ours)}; the original takes it "
            f"as {shape_text(theirs)}",
            "tinyml.evaluate(MODEL, ..., against=ORIGINAL), which knows the order",
        )


def _graph(model: DeviceModel) -> Graph:
    """The inputs and outputs of a model on a device, as the functions for data expect them."""
    tensors = {
        port.name: Tensor(
            port.name,
            port.shape,
            DType(port.dtype.name),
            Quant.per_tensor(port.scale, port.zero_point) if port.scale else None,
        )
        for port in (*model.inputs, *model.outputs)
    }
    inputs, outputs = (tuple(port.name for port in ports) for ports in (model.inputs, model.outputs))
    states = (State("", ""),) if model.has_state else ()
    return Graph(model.name, tensors, (), inputs, outputs, states)
