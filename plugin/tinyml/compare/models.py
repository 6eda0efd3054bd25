# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Compares two models on the same inputs, such as a quantised model and its float original."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.compare.check import Subject, subject
from tinyml.compare.difference import signal_to_noise_db
from tinyml.compare.reference import find_reference
from tinyml.datasets.arrays import real, stored
from tinyml.harness import Runner
from tinyml.ir import Array
from tinyml.pipeline import Options


@dataclass(frozen=True)
class Likeness:
    output: str
    snr_db: float
    largest: float


def compare_models(
    model: Subject, place: Runner, samples: Sequence[Mapping[str, Array]], other: Path
) -> Iterator[Likeness]:
    """Compare ``model`` as C on ``place`` with ``other`` in its reference runtime, as real numbers."""
    ours = model.compiled.graph
    result = place.run(model.compiled.files, samples)
    original = subject(other, Options(target="host"))
    theirs = original.imported
    if len(theirs.inputs) != len(ours.inputs) or len(theirs.outputs) != len(ours.outputs):
        raise ConfigError(f"{other.name} has different inputs or outputs than {model.file.path.name}")
    inputs = list(zip(ours.inputs, theirs.inputs, strict=True))
    for a, b in inputs:
        if ours.tensors[a].elements != theirs.tensors[b].elements:
            raise ConfigError(
                f"{other.name} takes {theirs.tensors[b].shape}, and {model.file.path.name} takes "
                f"{ours.tensors[a].shape}"
            )
    feeds = [
        {b: stored(real(sample[a], ours.tensors[a]), theirs.tensors[b]) for a, b in inputs}
        for sample in samples
    ]
    answers = find_reference(original.file, theirs).run(feeds)
    for index, name in enumerate(ours.outputs):
        found = np.stack([real(out[name], ours.tensors[name]).reshape(-1) for out in result.outputs])
        target = theirs.tensors[theirs.outputs[index]]
        wanted = np.stack([real(a.outputs[index], target).reshape(-1) for a in answers])
        if found.size != wanted.size:
            raise ConfigError(f"output {name!r} has a different size in {other.name}")
        yield Likeness(name, signal_to_noise_db(found, wanted), float(np.abs(found - wanted).max()))
