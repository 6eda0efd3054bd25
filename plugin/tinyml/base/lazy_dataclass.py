# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``dataclass`` for this package: the standard one, applied when a class is first used.

The standard decorator writes the source of up to eight methods for each class and compiles it. For the
several hundred classes here that took a fifth of the time of ``tinyml compile``, which builds run for each
model, and most of the classes are not used in one run. Nothing else differs: type checkers see the standard
decorator, and ``fields``, ``replace``, ``asdict``, ``is_dataclass``, copies and pickles work as usual.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, **arguments):
        """The standard decorator, but the methods are made when the first object or ``fields`` needs them."""
        if cls is None:
            return lambda decorated: _postponed(decorated, arguments)
        return _postponed(cls, arguments)


_FIELDS = "__dataclass_fields__"
"""What the standard library's functions look for."""

_lock = RLock()  # one, because a class needs the fields of its bases


def _postponed(cls: type, arguments: dict[str, Any]) -> type:
    """``cls``, which the standard decorator gets before its first object and before its fields are read."""
    if "__new__" in vars(cls):
        return dataclasses.dataclass(**arguments)(cls)
    pending = [True]

    def complete() -> None:
        with _lock:
            if pending and vars(cls)[_FIELDS] is stand_in:  # else another thread, or this one, is at it
                dataclasses.dataclass(**arguments)(cls)
                pending.clear()

    def new(kind: type, /, *values: object, **named: object) -> object:
        """Also called for copies and pickles, which do without ``__init__``."""
        if pending:
            complete()
        return object.__new__(kind)

    stand_in = _Fields(cls, complete)
    setattr(cls, _FIELDS, stand_in)
    cls.__new__ = new  # type: ignore[assignment]
    cls.__signature__ = _Signature(complete)  # type: ignore[attr-defined]
    return cls


class _Fields:
    """In the place of the table of fields until the standard decorator sets it."""

    def __init__(self, cls: type, complete: Callable[[], None]) -> None:
        self.cls = cls
        self.complete = complete

    def __get__(self, instance: object, owner: type) -> dict[str, dataclasses.Field[Any]]:
        self.complete()
        made: dict[str, dataclasses.Field[Any]] = vars(self.cls)[_FIELDS]
        return made


class _Signature:
    """What ``inspect.signature`` says of the class: ``__init__`` has its parameters, not ``__new__``."""

    def __init__(self, complete: Callable[[], None]) -> None:
        self.complete = complete

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        self.complete()
        whole = inspect.signature(owner.__init__)  # type: ignore[misc]
        return whole.replace(parameters=[*whole.parameters.values()][1:])
