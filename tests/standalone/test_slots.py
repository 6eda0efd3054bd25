# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models in slots: opened and run by the device's own code, at the price of the same model linked in."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import tests.ops
from tests.support import goldens
from tests.support.cases import Case
from tests.support.sketch import Sketch
from tinyml import harness
from tinyml.base.errors import ToolError, UnsupportedError
from tinyml.datasets.generated_samples import generated
from tinyml.emit.model import Provenance
from tinyml.ir import Array, DType, Graph
from tinyml.ops.elementwise.binary import Binary
from tinyml.pipeline import Options, compile_built, compile_graph, compile_model
from tinyml.slots.image import Key
from tinyml.slots.image_layout import MAX_RANK
from tinyml.slots.monocypher import find_monocypher
from tinyml.slots.pack import Packed, Slot, pack_compiled
from tinyml.slots.trial import ADDRESSES, SIGNATURES, Trust, open_slot, run_slot, try_self_test
from tinyml.slots.version import Version

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"
MACHINES = list(ADDRESSES)
EVERY = int(os.environ.get("TINYML_SELF_TESTS", "120"))


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


def cases_with_integers() -> list[Case]:
    """Of ``tests/ops``: all that compute integers, with and without real numbers on the way."""
    modules = [import_module(f"tests.ops.{module.name}") for module in iter_modules(tests.ops.__path__)]
    cases = [case for module in modules for case in getattr(module, "CASES", ())]
    return [case for case in cases if any(value.dtype.kind != "f" for value in outputs_of(case))]


def outputs_of(case: Case) -> list[Array]:
    graph = case.graph()
    return [np.zeros(0, graph.tensors[name].dtype.numpy) for name in graph.outputs]


def test_right_models_pass_their_self_test() -> None:
    """Cases of all operators with integer outputs, on cores with and without an FPU, under the noise that
    travels with a pack: a few of them, or with ``TINYML_SELF_TESTS=1`` every one, =10 every tenth."""
    tried = 0
    for index, case in enumerate(cases_with_integers()):
        if index % EVERY != 0:
            continue
        machine = MACHINES[index // EVERY % len(MACHINES)]
        options = Options(target=harness.find_machine(machine).target.name)
        compiled = compile_graph(case.graph(), "case", Provenance(case.name, "0" * 64, ""), options)
        try:
            packed = pack_compiled(compiled, (Slot("a", ADDRESSES[machine][0]),), Version(1))
        except UnsupportedError:
            continue  # more axes than devices accept, or the C library's functions for double
        said = try_self_test(packed)
        assert "passed" in said, f"{case.name}: {said}"
        tried += 1
    assert tried >= 5


def test_a_step_is_no_failure_and_two_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The expected outputs are changed, which is what a device that rounds differently looks like."""
    from tinyml.ir.interpreter import interpret
    from tinyml.slots import golden

    compiled = compile_model(DIGITS, Options(name="model", target="cortex-m4", io="int8"))
    for steps, fine in ((1, True), (2, False)):

        def changed(graph: Graph, samples: Any, steps: int = steps) -> Any:
            return [
                {
                    name: (value + steps * np.sign(-value)).astype(value.dtype)
                    for name, value in answer.items()
                }
                for answer in interpret(graph, samples)
            ]

        monkeypatch.setattr(golden, "interpret", changed)
        packed = pack_compiled(compiled, (Slot("a", ADDRESSES["qemu-cortex-m4"][0]),), Version(1))
        if fine:
            assert try_self_test(packed) == "self-test passed on qemu-cortex-m4"
        else:
            with pytest.raises(ToolError, match="fails its self-test on qemu-cortex-m4"):
                try_self_test(packed)
