# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Packs: what is in them, that they are reproducible, that imgtool reads them, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tinyml.base.errors import ConfigError
from tinyml.slots import container, image, keys
from tinyml.slots.version import Version, parse_version
from tinyml.verbs.cli import main

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"
SLOTS = "--slots=a=0x60000,b=0x70000"


def imgtool(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "imgtool.main", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "key.pem"
    done = imgtool("keygen", "-t", "ed25519", "-k", str(path))
    assert done.returncode == 0, done.stderr
    return path


def pack(output: Path, *more: str, model: Path = DIGITS) -> container.Pack:
    words = ["pack", str(model), "--name", "digits", "--target", "cortex-m3", SLOTS, "-o", str(output), *more]
    assert main(words) == 0
    return container.load(output)


def test_what_a_pack_says(tmp_path: Path) -> None:
    made = pack(tmp_path / "x.tmodel", "--version", "2.1.7+30")
    assert list(made.images) == ["a", "b"]
    for content, address in zip(made.images.values(), (0x60000, 0x70000), strict=True):
        found = image.read(content)
        assert (found.address, found.name, found.version) == (address, "digits", Version(2, 1, 7, 30))
        assert found.core == 0b11  # Armv6-M and Armv7-M
        assert not found.signed
        assert made.image_at(address) == content
    with pytest.raises(ConfigError, match="no image for a slot at 0x80000"):
        made.image_at(0x80000)


def test_same_input_same_bytes(tmp_path: Path, key: Path) -> None:
    copy = tmp_path / "elsewhere" / "model.onnx"
    copy.parent.mkdir()
    copy.write_bytes(DIGITS.read_bytes())
    pack(tmp_path / "1.tmodel", "--key", str(key))
    pack(tmp_path / "2.tmodel", "--key", str(key), model=copy)
    assert (tmp_path / "1.tmodel").read_bytes() == (tmp_path / "2.tmodel").read_bytes()


def test_imgtool_verifies(tmp_path: Path, key: Path) -> None:
    made = pack(tmp_path / "x.tmodel", "--version", "3", "--key", str(key))
    path = tmp_path / "slot.bin"
    path.write_bytes(made.images["a"])
    done = imgtool("verify", "-k", str(key), str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3.0.0+0" in done.stdout
    other = tmp_path / "other.pem"
    imgtool("keygen", "-t", "ed25519", "-k", str(other))
    assert imgtool("verify", "-k", str(other), str(path)).returncode != 0
    damaged = bytearray(made.images["a"])
    damaged[1000] ^= 1
    path.write_bytes(damaged)
    assert imgtool("verify", "-k", str(key), str(path)).returncode != 0


def test_public_key_for_the_firmware(key: Path, tmp_path: Path) -> None:
    public = tmp_path / "public.pem"
    public.write_text(imgtool("getpub", "-k", str(key), "-e", "pem").stdout)
    assert keys.public_key(public) == keys.public_key(key)
    first = keys.public_key(key)[0]
    assert f"0x{first:02x}" in keys.public_key_header(key)


@pytest.mark.parametrize(
    "words,complaint",
    [
        (["--slots", "a=0x60004"], "cannot start at 0x60004"),
        (["--slots", "a=0x60000+0x400"], "slot a has 1,024"),
        (["--slots", "a=0x60000,b=0x60000"], "same name or address"),
        (["--slots", "a=here"], "'a=here' is not a slot"),
        (["--slots", "slot_a"], "'slot_a' is not an address"),
        (["--slots", "a=0", "--version", "1.2.3.4"], "'1.2.3.4' is not a version"),
        (["--slots", "a=0", "--version", "256"], "'256' is not a version"),
        (["--slots", "a=0", "--key", "nowhere.pem"], "cannot read the key nowhere.pem"),
        (["--slots", "a=0", "--target", "host"], "no slots for target 'host'"),
        (["--slots", "slot_a", "-d", "nowhere"], "no Zephyr build with CONFIG_TINYML in nowhere"),
    ],
)
def test_mistakes(
    words: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "x.tmodel"
    assert main(["pack", str(DIGITS), *words, "-o", str(output)]) == 1
    assert complaint in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_damaged_packs(tmp_path: Path) -> None:
    whole = (lambda path: (pack(path), path.read_bytes())[1])(tmp_path / "x.tmodel")
    for content in (b"", whole[:100], whole[: len(whole) // 2], b"ELF" + whole[3:]):
        with pytest.raises(ConfigError):
            container.decode(content, "x.tmodel")
    for position in range(200, len(whole), 997):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        try:
            container.decode(bytes(damaged), "x.tmodel")
        except ConfigError:
            continue
        # only what is behind the payload has no checksum here: the device has the last word on digests
        images = container.decode(whole, "x.tmodel").images
        assert any(whole.index(part) + len(part) - position < 200 for part in images.values())


def test_versions_are_ordered() -> None:
    texts = ["0.0.1", "0.1", "1", "1.0.0+1", "1.0.1", "1.2", "2"]
    versions = [parse_version(text) for text in texts]
    assert versions == sorted(versions)
    assert str(parse_version("1.2+3")) == "1.2.0+3"
