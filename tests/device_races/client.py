# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A computer on the line of the host protocol: right requests, damaged ones, and what comes of them."""

from __future__ import annotations

import contextlib
import io
import random
import struct
import time
import zlib
from collections import Counter
from pathlib import Path

import numpy as np

from tests.support.interpret import interpret_runs
from tests.zephyr.building import ROOT
from tinyml.base.errors import ConfigError, ToolError
from tinyml.harness.device_session import Command, DeviceModel, Session
from tinyml.harness.links import Link
from tinyml.harness.packets import frame, stuff
from tinyml.ir import Array
from tinyml.pipeline import Options, compile_model
from tinyml.slots.container import Pack
from tinyml.slots.deploy import Request, Slots, deploy

FILES = {
    "digits": ROOT / "samples" / "digits" / "model.onnx",
    "second": ROOT / "samples" / "model_update" / "model_v1.onnx",
    "stream": ROOT / "tests" / "zephyr" / "userspace" / "stream.tflite",
}
IDLE_SECONDS = 2.6  # the device gives a model back after two
SECONDS = 60.0
MAY_HAPPEN = ("used the model in between", "another thread of the firmware uses the model")
SLOT_MAY = ("no free slot", "not newer", "on trial", "another update has begun", "did not expect this now")


class Wrong(Exception):
    """What should not happen."""


