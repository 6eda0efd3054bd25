# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Calibration data as a folder of images, perhaps one subfolder per class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tinyml.base.errors import ConfigError, ToolError
from tinyml.datasets.arrays import UNREADABLE
from tinyml.ir import Array, Shape
from tinyml.settings.quantize_request import Scaling

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
CHANNELS = {1: "L", 3: "RGB", 4: "RGBA"}
"""Channels of the model -> the mode an image is converted to."""


def find(folder: Path, suffixes: Sequence[str] = SUFFIXES) -> list[Path]:
    """Files with these suffixes, except hidden files and those in hidden folders."""
    found = (path for path in folder.rglob("*") if path.suffix.lower() in suffixes)
    return sorted(p for p in found if not any(part.startswith(".") for part in p.relative_to(folder).parts))


def read(folder: Path, files: Sequence[Path], shape: Shape, scaling: Scaling) -> tuple[Array, list[Path]]:
    """Images resized to the model's size, 0..1 unless the scaling says otherwise; the file of each."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise ToolError(
            f"{folder} holds images, and reading them requires Pillow", "pip install pillow"
        ) from None
    channels, height, width, first = layout(shape, folder)
    low, high = (0.0, 1.0) if scaling.low is None or scaling.high is None else (scaling.low, scaling.high)
    samples = []
    for path in files:
        try:
            with Image.open(path) as opened:
                wide = opened.mode.startswith("I")  # 16 bits, which a conversion would clip to 255
                image = opened.point(lambda value: value / 256).convert("L") if wide else opened
                sized = image.convert(CHANNELS[channels]).resize((width, height), Image.Resampling.BILINEAR)
                pixels = np.asarray(sized, np.float32).reshape(height, width, channels)
        except (*UNREADABLE, UnidentifiedImageError, Image.DecompressionBombError) as error:
            raise ConfigError(f"{path} cannot be read as an image: {error}") from None
        values = pixels / 255.0 * (high - low) + low
        for numbers, combine in ((scaling.mean, np.subtract), (scaling.std, np.divide)):
            if numbers and len(numbers) not in (1, channels):
                raise ConfigError(
                    f"mean or std has {len(numbers)} numbers; the model takes {channels} channels"
                )
            if numbers:
                values = combine(values, np.asarray(numbers, np.float32))
        samples.append(values.transpose(2, 0, 1) if first else values)
    return np.stack(samples).astype(np.float32).reshape(-1, *shape), list(files)


def layout(shape: Shape, folder: Path) -> tuple[int, int, int, bool]:
    """Channels, height, width and whether the channels come first."""
    if len(shape) == 4 and shape[0] == 1:
        if shape[1] in CHANNELS and (shape[3] not in CHANNELS or shape[1] <= shape[3]):
            return shape[1], shape[2], shape[3], True
        if shape[3] in CHANNELS:
            return shape[3], shape[1], shape[2], False
    raise ConfigError(
        f"{folder} holds images; the model takes {'x'.join(map(str, shape))}, which is not one image",
        "save the inputs as the training saw them: numpy.savez(file, in0=array)",
    )


def classes(folder: Path, files: Sequence[Path], origin: Sequence[Path]) -> Array | None:
    """The number of the subfolder that each sample comes from, in alphabetical order of all of them.

    None if a file is not in a subfolder.
    """

    known = class_names(folder, files)
    return np.asarray([known.index(_class_name(folder, path)) for path in origin]) if known else None


def class_names(folder: Path, files: Sequence[Path]) -> list[str]:
    """The subfolders, in alphabetical order; none if a file is not in a subfolder."""
    known = sorted({_class_name(folder, path) for path in files})
    return known if len(known) > 1 and "" not in known else []


def _class_name(folder: Path, path: Path) -> str:
    return path.relative_to(folder).parts[0] if path.parent != folder else ""
