# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What `verify` allows float models, and what it blames after it has checked it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.random_graphs.recipe import recipe
from tests.random_graphs.tflite_model import tflite_model
from tests.support.onnx_models import model, node
from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.base.errors import ToolError
from tinyml.compare import check, double
from tinyml.compare.difference import FLOAT_TOLERANCE
from tinyml.compare.reference import DENSE_NOTE, Answer, Numpy
from tinyml.datasets.generated_samples import generated
from tinyml.harness import Result, Standalone
from tinyml.pipeline import Options

HOST = Standalone("host")
RNG = np.random.default_rng(2)


@pytest.fixture
def cancelling(tmp_path: Path) -> check.Subject:
    """Large sums that cancel: float32 loses most of its digits, in any order of the additions."""
    w = RNG.normal(0, 1, (64, 8)).astype(np.float32)
    nodes = [node("MatMul", "x w", "h"), node("MatMul", "x v", "g"), node("Sub", "h g", "y")]
    content = model(nodes, {"x": [1, 64]}, "y", w=w, v=(w * 1.003).astype(np.float32))
    (tmp_path / "m.onnx").write_bytes(content)
    return check.subject(tmp_path / "m.onnx", Options(target="host"))


def test_the_limit_follows_the_model(cancelling: check.Subject) -> None:
    pytest.importorskip("onnxruntime")
    samples = generated(cancelling.compiled.graph, 2)
    verdict = check.check(cancelling, HOST, samples)
    assert verdict.fine
    assert max(line.difference.distance for line in verdict.lines) > FLOAT_TOLERANCE
    given = [{"x": sample["x"]} for sample in samples]
    exact = double._outputs(cancelling.imported, given)
    assert exact is not None
    assert exact[0][0].dtype == np.float64
    assert FLOAT_TOLERANCE < double.limit(cancelling.imported, given) < 0.01


def test_an_ordinary_model_has_the_ordinary_limit(tmp_path: Path) -> None:
    subject = small(tmp_path)
    given = [{"x": sample["x"]} for sample in generated(subject.compiled.graph, 2)]
    assert double.limit(subject.imported, given) == FLOAT_TOLERANCE


class Rounded(Standalone):
    """A place that adds a little to every float output of the plain build, as rounding would."""

    def __init__(self) -> None:
        super().__init__("host")
        self.share = 0.0

    def run(self, files, samples):  # type: ignore[no-untyped-def]
        result = super().run(files, samples)
        return Result([{n: v + np.float32(self.share) for n, v in o.items()} for o in result.outputs])


def small(tmp_path: Path) -> check.Subject:
    w = RNG.normal(0, 1, (4, 4)).astype(np.float32)
    (tmp_path / "s.onnx").write_bytes(model([node("MatMul", "x w", "y")], {"x": [1, 4]}, "y", w=w))
    return check.subject(tmp_path / "s.onnx", Options(target="host"))


class RoundsOnce(Numpy):
    """A reference that is far away, and says that the rounding of dense layers is why."""

    def answers(self, samples):  # type: ignore[no-untyped-def]
        for answer in super().answers(samples):
            yield Answer([output + 1 for output in answer.outputs], {})

    def note(self, *_: object) -> str:
        return DENSE_NOTE


def test_one_rounding_that_adds_up_is_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = small(tmp_path)
    samples = generated(subject.compiled.graph, 2)
    monkeypatch.setattr(check, "find_reference", lambda _, graph, __: RoundsOnce(graph))
    verdict = check.check(subject, HOST, samples)
    assert verdict.fine
    assert verdict.reference.startswith("numpy, with two roundings in dense layers; with one, it equals")
    assert not check.check(subject, HOST, samples, steps=0.5).fine
    wrong = Rounded()
    wrong.share = 0.1
    assert not check.check(subject, wrong, samples).fine


def test_indices_behind_arithmetic_are_rows_of_the_table(tmp_path: Path) -> None:
    """Keras adds the number of rows to indices below 0, and picks with Where."""
    nodes = [
        node("Less", "i zero", "below"),
        node("Add", "i rows", "added"),
        node("Where", "below added i", "picked"),
        node("Gather", "table picked", "y"),
    ]
    given = {"zero": np.int32(0), "rows": np.int32(5), "table": np.eye(5, 3, dtype=np.float32)}
    (tmp_path / "e.onnx").write_bytes(
        model(nodes, {"i": [4]}, "y", types={"i": onnx.TensorProto.INT32}, **given)
    )
    subject = check.subject(tmp_path / "e.onnx", Options(target="host"))
    drawn = [sample["i"] for sample in generated(subject.compiled.graph, 8)]
    assert (np.min(drawn), np.max(drawn)) == (0, 4)


def test_an_operator_without_a_reference_kernel_takes_the_optimised_one(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    values = [Value("x", (1, 6)), Value("y", (1, 6))]
    (tmp_path / "elu.tflite").write_bytes(write(Part(values, [Call("ELU", ["x"], ["y"])], ["x"], ["y"])))
    subject = check.subject(tmp_path / "elu.tflite", Options(target="host"))
    verdict = check.check(subject, HOST, generated(subject.compiled.graph, 2))
    assert verdict.fine
    assert verdict.reference.startswith("ai-edge-litert with optimised kernels (no reference kernel")


def test_the_plan_is_checked_before_it_is_blamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = small(tmp_path)
    samples = generated(subject.compiled.graph, 1)
    assert "The memory plan is not the cause" in check._whole_build(subject, HOST, samples)

    def fails(self: Standalone, files: object, samples: object) -> Result:
        raise ToolError("layer 3 wrote to byte 40 of the arena")

    monkeypatch.setattr(Standalone, "run", fails)
    assert "please report this: layer 3 wrote" in check._whole_build(subject, HOST, samples)


def test_another_result_with_poisoned_memory_is_the_plan(tmp_path: Path) -> None:
    subject = small(tmp_path)
    place = Rounded()
    place.share = 0.1
    found = check._whole_build(subject, place, generated(subject.compiled.graph, 1))
    assert "computes something else: please report this" in found


def test_the_note_on_dense_layers_is_checked(tmp_path: Path) -> None:
    """Convolutions differ from LiteRT for no such reason, so the note does not appear."""
    pytest.importorskip("ai_edge_litert")
    seen = set()
    for number in range(60):
        made = tflite_model(recipe(number, 5, ("tflite_s8",)))
        path = tmp_path / f"m{number}.tflite"
        path.write_bytes(made.content)
        subject = check.subject(path, Options(target="host"))
        if not any(type(n.op).__name__ == "Dense" for n in subject.imported.nodes):
            continue
        from tinyml.compare.reference import LiteRt

        reference = LiteRt(subject.file, subject.imported)
        samples = [{"x": x} for (x,) in made.samples]
        answers = reference.run(samples)
        seen.add(bool(reference.note(subject.imported, samples, answers)))
        wrong = [type(a)([o + 1 for o in a.outputs], a.inner) for a in answers]
        assert reference.note(subject.imported, samples, wrong) == ""
        if len(seen) == 2 or number > 30:
            break
    assert True in seen
