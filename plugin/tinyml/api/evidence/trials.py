# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Goldens: inputs, the results of the C on the emulated core, and what two references say to them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from tinyml.api.evidence.models import Remade
from tinyml.base.errors import TinymlError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.bounds.images import machine_for
from tinyml.compare import bisect
from tinyml.compare.check import check
from tinyml.compare.difference import compare
from tinyml.datasets.generated_samples import generated
from tinyml.harness import Standalone
from tinyml.ir import Array
from tinyml.ir.interpreter import interpret


@dataclass(frozen=True)
class Trials:
    """``facts`` are JSON; ``files`` are the arrays, by name."""

    facts: dict[str, Any]
    files: dict[str, bytes]

    @property
    def fine(self) -> bool:
        facts = self.facts
        return bool(facts["reference"]["agrees"] and facts["numpy"]["agrees"] and facts["layers"]["agree"])


def trials(model: Remade, count: int) -> Trials:
    """Run the C of the build on an emulated core, ``count`` times."""
    subject = model.model
    compiled, graph = subject.compiled, subject.compiled.graph
    samples = generated(graph, count)
    place = Standalone(machine_for(model.built.generated.target).name)
    outputs = place.run(compiled.files, samples).outputs
    expected = interpret(graph, samples)
    equal = values = 0
    fine = True
    for found, wanted in zip(outputs, expected, strict=True):
        for name in graph.outputs:
            difference = compare(found[name], wanted[name], None, bisect.EXACT)
            equal, values = equal + difference.equal, values + difference.size
            fine = fine and difference.fine
    verdict = check(subject, place, samples)
    files = {}
    for number, (sample, found) in enumerate(zip(samples, outputs, strict=True)):
        for i, name in enumerate(graph.inputs):
            files[f"{number}_input_{i}.npy"] = _stored(sample[name])
        for i, name in enumerate(graph.outputs):
            files[f"{number}_output_{i}.npy"] = _stored(found[name])
    facts = {
        "machine": place.name,
        "samples": count,
        "inputs": list(graph.inputs),
        "outputs": list(graph.outputs),
        "numpy": {"values": values, "equal": equal, "agrees": fine},
        "reference": {
            "name": verdict.reference,
            "values": verdict.values,
            "equal": verdict.equal,
            "agrees": verdict.fine,
            "note": verdict.note,
            "causes": verdict.causes,
        },
        "layers": _layers(model, place, samples),
    }
    return Trials(facts, files)


def _layers(model: Remade, place: Standalone, samples: list[dict[str, Array]]) -> dict[str, Any]:
    """Every layer on its own inputs, against its operator in numpy."""
    subject = model.model
    try:
        wrong = bisect.first_wrong_layer(subject.file, subject.options, subject.compiled, place, samples)
    except TinymlError as error:
        return {"agree": False, "compared": 0, "problem": f"not compared: {error}"}
    return {"agree": wrong is None, "compared": len(subject.compiled.selected), "problem": wrong or ""}


def _stored(array: Array) -> bytes:
    with io.BytesIO() as stream:
        np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
        return stream.getvalue()
