# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How far int8 is from float: noise per layer, at the outputs, and in the decisions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.progress import Progress
from tinyml.datasets.reader import Samples
from tinyml.ir import Array
from tinyml.ops.framework.quantization_facts import quantizing
from tinyml.quantize.rewrite import borders
from tinyml.quantize.selected import candidates, selected
from tinyml.quantize.sequences import States, runs
from tinyml.reference.session import Session

EXACT = 120.0
"""Upper limit in decibels, where float32 itself is the noise; also the value of a perfect result.

The opposite stands for results that are infinite or not a number where they should be finite."""


class Noise:
    """How far a tensor moves from its mean over the samples, and its error, in energy.

    What is the same for every sample is no signal: scores of 1000 and a little mean what that little means.
    """

    def __init__(self) -> None:
        self.noise = self.largest = self.energy = 0.0
        self.counts: Array = np.zeros(1)  # of the finite values of each element
        self.means: Array = np.zeros(1)
        self.squares: Array = np.zeros(1)  # around the mean

    def add(self, real: Array, approximate: Array) -> None:
        wanted, found = (array.astype(np.float64).reshape(-1) for array in (real, approximate))
        finite = np.isfinite(wanted)
        self.counts = self.counts + finite
        values = np.where(finite, wanted, self.means)
        apart = values - self.means
        self.means = self.means + apart / np.maximum(self.counts, 1)
        self.squares = self.squares + apart * (values - self.means) * finite
        self.energy += float(np.square(wanted[finite]).sum())
        with np.errstate(invalid="ignore"):
            apart = found - wanted
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        difference = np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))
        self.noise += float(np.square(difference).sum())
        self.largest = max(self.largest, float(np.abs(difference).max(initial=0.0)))

    @property
    def signal(self) -> float:
        """Around the mean of each element; of a tensor that never changes, all of its energy."""
        several = self.counts > 1
        moved = np.where(several, self.squares * self.counts / np.maximum(self.counts - 1, 1), 0.0).sum()
        return float(moved) if moved > 0 else self.energy

    @property
    def decibels(self) -> float:
        """Signal-to-noise ratio; higher is better, 6 dB is one bit."""
        if self.noise <= 0.0:
            return EXACT
        if self.noise == np.inf:
            return -EXACT
        if self.signal <= 0.0:
            return 0.0
        return min(10.0 * math.log10(self.signal / self.noise), EXACT)


@dataclass(frozen=True)
class Outcome:
    """One int8 model against its float model, on a set of samples."""

    tensors: Mapping[str, float]  # signal-to-noise ratio of every tensor watched, in dB
    outputs: Mapping[str, float]  # of the model's outputs
    largest_error: float  # of any output element
    decisions: Mapping[str, float]  # of each output that decides: share of samples with the same decision
    accuracy_float: float | None = None  # share of correct samples, if labels are known
    accuracy_int8: float | None = None

    @property
    def decibels(self) -> float:
        """One figure for all outputs: the worst."""
        return min(self.outputs.values(), default=EXACT)

    @property
    def agreement(self) -> float:
        """The share of samples with the same decision, of the output where it is smallest."""
        return min(self.decisions.values(), default=1.0)

    @property
    def lost_points(self) -> float:
        """Accuracy lost by int8, in points; without labels, the share of changed decisions."""
        if self.accuracy_float is not None and self.accuracy_int8 is not None:
            return 100.0 * (self.accuracy_float - self.accuracy_int8)
        return 100.0 * (1.0 - self.agreement)


