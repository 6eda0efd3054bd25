# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml deploy`: packs to a simulated device behind a pseudo terminal."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import slot_images as fake
from tests.support.slot_simulator import build_simulator
from tinyml.base.errors import ToolError
from tinyml.slots import container
from tinyml.slots.deploy import REASONS
from tinyml.slots.version import Version
from tinyml.verbs.cli import main

pty = pytest.importorskip("pty", reason="no pseudo terminals on this system", exc_type=ImportError)
tty = pytest.importorskip("tty", reason="no terminals on this system", exc_type=ImportError)

SLOT_BYTES = 4096


@dataclass(frozen=True)
class Served:
    port: str
    process: subprocess.Popen[bytes]

    def cut_power(self) -> None:
        descriptor = os.open(self.port, os.O_WRONLY | os.O_NOCTTY)
        os.write(descriptor, b"power\n")
        os.close(descriptor)


@pytest.fixture
def device(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    program = build_simulator(tmp_path_factory.mktemp("simulator"))
    master, slave = pty.openpty()
    tty.setraw(slave)
    command = [str(program), "serve", "8", str(SLOT_BYTES)]
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    process = subprocess.Popen(command, stdin=master, stdout=master, env=environment)
    os.close(master)
    yield Served(os.ttyname(slave), process)
    process.kill()
    process.wait()
    os.close(slave)


def pack(folder: Path, version: int, **more: object) -> Path:
    images = {
        name: fake.image_of(
            address=fake.ADDRESS + index * SLOT_BYTES,
            version=Version(version),
            value=version,
            size=2500,
            **more,  # type: ignore[arg-type]
        )
        for index, name in enumerate("ab")
    }
    path = folder / f"{version}.tmodel"
    container.save(path, container.Pack(images))
    return path


def deploy(device: Served, path: Path, *more: str) -> int:
    return main(["deploy", str(path), "--serial", device.port, *more])


def test_two_versions(device: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert deploy(device, pack(tmp_path, 1)) == 0
    assert "fake 1.0.0 instead of no model" in capsys.readouterr().out
    assert deploy(device, pack(tmp_path, 2)) == 0
    assert "fake 2.0.0 instead of fake 1.0.0" in capsys.readouterr().out
    assert deploy(device, pack(tmp_path, 1)) == 1
    assert "not newer than the one in use" in capsys.readouterr().err


def test_what_fails_its_test_is_not_kept(
    device: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert deploy(device, pack(tmp_path, 1)) == 0
    capsys.readouterr()
    assert deploy(device, pack(tmp_path, 2, test=b"T\1")) == 1
    assert "the device went back to fake 1.0.0" in capsys.readouterr().err


def test_on_trial(device: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert deploy(device, pack(tmp_path, 1), "--no-confirm") == 0
    assert "on trial" in capsys.readouterr().out
    assert deploy(device, pack(tmp_path, 2)) == 1
    assert "no free slot" in capsys.readouterr().err


def test_an_interrupted_transfer_is_resumed(
    device: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tinyml.slots import deploy as sending

    assert deploy(device, pack(tmp_path, 1)) == 0
    whole = sending.Slots.send

    def until_the_cable_is_pulled(self: sending.Slots, offset: int, data: bytes) -> int:
        if offset > 2000:
            raise ToolError("the cable was pulled")
        return whole(self, offset, data)

    monkeypatch.setattr(sending.Slots, "send", until_the_cable_is_pulled)
    assert deploy(device, pack(tmp_path, 2)) == 1
    monkeypatch.undo()
    device.cut_power()
    capsys.readouterr()
    assert deploy(device, pack(tmp_path, 2)) == 0
    assert "2,048 of them were there already" in capsys.readouterr().out


def test_after_a_refusal_all_is_sent_again(
    device: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, and only if what is in flash was refused, not what the pack is."""
    from tinyml.slots import deploy as sending

    assert deploy(device, pack(tmp_path, 1)) == 0
    finish, begin = sending.Slots.finish, sending.Slots.begin
    begun: list[bool] = []

    def refused_once(self: sending.Slots) -> None:
        if len(begun) == 1:
            raise sending.Refused(6, "finish")
        finish(self)

    def noted(self: sending.Slots, count: int, resume: bool) -> tuple[int, int]:
        begun.append(resume)
        return begin(self, count, resume)

    monkeypatch.setattr(sending.Slots, "finish", refused_once)
    monkeypatch.setattr(sending.Slots, "begin", noted)
    assert deploy(device, pack(tmp_path, 2)) == 0
    assert begun == [True, False]
    assert deploy(device, pack(tmp_path, 1)) == 1
    assert begun == [True, False, True], "a version that is not newer stays so"
    assert "not newer" in capsys.readouterr().err


def test_another_devices_pack(device: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = {"a": fake.image_of(address=0x8000000)}
    container.save(tmp_path / "x.tmodel", container.Pack(images))
    assert deploy(device, tmp_path / "x.tmodel") == 1
    assert "no image for a slot at 0x60000; it has a at 0x8000000" in capsys.readouterr().err


def test_no_such_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = pack(tmp_path, 1)
    assert main(["deploy", str(path), "--serial", str(tmp_path / "nothing")]) == 1
    assert "no serial port" in capsys.readouterr().err


def test_every_error_has_a_reason() -> None:
    from tinyml.harness.program_build import RUNTIME_INCLUDE

    numbers = set(fake.errors(Path(RUNTIME_INCLUDE) / "tinyml" / "slot.h"))
    assert {-number for number in numbers if number} == set(REASONS)
