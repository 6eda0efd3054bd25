# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How well words are recognised that the sample wake_word_own was not trained with.

``python -m tools.adapt_words`` prints the distances that its setting ``reject`` was chosen by: those of other
persons than the ones that ``tools.adapt_figures`` tests with.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import ModuleType

import numpy as np

from tinyml.adapt.plan import Prototypes
from tinyml.adapt.prototypes import ClassMeans
from tinyml.ir import Array, Graph
from tinyml.ir.interpreter import Interpreter
from tools.watch_figures import sample

PERSONS = (0, 1, 2, 3, 4)
OTHER_PERSONS = (100, 101, 102, 103, 104, 105)
"""Seeds. The latter ones have chosen the distance."""
WORDS = ("marigold", "open sesame", "hello robot", "bumblebee")
OTHERS = (
    "hey siri", "turn off the light", "what time is it", "seven eleven", "play some music", "hey zephyr",
    "the kettle is boiling", "thank you", "banana", "my brother", "it is raining again", "good morning",
)  # fmt: skip
MOST_EXAMPLES, TESTS, OTHER_TESTS = 5, 6, 2
MISTAKEN = 0.01
"""The share of other words that may be mistaken, of those persons."""

Utterance = tuple[list[int], list[Array]]
"""For each run: the quiet runs since a word, and the embedding."""


@cache
def _script() -> ModuleType:
    return sample("wake_word_own", "record")


@cache
def _model() -> tuple[Graph, Prototypes]:
    built = _script().compiled().built
    assert isinstance(built.adapt.part, Prototypes)
    return built.graph, built.adapt.part


def _utterance(sound: Array) -> Utterance:
    graph, part = _model()
    machine = Interpreter(graph)
    machine.reset()
    rows = _script().inputs(sound)
    embeddings = [machine.run({graph.inputs[0]: row[np.newaxis]})[part.tensor] for row in rows]
    return _script().quiet_runs(sound, len(rows)), embeddings


@dataclass(frozen=True)
class Spoken:
    """What a person has said: words that the device can be taught, and others."""

    words: dict[str, list[Utterance]]
    others: dict[str, list[Utterance]]


@cache
def spoken(seed: int) -> Spoken:
    """Of the person with this seed."""
    record, random = _script(), np.random.default_rng(seed)
    who = record.person(random)

    def said(text: str, times: int) -> list[Utterance]:
        return [_utterance(record.spoken(text, who, random)) for _ in range(times)]

    words = {word: said(word, MOST_EXAMPLES + TESTS) for word in WORDS}
    return Spoken(words, {text: said(text, OTHER_TESTS) for text in OTHERS})


def _taught(examples: list[Utterance]) -> ClassMeans:
    means = ClassMeans(_model()[1])
    for quiet, embeddings in examples:
        for count, embedding in zip(quiet, embeddings, strict=True):
            if count == _script().LEARN:
                means.run(embedding)
                means.learn(0)
    return means


def _distance(means: ClassMeans, utterance: Utterance) -> float:
    """That of the nearest run after a word; infinite if nothing was heard."""
    quiet, embeddings = utterance
    found = []
    for count, embedding in zip(quiet, embeddings, strict=True):
        if count >= _script().FIRST:
            means.run(embedding)
            found.append(float(means.distance(0)))
    return min(found, default=float("inf"))


def distances(seed: int, examples: int) -> tuple[list[float], list[float]]:
    """Of the words that were taught and said again, and of all others that this person says."""
    person = spoken(seed)
    same, other = [], []
    for word, said in person.words.items():
        means = _taught(said[:examples])
        if not means.count:
            same += [float("inf")] * TESTS
            continue
        same += [_distance(means, utterance) for utterance in said[MOST_EXAMPLES:]]
        others = {**{name: found[-OTHER_TESTS:] for name, found in person.words.items()}, **person.others}
        other += [_distance(means, one) for name, found in others.items() if name != word for one in found]
    return same, other


def own_word(examples: int) -> tuple[list[float], list[float]]:
    """For each person, the share of taught words that are recognised, and of others that are mistaken."""
    reject = _model()[1].reject
    pairs = [distances(seed, examples) for seed in PERSONS]
    same, other = zip(*pairs, strict=True)
    return (
        [float(np.mean(np.array(found) <= reject)) for found in same],
        [float(np.mean(np.array(found) <= reject)) for found in other],
    )


def main() -> None:
    pairs = [distances(seed, _script().EXAMPLES) for seed in OTHER_PERSONS]
    same, other = (np.concatenate(found) for found in zip(*pairs, strict=True))
    reject = float(np.quantile(other, MISTAKEN))
    print(f"{100 * MISTAKEN:g} % of {len(other)} other words are nearer than {reject:.1f}")
    heard = 100 * np.mean(same <= reject)
    print(f"and {heard:.1f} % of {len(same)} taught ones; the sample has {_model()[1].reject:g}")


if __name__ == "__main__":
    main()
