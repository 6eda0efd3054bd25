# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How a person gives a model its input on the page: a drawing, a picture, speech, or numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.naming import shape_text

if TYPE_CHECKING:
    from tinyml.ir import Shape

DRAW, PICTURE, SOUND, RECORDING, NUMBERS = "draw", "picture", "sound", "recording", "numbers"
KINDS = {
    DRAW: "a canvas to draw on",
    PICTURE: "a picture from a file or the camera",
    SOUND: "the microphone or a recording, through the model's front end",
    RECORDING: "a table of sensor values, through the model's front end",
    NUMBERS: "numbers as text, or from a .csv or .npy file",
}
SMALLEST, LARGEST_DRAWN = 4, 64
HEARD_HZ = 4000
"""A front end for at least so many samples a second is for sound."""


@dataclass(frozen=True)
class Frame:
    """An input that is a picture. ``planar``: all rows of a channel, then those of the next."""

    height: int
    width: int
    channels: int
    planar: bool


def frame_of(shape: Shape) -> Frame | None:
    """The picture that an input of this shape may be; None if it is none."""
    found = None
    if len(shape) == 4 and shape[0] == 1:
        _, a, b, c = shape
        if c in (1, 3) and min(a, b) >= SMALLEST:
            found = Frame(a, b, c, False)
        elif a in (1, 3) and min(b, c) >= SMALLEST:
            found = Frame(b, c, a, True)
    elif len(shape) in (2, 3) and all(extent == 1 for extent in shape[:-2]):
        found = Frame(shape[-2], shape[-1], 1, True) if min(shape[-2:]) >= SMALLEST else None
    return found


def choose(shapes: list[Shape], frontend: Mapping[str, Any] | None, wanted: str = "") -> str:
    """The way that fits a model, or the one that the user named, if it is possible."""
    frame = frame_of(shapes[0]) if len(shapes) == 1 else None
    possible = _possible(frame, frontend)
    if not wanted:
        return possible[0]
    if wanted not in possible:
        inputs = " and ".join(shape_text(shape) for shape in shapes)
        raise ConfigError(
            f"--give {wanted} does not fit this model: its input is {inputs}, "
            f"and it has {'a' if frontend else 'no'} front end",
            f"one of: {', '.join(possible)}",
        )
    return wanted


def _possible(frame: Frame | None, frontend: Mapping[str, Any] | None) -> list[str]:
    """The ways in which a model can be given its input, the likeliest first."""
    if frontend:
        heard = frontend["axes"] == 1 and frontend["rate"] >= HEARD_HZ
        return [SOUND, RECORDING, NUMBERS] if heard else [RECORDING, NUMBERS]
    if frame is None:
        return [NUMBERS]
    square = max(frame.height, frame.width) <= 2 * min(frame.height, frame.width)
    drawn = frame.channels == 1 and square and max(frame.height, frame.width) <= LARGEST_DRAWN
    if drawn:
        return [DRAW, PICTURE, NUMBERS]
    return [PICTURE, DRAW, NUMBERS] if square else [NUMBERS, DRAW, PICTURE]
