# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Packs over MCUmgr with real clients: smpclient in `tinyml deploy --smp`, and smpmgr where it is installed.

native_sim over a UART, with the flash in a file that survives a restart; emulated boards over UDP and a UART.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.zephyr.applications import NATIVE
from tests.zephyr.building import ROOT, TWISTER_SECONDS, environment, run, symbols
from tinyml.base.errors import ConfigError, ToolError
from tinyml.slots import container
from tinyml.slots.deploy import Refused, deploy
from tinyml.slots.monocypher import find_monocypher
from tinyml.slots.smp import SmpSlots
from tinyml.slots.version import Version
from tinyml.verbs.cli import main
from tools import workspace

pytest.importorskip("smpclient")
pytestmark = pytest.mark.timeout(TWISTER_SECONDS)

SAMPLES = ROOT / "samples"
SAMPLE = SAMPLES / "player"
PLUGIN = SAMPLE / "smpmgr"
ZCBOR = workspace.location() / "modules" / "lib" / "zcbor"
START_SECONDS = 60

if not ZCBOR.is_dir():
    pytest.skip(
        "no zcbor in the workspace (west config manifest.group-filter -- +smp; west update zcbor)",
        allow_module_level=True,
    )


def build_sample(sample: Path, board: str, folder: Path, parts: str, *more: str) -> Path:
    """zcbor may be in the workspace without being in the manifest's groups."""
    configuration = ";".join(f"{SAMPLE}/{name}.conf" for name in parts.split())
    modules = f"{environment()['EXTRA_ZEPHYR_MODULES']};{ZCBOR}"
    command: list[str | Path] = ["west", "build", "-b", board, "-d", folder / "build", sample, "--"]
    extra = {"EXTRA_ZEPHYR_MODULES": modules}
    run([*command, f"-DEXTRA_CONF_FILE={configuration}", *more], folder, more=extra)
    return folder / "build"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    overlay = f"-DEXTRA_DTC_OVERLAY_FILE={SAMPLE}/smp_serial.overlay"
    return build_sample(SAMPLE, NATIVE, tmp_path_factory.mktemp("smp"), "slots smp smp_serial", overlay)


def make_key(folder: Path, name: str) -> Path:
    path = folder / f"{name}.pem"
    run([sys.executable, SAMPLES / "model_update" / "make_key.py", path], folder)
    return path


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("keys")
    return {name: make_key(folder, name) for name in ("own", "other")}


