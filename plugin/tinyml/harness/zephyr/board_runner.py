# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A board as a place to run models: its images, and a connection to it or its emulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tinyml.base.errors import ConfigError, ToolError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.harness.device_session import (
    EMULATOR_SECONDS,
    HARDWARE_SECONDS,
    LOOP_INSTRUCTIONS,
    DeviceModel,
    Greeting,
    Ran,
    Session,
)
from tinyml.harness.faults import failed_run
from tinyml.harness.generated import Generated, read_generated
from tinyml.harness.links import Link, MissingPortError, NativeSim, Program, SerialPort
from tinyml.harness.run import Result
from tinyml.harness.runner import Runner
from tinyml.harness.samples import input_bytes, output_arrays
from tinyml.harness.zephyr.image_build import Build
from tinyml.ir import Array

PORT_SECONDS = 15.0
"""Time limit for a serial port to appear after flashing: the image itself may provide it over USB."""

PROFILED_RUNS = 3
"""Number of runs, of which the fastest counts: interrupts and cold caches slow down others."""


@dataclass(frozen=True)
class Port:
    """Real hardware: its serial port, and whether to flash images."""

    name: str
    baud: int = 115200
    flash: bool = True

    def check(self) -> str | None:
        """Check that the port can be opened before building; returns a remark if that is unknown."""
        try:
            SerialPort(self.name, self.baud).close()
        except MissingPortError as error:
            if not self.flash:
                raise
            return f"{error.message} yet ({error.hint}); waiting for it once the board is flashed"
        return None

    def open(self) -> SerialPort:
        return SerialPort(self.name, self.baud, PORT_SECONDS if self.flash else 0)


@dataclass(frozen=True)
class Cost:
    """One profiled run. ``unit`` is what was counted: instructions or cycles."""

    unit: str
    total: int
    layers: list[int]
    how: str


class ZephyrPlace(Runner):
    """An image that ``build`` has made, on its board."""

    def __init__(self, build: Build, port: Port | None = None, timeout_seconds: float = 300) -> None:
        self.build = build
        self.board = build.board
        self.port = port
        self.timeout_seconds = timeout_seconds
        self.name = f"{build.board} ({port.name if port else 'Zephyr image'})"
        self.where = port.name if port else f"the image for {build.board}"
        if port is None and not self._native and not self._qemu:
            raise ConfigError(
                f"{build.board} cannot be emulated here", "--serial PORT, with the board connected"
            )

    @property
    def _native(self) -> bool:
        return self.build.config.get("CONFIG_ARCH_POSIX") == "y"

    @property
    def _qemu(self) -> bool:
        return self.build.config.get("CONFIG_QEMU_TARGET") == "y"

    def run(self, files: Mapping[str, str], samples: Sequence[Mapping[str, Array]]) -> Result:
        model = self._load(files)
        outputs, cycles = [], []
        with self._link() as link:
            talk, there = self._greet(link, model)
            talk.reset(there.index)
            for index, sample in enumerate(samples):
                ran = self._run(talk, there, input_bytes(model, sample, index), index)
                cycles.append(max(0, ran.cycles - talk.greeting.empty_cycles))
                outputs.append(output_arrays(model, talk.outputs(there.index, there.output_bytes)))
            talk.bye()
        counted = self.port is not None and talk.greeting.clock_hz > 0
        return Result(outputs, cycles=cycles if counted else None)

    def profile(self, files: Mapping[str, str], sample: Mapping[str, Array], layers: int) -> Cost:
        """The cost of a run, layer by layer; requires an image with CONFIG_TINYML_PROFILING."""
        if self._qemu and self.build.config.get("CONFIG_QEMU_ICOUNT") != "y":
            raise ConfigError(f"{self.build.board} does not count instructions", "CONFIG_QEMU_ICOUNT=y")
        model = self._load(files)
        with self._link() as link:
            talk, there = self._greet(link, model)
            totals, counts = [], []
            for _ in range(PROFILED_RUNS):
                talk.reset(there.index)
                totals.append(self._run(talk, there, input_bytes(model, sample, 0), 0).cycles)
                counts.append((talk.layer_cycles() + [0] * layers)[:layers])
            talk.bye()
        return self._cost(talk.greeting, min(totals), [min(runs) for runs in zip(*counts, strict=True)])

    def _cost(self, greeting: Greeting, run_cycles: int, cycles: Sequence[int]) -> Cost:
        """Counts from the readings around each layer and the run, without the cost of reading."""
        empty = greeting.empty_cycles
        layers = [max(0, count - empty) for count in cycles]
        total = max(0, run_cycles - empty)
        if not self._qemu:
            return Cost("cycles", total, layers, f"of a clock of {greeting.clock_hz / 1e6:g} MHz")
        if greeting.loop_cycles == 0:
            raise ConfigError(
                f"instructions cannot be counted on the core of {self.build.board}",
                "a board with Cortex-M or RISC-V",
            )
        rate = LOOP_INSTRUCTIONS / (greeting.loop_cycles - empty)  # instructions in one tick
        return Cost(
            "instructions",
            round(total * rate),
            [round(count * rate) for count in layers],
            f"counted by QEMU, {rate:.2f} in a tick of the clock",
        )

    def _load(self, files: Mapping[str, str]) -> Generated:
        """Build and start an image with these generated files."""
        if self.port and not self.port.flash and self._differs(files):
            raise ConfigError("the board requires a new image", "omit --no-flash")
        self.build.replace_model(files)
        if self.port and self.port.flash:
            self.build.flash()
        return read_generated(self.build.generated)

    def _differs(self, files: Mapping[str, str]) -> bool:
        folder = self.build.generated
        return any((folder / name).read_text(encoding="utf-8") != text for name, text in files.items())

    def _link(self) -> Link:
        if self.port:
            return self.port.open()
        if self._native:
            return NativeSim(self.build.folder / "zephyr" / "zephyr.exe")
        environment = self.build.site.environment(self.build.board)
        command = ["ninja", "-C", str(self.build.folder), "run"]
        return Program(command, self.build.folder, environment, multiplexed=True)

    def _greet(self, link: Link, model: Generated) -> tuple[Session, DeviceModel]:
        """Check that the board runs the image that was built."""
        talk = Session(link, self.where)
        talk.greet(HARDWARE_SECONDS if self.port else EMULATOR_SECONDS)
        inputs, outputs = (sum(port.bytes for port in ports) for ports in (model.inputs, model.outputs))
        expected = _described(model.name, model.sha256[:16], inputs, outputs)
        models = talk.models()
        found = [_described(m.name, m.sha256, m.input_bytes, m.output_bytes) for m in models]
        if expected not in found:
            raise ToolError(
                f"{self.where} has a different model: {', '.join(found) or 'none'}; expected {expected}",
                "omit --no-flash, or flash this image first",
            )
        return talk, models[found.index(expected)]

    def _run(self, talk: Session, model: DeviceModel, data: bytes, index: int) -> Ran:
        talk.feed(model, data, self.timeout_seconds, continues=True)
        ran = talk.run(model.index, self.timeout_seconds)
        if ran.status != 0:
            raise failed_run(model.name, ran.status, index)
        return ran


def _described(name: str, sha256: str, input_bytes: int, output_bytes: int) -> str:
    return f"{name} (SHA-256 {sha256}..., {input_bytes} bytes in, {output_bytes} out)"
