# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models on a device, driven from here: frames, a simulated device, lines that damage bytes, fuzzing."""

from __future__ import annotations

import os
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest

import tinyml
from tinyml.base.errors import ConfigError, ToolError
from tinyml.harness import device_session, packets
from tinyml.harness.device_session import Command, Session
from tinyml.harness.links import Link, Program, SerialPort
from tinyml.harness.objects import Unit, compile_all
from tinyml.harness.opening import BareMachine
from tinyml.harness.program_build import RUNTIME_C, RUNTIME_INCLUDE, SANITIZERS, WARNINGS
from tinyml.harness.tools import host_compiler

FUZZED_INPUTS = 200_000
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
SOURCE = Path(__file__).parents[1] / "support" / "host_device.c"
DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``tests/support/host_device.c`` and the runtime's part, under sanitizers."""
    flags = ("-std=gnu11", "-O1", *WARNINGS, *SANITIZERS)
    sources = [SOURCE, *sorted(Path(RUNTIME_C).glob("host/*.c"))]
    compiler = host_compiler()
    units = [Unit(source, "device", flags, (Path(RUNTIME_INCLUDE),)) for source in sources]
    made = tmp_path_factory.mktemp("device") / "device"
    objects = [str(path) for path in compile_all(compiler, units)]
    subprocess.run([str(compiler.path), *SANITIZERS, *objects, "-o", str(made)], check=True)
    return made


def device(program: Path, loss: int = 0) -> tinyml.Device:
    """``loss``: one byte of so many arrives damaged, in both directions."""
    words = [str(program), "serve", *([str(loss)] if loss else [])]
    return tinyml.Device(Program(words, program.parent, ENVIRONMENT), "the device", 20, 60)


@pytest.mark.parametrize("size", [0, 1, 2, 253, 254, 255, 256, 507, 508, 509, 762])
def test_stuffing(size: int) -> None:
    for packet in (b"\0" * size, b"\1" * size, bytes(i % 256 for i in range(size))):
        line = packets.stuff(packet)
        assert b"\0" not in line
        assert len(line) <= size + 2 + size // 254
        assert packets.unstuff(line) == packet


@pytest.mark.parametrize("line", [b"\5abc", b"\2", b"\2a\0", b"\0"])
def test_what_is_not_stuffed(line: bytes) -> None:
    assert packets.unstuff(line) is None


def test_models(program: Path) -> None:
    with device(program) as there:
        assert list(there.models) == [
            "sum",
            "same",
            "rows",
            "other",
        ]  # the last one takes the caller's buffers
        model = there.models["sum"]
        assert (model.sha256, model.arena_bytes, model.has_state) == ("0102030405060708", 100, True)
        assert [(port.name, port.shape, str(port.dtype)) for port in (*model.inputs, *model.outputs)] == [
            ("x", (1, 3), "float32"),
            ("q", (5,), "int8"),
            ("sum", (1,), "float32"),
            ("runs", (1,), "int32"),
        ]
        assert (model.inputs[1].scale, model.inputs[1].zero_point) == (0.5, -3)
        assert "sum, same, rows, other" in repr(there)


