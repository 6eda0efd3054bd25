# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The dataclasses of this package behave as the standard ones, though their methods are made later."""

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import threading
from dataclasses import FrozenInstanceError, field

import pytest

from tinyml.base.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Pair:
    left: int
    kind: int = 2


@dataclass(frozen=True)
class Pickled:
    left: int
    right: list[int] = field(default_factory=list)


def _is_made(cls: type) -> bool:
    return "__eq__" in vars(cls)


def test_methods_are_made_by_the_first_object() -> None:
    assert not _is_made(Pair)
    assert Pair(1) == Pair(1, 2) != Pair(2)
    assert _is_made(Pair)
    assert repr(Pair(1)) == "Pair(left=1, kind=2)"
    assert hash(Pair(1)) == hash(Pair(1))
    with pytest.raises(FrozenInstanceError):
        Pair(1).left = 3  # type: ignore[misc]
    with pytest.raises(TypeError, match="kind_"):
        Pair(1, kind_=2)  # type: ignore[call-arg]


def test_the_standard_functions_work_before_any_object() -> None:
    @dataclass(frozen=True)
    class Base:
        first: int

    @dataclass(frozen=True, kw_only=True)
    class Derived(Base):
        second: tuple[int, ...] = field(default=(), repr=False)

    class Plain(Derived):
        pass

    assert [one.name for one in dataclasses.fields(Plain)] == ["first", "second"]
    assert dataclasses.is_dataclass(Base)
    assert _is_made(Base)
    assert _is_made(Derived)
    assert dataclasses.replace(Plain(1), second=(2,)) == Plain(1, second=(2,))
    assert dataclasses.asdict(Derived(1)) == {"first": 1, "second": ()}


def test_the_signature_is_that_of_the_fields() -> None:
    @dataclass(frozen=True)
    class Named:
        first: int
        second: int = 3

    assert str(inspect.signature(Named)) == "(first: int, second: int = 3) -> None"


def test_a_class_with_an_initialiser_of_its_own() -> None:
    @dataclass(frozen=True, init=False)
    class Own:
        value: int

        def __init__(self, text: str) -> None:
            object.__setattr__(self, "value", int(text))

    assert Own("3") == Own("3")
    assert repr(Own("3")).endswith("Own(value=3)")


def test_copies_and_pickles() -> None:
    one = Pickled(1, [2])
    assert copy.deepcopy(one) == one == pickle.loads(pickle.dumps(one))
    # In a process that has not made an object of the class yet.
    program = (
        "import pickle, sys; sys.path[:0] = sys.argv[2:]; one = pickle.loads(bytes.fromhex(sys.argv[1])); "
        "print(one, one == type(one)(1, [2]))"
    )
    words = [sys.executable, "-c", program, pickle.dumps(one).hex(), *sys.path]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "Pickled(left=1, right=[2]) True\n"


def test_threads_that_make_the_first_objects_together() -> None:
    for _ in range(20):

        @dataclass(frozen=True)
        class Shared:
            value: int

        start = threading.Barrier(4)
        made: list[object] = []

        def make(kind: type = Shared, start: threading.Barrier = start, made: list[object] = made) -> None:
            start.wait()
            made.append(dataclasses.fields(kind) and kind(1))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [Shared(1)] * 4
