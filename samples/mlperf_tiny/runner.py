# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Start MLPerf Tiny's own runner, unmodified, with serial ports that are not USB devices.

``python runner.py REPOSITORY --dut PORT [--interface PORT] [OPTION ...]``

REPOSITORY is a checkout of github.com/mlcommons/tiny. The runner finds boards by their USB ids; pseudo
terminals of emulators have none, so the list of ports is replaced by the ones given here, with the ids that
the runner's devices_*.yaml expect. Further options go to the runner, which writes sessions/ here.
"""

from __future__ import annotations

import argparse
import importlib.util
import runpy
import sys
import types
from pathlib import Path

VENDOR, DUT, INTERFACE = 0x0483, 0x374B, 0x374E  # ST's debug probes, on the boards that the runner knows


def port(device: str, product: int) -> types.SimpleNamespace:
    return types.SimpleNamespace(device=device, vid=VENDOR, pid=product, description=device)


def use_ports(ports: list[types.SimpleNamespace]) -> None:
    from serial.tools import list_ports

    list_ports.comports = lambda *_: ports


def replace_missing() -> None:
    """pyusb and matplotlib are for energy meters only: do without them where they are not installed."""
    for name, member, value in (
        ("usb.core", "find", lambda **_: []),
        ("matplotlib.pyplot", "clf", lambda: None),
    ):
        package = name.partition(".")[0]
        if importlib.util.find_spec(package) is None:
            inner = types.ModuleType(name)
            setattr(inner, member, value)
            outer = types.ModuleType(package)
            setattr(outer, name.rpartition(".")[2], inner)
            sys.modules |= {package: outer, name: inner}


def main() -> None:
    parser = argparse.ArgumentParser(description="run MLPerf Tiny's runner on given serial ports")
    parser.add_argument("repository", type=Path, help="a checkout of github.com/mlcommons/tiny")
    parser.add_argument("--dut", help="the device's serial port")
    parser.add_argument("--interface", help="the interface board's serial port")
    args, options = parser.parse_known_args()
    folder = (args.repository / "benchmark" / "runner").resolve()
    if not (folder / "main.py").is_file():
        parser.error(f"{folder / 'main.py'} does not exist: give a checkout of github.com/mlcommons/tiny")
    given = ((args.dut, DUT), (args.interface, INTERFACE))
    use_ports([port(device, product) for device, product in given if device])
    replace_missing()
    sys.path.insert(0, str(folder))
    sys.argv = [str(folder / "main.py"), *options]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
