# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Print what the application prints, computed in numpy by the operators: ``python expected.py [MODEL]``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from export import ROWS
from text import CHARACTERS

import tinyml
from tinyml.ir.interpreter import Interpreter

HERE = Path(__file__).resolve().parent
COLUMNS = 64
BEGINNINGS = ("A function ", "This is ")


class Writer:
    """The application's choices: the same random numbers, in the same order."""

    def __init__(self, model: str) -> None:
        compiled = tinyml.compile(HERE / model, target="host")
        self.graph = compiled.built.graph
        self.machine = Interpreter(self.graph)
        self.state = 1

    def share(self) -> np.float32:
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return np.float32(self.state >> 8) / np.float32(2**24)

    def following(self, character: str, position: int, given: str) -> str:
        """What comes after a character: what is ``given``, or what the model and chance say."""
        number = np.array([[CHARACTERS.index(character)]], np.int32)
        values = self.machine.run({"character": number, "position": np.array([position], np.int32)})
        if given:
            return given
        sums = np.cumsum(values["probabilities"].reshape(-1), dtype=np.float32)
        return CHARACTERS[min(int(np.argmax(sums > self.share())), len(CHARACTERS) - 1)]

    def text(self, beginning: str) -> str:
        result, character = "", "\n"
        for position in range(ROWS):
            character = self.following(character, position, beginning[position : position + 1])
            if character == "\n":
                break
            result += character
        return result


def lines(text: str) -> list[str]:
    """Broken at spaces, once a line is long enough."""
    found = [""]
    for character in text.rstrip():
        if character == " " and len(found[-1]) >= COLUMNS:
            found.append("")
        else:
            found[-1] += character
    return found


def main() -> None:
    writer = Writer(sys.argv[1] if len(sys.argv) > 1 else "model.onnx")
    for beginning in BEGINNINGS:
        print("\n".join(lines(writer.text(beginning))))
    print("writer: done")


if __name__ == "__main__":
    main()
