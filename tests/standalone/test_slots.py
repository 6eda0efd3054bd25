# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models in slots: opened and run by the device's own code, at the price of the same model linked in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support import goldens
from tests.support.sketch import Sketch
from tinyml import harness
from tinyml.compare.samples import generated
from tinyml.errors import ToolError, UnsupportedError
from tinyml.ir import DType
from tinyml.ops.elementwise.binary import Binary
from tinyml.pipeline import Options, compile_built, compile_model
from tinyml.slots.image import Key
from tinyml.slots.layout import MAX_RANK
from tinyml.slots.monocypher import find_monocypher
from tinyml.slots.pack import Packed, Slot, pack_compiled
from tinyml.slots.trial import ADDRESSES, SIGNATURES, Trust, open_slot, run_slot
from tinyml.slots.version import Version

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"
MACHINES = list(ADDRESSES)


def packed_for(machine: str, model: Path = DIGITS, key: Key | None = None) -> Packed:
    a, b = ADDRESSES[machine]
    compiled = compile_model(model, Options(name="model", target=harness.find_machine(machine).target.name))
    return pack_compiled(compiled, (Slot("a", a), Slot("b", b)), Version(1), key)


def check_equal(packed: Packed, machine: str) -> None:
    """Both slots compute what the linked-in model computes, with as many instructions, within 1 %."""
    compiled = packed.compiled
    samples = generated(compiled.graph, 3)
    expected = harness.run_files(compiled.files, machine, samples, reset_before={0})
    assert expected.instructions
    for slot in packed.pack.images:
        found = run_slot(packed, slot, machine, samples, reset_before={0})
        for ours, theirs in zip(found.outputs, expected.outputs, strict=True):
            for name in compiled.graph.outputs:
                assert np.array_equal(ours[name], theirs[name])
        assert found.instructions
        for cost, reference in zip(found.instructions, expected.instructions, strict=True):
            assert cost == pytest.approx(reference, rel=0.01)


@pytest.mark.parametrize("machine", MACHINES)
def test_digits(machine: str) -> None:
    check_equal(packed_for(machine), machine)


@pytest.mark.parametrize("machine", ["qemu-cortex-m3", "qemu-cortex-m4"])
@pytest.mark.parametrize(
    "model", ["mww_hey_jarvis_v2_int8.tflite", "espdl_stream_float.onnx", "mlperf_kws_int8.tflite"]
)
def test_published_models(model: str, machine: str) -> None:
    """State in eight bits; state and the C library's mathematics; the model that everybody measures."""
    place = goldens.folder()
    if place is None or not (place / model).is_file():
        pytest.skip(f"no {model} here (TINYML_MODELS names its folder)")
    check_equal(packed_for(machine, place / model), machine)


@pytest.mark.parametrize("machine", MACHINES)
def test_checks_cost_less_than_two_kilobytes(machine: str) -> None:
    packed = packed_for(machine)
    found = run_slot(packed, "a", machine, generated(packed.compiled.graph, 1))
    assert found.footprint
    assert found.footprint.part("slot").flash < 2048


def test_signatures_are_checked_on_the_core() -> None:
    """Monocypher, compiled for the core, accepts the pack of our key and refuses that of another one."""
    monocypher = find_monocypher()
    if monocypher is None:
        pytest.skip("no Monocypher here (TINYML_MONOCYPHER, or the group slots of a west workspace)")
    machine = "qemu-cortex-m3"
    ours, theirs = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    raw = ours.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    trust = Trust(raw, monocypher)
    found = open_slot(packed_for(machine, key=Key(ours.sign, b"")), "a", machine, trust)
    assert found.footprint
    assert found.footprint.part("slot").flash < 2048
    assert found.footprint.part(SIGNATURES).flash > 8192, "the library is not in the image"
    with pytest.raises(ToolError, match="slot refused: -09"):
        open_slot(packed_for(machine, key=Key(theirs.sign, b"")), "a", machine, trust)


def test_the_wrong_slot_is_refused() -> None:
    packed = packed_for("qemu-cortex-m3")
    samples = generated(packed.compiled.graph, 1)
    with pytest.raises(ToolError, match="slot refused: -05"):
        run_slot(packed, "a", "qemu-cortex-m3", samples, content=packed.pack.images["b"])


def test_another_core_is_refused() -> None:
    """Code for Cortex-M4 on a Cortex-M3."""
    packed, other = packed_for("qemu-cortex-m3"), packed_for("qemu-cortex-m4")
    samples = generated(packed.compiled.graph, 1)
    content = other.pack.images["a"]
    room = len(packed.pack.images["a"])
    assert len(content) <= room
    with pytest.raises(ToolError, match="slot refused: -12"):
        run_slot(packed, "a", "qemu-cortex-m3", samples, content=content)


def test_a_damaged_slot_is_refused() -> None:
    packed = packed_for("qemu-cortex-m3")
    samples = generated(packed.compiled.graph, 1)
    content = bytearray(packed.pack.images["a"])
    content[len(content) // 2] ^= 0x40
    with pytest.raises(ToolError, match="slot refused: -06"):
        run_slot(packed, "a", "qemu-cortex-m3", samples, content=bytes(content))


@pytest.mark.parametrize("axes", [1, 8, 9])
def test_outputs_that_are_infinite_or_no_numbers_pass_their_test(axes: int) -> None:
    """The test that travels with a model divides by 0 here; devices accept up to eight axes."""
    sketch = Sketch()
    x = sketch.input((1,) * (axes - 1) + (16,), DType.FLOAT32)
    zeros = sketch.add(Binary("sub"), x, x)
    outputs = [sketch.add(Binary("div"), x, zeros), sketch.add(Binary("div"), zeros, zeros)]
    compiled = compile_built(sketch.graph(*outputs), Options(target="cortex-m4"))
    slots = (Slot("a", ADDRESSES["qemu-cortex-m4"][0]),)
    if axes > MAX_RANK:
        with pytest.raises(UnsupportedError, match="9 axes, and devices accept slots with up to 8"):
            pack_compiled(compiled, slots, Version(1))
        return
    packed = pack_compiled(compiled, slots, Version(1))
    (found,) = run_slot(packed, "a", "qemu-cortex-m4", [{x.name: np.ones(x.shape, np.float32)}]).outputs
    first, second = found.values()
    assert np.isposinf(first).all()
    assert np.isnan(second).all()