class Client:
    """Does one thing after another, and compares what it can."""

    def __init__(self, link: Link, rng: random.Random, packs: list[Pack]) -> None:
        self.link, self.rng, self.packs = link, rng, packs
        self.done: Counter[str] = Counter()
        self.compiled = {name: compile_model(file, Options(name, "host")) for name, file in FILES.items()}
        self.again()

    def again(self) -> None:
        """A new program at the other end; the one before did not say good-bye."""
        self.session = Session(self.link, "the device")
        self.session.greet(SECONDS)
        self.models = {model.name: model for model in self.session.models()}

    def step(self) -> str:
        actions = {
            "run": 6,
            "sequence": 6,
            "profile": 4,
            "pause": 1,
            "rubbish": 6,
            "frames": 6,
            "repeat": 2,
            "half deployment": 2,
            "deployment": 2,
            "again": 2,
            "mixed": 3,
        }
        (name,) = self.rng.choices(list(actions), list(actions.values()))
        try:
            getattr(self, f"_{name.replace(' ', '_')}")()
        except ToolError as error:
            allowed = MAY_HAPPEN + (SLOT_MAY if "deployment" in name else ())
            if not any(words in str(error) for words in allowed):
                raise Wrong(f"{name}: {error}") from None
            name += ", refused"
        except ConfigError as error:
            if not any(words in str(error) for words in SLOT_MAY):
                raise Wrong(f"{name}: {error}") from None
            name += ", refused"
        self.done[name] += 1
        return name

    def _inputs(self, name: str) -> dict[str, Array]:
        graph = self.compiled[name].graph
        draw = np.random.default_rng(self.rng.randrange(2**32))
        found = {}
        for tensor in (graph.tensors[each] for each in graph.inputs):
            values = (
                draw.integers(-128, 128, tensor.shape)
                if tensor.dtype.value == "int8"
                else draw.random(tensor.shape)
            )
            found[tensor.name] = values.astype(tensor.dtype.numpy)
        return found

    def _write(self, model: DeviceModel, inputs: dict[str, Array], continues: bool) -> None:
        data = b"".join(inputs[port.name].tobytes() for port in model.inputs)
        self.session.feed(model, data, SECONDS, continues)

    def _sequence(self, steps: int = 0, pause: bool = False, name: str = "") -> None:
        name = name or self.rng.choice(list(FILES))
        model = self.models[name]
        samples = [self._inputs(name) for _ in range(steps or self.rng.randrange(1, 6))]
        expected = interpret_runs(self.compiled[name].graph, samples)
        self.session.reset(model.index)
        for index, (sample, wanted) in enumerate(zip(samples, expected, strict=True)):
            if pause and index == 1:
                time.sleep(IDLE_SECONDS)
            self._write(model, sample, True)
            if self.session.run(model.index, SECONDS).status != 0:
                raise Wrong(f"{name} does not run")
            found = self.session.outputs(model.index, model.output_bytes)
            values = np.concatenate([array.ravel() for array in wanted.values()])
            came = np.frombuffer(found, values.dtype)
            if not np.allclose(came.astype(float), values.astype(float), 1e-5, 1e-5):
                raise Wrong(f"{name}, step {index}: {came[:6]}, not {values[:6]}")

    def _run(self) -> None:
        self._sequence(1)

    def _pause(self) -> None:
        """Longer than the device waits; threads of the firmware use the model."""
        self._sequence(3, pause=True, name=self.rng.choice(("stream", "digits")))

    def _profile(self) -> None:
        name = self.rng.choice(list(FILES))
        model = self.models[name]
        self.session.reset(model.index)
        self._write(model, self._inputs(name), True)
        ran = self.session.run(model.index, SECONDS)
        cycles = self.session.layer_cycles()
        layers = len(self.compiled[name].summary["layers"])
        if len(cycles) > layers or not cycles:
            raise Wrong(f"{name} has {layers} layers; the device counted {len(cycles)}")
        if sum(cycles) > ran.cycles + 1000:
            raise Wrong(f"{name}: layers take {sum(cycles)} cycles, the run {ran.cycles}")

    def _rubbish(self) -> None:
        count = self.rng.choice((1, 7, 60, 700, 2500))
        self.link.write(bytes(self.rng.choices(range(256), k=count)))

    def _frames(self) -> None:
        """Frames of any length with a right CRC, cut off, damaged, sent twice, or with other arguments."""
        for _ in range(self.rng.randrange(1, 6)):
            command = self.rng.choice([*Command, 0, 99])
            if command == Command.SLOT:
                request = self.rng.choice([Request.INFO, Request.DATA, Request.PLAYER, 77])
                arguments = bytes([request]) + self.rng.randbytes(self.rng.choice((0, 1, 4, 9, 300)))
            else:
                arguments = bytes([self.rng.randrange(5)]) + self.rng.randbytes(
                    self.rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 60, 500, 520, 900))
                )
            sent = frame(self.rng.randrange(256), command, arguments)
            fate = self.rng.randrange(4)
            if fate == 0:
                sent = sent[: self.rng.randrange(len(sent))]
            elif fate == 1:
                at = self.rng.randrange(len(sent))
                sent = sent[:at] + bytes([sent[at] ^ self.rng.randrange(1, 256)]) + sent[at + 1 :]
            elif fate == 2:
                sent += sent
            self.link.write(sent)
        self.again()  # whatever these requests have claimed

    def _repeat(self) -> None:
        """A request that arrives twice in a row is executed once."""
        packet = bytes([9, Command.HELLO]) + self.rng.randbytes(4)
        self.link.write(2 * (b"\0" + stuff(packet + zlib.crc32(packet).to_bytes(4, "little")) + b"\0"))

    def _mixed(self) -> None:
        """The inputs of one model, then of another one; the first was released, and says so."""
        one, other = self.rng.sample(list(FILES), 2)
        self._write(self.models[one], self._inputs(one), False)
        self._write(self.models[other], self._inputs(other), False)
        try:
            self.session.run(self.models[one].index, SECONDS)
        except ToolError as error:
            if MAY_HAPPEN[0] not in str(error):
                raise
        else:
            raise Wrong(f"{one} runs although {other} was filled")

    def _half_deployment(self) -> None:
        slots = Slots(self.session)
        pack = self.rng.choice(self.packs)
        content = slots.player().image_in(pack)
        done, _ = slots.begin(len(content), self.rng.random() < 0.5)
        for _ in range(self.rng.randrange(12)):
            if done < len(content):
                done = slots.send(done, content[done : done + 100])
        if self.rng.random() < 0.3:  # and something out of order
            self.session.slot(bytes([Request.DATA]) + struct.pack("<I", done + 5) + b"123", SECONDS)

    def _deployment(self) -> None:
        slots = Slots(self.session)
        version = slots.state().version.major
        if version >= len(self.packs):
            return
        pack = self.packs[version]
        deploy(slots, pack)
        if slots.state().version.major != version + 1:
            raise Wrong(f"version {version + 1} was deployed, and {slots.state().version} is in use")
        self.again()

    def _again(self) -> None:
        self.again()


def packs(folder: Path, count: int) -> list[Pack]:
    """Versions of a model as data, for every family of cores."""
    from tinyml.slots import container
    from tinyml.verbs.cli import main

    made = []
    for version in range(1, count + 1):
        path = folder / f"field_{version}.tmodel"
        file = FILES["digits" if version % 2 else "second"]
        words = ["pack", str(file), "--name", "field", "--data", "--for", "all"]
        with contextlib.redirect_stdout(io.StringIO()):
            assert main([*words, "--version", str(version), "-o", str(path)]) == 0
        made.append(container.load(path))
    return made
