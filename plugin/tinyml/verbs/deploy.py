# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`deploy`: send a pack to a device."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.verbs.base import Verb

if TYPE_CHECKING:
    from rich.console import Console


class Deploy(Verb):
    """Send a pack to a running device over its serial port.

    The device must have CONFIG_TINYML_SLOTS and CONFIG_TINYML_HOST, or call tinyml_host_receive() with the
    bytes it receives. It checks the pack, tries the model on the test that travels with it, and keeps the
    one it has if that fails. An interrupted transfer is resumed.

    PORT can also be a URL of pyserial's: socket://HOST:PORT for an emulator's serial port.
    """

    name = "deploy"
    help = "send a pack to a running device"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("pack", type=Path, metavar="PACK", help="the pack, a .tmodel file")
        parser.add_argument("--serial", required=True, metavar="PORT", help="the device's serial port")
        parser.add_argument("--baud", type=int, default=115200, metavar="N", help="default: %(default)s")
        parser.add_argument(
            "--no-confirm",
            action="store_true",
            help="do not confirm the model: the device's application decides whether to keep it",
        )

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from rich.progress import Progress

        from tinyml.harness.device_session import HARDWARE_SECONDS, Session
        from tinyml.harness.links import SerialPort
        from tinyml.slots import container
        from tinyml.slots.deploy import Slots, deploy

        pack = container.load(args.pack)
        with SerialPort(args.serial, args.baud) as link, Progress(console=console, transient=True) as bar:
            task = bar.add_task("sending", total=None)
            session = Session(link, args.serial)
            session.greet(HARDWARE_SECONDS)
            found = deploy(
                Slots(session),
                pack,
                lambda done, total: bar.update(task, completed=done, total=total),
                not args.no_confirm,
            )
        before = "no model" if not found.before.name else f"{found.before.name} {found.before.version}"
        console.print(
            f"{args.serial}: {found.after.name} {found.after.version} instead of {before}; "
            f"{found.sent:,} bytes"
            + (f", {found.resumed:,} of them were there already" if found.resumed else "")
            + ("" if not args.no_confirm else ", on trial"),
            markup=False,
            soft_wrap=True,
        )
        return 0
