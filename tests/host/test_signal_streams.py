# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Lite Micro's operators on streams, against what its ring buffers do sample by sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.support.batch import Item, run_batch
from tests.support.signal_models import one_call
from tests.support.tflite_writer import Value
from tinyml.base.errors import TinymlError
from tinyml.importers import load
from tinyml.ir import Array
from tinyml.pipeline import Options, compile_model

Answer = tuple[Array, bool | None]
"""A run's output (where it is valid) and whether it is; None for operators that do not say."""


def delay(runs: Sequence[Array], length: int) -> Sequence[Answer]:
    row = np.concatenate([np.zeros((*runs[0].shape[:-1], length), np.int16), *runs], -1)
    size = runs[0].shape[-1]
    return [(row[..., i * size : (i + 1) * size], None) for i in range(len(runs))]


def framer(runs: Sequence[Array], size: int, step: int, prefill: bool) -> Sequence[Answer]:
    """For one channel."""
    ring: list[int] = [0] * (size - step) if prefill else []
    answers = []
    for x in runs:
        frames, valid = [], True
        for start in range(0, len(x), step):
            ring += x[start : start + step].tolist()
            if len(ring) >= size:
                frames.append(ring[:size])
                ring = ring[step:]
            else:
                valid = False
        answers.append((np.array(frames, np.int16), valid))
    return answers


def stacker(runs: Sequence[Array], left: int, right: int, step: int) -> Sequence[Answer]:
    ring: list[Array] = []
    rows, answers = left + right + 1, []
    for number, x in enumerate(runs):
        ring += [x] * (left + 1 if number == 0 else 1)
        valid = len(ring) >= rows
        answers.append((np.concatenate(ring[:rows]), valid))
        ring = ring[step:] if valid else ring
    return answers


def overlap_add(runs: Sequence[Array], step: int) -> Sequence[Answer]:
    limits = (-32768, 32767) if runs[0].dtype == np.int16 else (-np.inf, np.inf)
    buffer, answers = np.zeros((*runs[0].shape[:-2], runs[0].shape[-1])), []
    for x in runs:
        parts = []
        for frame in np.moveaxis(x, -2, 0):
            buffer = np.clip(buffer + frame, *limits)
            parts.append(buffer[..., :step])
            buffer = np.concatenate([buffer[..., step:], np.zeros_like(parts[0])], -1)
        answers.append((np.concatenate(parts, -1).astype(x.dtype), None))
    return answers


@dataclass(frozen=True)
class Stream:
    """An operator, the shapes of input and output, and what it computes."""

    name: str
    shape: tuple[int, ...]
    output: tuple[int, ...]
    options: dict[str, int]
    answers: Callable[[Sequence[Array]], Sequence[Answer]]
    dtype: str = "int16"
    says: bool = False  # whether the output is valid

    def runs(self) -> list[Array]:
        generator = np.random.default_rng(7)
        return [generator.integers(-32768, 32768, self.shape).astype(self.dtype) for _ in range(9)]

    def file(self) -> bytes:
        outputs = [Value("y", self.output, self.dtype)] + [Value("valid", (), "bool")] * self.says
        return one_call(self.name, [Value("x", self.shape, self.dtype)], outputs, self.options)


def frames(size: int, step: int, count: int, prefill: bool) -> Stream:
    options = {"frame_size": size, "frame_step": step, "prefill": prefill}
    return Stream(
        "Framer",
        (count,),
        (count // step, size),
        options,
        lambda x: framer(x, size, step, prefill),
        says=True,
    )


def stacks(channels: int, left: int, right: int, step: int) -> Stream:
    options = {"num_channels": channels, "stacker_step": step}
    options |= {"stacker_left_context": left, "stacker_right_context": right}
    wide = channels * (left + right + 1)
    return Stream(
        "Stacker", (channels,), (wide,), options, lambda x: stacker(x, left, right, step), says=True
    )


def sums(shape: tuple[int, ...], step: int, dtype: str = "int16") -> Stream:
    output = (*shape[:-2], shape[-2] * step)
    return Stream("OverlapAdd", shape, output, {"frame_step": step}, lambda x: overlap_add(x, step), dtype)


STREAMS = {
    "delay": Stream("Delay", (2, 5), (2, 5), {"delay_length": 3}, lambda x: delay(x, 3)),
    "long_delay": Stream("Delay", (5,), (5,), {"delay_length": 12}, lambda x: delay(x, 12)),
    "frames": frames(10, 4, 8, False),
    "prefilled_frames": frames(10, 4, 8, True),
    "whole_frames": frames(6, 3, 3, False),
    "stacks": stacks(3, 2, 1, 2),
    "later_stacks": stacks(2, 1, 3, 1),
    "single_rows": stacks(4, 0, 0, 1),
    "sums": sums((2, 3, 7), 3),
    "one_sum": sums((1, 8), 2),
    "float_sums": sums((2, 6), 4, "float32"),
    "no_overlap": sums((2, 4), 4),
}


def test_streams_are_those_of_ring_buffers(tmp_path: Path) -> None:
    """Nine runs of each, in C."""
    items = []
    for name, stream in STREAMS.items():
        path = tmp_path / f"{name}.tflite"
        path.write_bytes(stream.file())
        files = compile_model(path, Options(name=name, target="host")).files
        items.append(Item(name, files, [{"x": x} for x in stream.runs()]))
    for name, outcome in run_batch(items).items():
        assert not outcome.failure, f"{name}: {outcome.failure}"
        wanted = STREAMS[name].answers(STREAMS[name].runs())
        assert any(valid is not False for _, valid in wanted)
        for number, (found, (y, valid)) in enumerate(zip(outcome.outputs, wanted, strict=True)):
            if valid is not None:
                assert bool(found["valid"]) == valid, f"{name}, run {number}"
            if valid is not False:
                np.testing.assert_array_equal(found["y"], y, f"{name}, run {number}")


WRONG = {
    "frames that do not fit": (frames(10, 4, 9, True), "frames of 10 every 4 samples of 9"),
    "gaps between frames": (frames(3, 4, 8, True), "frames of 3 every 4"),
    "steps beyond the stack": (stacks(3, 1, 0, 3), "2 rows of 3, every 3"),
    "steps beyond frames": (sums((2, 4), 5), "every 5 samples"),
    "many sums": (sums((65, 4), 2), "at most 64"),
}


@pytest.mark.parametrize("what", WRONG)
def test_mistakes_are_messages(tmp_path: Path, what: str) -> None:
    stream, message = WRONG[what]
    path = tmp_path / "wrong.tflite"
    path.write_bytes(stream.file())
    with pytest.raises(TinymlError, match=message):
        load(path)
