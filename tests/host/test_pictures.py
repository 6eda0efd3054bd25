# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Pictures: PNG files for the emulated camera, and how samples/person shrinks what a camera gives."""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pytest

from tinyml.harness.program_build import WARNINGS

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "zephyr_module" / "scripts"
PERSON = ROOT / "samples" / "person"
Pixels = npt.NDArray[np.uint8]


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))  # where a script finds its neighbours
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


greys = load(SCRIPTS / "greys.py")


def png(picture: Pixels, filters: str = "0", bits: int = 8) -> bytes:
    """A PNG file whose rows use filters in turn, computed as the specification defines them."""
    height, width = picture.shape
    rows, above = [], np.zeros(width, int)
    for row, kind in zip(picture.astype(int), itertools.cycle(map(int, filters)), strict=False):
        left, corner = np.insert(row, 0, 0)[:-1], np.insert(above, 0, 0)[:-1]
        near = np.stack([left, above, corner])
        paeth = near[np.abs(left + above - corner - near).argmin(axis=0), np.arange(width)]
        predicted = (np.zeros(width, int), left, above, (left + above) // 2, paeth)[kind]
        rows.append(bytes([kind, *((row - predicted) % 256)]))
        above = row
    header = struct.pack(">IIBBBBB", width, height, bits, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"".join(rows))), (b"IEND", b""))
    return greys.SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


@pytest.mark.parametrize("filters", ["0", "1", "2", "3", "4", "01234"])
def test_every_filter_of_png(tmp_path: Path, filters: str) -> None:
    picture = np.random.default_rng(1).integers(0, 256, (9, 13), np.uint8)
    path = tmp_path / "it.png"
    path.write_bytes(png(picture, filters))
    assert greys.read_png(path) == (picture.tobytes(), 13)


def recorded(tmp_path: Path, content: bytes, *options: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "strip.png").write_bytes(content)
    command = [sys.executable, str(SCRIPTS / "recording.py"), "strip.png", "out.c", "--name", "it", *options]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)


def test_pictures_side_by_side(tmp_path: Path) -> None:
    """They are stored one after the other."""
    strip = np.arange(12, dtype=np.uint8).reshape(2, 6)
    done = recorded(tmp_path, png(strip), "--width", "3", "--height", "2")
    assert done.returncode == 0, done.stderr
    made = (tmp_path / "out.c").read_text()
    assert "const uint32_t it_samples = 2;" in made
    assert "const uint8_t it[] = {\n\t0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11,\n};" in made


GOOD = png(np.zeros((2, 6), np.uint8))
BAD = {
    "no PNG": (b"P5 6 2 255\n", "is not a PNG file"),
    "truncated": (GOOD[:50], "cannot be read as PNG"),
    "only its signature": (GOOD[:8], "cannot be read as PNG"),
    "unknown filter": (GOOD.replace(GOOD[41:-16], zlib.compress(b"\7" * 14)), "cannot be read as PNG"),
    "16 bits": (png(np.zeros((2, 6), np.uint8), bits=16), "is not in 256 greys; convert it"),
    "another size": (png(np.zeros((3, 6), np.uint8)), "has 6x3 pixels; pictures of 3x2 must be side by side"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_pictures(tmp_path: Path, what: str) -> None:
    content, message = BAD[what]
    done = recorded(tmp_path, content, "--width", "3", "--height", "2")
    assert (done.returncode, message in done.stderr) == (1, True), done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out.c").exists()


class Picture(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_char_p),
        ("pitch", ctypes.c_size_t),
        ("width", ctypes.c_uint16),
        ("height", ctypes.c_uint16),
        ("pixels", ctypes.c_int),
    )


@pytest.fixture(scope="module")
def shrink(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("shrink") / "shrink.so"
    sources = [str(ROOT / "samples" / "common" / "shrink.c"), "-o", str(library)]
    subprocess.run(["gcc", "-std=c11", "-O1", "-shared", "-fPIC", *WARNINGS, *sources], check=True)
    return ctypes.CDLL(str(library))


def luma(colours: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return (77 * colours[..., 0] + 150 * colours[..., 1] + 29 * colours[..., 2]) >> 8


@pytest.mark.parametrize("size", [(80, 64), (64, 80), (32, 32), (33, 47), (160, 120)], ids=str)
@pytest.mark.parametrize("pixels", ["grey", "yuyv", "rgb565"])
def test_shrinking(shrink: ctypes.CDLL, pixels: str, size: tuple[int, int]) -> None:
    """From every format, the averages that train.py computes; also with bytes after each row."""
    width, height = size
    random = np.random.default_rng(width)
    if pixels == "rgb565":
        parts = random.integers(0, (32, 64, 32), (height, width, 3))
        data = (parts[..., 0] << 11 | parts[..., 1] << 5 | parts[..., 2]).astype("<u2").view(np.uint8)
        grey = luma(parts * 255 // np.array((31, 63, 31)))
    else:
        grey = random.integers(0, 256, (height, width))
        wide = np.stack([grey, random.integers(0, 256, grey.shape)], axis=2).reshape(height, -1)
        data = (grey if pixels == "grey" else wide).astype(np.uint8)
    padded = np.pad(data, ((0, 0), (0, 6)), constant_values=255)
    kind = ("grey", "yuyv", "rgb565").index(pixels)
    made = (ctypes.c_int8 * 1024)()
    given = Picture(padded.tobytes(), padded.shape[1], width, height, kind)
    shrink.shrink(ctypes.byref(given), made, 32, 32)
    factor = min(size) // 32
    top, left = (height - 32 * factor) // 2, (width - 32 * factor) // 2
    middle = grey[top : top + 32 * factor, left : left + 32 * factor]
    tiles = middle.reshape(32, factor, 32, factor).sum(axis=(1, 3)) // factor**2
    assert np.array_equal(np.array(made).reshape(32, 32), tiles - 128)


def test_a_picture_that_is_too_small(shrink: ctypes.CDLL) -> None:
    made = (ctypes.c_int8 * 1024)(*[7] * 1024)
    shrink.shrink(ctypes.byref(Picture(bytes(31 * 31), 31, 31, 31, 0)), made, 32, 32)
    assert set(made) == {7}
