# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The machines models run on: the host, and QEMU boards whose clocks count instructions."""

from __future__ import annotations

from tinyml.base.errors import ConfigError, ToolError, did_you_mean
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target, find_target
from tinyml.cores.toolchains import ARM, RISCV, RISCV_FLOAT_VECTOR, RISCV_VECTOR, XTENSA, Toolchain


@dataclass(frozen=True)
class Stamp:
    """A reading of a machine's two clock registers, counted from the start of the clock."""

    fine: int
    coarse: int


class Clock:
    """Turns readings into the number of instructions since the clock was started."""

    source: str  # the C file that drives it
    shift = 6
    """QEMU's ``-icount shift``: one instruction takes 2**6 ns. The timers below tick faster than that, so
    that no two instructions share a tick and a reading can be turned back into an exact count."""

    @property
    def instruction_ns(self) -> int:
        return int(2**self.shift)

    def instructions(self, stamp: Stamp) -> int:
        raise NotImplementedError


class CmsdkTimer(Clock):
    """25 MHz, 32 bits, and a 100 Hz counter that shows how often they wrapped.

    QEMU rounds the remaining ticks up, so after t ns the timer has counted ceil(t / 40) - 1.
    """

    source = "clock_mps2.c"
    tick_ns = 40
    coarse_ns = 10_000_000

    def instructions(self, stamp: Stamp) -> int:
        wrap_ns = 2**32 * self.tick_ns
        wraps = max(0, round((stamp.coarse * self.coarse_ns - stamp.fine * self.tick_ns) / wrap_ns))
        ticks = stamp.fine + wraps * 2**32
        count = (ticks + 1) * self.tick_ns // self.instruction_ns
        return _checked(count, -(-count * self.instruction_ns // self.tick_ns) - 1, ticks)


class SlowCmsdkTimer(CmsdkTimer):
    """The same timer at 20 MHz, at the secure addresses of boards with TrustZone."""

    source = "clock_mps2_tz.c"
    tick_ns = 50


class SystemCounter(Clock):
    """32 MHz, 64 bits: after t ns it has counted floor(t / 31.25)."""

    source = "clock_sse300.c"

    def instructions(self, stamp: Stamp) -> int:
        ticks = stamp.coarse << 32 | stamp.fine
        quarter_ns = 125  # one tick, in units of 0.25 ns
        count = -(-ticks * quarter_ns // (4 * self.instruction_ns))
        return _checked(count, count * 4 * self.instruction_ns // quarter_ns, ticks)


class NordicTimer(Clock):
    """8 MHz, 32 bits: after t ns it has counted floor(t / 125)."""

    source = "clock_nrf51.c"
    shift = 7
    tick_ns = 125

    def instructions(self, stamp: Stamp) -> int:
        count = -(-stamp.fine * self.tick_ns // self.instruction_ns)
        return _checked(count, count * self.instruction_ns // self.tick_ns, stamp.fine)


class InstructionCounter(Clock):
    """RISC-V's minstret, 64 bits. QEMU 7.2 shows nanoseconds in it: without a shift, one per instruction."""

    source = "clock_riscv.c"
    shift = 0

    def instructions(self, stamp: Stamp) -> int:
        return stamp.coarse << 32 | stamp.fine


class CycleCounter(Clock):
    """Xtensa's CCOUNT, 32 bits, at the frequency of the core, which is somewhere in a tick when it starts.

    So after t ns it has counted floor(t / 25) at 40 MHz, or one more. Instructions take at least two ticks.
    """

    source = "clock_xtensa.c"

    def __init__(self, tick_ns: int, shift: int) -> None:
        self.tick_ns = tick_ns
        self.shift = shift

    def instructions(self, stamp: Stamp) -> int:
        count = (stamp.fine * self.tick_ns + self.instruction_ns // 2) // self.instruction_ns
        expected = count * self.instruction_ns // self.tick_ns
        return _checked(count, min(max(expected, stamp.fine), expected + 1), stamp.fine)


def _checked(count: int, expected_ticks: int, ticks: int) -> int:
    """``count``, if a clock would show exactly this reading after that many instructions."""
    if expected_ticks != ticks:
        raise ToolError(
            f"QEMU's clock shows {ticks} ticks, which is not a whole number of instructions",
            "instruction counts require QEMU 7.2 or later; please report your version of qemu-system-arm",
        )
    return count


@dataclass(frozen=True)
class Board:
    """A bare QEMU machine: how to build for it, and how it counts instructions."""

    name: str  # QEMU's
    toolchain: Toolchain
    linker_script: str
    startup: str  # the C file with reset and faults
    clock: Clock
    options: tuple[str, ...] = ()  # more of QEMU's
    library: tuple[str, ...] = ()  # C files with what the compiler's own library lacks


def _mps(name: str, linker_script: str, clock: Clock) -> Board:
    return Board(name, ARM, linker_script, "startup_arm.c", clock)


@dataclass(frozen=True)
class Machine:
    """A place to run: the host, or a board that QEMU emulates.

    ``like``: a machine that runs the same kernels, if there is one; tests run a selection here.
    """

    name: str
    target: Target
    board: Board | None = None
    like: str = ""

    @property
    def clock(self) -> Clock | None:
        return self.board.clock if self.board else None


def _xtensa(name: str, core: str, clock: Clock, like: str) -> Machine:
    """A core of QEMU's that executes what Debian's compiler for the lx106 generates."""
    board = Board(
        "sim",
        XTENSA,
        "sim_lx106.ld",
        "startup_xtensa.c",
        clock,
        ("-cpu", core),
        library=("libgcc_lx106.c",),
    )
    return Machine(name, find_target("generic"), board, like)


def _vectors(name: str, toolchain: Toolchain, like: str) -> Machine:
    """A RISC-V core with vectors of 128 bits. QEMU's has floats, whatever the code uses."""
    options = ("-cpu", "rv32,v=true,vext_spec=v1.0,vlen=128")
    board = Board("virt", toolchain, "virt.ld", "startup_riscv.c", InstructionCounter(), options)
    return Machine(name, find_target(name.removeprefix("qemu-")), board, like)


MICROBIT_MEMORY = tuple(
    word for kind in ("flash", "sram") for word in ("-global", f"nrf51-soc.{kind}-size={4 * 2**20}")
)
"""More than any nRF51 has, so that models fit which are made for larger chips with this core."""

_ALL = (
    Machine("host", find_target("host")),
    Machine(
        "qemu-cortex-m0",
        find_target("cortex-m0"),
        Board("microbit", ARM, "nrf51.ld", "startup_arm.c", NordicTimer(), MICROBIT_MEMORY),
    ),
    Machine("qemu-cortex-m3", find_target("cortex-m3"), _mps("mps2-an385", "mps2.ld", CmsdkTimer())),
    Machine("qemu-cortex-m4", find_target("cortex-m4"), _mps("mps2-an386", "mps2.ld", CmsdkTimer())),
    Machine("qemu-cortex-m7", find_target("cortex-m7"), _mps("mps2-an500", "mps2.ld", CmsdkTimer())),
    Machine(
        "qemu-cortex-m33",
        find_target("cortex-m33"),
        _mps("mps2-an505", "mps2_tz.ld", SlowCmsdkTimer()),
        like="qemu-cortex-m4",
    ),
    Machine(
        "qemu-cortex-m33-nodsp",
        find_target("cortex-m33-nodsp"),
        _mps("mps2-an521", "mps2_tz.ld", SlowCmsdkTimer()),
        like="qemu-cortex-m3",
    ),
    Machine("qemu-cortex-m55", find_target("cortex-m55"), _mps("mps3-an547", "mps3.ld", SystemCounter())),
    Machine(
        "qemu-riscv32",
        find_target("riscv32"),
        Board("virt", RISCV, "virt.ld", "startup_riscv.c", InstructionCounter()),
    ),
    _vectors("qemu-riscv32-zve32x", RISCV_VECTOR, like="qemu-riscv32"),
    _vectors("qemu-riscv32-zve32f", RISCV_FLOAT_VECTOR, like="qemu-riscv32-zve32x"),
    _xtensa("qemu-xtensa", "lx106", CycleCounter(25, 6), like="qemu-riscv32"),
    _xtensa("qemu-xtensa-de212", "de212", CycleCounter(25, 6), like="qemu-xtensa"),
    _xtensa("qemu-xtensa-sample_controller", "sample_controller", CycleCounter(100, 8), like="qemu-xtensa"),
)

MACHINES = {machine.name: machine for machine in _ALL}

CORES = [machine.name for machine in _ALL if machine.board and not machine.like]
"""The emulated machines on which tests and campaigns run everything."""


def find_machine(name: str) -> Machine:
    """The machine called ``name``."""
    try:
        return MACHINES[name]
    except KeyError:
        raise ConfigError(
            f"unknown machine {name!r}{did_you_mean(name, MACHINES)}", f"one of: {', '.join(MACHINES)}"
        ) from None
