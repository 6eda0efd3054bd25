# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Calibration data from the usual kinds of files, and a message for each kind of mismatch."""

from __future__ import annotations

import wave
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinyml.base.errors import ConfigError
from tinyml.datasets import reader
from tinyml.datasets.reader import Samples
from tinyml.datasets.shaping import Input
from tinyml.ir import Array, DType
from tinyml.settings.quantize_request import Request, Scaling, from_items, parse_goal, settings

IMAGE = Input("image", (1, 3, 4, 6), DType.FLOAT32)
GREY = Input("x", (1, 1, 4, 6), DType.FLOAT32)
SOUND = Input("audio", (1, 8), DType.FLOAT32)


def ramp(*shape: int) -> Array:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def load(path: Path, *inputs: Input, **changes: Any) -> Samples:
    return reader.load(replace(Request(path), **changes), inputs)


def stacked(samples: Samples, name: str) -> Array:
    return np.stack([sample[name] for sample in samples.inputs])


@pytest.mark.parametrize(
    "shape",
    [(20, 3, 4, 6), (20, 1, 3, 4, 6)],
    ids=["rows", "rows with batch"],
)
def test_npz_by_name_number_or_alone(tmp_path: Path, shape: tuple[int, ...]) -> None:
    values = ramp(*shape)
    for key in ("image", "in0", "whatever"):
        np.savez(tmp_path / "c.npz", allow_pickle=False, **{key: values})
        found = load(tmp_path / "c.npz", IMAGE)
        np.testing.assert_array_equal(stacked(found, "image"), values.reshape(20, 1, 3, 4, 6))


