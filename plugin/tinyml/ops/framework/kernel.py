# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Kernels: the ways to compute an operator in C. Each writes its layer on a sheet (``sheet.py``)."""

from __future__ import annotations

import enum
import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from tinyml.base.errors import RegistrationError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Constraint, Layer, Op
from tinyml.ir.constraints import message
from tinyml.ops.framework.sheet import Record as Record
from tinyml.ops.framework.sheet import Sheet as Sheet
from tinyml.ops.framework.sheet import Table as Table
from tinyml.ops.framework.sheet import Tables as Tables
from tinyml.ops.framework.sheet import input_parameter as input_parameter
from tinyml.ops.framework.sheet import output_parameter as output_parameter
from tinyml.ops.framework.tally import Tally
from tinyml.ops.framework.work import Work


class Library(enum.Enum):
    """Where the code of a kernel comes from."""

    GENERATED = "generated"  # loops written into the model's own source
    PORTABLE = "portable"  # runtime/*.c of this project
    CMSIS_NN = "cmsis-nn"  # Arm's library
    NPU = "npu"  # the driver of an NPU


OpT = TypeVar("OpT", bound=Op)
O_contra = TypeVar("O_contra", bound=Op, contravariant=True)


@dataclass(frozen=True)
class Overlay:
    """An input that output 0 may be computed in place of, and how: see ``Kernel.overlays``.

    Unless it goes backwards or is ``fixed``, the output may also start further before the input, if the
    distance differs by whole positions.
    """

    input: int
    distance: int = 0  # bytes from the start of the input to that of the output; negative if before
    backwards: bool = False  # only if the last position is computed first
    fixed: bool = False  # only at this distance


class Kernel(ABC, Generic[O_contra]):
    """One way to compute one operator. ``ops/<op>.py`` lists its kernels in order of preference.

    ``Kernel[Conv]`` computes layers of type ``Layer[Conv]``; a ``Kernel[Convolution]``, whose operator is a
    base class of Conv, can be registered for Conv too.
    """

    name: ClassVar[str]
    library: ClassVar[Library] = Library.GENERATED
    sources: ClassVar[tuple[str, ...]] = ()  # runtime/*.c, or paths inside CMSIS-NN
    constraints: ClassVar[tuple[Constraint, ...]] = ()
    prepares_channels: ClassVar[bool] = False  # each call works on every channel before its first output
    in_bands: ClassVar[bool] = False  # whether its code can be repeated for bands of rows
    for_few: ClassVar[Kernel[Any] | None] = None  # instead, for bands with fewer elements than it supports
    gathers: ClassVar[int] = 0  # addresses from which one instruction loads the elements of a vector
    scratch_alignment: ClassVar[int] = 4  # in bytes
    weight_bits: ClassVar[int] = 8  # that a weight of an integer layer takes
    weights_are_float16: ClassVar[bool] = False  # whether a weight of a float layer takes 16 bits
    adds_in_float16: ClassVar[bool] = False  # whether it rounds sums to float16, which a user has to allow
    c_files: ClassVar[tuple[str, ...]] = ()  # beside its Python file: C that becomes part of the model's own

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """A kernel with a name of its own has C of its own, so it does not inherit ``loop_counts``."""
        super().__init_subclass__(**kwargs)
        if "name" in vars(cls) and "loop_counts" not in vars(cls):
            cls.loop_counts = Kernel.loop_counts  # type: ignore[method-assign]

    def runs_on(self, target: Target) -> bool:
        """Whether the core can execute this kernel."""
        return True

    def scratch_bytes(self, layer: Layer[O_contra], target: Target) -> int:
        """Working memory in the arena for the duration of the layer."""
        return 0

    def padded_bytes(self, layer: Layer[O_contra]) -> int:
        """What weights take more than a byte each, for a faster kernel: wider ones, or zeros between them."""
        return 0

    def repeated_bytes(self, layer: Layer[O_contra]) -> int:
        """Constants that this kernel stores several times, unlike others: the bytes of all but the first."""
        return 0

    def overlays(self, layer: Layer[O_contra]) -> tuple[Overlay, ...]:
        """The inputs whose memory output 0 may be written over, and how; the preferred way first."""
        return ()

    def alignments(self, layer: Layer[O_contra]) -> Mapping[str, int]:
        """Tensors of the layer, by name, that must be aligned to more than their elements, in bytes."""
        return {}

    def runtime_sources(self, layer: Layer[O_contra]) -> tuple[str, ...]:
        """The files of runtime/ that the layer links."""
        return self.sources if self.library is Library.PORTABLE else ()

    def cmsis_nn_sources(self, layer: Layer[O_contra]) -> tuple[str, ...]:
        """The files of CMSIS-NN that the layer links."""
        return self.sources if self.library is Library.CMSIS_NN else ()

    def sums_rows(self, layer: Layer[O_contra]) -> bool:
        """Whether the layer is a mean of whole columns: ``emit_sums`` and ``emit_means`` do it in parts."""
        return False

    def emit_sums(self, layer: Layer[O_contra], sheet: Sheet, sums: str) -> None:
        """Write C that adds some rows of the input to ``sums``, an int32_t for each channel."""
        raise NotImplementedError

    def emit_means(self, layer: Layer[O_contra], sheet: Sheet, sums: str) -> None:
        """Write C that makes the output of the whole layer from ``sums``."""
        raise NotImplementedError

    def loop_counts(self, layer: Layer[O_contra], target: Target) -> Work | None:
        """How often each loop of its C runs for the layer, from which its instructions are estimated.

        Every name is a piece of code that takes about the same number of instructions each time:
        ``tools.fit_costs`` finds how many. Arithmetic on the layer's shapes only. None: not described; then
        estimates are sums over the sizes of the layer (``work.py``).
        """
        return None

    def placed_counts(self, layer: Layer[O_contra], target: Target, tally: Tally) -> Work | None:
        """The same for a layer whose tensors are at known places, for kernels to which these matter."""
        del tally
        return self.loop_counts(layer, target)

    def functions(self, layer: Layer[O_contra]) -> tuple[str, ...]:
        """The functions and tables of the libraries that the layer names, which decide how much is linked."""
        return (self.name,)

    def code_files(self) -> list[Path]:
        """``c_files`` as paths."""
        return [Path(inspect.getfile(type(self))).parent / name for name in self.c_files]

    @abstractmethod
    def emit(self, layer: Layer[O_contra], sheet: Sheet) -> None:
        """Write the layer's C."""

    def play(self, layer: Layer[O_contra], sheet: Sheet) -> None:
        """Note the calls that compute the layer on a ``PlaySheet``, for models without code.

        Kernels that only call the runtime do the same as for C.
        """
        self.emit(layer, sheet)

    def play_sums(self, layer: Layer[O_contra], sheet: Sheet, sums: str) -> None:
        """What ``emit_sums`` does, for the player."""
        self.emit_sums(layer, sheet, sums)

    def play_means(self, layer: Layer[O_contra], sheet: Sheet, sums: str) -> None:
        """What ``emit_means`` does, for the player."""
        self.emit_means(layer, sheet, sums)

    def refusal(self, layer: Layer[O_contra]) -> str | None:
        """The first constraint that the layer does not meet, in words."""
        for constraint in self.constraints:
            if not constraint(layer):
                return message(constraint)
        return None