class Reference:
    """The float model's answers, computed once."""

    def __init__(
        self,
        model: onnx.ModelProto,
        samples: Samples,
        tensors: Sequence[str] = (),
        states: States = (),
        judge_states: bool = False,
    ) -> None:
        self.samples = samples
        self.states = states
        inside = set() if judge_states else {state.output for state in states}
        behind = selected(model)
        outputs = [value.name for value in model.graph.output if value.name not in inside]
        judged = [name for name in outputs if name not in behind]
        before = candidates(model) if len(judged) < len(outputs) else []
        self.watched = [name for name in tensors if name not in judged and name not in behind]
        self.watched = list(dict.fromkeys([*self.watched, *before]))
        session = Session(model, self.watched)
        self.results = [found for _, found in runs(session, samples, states)]
        judged += before
        real = [name for name in judged if self.results[0][name].dtype.kind == "f"]
        numbers = real or judged  # classes and places have no noise: one is wrong or right
        self.numbers = [name for name in numbers if name not in _labels(model)] or numbers
        others = [name for name in self.numbers[1:] if _is_vector(self.results[0][name])]
        self.deciding = [self.numbers[0], *others]  # labels belong to the first

    def infinite(self, outcome: Outcome) -> list[str]:
        """Warnings about results that are infinite or not a number."""
        bad = sum(
            not all(np.isfinite(found[name]).all() for name in self.numbers if found[name].dtype.kind == "f")
            for found in self.results
        )
        lines = []
        if bad:
            lines.append(
                f"the float model itself computes results that are infinite or not a number (NaN) for {bad} "
                f"of {len(self.results)} samples: are the data those of the training?"
            )
        if outcome.decibels == -EXACT:
            lines.append(
                "the quantised model computes results that are infinite or not a number where those of the "
                "float model are finite, or the reverse: --keep-float the layers before a division, a "
                "logarithm or a square root"
            )
        return lines

    def compare(self, model: onnx.ModelProto, progress: Progress | None = None, what: str = "") -> Outcome:
        """Measure an int8 model whose tensors keep the names of the float model's."""
        after = borders(model)
        present = {name for node in model.graph.node for name in node.output}
        names = {name: after.get(name, name) for name in self.watched}
        names = {name: found for name, found in names.items() if found in present}
        session = Session(model, list(names.values()))
        noise = {name: Noise() for name in (*self.numbers, *names)}
        chosen: dict[str, list[tuple[int, int]]] = {name: [] for name in self.deciding}
        answers = runs(session, self.samples, self.states)
        for index, ((_, found), wanted) in enumerate(zip(answers, self.results, strict=True)):
            for name, meter in noise.items():
                meter.add(wanted[name], found[names.get(name, name)])
            for name, pairs in chosen.items():
                pairs.append((decision(wanted[name]), decision(found[names.get(name, name)])))
            if progress:
                progress(what, index + 1, len(self.samples))
        labels = self.samples.labels
        return Outcome(
            {name: meter.decibels for name, meter in noise.items()},
            {name: noise[name].decibels for name in self.numbers},
            max(noise[name].largest for name in self.numbers),
            {name: float(np.mean([a == b for a, b in pairs])) for name, pairs in chosen.items()},
            *(_share(column, labels) for column in zip(*chosen[self.deciding[0]], strict=True)),
        )


def _labels(model: onnx.ModelProto) -> set[str]:
    """What classifiers of trees decide, which may be text; the scores are an output of their own."""
    return {n.output[0] for n in model.graph.node if quantizing(n.op_type).trees and len(n.output) > 1}


def _is_vector(output: Array) -> bool:
    """Whether an output has at most one axis with several elements, as scores of classes have."""
    return sum(extent > 1 for extent in output.shape) <= 1


def _share(decisions: Sequence[int], labels: Array | None) -> float | None:
    return None if labels is None else float(np.mean(np.asarray(decisions) == labels))


def decision(output: Array) -> int:
    """The class that an output means: its largest element, or the decision of a single element.

    A single integer is the number of a class (ArgMax); a single float is the probability of class 1.
    """
    flat = output.reshape(-1)
    if flat.size > 1:
        return int(flat.argmax())
    return int(flat[0] > 0.5) if flat.dtype.kind == "f" else int(flat[0])