def test_runs(program: Path) -> None:
    """Integers for a quantised input are stored values, real numbers are quantised."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with device(program) as there:
        result = there.run("sum", {"x": x, "q": np.full((2, 5), -3, np.int8)})
        assert result["sum"].reshape(-1).tolist() == [3.0, 12.0]
        assert result["runs"].reshape(-1).tolist() == [1, 2]
        assert result.cycles == (1000, 1000)
        result = there.run("sum", {"x": x, "q": np.full((2, 5), 1.5, np.float32)}, reset=False)
        assert result["sum"].reshape(-1).tolist() == [10.5, 19.5]
        assert result["runs"].reshape(-1).tolist() == [3, 4]


def test_rows_arrive_in_order(program: Path) -> None:
    """The model computes while its input comes; a part that is missing is noticed."""
    image = np.arange(1400).reshape(2, 1, 7, 100).astype(np.uint8)
    with device(program) as there:
        result = there.run("rows", image)
        assert np.array_equal(result["sums"], image.astype(np.int32).sum(axis=-1).reshape(2, 7))
        assert result.cycles == (2000, 2000)  # two parts
        write = bytes([2, 0, 0, 0, 0])
        there._session.ask(Command.WRITE, write + bytes(100))
        with pytest.raises(ToolError, match="refuses 'write': it does not accept these arguments"):
            there._session.ask(Command.WRITE, bytes([2, 200, 0, 0, 0]) + bytes(100))
        assert there._session.run(2, 1).status == -22, "rows are missing"


def test_models_with_rows_in_any_order(program: Path) -> None:
    """Two of them, fed in turns, wholly or not, between requests for other models: each run reports what came
    of the rows of that model, and of no other."""
    random, models = Random(5), (2, 3)
    fed: dict[int, int] = {}  # bytes since the model was held without interruption
    ran = 0
    with device(program) as there:
        model = models[0]
        for _ in range(3000):
            kind = random.choice(("reset", "write", "write", "write", "run", "run", "other"))
            model = random.choice(models) if random.random() < 0.2 else model
            if kind == "other" and random.random() < 0.5:
                continue
            if kind == "other":  # of a model without rows, which releases the one with rows
                there._session.ask(Command.RESET, bytes([0]))
                fed.clear()
                continue
            if kind == "run":
                if fed.keys() != {model}:
                    with pytest.raises(ToolError, match="used the model in between"):
                        there._session.run(model, 1)
                    continue
                ran += fed[model] == 700
                assert there._session.run(model, 1).status == (0 if fed[model] == 700 else -22)
                continue
            if fed.keys() != {model}:
                fed = {model: -1}  # held, and not begun
            if kind == "reset":
                there._session.ask(Command.RESET, bytes([model]))
                continue
            offset = (
                fed[model] if 0 <= fed[model] < 700 and random.random() < 0.8 else random.choice((0, 350))
            )
            request = struct.pack("<BI", model, offset) + bytes([model]) * 350
            if offset == 0 or offset == fed[model]:
                there._session.ask(Command.WRITE, request)
                fed[model] = offset + 350
            else:
                with pytest.raises(ToolError, match=r"does not accept these arguments|used the model in"):
                    there._session.ask(Command.WRITE, request)
    assert ran > 100


def test_profile(program: Path) -> None:
    with device(program) as there:
        found = there.profile("sum")
    assert (found.cycles, found.clock_hz, len(found.layers)) == (0, 12_000_000, 300)
    assert found.layers[200:203] == (1000, 1010, 1020)


def test_evaluation(program: Path) -> None:
    """Of values that are always right, and of classes by the original as well."""
    rows = np.random.default_rng(1).integers(20, 200, (8, 700)).astype(np.uint8)
    with device(program) as there:
        found = there.evaluate(rows, rows.astype(np.float32), model="same", output="same", task="values")
        assert found.regression is not None
        assert found.regression.mae == 0
        found = there.evaluate(rows, rows.argmax(axis=1), model="same", task="classes")
        assert (found.accuracy, found.machine, found.original) == (1.0, "the device", None)


@pytest.mark.parametrize("seed", range(3))
def test_a_line_that_damages_bytes(program: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything arrives in the end, and no run is repeated."""
    monkeypatch.setattr(device_session, "ANSWER_SECONDS", 0.2)
    image = np.random.default_rng(seed).integers(14, 255, (3, 700)).astype(np.uint8)
    with device(program, loss=1500 + seed) as there:
        assert np.array_equal(there.run("same", image)["same"], image)
        rows = {"x": np.ones((20, 3), np.float32), "q": np.full((20, 5), -3, np.int8)}
        assert there.run("sum", rows)["runs"].reshape(-1).tolist() == list(range(1, 21))


@pytest.mark.parametrize("between", [1, 3, 7, 40])
def test_a_firmware_that_prints_in_the_middle_of_answers(program: Path, between: int) -> None:
    """Hardly any first answer arrives; the second ones do, and no run is repeated."""
    image = np.arange(1400).reshape(2, 700).astype(np.uint8)
    image[image == 13] = 14  # which the model refuses
    line = Program([str(program), "chat", str(between)], program.parent, ENVIRONMENT)
    with tinyml.Device(line, "the device", 20, 60) as there:
        assert np.array_equal(there.run("same", image)["same"], image)
        rows = {"x": np.ones((5, 3), np.float32), "q": np.full((5, 5), -3, np.int8)}
        assert there.run("sum", rows)["runs"].reshape(-1).tolist() == list(range(1, 6))


@pytest.mark.parametrize("size", [6, 7, 8, 9, 300])
def test_answers_in_high_bytes(size: int) -> None:
    """Text in any place; bytes that are lost are noticed."""
    random = Random(size)
    packet = random.randbytes(size)
    bits = "".join(f"{byte:08b}" for byte in packet) + "0" * (-8 * size % 6)
    high = b"\xc0" + bytes(128 + int(bits[i : i + 6], 2) for i in range(0, len(bits), 6)) + b"\xc1"
    for _ in range(50):
        line = b"".join(bytes([byte]) + random.choice((b"", b"ok\r\n", b"\x1b[1m%")) for byte in high)
        assert packets.from_high(b"\xc3\xa9t\xc3\xa9 " + line + b"\xe2\x82\xac") == packet
        assert packets.from_high(line.replace(b"\xc0", b"")) is None
        assert packets.from_high(line.replace(b"\xc1", b"")) is None


