# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The sheet on which a kernel writes the C of its layer: statements, tables, records and what they need."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from typing import Any

import numpy as np

from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import Target
from tinyml.ir import Array, DType, Layer, Tensor
from tinyml.ops.framework import maths
from tinyml.ops.framework.reserved_names import check_declaration
from tinyml.ops.framework.tally import Tally


@dataclass(frozen=True)
class Table:
    """A constant array in flash. ``values`` keeps its numpy type, which decides the C type."""

    name: str
    values: Array
    alignment: int = 1  # in bytes, if it is more than that of an element
    holds: str = ""  # what the numbers mean, for a comment, if the last word of the name does not say it


class Tables:
    """All constant arrays of a model. Layers whose tables have the same content share one of them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int, bytes], Table] = {}

    def share(self, table: Table) -> Table:
        """``table``, or the first one with the same elements, whatever its shape."""
        values = table.values
        content = hashlib.sha256(values.tobytes()).digest()
        return self._kept.setdefault((values.dtype.str, table.alignment, content), table)

    def __iter__(self) -> Iterator[Table]:
        return iter(self._kept.values())


@dataclass(frozen=True)
class Record:
    """A constant C structure with designated initialisers."""

    type: str
    name: str
    members: Mapping[str, str]


@dataclass(frozen=True)
class LayerCall:
    """The call of the function of a layer inside another layer, with the barrier behind all layers."""

    text: str
    condition: str = ""  # C that says whether its results are used
    may_fail: bool = False  # it returns a status

    def write(self, sheet: Sheet) -> None:
        if self.condition:
            with sheet.block(f"if ({self.condition}) {{"):
                replace(self, condition="").write(sheet)
            return
        sheet.line(f"TINYML_INNER_LAYER({'status = ' if self.may_fail else ''}{self.text});")
        if self.may_fail:
            with sheet.block("if (status != 0) {"):
                sheet.line("return status;")


@dataclass
class Sheet:
    """The body of one layer's C function, filled in by a kernel.

    Inputs and outputs are parameters of that function: ``sheet.x(0)`` and ``sheet.y(0)`` are the C
    expressions for them. A constant input becomes a table in flash and is named by ``x`` too.
    """

    layer: Layer
    target: Target
    prefix: str  # model and layer: "kws_conv1"
    shared_inputs: frozenset[int] = frozenset()  # inputs that are already in place in the output
    backwards: bool = False  # the output overlaps the input so that the last position must come first
    model_tables: Tables = field(default_factory=Tables)  # of all layers of the model
    lines: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)  # those that no layer before has
    records: list[Record] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    libm: set[str] = field(default_factory=set)  # functions of <math.h> that only a full C library has
    used_parameters: set[str] = field(default_factory=set)
    more_parameters: list[tuple[str, str]] = field(default_factory=list)  # declaration, argument
    may_fail: bool = False  # the layer returns 0, or an error that ends the run
    depth: int = 1
    tally: Tally = field(default_factory=Tally)
    named: dict[str, Table] = field(default_factory=dict)  # what ``table`` has returned for a name

    def x(self, index: int = 0) -> str:
        """C name of input ``index``."""
        tensor = self.layer.input(index)
        if tensor.is_constant:
            return self.table(f"in{index}", tensor.value)
        return self._parameter(input_parameter(self.layer, index))

    def y(self, index: int = 0) -> str:
        """C name of output ``index``."""
        return self._parameter(output_parameter(self.layer, index))

    @property
    def scratch(self) -> str:
        """C name of the scratch memory, whose size is the kernel's ``scratch_bytes``."""
        return self._parameter("scratch")

    def _parameter(self, name: str) -> str:
        self.used_parameters.add(name)
        return name

    def table(self, suffix: str, values: Array, alignment: int = 1, holds: str = "") -> str:
        """A constant array in flash; returns its name, which is that of an equal table if there is one.

        ``holds`` tells readers of NAME_weights.h what the numbers are; ``table_words`` knows the usual names.
        """
        name = f"{self.prefix}_{suffix}"
        if name not in self.named:
            own = Table(name, np.ascontiguousarray(values), alignment, holds)
            self.named[name] = self.model_tables.share(own)
            if self.named[name] is own:
                self.tables.append(own)
        return self.named[name].name

    def record(self, type_: str, suffix: str, members: Mapping[str, object]) -> str:
        """A constant structure; returns its name."""
        name = f"{self.prefix}_{suffix}"
        self.records.append(Record(type_, name, {k: str(v) for k, v in members.items()}))
        return name

    def number(self, value: float, dtype: DType = DType.FLOAT32) -> str:
        """A number as a C literal that reads back exactly. Infinities and NaN have names in <math.h>."""
        if dtype.is_float and not np.isfinite(dtype.numpy.type(value)):
            self.include("<math.h>")
        return c.number(value, dtype.numpy)

    def include(self, header: str) -> None:
        if header not in self.headers:
            self.headers.append(header)

    def maths(self, name: str, dtype: DType) -> str:
        """C name of a function of <math.h> for elements of ``dtype``; its header is included."""
        own = maths.own_name(name, dtype)
        if own is not None:
            self.include(maths.HEADER)
            return own
        self.include("<math.h>")
        if name not in maths.IN_EVERY_LIBRARY:
            self.libm.add(name)
        return name

    def limited(self, value: str | c.Expr, low: int, high: int) -> c.Expr:
        """C that makes an int32_t of any integer: the value, or the nearest limit.

        A cast of an int64 would keep the lower half of its bits. Integers that arrive at run time can be
        anything, so they become an int32_t here, in ``index`` or in ``wrapped``, and nowhere else.
        """
        return self._within(f"tinyml_limited({value}, {low}, {high})")

    def index(self, value: str | c.Expr, size: int) -> c.Expr:
        """C for an index into ``size`` elements: negative ones count from the end, all are kept inside."""
        return self._within(f"tinyml_index({value}, {size})")

    def wrapped(self, value: str | c.Expr, size: int) -> c.Expr:
        """C for the remainder of any integer when it is divided by ``size``, from 0 on."""
        return self._within(f"tinyml_wrapped({value}, {size})")

    def _within(self, call: str) -> c.Expr:
        self.include("<tinyml/index.h>")
        return c.Expr(call)

    def line(self, text: str = "") -> None:
        """Add one statement, indented; a long one is broken at spaces. It may not declare reserved names."""
        check_declaration(text)
        self.tally.statement(text)
        self._write(text)

    def _write(self, text: str) -> None:
        self.lines.extend(c.wrap(text, c.TAB * self.depth) if text else [""])

    def call(self, function: str, record: str, *operands: str) -> None:
        """Call a function of the runtime with a record and tensors, tables or memory."""
        self.line(f"{function}({', '.join([f'&{record}', *operands])});")

    @property
    def plays(self) -> bool:
        """Whether calls are noted for the player, with ``note``, and C is refused."""
        return False

    def note(self, function: str, members: Mapping[str, object], *operands: str) -> None:
        """Call a function that only the player has."""
        raise NotImplementedError(function)

    def calls(self, part: Any, where: Callable[[Tensor | None, Any], str]) -> list[LayerCall]:
        """Write a function for each layer of a placed graph inside the layer, and return the calls of them.

        ``where`` gives C for the location of a tensor of that graph, or of scratch memory.
        """
        raise NotImplementedError(self.layer.op.kind)

    def divide_scratch(self) -> None:
        """What ``buffer`` needs first."""
        self.line(f"int8_t *const memory = {self.scratch};")

    def buffer(self, name: str, c_type: str, offset: int) -> None:
        """Define a pointer to ``offset`` bytes after the start of the scratch memory."""
        place = f"&memory[{offset}]" if c_type in ("int8_t", "void") else f"(void *)&memory[{offset}]"
        self.line(f"{c_type} *const {name} = {place};")

    def element(self, pointer: str, offset: int, step: int) -> str:
        """A pointer to an element, in parentheses: kernels may write an index after it.

        ``step`` is what one turn of ``repeat`` adds to ``offset``.
        """
        terms = [str(offset)] if offset else []
        terms += [f"band * {step}"] if step else []
        return f"({' + '.join([pointer, *terms])})" if terms else pointer

    @contextmanager
    def repeat(self, count: int) -> Iterator[None]:
        """What is written inside is done ``count`` times: see ``element``."""
        with self.loop("band", count):
            yield

    def move(self, buffer: str, start: int, count: int, element_bytes: int) -> None:
        """Move elements of a buffer, from ``start`` on, to its beginning."""
        self.include("<string.h>")
        copy = "memcpy" if start >= count else "memmove"
        self.line(f"{copy}({buffer}, &{buffer}[{start}], {count * element_bytes});")

    def copy(self, source: str, target: str, size: int) -> None:
        """Copy bytes, which may be the same ones."""
        self.include("<string.h>")
        self.line(f"memmove({target}, {source}, {size});")

    def clear(self, buffer: str, size: int) -> None:
        """Fill bytes with zeros."""
        self.include("<string.h>")
        self.line(f"memset({buffer}, 0, {size});")

    @contextmanager
    def block(self, opening: str, times: int = 1) -> Iterator[None]:
        """``opening`` must end in ``{``; the brace is closed at the end of the with-block.

        ``times``: how often the block is executed, for estimates of cost. Loops have ``loop``.
        """
        self.line(opening)
        self.tally.open(times)
        with self._indented():
            yield

    @contextmanager
    def loop(self, name: str, end: c.Operand, start: int = 0, step: int = 1) -> Iterator[None]:
        """A loop with an int32_t that counts from ``start`` to below ``end``."""
        by = f"{name}++" if step == 1 else f"{name} += {step}"
        opening = f"for (int32_t {name} = {start}; {name} < {end}; {by}) {{"
        check_declaration(opening)
        if isinstance(end, int):
            self.tally.open_loop(max(0, -(-(end - start) // step)))
        else:  # the data decides
            self.tally.statement(opening)
            self.tally.open()
        self._write(opening)
        with self._indented():
            yield

    @contextmanager
    def _indented(self) -> Iterator[None]:
        self.depth += 1
        yield
        self.depth -= 1
        self.tally.close()
        self._write("}")

    @contextmanager
    def nested(self, loops: Iterable[tuple[str, int]]) -> Iterator[None]:
        """Loops inside one another, each a name and how often it repeats; one of 1 needs no loop."""
        with ExitStack() as opened:
            for name, extent in loops:
                if extent != 1:
                    opened.enter_context(self.loop(name, extent))
            yield

    @contextmanager
    def loops(self, nest: c.Nest) -> Iterator[Mapping[str, c.Expr]]:
        """Open the loops of a nest; yields the index expressions by operand."""
        with ExitStack() as opened:
            for name, extent in zip(nest.names, nest.extents, strict=True):
                opened.enter_context(self.loop(name, extent))
            yield nest.index


def input_parameter(layer: Layer, index: int) -> str:
    """Parameter name of input ``index``: ``x``, or ``x0``, ``x1`` where a layer has several."""
    variable = [i for i, t in enumerate(layer.inputs) if t is not None and not t.is_constant]
    return "x" if len(variable) <= 1 else f"x{index}"


def output_parameter(layer: Layer, index: int) -> str:
    return "y" if len(layer.outputs) == 1 else f"y{index}"
