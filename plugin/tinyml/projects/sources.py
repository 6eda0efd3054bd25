# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the inputs of a new application come from: a microphone, an accelerometer, a camera, or a table."""

from __future__ import annotations

import io
import wave
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinyml.base.errors import ConfigError
from tinyml.base.naming import shape_text
from tinyml.base.png import png
from tinyml.base.templates import render
from tinyml.ir import Array
from tinyml.projects.twister import LICENCE, UNDEFINED

MICROPHONE, ACCELEROMETER, CAMERA, CSV = "microphone", "accelerometer", "camera", "csv"
SOURCES = (MICROPHONE, ACCELEROMETER, CAMERA, CSV)
SECONDS = 3  # of a recording that is made up
PICTURES = 4
FRONTENDS = {
    MICROPHONE: ("int16_t", 1, "--frontend kind=micro --frontend step_ms=10, for example, as it was trained"),
    ACCELEROMETER: (
        "float",
        3,
        "--frontend kind=normalize --frontend rate=50 --frontend axes=3, for example, as it was trained",
    ),
}
NAMES = {MICROPHONE: "a microphone", ACCELEROMETER: "an accelerometer"}
STOPPED = {
    MICROPHONE: "the microphone has stopped: [1-9][0-9]* samples, [1-9][0-9]* runs",
    ACCELEROMETER: "the sensor has stopped: [1-9][0-9]* samples, [1-9][0-9]* runs",
    CAMERA: f"the camera has stopped: {PICTURES} pictures",
    CSV: "the data have ended: [1-9][0-9]* rows",
}
SETTINGS = {
    MICROPHONE: ("CONFIG_AUDIO=y", "CONFIG_AUDIO_DMIC=y"),
    ACCELEROMETER: ("CONFIG_SENSOR=y",),
    CAMERA: ("CONFIG_VIDEO=y", "CONFIG_VIDEO_BUFFER_POOL_NUM_MAX=2"),
    CSV: (),
}
PIXELS = {
    "int8": "(int8_t)((int)(brightness) - 128)",
    "uint8": "(uint8_t)(brightness)",
    "float32": "(float)(brightness) / 255.0f",
}
C_TYPES = {"int8": "int8_t", "uint8": "uint8_t", "float32": "float"}


def check_source(source: str, summary: Mapping[str, Any]) -> None:
    """Refuse a model that cannot take what the source gives."""
    frontend = summary.get("frontend")
    if source in FRONTENDS:
        sample, axes, example = FRONTENDS[source]
        if frontend is None:
            raise ConfigError(
                f"--from {source} needs a front end, which turns samples into the model's input", example
            )
        if frontend["sample"] != sample or frontend["axes"] != axes:
            raise ConfigError(
                f"{NAMES[source]} gives {axes} x {sample}; this front end takes "
                f"{frontend['axes']} x {frontend['sample']}",
                example,
            )
        return
    if frontend is not None:
        raise ConfigError(f"--from {source} and a front end exclude each other", "--from microphone")
    if len(summary["inputs"]) != 1:
        raise ConfigError(f"--from {source} fills one input; the model has {len(summary['inputs'])}")
    if source == CAMERA:
        _picture(summary)


def source_files(
    source: str, context: Mapping[str, Any], summary: Mapping[str, Any], rows: Sequence[Array]
) -> dict[str, bytes]:
    """The program and what it replays, by path. ``rows``: inputs of the model, for a table."""
    facts: dict[str, Any] = {**context, "source": source}
    more: dict[str, bytes] = {}
    settings = list(SETTINGS[source])
    if source == MICROPHONE:
        facts["rate"] = int(summary["frontend"]["rate"])
        more["replay.wav"] = _recording(facts["rate"])
    elif source == ACCELEROMETER:
        facts["rate"] = int(summary["frontend"]["rate"])
        more["replay.csv"] = _movement(facts["rate"])
    elif source == CAMERA:
        height, width, channels, first = _picture(summary)
        dtype = summary["inputs"][0]["dtype"]
        facts |= {"height": height, "width": width, "channels": channels, "channels_first": first}
        facts |= {"pixel": PIXELS[dtype], "c_type": C_TYPES[dtype]}
        more["replay.png"] = _pictures(height, width)
        settings.append(f"CONFIG_VIDEO_BUFFER_POOL_SZ_MAX={2 * height * width + 1024}")
    else:
        lines = [",".join(f"{value:.9g}" for value in np.ravel(row)) for row in rows]
        more["data.csv"] = "".join(f"{line}\n" for line in lines).encode()
    if source != CSV:
        more["app.overlay"] = render("projects", "app_overlay.j2", facts).encode()
    lines = [LICENCE, "CONFIG_MAIN_STACK_SIZE=4096", *settings, UNDEFINED]
    return {
        "src/main.c": render("projects", f"app_{source}.c.j2", facts).encode(),
        "src/decide.h": render("projects", "app_decide.h.j2", facts).encode(),
        "prj.conf": "\n".join([*lines, ""]).encode(),
        **more,
    }


def _picture(summary: Mapping[str, Any]) -> tuple[int, int, int, bool]:
    """Rows, columns and channels of the model's input, and whether channels come first."""
    tensor = summary["inputs"][0]
    shape = [extent for place, extent in enumerate(tensor["shape"]) if place or extent != 1]
    if len(shape) == 2:
        shape = [*shape, 1]
    if len(shape) == 3 and tensor["dtype"] in PIXELS:
        if shape[2] in (1, 3):
            return shape[0], shape[1], shape[2], False
        if shape[0] in (1, 3):
            return shape[1], shape[2], shape[0], True
    raise ConfigError(
        f"input {tensor['name']!r}, {shape_text(tensor['shape'])} {tensor['dtype']}, is no picture",
        "a model with one input of rows x columns x 1 or 3, in int8, uint8 or float32",
    )


def _recording(rate: int) -> bytes:
    """A rising tone with pauses."""
    time = np.arange(SECONDS * rate) / rate
    tone = 6000 * np.sin(2 * np.pi * (200 + 150 * time) * time) * (time % 1 < 0.6)
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as stream:
        stream.setnchannels(1)
        stream.setsampwidth(2)
        stream.setframerate(rate)
        stream.writeframes(np.round(tone).astype("<i2").tobytes())
    return buffer.getvalue()


def _movement(rate: int) -> bytes:
    """Something that lies still, then is shaken."""
    time = np.arange(2 * SECONDS * rate) / rate
    shaken = 8 * np.sin(2 * np.pi * 3 * time) * (time > SECONDS)
    columns = (shaken, 0.3 * shaken, 9.81 - 0.5 * shaken)
    lines = [",".join(f"{value:.3f}" for value in sample) for sample in np.stack(columns, axis=1)]
    return "".join(f"{line}\n" for line in lines).encode()


def _pictures(height: int, width: int) -> bytes:
    """A PNG file in greys: pictures side by side, with a bright square that moves."""
    greys = np.tile(np.linspace(20, 90, width, dtype=np.uint8), (height, PICTURES))
    size = max(1, min(height, width) // 3)
    for number in range(PICTURES):
        left = number * width + number * (width - size) // max(PICTURES - 1, 1)
        greys[height // 3 : height // 3 + size, left : left + size] = 230
    return png(greys)