def test_mistakes(program: Path) -> None:
    with device(program) as there:
        with pytest.raises(ConfigError, match="no model called 'kws'") as caught:
            there.run("kws")
        assert caught.value.hint == "it has: sum, same, rows, other"
        with pytest.raises(ConfigError, match="has 4 models: name one"):
            there.run(None)
        with pytest.raises(ToolError, match=r"same_run\(\) returned -22 on sample 0"):
            there.run("same", np.full((1, 700), 13, np.uint8))
        with pytest.raises(ConfigError, match="has shape"):
            there.run("same", np.zeros((1, 12), np.uint8))
        with pytest.raises(ToolError, match="refuses 'tensor': it does not accept these arguments"):
            there._session.ask(Command.TENSOR, bytes([0, 0, 2]))
        with pytest.raises(ToolError, match="refuses 'run': the firmware used the model in between"):
            there._session.ask(Command.RUN, bytes([0]))
        with pytest.raises(ToolError, match="refuses 'slot': its firmware does not have this command"):
            there._session.ask(Command.SLOT, b"\1")
        with pytest.raises(ConfigError, match="has no slots for models"):
            there._session.slot(b"\1", 1)


def test_fuzzing(program: Path) -> None:
    """Any bytes: no crash, no access outside of buffers and tensors, claims and releases in pairs."""
    command = [str(program), "fuzz", "7", str(FUZZED_INPUTS)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    _, _, with_results, *_ = done.stdout.split()
    assert int(with_results) > FUZZED_INPUTS // 20, done.stdout


class Played(Link):
    """A device that a function plays: the number of a request in, bytes out."""

    def __init__(self, play: Callable[[int, bytes], bytes]) -> None:
        self.play = play
        self._out = b""

    def write(self, data: bytes) -> None:
        packet = packets.unstuff(data.strip(b"\0"))
        assert packet is not None
        self._out += self.play(packet[0], packet[2:-4])

    def read(self, seconds: float) -> bytes:
        data, self._out = self._out, b""
        return data

    def close(self) -> None: ...


def answer(number: int, results: bytes, status: int = 0) -> bytes:
    content = bytes([number, status]) + results
    return b"\0" + packets.stuff(content + zlib.crc32(content).to_bytes(4, "little")) + b"\0"


def test_another_version() -> None:
    played = Played(lambda number, nonce: b"*** Booting ***\r\n" + answer(number, nonce + bytes([7])))
    with pytest.raises(ToolError, match="speaks version 7 of the protocol; this program: 1"):
        Session(played, "a board").greet(1)


def test_silence_and_other_text() -> None:
    with pytest.raises(ToolError, match=r"no answer from a board within 0\.1 seconds\n  try") as caught:
        Session(Played(lambda *_: b""), "a board").greet(0.1)
    assert "CONFIG_TINYML_HOST=y" in str(caught.value.hint)
    with pytest.raises(ToolError, match="it printed:\nuart:~"):
        Session(Played(lambda *_: b"uart:~$ \r\n"), "a board").greet(0.1)


def test_an_answer_to_an_earlier_program_is_not_taken() -> None:
    with pytest.raises(ToolError, match="no answer"):
        Session(Played(lambda number, _: answer(number, b"....\1" + bytes(16))), "a board").greet(0.1)


def test_a_device_that_is_slower_than_the_question_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_session, "HELLO_SECONDS", 0.02)
    late: list[bytes] = []

    def play(number: int, nonce: bytes) -> bytes:
        late.append(answer(number, nonce + b"\1\0\2\3" + bytes(13)))
        return late.pop(0) if len(late) > 2 else b""

    assert Session(Played(play), "a board").greet(5).models == 3


def test_no_more_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_session, "ANSWER_SECONDS", 0.02)
    with pytest.raises(ToolError, match="no longer answers 'reset'"):
        Session(Played(lambda *_: b""), "a board").reset(0)
    with pytest.raises(ToolError, match=r"did not finish a run within 0\.05 seconds"):
        Session(Played(lambda *_: b""), "a board").run(0, 0.05)
    with pytest.raises(ToolError, match="answers 'reset'\n  try: its firmware prints, so the line works"):
        Session(Played(lambda *_: b"all is well\r\n"), "a board").reset(0)


def test_a_crash_is_shown() -> None:
    report = b"E: >>> ZEPHYR FATAL ERROR 2: Stack overflow on CPU 0\nE: Current thread: main\n"
    with pytest.raises(ToolError, match=r"crashed:\n.*Stack overflow"):
        Session(Played(lambda *_: report), "a board").run(0, 1)


