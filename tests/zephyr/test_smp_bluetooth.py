# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Packs over MCUmgr and Bluetooth: native_sim with controllers in software, and an image for a board."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.radio import Radio, RadioTransport, on_air
from tests.zephyr.applications import NATIVE
from tests.zephyr.building import ROOT, TWISTER_SECONDS, environment, run, symbols
from tinyml.slots import container, smp
from tinyml.slots.deploy import deploy
from tinyml.slots.smp import SmpSlots
from tinyml.verbs.cli import main
from tools import workspace

pytestmark = [pytest.mark.timeout(TWISTER_SECONDS), pytest.mark.deep]

SAMPLE = ROOT / "samples" / "player"
MODULES = workspace.location() / "modules"
ZCBOR = MODULES / "lib" / "zcbor"
NORDIC = MODULES / "hal" / "nordic"
RANDOM = ROOT / "tests" / "zephyr" / "bluetooth"
PARTS = ("slots", "smp", "smp_bluetooth")


def build_sample(board: str, folder: Path, modules: list[Path], *more: str) -> Path:
    """Modules may be in the workspace without being in the manifest's groups."""
    if not ZCBOR.is_dir():
        pytest.skip(
            "no zcbor in the workspace (west config manifest.group-filter -- +smp; west update zcbor)"
        )
    extra = ";".join((environment()["EXTRA_ZEPHYR_MODULES"], *map(str, (ZCBOR, *modules))))
    configuration = ";".join(f"{SAMPLE}/{name}.conf" for name in PARTS)
    command: list[str | Path] = ["west", "build", "-b", board, "-d", folder / "build", SAMPLE, "--"]
    command += [f"-DEXTRA_CONF_FILE={configuration}", *more]
    run(command, folder, more={"EXTRA_ZEPHYR_MODULES": extra})
    return folder / "build"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random numbers come from the test's module, so that it needs no mbedTLS."""
    pytest.importorskip("bumble", reason="no Bluetooth controllers in software (pip install bumble)")
    pytest.importorskip("smpclient")
    more = ["-DCONFIG_BT_HOST_CRYPTO=n", "-DCONFIG_TEST_RANDOM_GENERATOR=y"]
    return build_sample(NATIVE, tmp_path_factory.mktemp("bluetooth"), [RANDOM], *more)


@contextmanager
def powered(build: Path, flash: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Radio]:
    """The program and its radio; `--smp ble:...` goes over that one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with on_air(port) as radio:
        monkeypatch.setattr(smp, "_transport", lambda address, baud: (RadioTransport(radio), address))
        command = [str(build / "zephyr" / "zephyr.exe"), f"--bt-dev=127.0.0.1:{port}", f"--flash={flash}"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as device:
            try:
                yield radio
            finally:
                device.kill()


def test_deploy_over_bluetooth(
    simulated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two versions and an old one, each over a connection of its own; power fails during an upload."""
    packs = {version: simulated / f"digits_{version}.tmodel" for version in (1, 2)}
    first = container.load(packs[1])
    with powered(simulated, tmp_path / "flash", monkeypatch), SmpSlots("ble:player") as slots:
        image = slots.player().image_in(first)
        done, _ = slots.begin(len(image), resume=True)
        while done < len(image) * 19 // 20:
            done = slots.send(done, image[done : done + slots.data_bytes])
    with powered(simulated, tmp_path / "flash", monkeypatch):
        with SmpSlots("ble:player") as slots:
            found = deploy(slots, first)
            assert 0 < found.resumed <= done
            assert found.after.name == "digits"
        assert main(["deploy", str(packs[2]), "--smp", "ble:player"]) == 0
        assert "digits 2.0.0 instead of digits 1.0.0" in capsys.readouterr().out
        assert main(["deploy", str(packs[1]), "--smp", "ble:player"]) == 1
        assert "not newer than the one in use" in " ".join(capsys.readouterr().err.split())


def test_an_image_for_a_board(tmp_path: Path) -> None:
    """The host, the controller, the transport and the group, linked for an nRF52840; nothing runs."""
    if not NORDIC.is_dir():
        pytest.skip(
            "no hal_nordic in the workspace (west config manifest.group-filter -- +boards; west update)"
        )
    build = build_sample("nrf52840dk/nrf52840", tmp_path, [NORDIC])
    linked = symbols(build / "zephyr" / "zephyr.elf")
    for name in ("tinyml_smp_request", "smp_bt_tx_pkt", "bt_gatt_notify_cb", "ll_adv_enable"):
        assert name in linked, f"{name} is not in the image"
