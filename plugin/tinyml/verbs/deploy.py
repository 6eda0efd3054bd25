# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`deploy`: send a pack to a device."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.verbs.base import Verb

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.slots.deploy import Receiver

GROUPS = range(64, 1 << 16)
"""What CONFIG_TINYML_SMP_GROUP_ID may be: groups of applications."""


class Deploy(Verb):
    """Send a pack to a running device, over its serial port or over MCUmgr.

    With --serial the device must have CONFIG_TINYML_SLOTS and CONFIG_TINYML_HOST, or call
    tinyml_host_receive() with the bytes it receives; with --smp, CONFIG_TINYML_SLOTS and CONFIG_TINYML_SMP.
    It checks the pack, tries the model on the test that travels with it, and keeps the one it has if that
    fails. An interrupted transfer is resumed.

    PORT can also be a URL of pyserial's: socket://HOST:PORT for an emulator's serial port. ADDRESS is
    udp:HOST[:PORT], serial:PORT or ble:ADDRESS, for the transports of MCUmgr; smpclient speaks to them.
    """

    name = "deploy"
    help = "send a pack to a running device"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("pack", type=Path, metavar="PACK", help="the pack, a .tmodel file")
        place = parser.add_mutually_exclusive_group(required=True)
        place.add_argument("--serial", metavar="PORT", help="the device's serial port")
        place.add_argument("--smp", metavar="ADDRESS", help="the device behind MCUmgr: udp:192.0.2.1")
        parser.add_argument(
            "--group",
            type=int,
            metavar="N",
            help="with --smp: CONFIG_TINYML_SMP_GROUP_ID of the firmware (default: 84)",
        )
        parser.add_argument("--baud", type=int, default=115200, metavar="N", help="default: %(default)s")
        parser.add_argument(
            "--no-confirm",
            action="store_true",
            help="do not confirm the model: the device's application decides whether to keep it",
        )

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from rich.progress import Progress

        from tinyml.base.errors import ConfigError
        from tinyml.slots import container
        from tinyml.slots.deploy import deploy

        if args.group is not None and not args.smp:
            raise ConfigError("--group belongs to MCUmgr", "--smp ADDRESS")
        if args.group is not None and args.group not in GROUPS:
            raise ConfigError(
                f"there is no management group {args.group}",
                f"CONFIG_TINYML_SMP_GROUP_ID of the firmware, a number from {GROUPS[0]} to {GROUPS[-1]}",
            )
        pack = container.load(args.pack)
        with _slots(args) as slots, Progress(console=console, transient=True) as bar:
            task = bar.add_task("sending", total=None)
            found = deploy(
                slots,
                pack,
                lambda done, total: bar.update(task, completed=done, total=total),
                not args.no_confirm,
            )
        before = "no model" if not found.before.name else f"{found.before.name} {found.before.version}"
        console.print(
            f"{args.serial or args.smp}: {found.after.name} {found.after.version} instead of {before}; "
            f"{found.sent:,} bytes"
            + (f", {found.resumed:,} of them were there already" if found.resumed else "")
            + ("" if not args.no_confirm else ", on trial"),
            markup=False,
            soft_wrap=True,
        )
        return 0


@contextmanager
def _slots(args: argparse.Namespace) -> Iterator[Receiver]:
    """The device, connected."""
    if args.smp:
        from tinyml.slots.smp import GROUP, SmpSlots

        with SmpSlots(args.smp, args.baud, GROUP if args.group is None else args.group) as slots:
            yield slots
        return
    from tinyml.harness.device_session import HARDWARE_SECONDS, Session
    from tinyml.harness.links import SerialPort
    from tinyml.slots.deploy import Slots

    with SerialPort(args.serial, args.baud) as link:
        session = Session(link, args.serial)
        session.greet(HARDWARE_SECONDS)
        yield Slots(session)