def test_a_busy_model_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With another number: the same would be answered as before."""
    numbers: list[int] = []

    def play(number: int, _: bytes) -> bytes:
        numbers.append(number)
        return answer(number, b"", device_session.Status.BUSY if len(numbers) < 4 else 0)

    Session(Played(play), "a board").reset(0)
    assert len(set(numbers)) == 4
    numbers.clear()
    monkeypatch.setattr(device_session, "BUSY_SECONDS", 0)
    with pytest.raises(ToolError, match="another thread of the firmware uses the model"):
        Session(Played(play), "a board").reset(0)


def test_a_state_that_another_thread_has_changed() -> None:
    """Inputs of a sequence go on only where the device says that its model is as it was left."""
    model = device_session.DeviceModel(0, "m", "", 0, True, True, False, False, False, (), ())
    greeting = device_session.Greeting(512, 1, False, False, 0, 0, 0)
    lost = Session(Played(lambda number, _: answer(number, b"\0")), "a board")
    lost.greeting = greeting
    lost.feed(model, b"1234", 1)
    with pytest.raises(ToolError, match="used the model in between"):
        lost.feed(model, b"1234", 1, continues=True)
    for results in (b"\1", b""):  # an earlier firmware does not say
        kept = Session(Played(lambda number, _, r=results: answer(number, r)), "a board")  # type: ignore[misc]
        kept.greeting = greeting
        kept.feed(model, b"1234", 1, continues=True)


def test_the_rest_of_an_input_whose_beginning_may_be_gone(program: Path) -> None:
    """After a restart of the device, or a break in which it gave the model away."""
    with device(program) as there:
        rest = struct.pack("<BI", 1, 300) + bytes(400)
        with pytest.raises(ToolError, match="used the model in between"):
            there._session.ask(Command.WRITE, rest)
        with pytest.raises(ToolError, match="used the model in between"):
            there._session.ask(Command.WRITE, rest)
        assert there._session.ask(Command.WRITE, struct.pack("<BI", 1, 0) + bytes(300)) == b"\0"
        assert there._session.ask(Command.WRITE, rest) == b"\1"
        there._session.ask(Command.RESET, bytes([0]))
        with pytest.raises(ToolError, match="used the model in between"):
            there._session.ask(Command.WRITE, rest)


def test_a_port_has_one_program() -> None:
    """Two of them would take each other's answers."""
    pty = pytest.importorskip("pty")
    pytest.importorskip("serial")
    _, terminal = pty.openpty()
    name = os.ttyname(terminal)
    with SerialPort(name, 115200), pytest.raises(ConfigError, match="another program uses the serial port"):
        SerialPort(name, 115200)
    SerialPort(name, 115200).close()


def test_places_that_are_no_device(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a build of a Zephyr application"):
        tinyml.connect(tmp_path)
    (tmp_path / "zephyr").mkdir()
    (tmp_path / "zephyr" / ".config").write_text("CONFIG_TINYML=y\n")
    with pytest.raises(ConfigError, match="cannot be driven") as caught:
        tinyml.connect(tmp_path)
    assert "CONFIG_TINYML_HOST=y" in str(caught.value.hint)
    (tmp_path / "zephyr" / ".config").write_text("CONFIG_TINYML_HOST=y\n")
    with pytest.raises(ConfigError, match="is for hardware"):
        tinyml.connect(tmp_path)


def test_a_model_without_firmware() -> None:
    """On the host: built, started, driven, and gone with its folder."""
    with tinyml.connect("host", model=DIGITS) as there:
        assert list(there.models) == ["model"]
        result = there.run(None)
        assert result.cycles is None
        with pytest.raises(ConfigError, match="has no clock"):
            there.profile()
        link = there._link
        assert isinstance(link, BareMachine)
        folder = link.folder
        assert folder.is_dir()
    assert not folder.exists()
    assert np.array_equal(result["logits"], tinyml.run(DIGITS)["logits"])


def test_machines_need_a_model_and_devices_have_their_own(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="host has no model of its own"):
        tinyml.connect("host")
    with pytest.raises(ConfigError, match="has its own models"):
        tinyml.connect(tmp_path, model=DIGITS)


def test_no_such_port() -> None:
    pytest.importorskip("serial")
    with pytest.raises(ConfigError, match="there is no serial port /dev/no-such-port") as caught:
        tinyml.connect("/dev/no-such-port")
    assert "ports here: " in caught.value.hint
    with pytest.raises(ConfigError):
        SerialPort("/dev/no-such-port", 115200)