def test_npy_may_leave_out_dimensions_of_one(tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", ramp(20, 4, 6))
    assert stacked(load(tmp_path / "c.npy", GREY), "x").shape == (20, 1, 1, 4, 6)


def test_one_sample_is_a_sample(tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", ramp(1, 3, 4, 6))
    found = load(tmp_path / "c.npy", IMAGE)
    assert len(found) == 1
    assert any("only 1 calibration samples" in warning for warning in found.warnings)


def test_samples_are_spread_over_all_data(tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", np.arange(800, dtype=np.float32).reshape(100, 8))
    found = stacked(load(tmp_path / "c.npy", SOUND, samples=5), "audio")
    np.testing.assert_array_equal(found[:, 0, 0] // 8, [0, 25, 50, 74, 99])


def test_labels_in_the_npz_or_beside_it(tmp_path: Path) -> None:
    np.savez(tmp_path / "c.npz", x=ramp(16, 4, 6), labels=np.arange(16))
    np.testing.assert_array_equal(load(tmp_path / "c.npz", GREY).labels, np.arange(16))
    np.save(tmp_path / "y.npy", np.eye(16)[::-1])
    one_hot = load(tmp_path / "c.npz", GREY, labels=tmp_path / "y.npy")
    np.testing.assert_array_equal(one_hot.labels, np.arange(16)[::-1])
    (tmp_path / "y.csv").write_text("\n".join(["class", *map(str, range(1, 17))]))
    listed = load(tmp_path / "c.npz", GREY, labels=tmp_path / "y.csv")
    np.testing.assert_array_equal(listed.labels, np.arange(1, 17))


def test_csv_with_header_and_labels(tmp_path: Path) -> None:
    rows = ramp(20, 8)
    lines = ["a;b;c;label;d;e;f;g;h"]
    for number, row in enumerate(rows):
        cells = [*row[:3], number % 4, *row[3:]]
        lines.append(";".join(f"{cell:.9g}" for cell in cells))
    (tmp_path / "c.csv").write_text("\n".join(lines))
    found = load(tmp_path / "c.csv", SOUND)
    np.testing.assert_array_equal(stacked(found, "audio"), rows.reshape(20, 1, 8))
    np.testing.assert_array_equal(found.labels, np.arange(20) % 4)


def test_images_are_resized_scaled_and_labelled_by_folder(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image", reason="reading images needs Pillow")
    for label, colour in (("cat", (255, 0, 51)), ("dog", (0, 102, 255))):
        (tmp_path / label).mkdir()
        for number in range(8):
            pillow.new("RGB", (30, 20), colour).save(tmp_path / label / f"{number}.png")
    found = load(tmp_path, IMAGE)
    np.testing.assert_array_equal(found.labels, [0] * 8 + [1] * 8)
    np.testing.assert_allclose(found.inputs[0]["image"][0, :, 0, 0], [1, 0, 0.2], atol=1e-6)
    np.testing.assert_allclose(found.inputs[15]["image"][0, :, 3, 5], [0, 0.4, 1], atol=1e-6)
    last = load(tmp_path, Input("image", (1, 4, 6, 3), DType.FLOAT32))
    np.testing.assert_allclose(last.inputs[0]["image"][0, 0, 0], [1, 0, 0.2], atol=1e-6)
    normal = load(tmp_path, IMAGE, scaling=Scaling(-1, 1, (0.5, 0.0, 0.0), (2.0,)))
    np.testing.assert_allclose(normal.inputs[0]["image"][0, :, 0, 0], [0.25, -0.5, -0.3], atol=1e-6)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_sound_is_cut_into_pieces(tmp_path: Path, width: int) -> None:
    wanted = np.linspace(-0.9, 0.9, 20)
    top = 1 << (8 * width - 1)
    whole = np.rint(wanted * top).astype(np.int64) + (128 if width == 1 else 0)
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(width)
        file.setframerate(16000)
        file.writeframes(b"".join(int(v).to_bytes(width, "little", signed=width > 1) for v in whole))
    found = load(tmp_path, SOUND)
    assert len(found) == 2  # 20 samples: two whole pieces of eight
    np.testing.assert_allclose(stacked(found, "audio").reshape(-1), wanted[:16], atol=1.01 / top + 1e-6)


def test_integers_are_scaled_as_requested(tmp_path: Path) -> None:
    pixels = np.arange(0, 240, dtype=np.uint8).reshape(10, 4, 6)
    np.save(tmp_path / "c.npy", pixels)
    found = stacked(load(tmp_path / "c.npy", GREY, scaling=Scaling(-1, 1)), "x").reshape(10, 4, 6)
    np.testing.assert_allclose(found, pixels / 127.5 - 1, atol=1e-6)


def test_indices_stay_whole(tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", np.arange(80).reshape(10, 8))
    found = load(tmp_path / "c.npy", Input("tokens", (1, 8), DType.INT64))
    assert found.inputs[0]["tokens"].dtype == np.int64


BAD: list[tuple[str, Array, Input, str]] = [
    ("other size", ramp(20, 3, 5, 6), IMAGE, "has shape 20x3x5x6; the model takes 1x3x4x6"),
    ("channels last", ramp(20, 4, 6, 3), IMAGE, r"array.transpose\(0, 3, 1, 2\)"),
    ("pixels", np.full((20, 3, 4, 6), 200, np.uint8), IMAGE, r"integers \(uint8, 200..200\)"),
    ("not finite", np.full((20, 8), np.nan, np.float32), SOUND, "not finite, the first in sample 0"),
    ("nothing", np.zeros((0, 3, 4, 6), np.float32), IMAGE, "has no samples for 'image'"),
    ("flat", ramp(20, 72), IMAGE, r"array.reshape\(-1, 3, 4, 6\)"),
    ("beyond the type", np.full((20, 8), 300), Input("t", (1, 8), DType.UINT8), r"does not fit uint8 \(300"),
    ("halves", np.full((20, 8), 0.5), Input("t", (1, 8), DType.INT32), "does not fit int32"),
    ("words", np.full((20, 8), "a"), SOUND, "not numbers"),
]


@pytest.mark.parametrize("array,wanted,message", [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_data_that_do_not_fit(tmp_path: Path, array: Array, wanted: Input, message: str) -> None:
    np.save(tmp_path / "c.npy", array)
    with pytest.raises(ConfigError) as refusal:
        load(tmp_path / "c.npy", wanted)
    assert refusal.match(message)


def test_missing_arrays_and_files_are_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "c.npz", a=ramp(20, 8), b=ramp(20, 8))
    with pytest.raises(ConfigError, match=r"no array for the input 'audio' \(it has a, b\)"):
        load(tmp_path / "c.npz", SOUND)
    with pytest.raises(ConfigError, match="there is no calibration data"):
        load(tmp_path / "nothing.npz", SOUND)
    (tmp_path / "c.txt").write_text("hello")
    with pytest.raises(ConfigError, match=r"is not a \.npz or \.npy file"):
        load(tmp_path / "c.txt", SOUND)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match="neither images nor WAV files"):
        load(tmp_path / "folder", SOUND)


def test_csv_with_decimal_commas(tmp_path: Path) -> None:
    rows = ramp(20, 8)
    text = "\n".join(";".join(f"{cell:.9g}".replace(".", ",") for cell in row) for row in rows)
    (tmp_path / "c.csv").write_text(text)
    np.testing.assert_array_equal(stacked(load(tmp_path / "c.csv", SOUND), "audio"), rows.reshape(20, 1, 8))


@pytest.mark.parametrize(
    "content,message",
    [
        ("1,2,3\n4,5\n", "line 2 is not 3 numbers: 4,5"),
        ("1,2,x\n4,5,6\n", "line 1 is not 3 numbers: 1,2,x"),  # no header: there are numbers in it
        ("a,b\n", "no lines with numbers"),
        ("a,b,label\n1,2,3\n1,2,cat\n", r"line 3 is not 1 numbers: cat\n.*class numbers 0, 1, 2"),
        ("label" + 8 * ",a" + "\ncat" + 8 * ",1", r"labels must be whole numbers\n.*class numbers 0, 1, 2"),
        ("a,b,label\n1,2\n", "line 2 is not 1 numbers: \n"),
        ("1,2,3\n4,5,6\n", "has 3 numbers in a line; the model takes 8"),
    ],
)
def test_csv_that_does_not_fit(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "c.csv").write_text(content)
    with pytest.raises(ConfigError) as refusal:
        load(tmp_path / "c.csv", SOUND)
    assert refusal.match(f"(?s).*{message}")


def write_wav(path: Path, content: bytes, channels: int = 1) -> None:
    path.parent.mkdir(exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(content)


def test_large_folders_are_sampled_and_keep_their_classes(tmp_path: Path) -> None:
    """Only as many files are read as are used; classes are counted over all of them, hidden ones are none."""
    for number in range(9):
        write_wav(tmp_path / "b" / f"{number}.wav", bytes(16))
    write_wav(tmp_path / "a" / "one.wav", bytes(16))
    write_wav(tmp_path / "c" / "one.wav", bytes(16))
    write_wav(tmp_path / ".cache" / "one.wav", bytes(16))
    (tmp_path / "b" / "3.wav").write_bytes(b"broken, and not among the three that are read")
    found = load(tmp_path, SOUND, samples=3)
    assert found.labels is not None
    assert found.labels.tolist() == [0, 1, 2]


def test_sound_that_was_cut_off(tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", bytes(range(64)), channels=2)
    whole = (tmp_path / "a.wav").read_bytes()
    (tmp_path / "a.wav").write_bytes(whole[:-3])
    assert len(load(tmp_path, SOUND)) == 1


def test_images_of_16_bits(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image", reason="reading images needs Pillow")
    pillow.fromarray(np.full((4, 6), 0x8000, np.uint16)).save(tmp_path / "a.png")
    found = load(tmp_path, Input("image", (1, 1, 4, 6), DType.FLOAT32))
    np.testing.assert_allclose(found.inputs[0]["image"], 0x80 / 255, atol=1e-6)


def test_labels_that_do_not_fit(tmp_path: Path) -> None:
    np.savez(tmp_path / "c.npz", audio=ramp(20, 8), labels=np.arange(19))
    with pytest.raises(ConfigError, match="19 labels for 20 samples"):
        load(tmp_path / "c.npz", SOUND)
    np.savez(tmp_path / "c.npz", audio=ramp(20, 8), labels=np.full(20, 0.5))
    with pytest.raises(ConfigError, match=r"whole numbers\n.*class numbers 0, 1, 2"):
        load(tmp_path / "c.npz", SOUND)
    np.savez(tmp_path / "c.npz", audio=ramp(20, 8), labels=np.full(20, "cat"))
    with pytest.raises(ConfigError, match="must be whole numbers"):
        load(tmp_path / "c.npz", SOUND)


def test_settings_of_a_command_line() -> None:
    items = ["calib.npz", "keep_float=conv1", "keep_float=dense", "io=int8", "range=0:1", "mean=0.5,0.4"]
    items += ["int16=conv2,conv3", "int16=conv4"]
    request = from_items(items, "--quantize", Path("app"))
    assert request == Request(
        Path("app/calib.npz"),
        io="int8",
        keep_float=("conv1", "dense"),
        int16=("conv2", "conv3", "conv4"),
        scaling=Scaling(0.0, 1.0, (0.5, 0.4)),
    )
    assert from_items([], "--quantize", Path()) is None


@pytest.mark.parametrize(
    "item,message",
    [
        ("methd=minmax", "did you mean 'method'"),
        ("method=best", "unknown calibration method 'best'"),
        ("io=uint8", "interface cannot be 'uint8'"),
        ("range=1:0", "is not a range"),
        ("std=0", "greater than 0"),
        ("auto=much", "is not a loss"),
        ("samples=0", "too few"),
    ],
)
def test_settings_that_make_no_sense(item: str, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        from_items(["calib.npz", item], "here", Path())
    assert message in str(refusal.value)


def test_settings_need_calibration_data() -> None:
    with pytest.raises(ConfigError, match="lacks 'calibration'"):
        settings({"io": "int8"}, "here")


def test_goals() -> None:
    assert parse_goal("0.5").points == 0.5
    assert parse_goal("30dB").decibels == 30.0
