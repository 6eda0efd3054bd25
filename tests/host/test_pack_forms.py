# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Which forms of a model are compiled for a pack, and which layers are named if none can be played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.host.test_data_packs import DIGITS
from tests.ops import attention, softmax
from tinyml.base.errors import UnsupportedError
from tinyml.ops.framework.kernel import kernel_table
from tinyml.pipeline import Options
from tinyml.player.program import Refused, UnplayableError
from tinyml.slots import data_pack
from tinyml.slots.data_pack import pack_data
from tinyml.slots.families import PLAIN
from tinyml.slots.version import Version

WHOLE, BYTES, PARTS, BOTH = (False, False), (False, True), (True, False), (True, True)
"""Whether attention is in parts, and whether weights are bytes."""


@cache
def refused(name: str) -> Refused:
    """A layer of a kind, as its name begins: weights of four bits, attention, or another."""
    case = next(case for case in attention.CASES if case.name == "position")
    if not name.startswith("attention"):
        case = softmax.CASES[0]
    layer = next(iter(case.graph().layers()))
    four_bits = name.startswith("bits")
    kernels = (kernel for of_op in kernel_table().values() for kernel in of_op)
    kernel = next(kernel for kernel in kernels if (kernel.weight_bits < 8) == four_bits)
    return Refused(replace(layer, name=name), layer, kernel, f"no {name}")


@pytest.mark.parametrize(
    "problems,tried,named",
    [
        ({WHOLE: ["bits"]}, [WHOLE, BYTES], None),
        ({WHOLE: ["attention"]}, [WHOLE, PARTS], None),
        ({WHOLE: ["attention", "bits"]}, [WHOLE, BOTH], None),
        ({WHOLE: ["bits"], BYTES: ["attention"]}, [WHOLE, BYTES, BOTH], None),
        ({WHOLE: ["other"]}, [WHOLE], ["other"]),
        ({WHOLE: ["attention", "other", "bits"]}, [WHOLE], ["other"]),
        ({WHOLE: ["attention"], PARTS: ["other", "more"]}, [WHOLE, PARTS], ["attention"]),
        ({WHOLE: ["attention", "attention2"], PARTS: ["other"]}, [WHOLE, PARTS], ["other"]),
        ({WHOLE: ["attention"], PARTS: None}, [WHOLE, PARTS], ["attention"]),
    ],
)
def test_forms_are_compiled_if_they_may_help(
    problems: Mapping[tuple[bool, bool], Sequence[str] | None],
    tried: Sequence[tuple[bool, bool]],
    named: Sequence[str] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``problems``: the layers that are refused in each form; None: the form is not even compiled."""
    found = []

    def image_of(path: Path, options: Options, *rest: object) -> data_pack.Variant:
        form = (options.attention_apart, options.byte_weights)
        found.append(form)
        names = problems.get(form, ())
        if names is None:
            raise UnsupportedError("no kernel supports its parts")
        if names:
            raise UnplayableError([refused(name) for name in names])
        return made(path, options, *rest)  # type: ignore[arg-type]

    made = data_pack._variant
    monkeypatch.setattr(data_pack, "_variant", image_of)
    if named is None:
        assert set(pack_data(DIGITS, Options(), (PLAIN,), Version(1))[0].images) == {"plain"}
    else:
        with pytest.raises(UnplayableError, match="the player has no kernel") as error:
            pack_data(DIGITS, Options(), (PLAIN,), Version(1))
        assert [line.split(": ")[1] for line in error.value.message.splitlines()[1:]] == [
            f"no {name}" for name in named
        ]
    assert found == tried


def test_other_errors_are_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def fails(path: Path, options: Options, *rest: object) -> data_pack.Variant:
        calls.append(options)
        raise UnsupportedError("the model keeps its inputs elsewhere")

    monkeypatch.setattr(data_pack, "_variant", fails)
    with pytest.raises(UnsupportedError, match="elsewhere"):
        pack_data(DIGITS, Options(), (PLAIN,), Version(1))
    assert len(calls) == 1
