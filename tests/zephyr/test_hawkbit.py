# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Packs from a hawkBit server on this machine: the sample player on native_sim and an emulated board."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.certificates import Authority
from tests.support.ddi_server import Action, Hawkbit, serving
from tests.zephyr.applications import NATIVE
from tests.zephyr.building import ROOT, TWISTER_SECONDS, environment, run
from tinyml.slots import container
from tinyml.verbs.cli import main
from tools import workspace

pytestmark = [pytest.mark.timeout(TWISTER_SECONDS), pytest.mark.deep]

SAMPLES = ROOT / "samples"
PLAYER = SAMPLES / "player"
MBEDTLS = workspace.location() / "modules" / "crypto" / "mbedtls"
ANSWER_SECONDS = 180
LWM2M_SIZES = ("MAX_PENDING=5", "MAX_REPLIES=5", "VALIDATION_BUFFER_SIZE=64")
"""Options of Zephyr's LwM2M, which the sample does not have; its header has arrays of these sizes."""
REFUSED_SECONDS = 10  # several polls
CUT = 4500  # more than an erase unit, less than an image


@pytest.fixture(scope="module")
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def build_sample(board: str, port: int, folder: Path, network: str, *words: str) -> Path:
    parts = ("slots", "watch", "hawkbit", network, *(["hawkbit_tls"] if words else []))
    configuration = ";".join(f"{PLAYER}/{name}.conf" for name in parts)
    command: list[str | Path] = ["west", "build", "-b", board, "-d", folder / "build", PLAYER, "--"]
    more = [f"-DEXTRA_CONF_FILE={configuration}", f'-DCONFIG_SAMPLE_HAWKBIT_PORT="{port}"']
    modules = f"{environment()['EXTRA_ZEPHYR_MODULES']};{MBEDTLS}"
    run([*command, *more, *words], folder, more={"EXTRA_ZEPHYR_MODULES": modules} if words else None)
    return folder / "build"