@pytest.fixture(scope="module")
def watching(keys: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It decides which models it keeps; where it can check signatures, it takes signed ones only."""
    more = [f"-DEXTRA_DTC_OVERLAY_FILE={SAMPLE}/smp_serial.overlay"]
    if find_monocypher() is not None:
        more.append(f'-DCONFIG_TINYML_SLOTS_KEY="{keys["own"]}"')
    folder = tmp_path_factory.mktemp("watching")
    return build_sample(SAMPLE, NATIVE, folder, "slots smp smp_serial watch", *more)


def packed(model: Path, version: int, key: Path | None = None) -> str:
    path = model.with_name(f"{model.stem}_{version}_{key.stem if key else 'unsigned'}.tmodel")
    signed = ["--key", str(key)] if key else []
    command = ["pack", str(model), "--data", "--for", "all", "--name", "digits", "--version", str(version)]
    assert main([*command, *signed, "-o", str(path)]) == 0
    return str(path)


@contextmanager
def powered(build: Path, flash: Path) -> Iterator[str]:
    """The program, with a flash that is a file; the terminal of its second UART."""
    command = [str(build / "zephyr" / "zephyr.exe"), f"--flash={flash}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as device:
        try:
            assert device.stdout is not None
            terminal = None
            while terminal is None:
                line = device.stdout.readline()
                assert line, "it ended"
                terminal = re.search(r"uart_1 connected to pseudotty: (\S+)", line)
            yield terminal[1]
        finally:
            device.kill()


@contextmanager
def slots_of(build: Path, flash: Path) -> Iterator[SmpSlots]:
    with powered(build, flash) as terminal, SmpSlots(f"serial:{terminal}") as slots:
        yield slots


def test_deploy_over_a_uart(simulated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two versions, an old one, one on trial; the flash is that of the device when it starts again."""
    packs = {version: str(simulated / f"digits_{version}.tmodel") for version in (1, 2)}
    with powered(simulated, tmp_path / "flash") as terminal:
        device = ["--smp", f"serial:{terminal}"]
        assert main(["deploy", packs[1], *device]) == 0
        assert "digits 1.0.0 instead of no model" in capsys.readouterr().out
        assert main(["deploy", packs[2], *device, "--no-confirm"]) == 0
        assert "digits 2.0.0 instead of digits 1.0.0" in capsys.readouterr().out
        assert main(["deploy", packs[2], *device]) == 1
        assert "on trial" in capsys.readouterr().err
        with SmpSlots(f"serial:{terminal}") as slots:
            slots.reject()
            assert slots.state().version == Version(1)
            with pytest.raises(Refused, match="did not expect"):
                slots.reject()
            slots.erase()
    with powered(simulated, tmp_path / "flash") as terminal:
        device = ["--smp", f"serial:{terminal}"]
        assert main(["deploy", packs[2], *device]) == 0
        assert "digits 2.0.0 instead of digits 1.0.0" in capsys.readouterr().out
        assert main(["deploy", packs[1], *device]) == 1
        assert "not newer than the one in use" in " ".join(capsys.readouterr().err.split())


@pytest.mark.deep
def test_the_device_decides_by_its_figures(watching: Path, keys: dict[str, Path], tmp_path: Path) -> None:
    """Two good models are kept without a word from outside; one whose margin collapsed is given up."""
    good, flat = tmp_path / "good.onnx", tmp_path / "flat.onnx"
    shutil.copy(SAMPLES / "digits" / "model.onnx", good)
    model = onnx.load(good)
    last = model.graph.node[-1]
    scale = next(t for t in model.graph.initializer if t.name == last.input[1])
    small = numpy_helper.from_array(numpy_helper.to_array(scale) * np.float32(0.02), "flat_scale")
    model.graph.initializer.append(small)
    last.input[1] = small.name
    onnx.save(model, flat)
    kept = []
    with powered(watching, tmp_path / "flash") as terminal:
        for version, path in enumerate((good, good, flat), 1):
            pack = packed(path, version, keys["own"])
            assert main(["deploy", pack, "--smp", f"serial:{terminal}", "--no-confirm"]) == 0
            with SmpSlots(f"serial:{terminal}") as slots:
                until = time.monotonic() + START_SECONDS
                while slots.state().on_trial:
                    assert time.monotonic() < until
                    time.sleep(0.2)
                kept.append(slots.state().version)
    assert kept == [Version(1), Version(2), Version(2)]


@pytest.mark.deep
def test_signatures(
    watching: Path, keys: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pack without a signature, one of another key, and one of ours."""
    if find_monocypher() is None:
        pytest.skip(
            "no Monocypher in the workspace (west config manifest.group-filter -- +slots; west update)"
        )
    model = tmp_path / "digits.onnx"
    shutil.copy(SAMPLES / "digits" / "model.onnx", model)
    with powered(watching, tmp_path / "flash") as terminal:
        for key, said in ((None, "only signed packs"), (keys["other"], "another key")):
            assert main(["deploy", packed(model, 1, key), "--smp", f"serial:{terminal}"]) == 1
            assert said in " ".join(capsys.readouterr().err.split())
        assert main(["deploy", packed(model, 1, keys["own"]), "--smp", f"serial:{terminal}"]) == 0
        assert "digits 1.0.0 instead of no model" in capsys.readouterr().out


def test_power_fails_during_an_upload(simulated: Path, tmp_path: Path) -> None:
    pack = container.load(simulated / "digits_1.tmodel")
    with slots_of(simulated, tmp_path / "flash") as slots:
        image = slots.player().image_in(pack)
        done, _ = slots.begin(len(image), resume=True)
        assert done == 0
        while done < len(image) * 19 // 20:  # more than one erase unit
            done = slots.send(done, image[done : done + slots.data_bytes])
    with slots_of(simulated, tmp_path / "flash") as slots:
        found = deploy(slots, pack)
        assert 0 < found.resumed <= done
        assert found.after.name == "digits"


def test_what_the_device_refuses(simulated: Path, tmp_path: Path) -> None:
    """Damage, an image that is too long, parts out of order; another core, before anything is sent."""
    pack = container.load(simulated / "digits_1.tmodel")
    with slots_of(simulated, tmp_path / "flash") as slots:
        image = slots.player().image_in(pack)
        with pytest.raises(Refused, match="longer than the slot"):
            slots.begin(1 << 20, resume=False)
        done, _ = slots.begin(len(image), resume=False)
        with pytest.raises(Refused, match="did not expect this now"):
            slots.send(100, image[100:200])
        broken = bytearray(image)
        broken[len(broken) // 2] ^= 1
        while done < len(broken):
            done = slots.send(done, bytes(broken[done : done + slots.data_bytes]))
        with pytest.raises(Refused, match="checksum is wrong"):
            slots.finish()
        with pytest.raises(ConfigError, match="no image that the device can play; it has helium"):
            deploy(slots, container.Pack({"helium": pack.images["helium"]}))
        slots.group = 85
        with pytest.raises(ToolError, match="no such management group"):
            slots.state()


def smpmgr(terminal: str, *words: str | Path) -> str:
    command = ["smpmgr", f"--plugin-path={PLUGIN}", "--port", terminal, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("smpmgr") is None, reason="no smpmgr (pipx install smpmgr)")
def test_smpmgr(simulated: Path, tmp_path: Path) -> None:
    """A client that knows nothing of this project but what a plugin says."""
    with powered(simulated, tmp_path / "flash") as terminal:
        said = smpmgr(terminal, "tinyml", "upload", simulated / "digits_1.tmodel")
        assert "0 of them were there" in said
        smpmgr(terminal, "tinyml", "test")
        assert "slot 0: received 1.0.0+0, in use: digits, on trial" in smpmgr(terminal, "tinyml", "state")
        smpmgr(terminal, "tinyml", "confirm")
        assert "slot 0: kept 1.0.0+0, in use: digits\n" in smpmgr(terminal, "tinyml", "state")


def test_deploy_over_udp(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Packs with code, to an emulated Cortex-M3 in the user network of QEMU; the group is small."""
    build = build_sample(SAMPLES / "model_update", "mps2/an385", tmp_path, "smp smp_udp")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    network = f"user,model=lan9118,hostfwd=udp:127.0.0.1:{port}-:1337"
    command = ["qemu-system-arm", "-machine", "mps2-an385", "-display", "none", "-monitor", "none"]
    command += ["-serial", "null", "-nic", network, "-kernel", str(build / "zephyr" / "zephyr.elf")]
    with subprocess.Popen(command) as emulator:
        try:
            wait_for(f"udp:127.0.0.1:{port}")
            for version, before in ((1, "no model"), (2, "digits 1.0.0")):
                pack = str(build / f"digits_{version}.tmodel")
                assert main(["deploy", pack, "--smp", f"udp:127.0.0.1:{port}"]) == 0
                assert f"digits {version}.0.0 instead of {before}" in capsys.readouterr().out
        finally:
            emulator.kill()
    assert group_bytes(build / "zephyr" / "zephyr.elf") <= 1500


@pytest.mark.deep
def test_deploy_to_an_emulated_board_over_a_uart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Packs without code, on the second UART of a Cortex-M3: two versions and an old one.

    The second comes from smpmgr where it is installed.
    """
    overlay = f"-DEXTRA_DTC_OVERLAY_FILE={SAMPLE}/smp_serial_qemu.overlay"
    build = build_sample(SAMPLE, "qemu_cortex_m3", tmp_path, "slots smp smp_serial", overlay)
    command = ["qemu-system-arm", "-machine", "lm3s6965evb", "-display", "none", "-monitor", "none"]
    command += ["-serial", "null", "-serial", "pty", "-kernel", str(build / "zephyr" / "zephyr.elf")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as emulator:
        try:
            assert emulator.stdout is not None
            terminal = re.search(r"redirected to (\S+)", emulator.stdout.readline())
            assert terminal is not None
            address = f"serial:{terminal[1]}"
            wait_for(address)
            assert main(["deploy", str(build / "digits_1.tmodel"), "--smp", address]) == 0
            assert "digits 1.0.0 instead of no model" in capsys.readouterr().out
            if shutil.which("smpmgr") is not None:
                smpmgr(terminal[1], "tinyml", "upload", build / "digits_2.tmodel")
                smpmgr(terminal[1], "tinyml", "test")
                smpmgr(terminal[1], "tinyml", "confirm")
                assert "slot 1: kept 2.0.0+0, in use: digits\n" in smpmgr(terminal[1], "tinyml", "state")
            else:
                assert main(["deploy", str(build / "digits_2.tmodel"), "--smp", address]) == 0
                assert "digits 2.0.0 instead of digits 1.0.0" in capsys.readouterr().out
            assert main(["deploy", str(build / "digits_1.tmodel"), "--smp", address]) == 1
            assert "not newer than the one in use" in " ".join(capsys.readouterr().err.split())
        finally:
            emulator.kill()


def wait_for(address: str) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            with SmpSlots(address) as slots:
                slots.state()
            return
        except ToolError:
            assert time.monotonic() < end, f"{address} does not answer"


def group_bytes(elf: Path) -> int:
    """Code and tables of the group, and what only it calls; a hundred bytes for its words."""
    named = ("handle", "read_state", "upload", "try_model", "confirm", "reject", "erase", "translate")
    prefixes = (
        *("smp_put_", "smp_is", "smp_read_arguments", "smp_skip", "smp_upload", "smp_test"),
        *("tinyml_smp_", "tinyml_receiver_", "tinyml_slots_state", "register_group"),
    )
    found = {
        name: size
        for name, (_, size, _) in symbols(elf).items()
        if name in (*named, "handlers", "group") or name.startswith(prefixes)
    }
    assert "tinyml_smp_request" in found
    return sum(found.values()) + 100
