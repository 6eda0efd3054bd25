# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a device answers to an example that it does not take; <tinyml/adapt.h> has the same numbers."""

from __future__ import annotations

from typing import ClassVar

from tinyml.base.errors import ConfigError, ToolError


class AdaptError(ConfigError):
    """Nothing was learnt."""

    code: ClassVar[int] = -22


class OutOfRange(AdaptError):
    """A label or class that there is not."""


class Full(AdaptError):
    """No free class, or no room in the batch."""

    code = -28


class InfiniteLoss(AdaptError):
    """The loss is infinite, or a value is not a number."""

    code = -34

    def __init__(self) -> None:
        super().__init__(
            "the loss is infinite: nothing was learnt", "check the label and the input of the run"
        )


class NoRun(AdaptError):
    """No run since the last example, or too few examples."""

    code = -61


class Other(AdaptError):
    """Learnt by another model, kind or version."""

    code = -116


class Damaged(AdaptError):
    """Not the bytes that were learnt."""

    code = -5


class Worse(AdaptError):
    """Less accuracy on the self-test than before learning."""

    code = -125


NONE = -2
"""It is none of the classes."""

MEANINGS = {
    -22: ("the label or class is out of range", "the model's header has the number of classes"),
    -28: ("there is no free class, or the batch is full", "forget a class, or more classes in adapt:"),
    -34: ("the loss is infinite, or a value is not a number", "check the label and the input of the run"),
    -61: ("there was no run since the last example, or there are too few examples", "run, then learn"),
    -116: ("the bytes were learnt by another model or version", "learn again, or the firmware they are from"),
    -5: ("the bytes are damaged", "learn again"),
    -125: (
        "what was learnt loses accuracy on the self-test",
        "factory(), and examples that are labelled right",
    ),
}


def refusal(code: int, where: str) -> ToolError:
    """What a device's answer means."""
    what, hint = MEANINGS.get(code, (f"error {code}", "the same version of west-tinyml on both sides"))
    return ToolError(f"{where} did not learn: {what}", hint)