@pytest.fixture(scope="module")
def build(port: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_sample(NATIVE, port, tmp_path_factory.mktemp("hawkbit"), "hawkbit_native")


@pytest.fixture(scope="module")
def packs(build: Path, tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Good ones by version, from 1 on; the first is one whose margin is too small."""
    folder = tmp_path_factory.mktemp("packs")
    model = folder / "digits.onnx"
    shutil.copy(SAMPLES / "digits" / "model.onnx", model)
    found = [(build / "digits_1.tmodel").read_bytes()]
    for version in range(1, 5):
        path = folder / f"{version}.tmodel"
        words = ["pack", str(model), "--data", "--for", "all", "--name", "digits"]
        assert main([*words, "--version", str(version), "-o", str(path)]) == 0
        found.append(path.read_bytes())
    return found


@contextmanager
def powered(build: Path, flash: Path) -> Iterator[None]:
    """The program, with a flash that is a file."""
    command = [str(build / "zephyr" / "zephyr.exe"), f"--flash={flash}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as device:
        try:
            yield
        finally:
            device.kill()


def wait_for_the_end(action: Action) -> str:
    end = time.monotonic() + ANSWER_SECONDS
    while action.closed is None:
        assert time.monotonic() < end, f"no end: {action.feedback}"
        time.sleep(0.05)
    return action.closed


def ended(server: Hawkbit, content: bytes, number: int) -> tuple[str, str]:
    """How a deployment ends, and what the device says about it last."""
    action = server.deploy(content, number)
    return wait_for_the_end(action), action.details[-1]


def test_the_device_decides(build: Path, port: int, packs: list[bytes], tmp_path: Path) -> None:
    """The server learns that a model was confirmed, given up or refused, and why."""
    damaged = bytearray(packs[3])
    image = container.decode(packs[3], "").images["plain"]
    damaged[packs[3].index(image) + len(image) // 2] ^= 1
    with serving(port) as server, powered(build, tmp_path / "flash"):
        assert ended(server, packs[0], 1) == ("failure", "rejected before"), "its margin is too small"
        assert server.attributes == {
            "model": "",
            "model_version": "0.0.0+0",
            "slot_bytes": "32768",
            "arena_bytes": "4096",
        }
        assert ended(server, packs[2], 2) == ("success", "the new model was confirmed")
        server.attributes = None
        assert ended(server, packs[1], 3) == ("failure", "not newer than the model in use")
        assert server.attributes is not None
        assert (server.attributes["model"], server.attributes["model_version"]) == ("digits", "2.0.0+0")
        assert ended(server, bytes(damaged), 4) == ("failure", "damaged: wrong checksum")
        assert ended(server, b"no pack at all", 5) == ("failure", "not a model")
        action = server.deploy(packs[3], 6, name="model.bin")
        assert wait_for_the_end(action) == "failure"
        assert "no file .tmodel" in action.details[0]
        server.chunked, server.ranges = True, False  # as a proxy may do
        assert ended(server, packs[3], 7) == ("success", "the new model was confirmed")
        assert server.unknown == []


def test_interruptions(build: Path, port: int, packs: list[bytes], tmp_path: Path) -> None:
    """A connection that ends, a device that restarts during a trial, a deployment that is cancelled."""
    with serving(port) as server:
        with powered(build, tmp_path / "flash"):
            server.cut_after = CUT
            action = server.deploy(packs[1], 1)
            assert wait_for_the_end(action) == "success"
            assert server.cut_after is None
            image = container.decode(packs[1], "").images["plain"]
            start = packs[1].index(image)
            received = [first for first, last in server.asked if last == start + len(image) - 1]
            assert received == [start, start + 4096], "the second time from an erase unit on"
        with powered(build, tmp_path / "flash"):
            action = server.deploy(packs[2], 2)
            end = time.monotonic() + ANSWER_SECONDS
            while not action.feedback:  # the trial takes 80 runs, 5 ms each
                assert time.monotonic() < end
                time.sleep(0.01)
        assert action.details == ["the new model is on trial"]
        with powered(build, tmp_path / "flash"):
            assert wait_for_the_end(action) == "success"
            action = server.deploy(packs[3], 3)
            while not action.feedback:
                time.sleep(0.01)
            action.cancelling = True
            assert wait_for_the_end(action) == "success"
            executed = [entry["status"]["execution"] for entry in action.feedback]
            assert executed in (["proceeding", "closed"], ["proceeding", "rejected", "closed"])
        server.authorization = "GatewayToken another"
        with powered(build, tmp_path / "flash"):
            end = time.monotonic() + ANSWER_SECONDS
            while not server.unknown:
                assert time.monotonic() < end
                time.sleep(0.05)
        assert server.unknown[0] == "GET /DEFAULT/controller/v1/player"


def test_an_emulated_board(port: int, packs: list[bytes], tmp_path: Path) -> None:
    """Zephyr's own TCP on a Cortex-M3, in the user network of QEMU."""
    elf = build_sample("mps2/an385", port, tmp_path, "hawkbit_qemu") / "zephyr" / "zephyr.elf"
    command = ["qemu-system-arm", "-machine", "mps2-an385", "-display", "none", "-monitor", "none"]
    command += ["-serial", "null", "-nic", "user,model=lan9118", "-kernel", str(elf)]
    with serving(port) as server, subprocess.Popen(command) as emulator:
        try:
            assert ended(server, packs[0], 1) == ("failure", "rejected before")
            assert ended(server, packs[2], 2) == ("success", "the new model was confirmed")
            server.chunked, server.ranges = True, False
            assert ended(server, packs[3], 3) == ("success", "the new model was confirmed")
        finally:
            emulator.kill()
    assert server.unknown == []


def test_tls(packs: list[bytes], port: int, tmp_path: Path) -> None:
    """The device takes a pack from a server that its authority vouches for, and none from others."""
    if not MBEDTLS.is_dir():
        pytest.skip("no mbedTLS in the workspace (west config manifest.group-filter -- +crypto; west update)")
    own, other = Authority("own"), Authority("other")
    (tmp_path / "authority.der").write_bytes(own.certificate)
    words = [f'-DCONFIG_SAMPLE_HAWKBIT_CA="{tmp_path}/authority.der"', "-DCONFIG_SAMPLE_HAWKBIT_SECONDS=2"]
    build = build_sample(NATIVE, port, tmp_path, "hawkbit_native", *words)
    refused = [other.server(tmp_path, "127.0.0.1"), own.server(tmp_path, "192.0.2.1")]
    for context in refused:  # another authority; the certificate of another server
        with serving(port, context) as server, powered(build, tmp_path / "flash"):
            server.deploy(packs[1], 1)
            time.sleep(REFUSED_SECONDS)
            assert server.polls == 0
    with serving(port, own.server(tmp_path, "127.0.0.1")) as server, powered(build, tmp_path / "flash"):
        assert ended(server, packs[1], 2) == ("success", "the new model was confirmed")
        assert server.unknown == []


@pytest.mark.parametrize(
    "page, name",
    [
        ("deliver", "confirm"),
        ("deliver", "hawkbit"),
        ("deliver", "credentials"),
        ("deliver", "download"),
        ("watch", "coap"),
        ("watch", "lwm2m"),
    ],
)
def test_snippets_of_the_pages(build: Path, page: str, name: str, tmp_path: Path) -> None:
    """They compile as a source of the sample does, with the headers of Zephyr."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"<!-- compiled: {name} -->\n```c\n(.*?)```", text, re.DOTALL)
    (tmp_path / "snippet.c").write_text(found, encoding="utf-8")
    commands = json.loads((build / "compile_commands.json").read_text())
    entry = next(command for command in commands if command["file"].endswith("player/src/fetch.c"))
    words = shlex.split(entry["command"])
    words = [word for word in words[: words.index("-o")] if not word.endswith(".c")]
    sizes = [f"-DCONFIG_LWM2M_ENGINE_{size}" for size in LWM2M_SIZES]
    (tmp_path / "authority.inc").write_text("0x30")
    sizes += ["-DCONFIG_TINYML_HAWKBIT_SEC_TAG=84", f"-I{tmp_path}"]
    command = [*words, *sizes, "-Werror", "-fsyntax-only", str(tmp_path / "snippet.c")]
    done = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