class InPlace(Kernel[O_contra]):
    """A kernel that no longer needs an element of input 0 when it writes that element of the output."""

    def overlays(self, layer: Layer[O_contra]) -> tuple[Overlay, ...]:
        return over_inputs(layer, 0)


def over_inputs(layer: Layer, *inputs: int) -> tuple[Overlay, ...]:
    """The output may start where one of these inputs does, provided that it is not larger."""
    return tuple(Overlay(i) for i in inputs if layer.input(i).bytes >= layer.output.bytes)


_KERNELS: dict[type[Op], tuple[Kernel[Any], ...]] = {}
_PLACES: dict[type[Op], str] = {}


def register_kernels(op: type[OpT], *kernels: Kernel[OpT]) -> None:
    """Register the kernels of an operator, the preferred one first; called at the end of ``ops/<op>.py``."""
    caller = inspect.currentframe().f_back  # type: ignore[union-attr]
    place = f"{caller.f_code.co_filename}:{caller.f_lineno}" if caller else op.__module__
    if op in _KERNELS:
        raise RegistrationError(f"the list of kernels of {op.__name__}", (_PLACES[op], place))
    _KERNELS[op], _PLACES[op] = kernels, place


def kernels_of(op: type[Op]) -> tuple[Kernel[Any], ...]:
    return _KERNELS.get(op, ())


def forget_kernels(keep: Mapping[type[Op], tuple[Kernel[Any], ...]]) -> None:
    """Return to an earlier ``kernel_table``: a file with operators could not be loaded."""
    for op in set(_KERNELS) - set(keep):
        del _KERNELS[op], _PLACES[op]


def kernel_table() -> Mapping[type[Op], tuple[Kernel[Any], ...]]:
    """All operators that have kernels (for the generated documentation)."""
    return _KERNELS
