# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``tinyml.replay``: what a watched model would count on a data set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tinyml.api.choices import Io
from tinyml.api.compiled import CompiledModel, build
from tinyml.api.data import DataLike, check_data, check_names, data_file
from tinyml.api.running import EVERY, execute
from tinyml.api.sources import ModelLike, as_model
from tinyml.base.errors import ConfigError
from tinyml.ir import Array
from tinyml.pipeline import Options, read_samples
from tinyml.settings.quantize_request import Request
from tinyml.watch.counting import Counter
from tinyml.watch.figures import Figures as Figures
from tinyml.watch.figures import figures


def replay(
    model: ModelLike,
    data: DataLike,
    *,
    watch_data: str | Path | None = None,
    watch_channels: bool = False,
    period: int | None = None,
    io: Io = "arena",
) -> tuple[Figures, ...]:
    """Run a data set on this machine and count as a device with ``watch: true`` does, in every bit.

    :param model: a file, bytes, or a model of a training framework; one from ``tinyml.compile`` is taken as
        it is, if it was compiled with ``watch=True`` for the host
    :param data: the inputs, in the order of the runs
    :param watch_data: samples to compare the inputs with (default: what the model was calibrated on)
    :param watch_channels: count the channels of the input one by one, too
    :param period: runs after which the counters start again; one result for each period (default: all runs
        are one)
    :param io: how inputs and outputs are passed, as in ``tinyml.compile``
    """
    if period is not None and period < 1:
        raise ConfigError(f"a period of {period} runs", "1 or more")
    data_for = Path(watch_data) if watch_data is not None else None
    if isinstance(model, CompiledModel):
        compiled = model
        if compiled.built.watch is None or compiled.target != "host":
            raise ConfigError(
                "the model was not compiled to be watched on this machine",
                'tinyml.compile(..., target="host", watch=True), or the model file itself',
            )
    else:
        options = Options(
            target="host", watch=True, watch_data=data_for, watch_channels=watch_channels, io=io
        )
        compiled = build(as_model(model), options)
    graph = compiled.built.graph
    check_names(data, graph)
    with data_file(data, "data") as path:
        assert path is not None
        check_data(path)
        request = Request(path, samples=EVERY, frontend=compiled.options.frontend)
        samples = read_samples(request, graph).inputs
    return tuple(_periods(compiled, samples, period or len(samples)))


def counter_of(compiled: CompiledModel) -> Counter:
    """Counters for a watched model, all zero."""
    assert compiled.built.watch is not None
    return Counter(compiled.name, str(compiled.summary["sha256"]), compiled.built.watch)


def _periods(
    compiled: CompiledModel, samples: Sequence[Mapping[str, Array]], period: int
) -> Iterator[Figures]:
    counter = counter_of(compiled)
    outputs = execute(compiled, samples, "host").runs
    for start in range(0, len(samples), period):
        counter.reset()
        for index in range(start, min(start + period, len(samples))):
            counter.add(samples[index], outputs[index])
        yield figures(counter.report())
