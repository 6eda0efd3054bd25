# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`pack`: a model file to a pack that a running device takes."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.setup.compiler_sources import compiler_sources
from tinyml.verbs.base import Verb, add_app_argument
from tinyml.verbs.output_files import check_suffix
from tinyml.verbs.settings import add_model_arguments, options_from

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.pipeline import Options
    from tinyml.slots.pack import Slot


class Pack(Verb):
    """Compile a model into a pack for slots in a device's flash.

    A pack has the model's code and weights for each slot, linked at its address; they run in place. A
    firmware with CONFIG_TINYML_SLOTS, or any other with <tinyml/slot.h>, checks and runs it. The same
    model and options give the same bytes.

    Slots are given by address (--slots a=0x60000,b=0x70000), or by the labels of their partitions with the
    Zephyr build of the firmware (-d BUILD), or with a board and application to take them from (-b BOARD).

    The self-test that travels with the model runs in QEMU first, if it is installed and has the core: a model
    that fails it would be rejected by every device.

    With --key the pack is signed (Ed25519). The images in it are MCUboot images: imgtool reads them.

    With --data the pack has no code: a firmware with CONFIG_TINYML_PLAYER, or any other with
    <tinyml/player.h>, plays it. Such a pack has no addresses and fits any slot, file or array. --for names
    the cores that it is for; each family of cores gets an image of its own.
    """

    name = "pack"
    help = "compile a model into a pack that a running device can take"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_model_arguments(parser, io=("arena", "int8"))
        parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the pack to write (.tmodel)")
        parser.add_argument("--slots", metavar="a=ADDRESS,b=ADDRESS|LABEL,LABEL", help="where the slots are")
        parser.add_argument("--data", action="store_true", help="write a pack without code, for the player")
        parser.add_argument(
            "--for",
            dest="families",
            metavar="CORE,CORE|all",
            help="with --data: the cores to pack for (default: --target)",
        )
        parser.add_argument(
            "--show", action="store_true", help="print what is in MODEL, a pack without code, and stop"
        )
        parser.add_argument(
            "--version",
            default="1",
            metavar="N[.N[.N]][+N]",
            help="the version of the model; a device accepts only newer ones (default: 1)",
        )
        parser.add_argument("--key", type=Path, metavar="PEM", help="sign with this private Ed25519 key")
        parser.add_argument(
            "--depfile", type=Path, metavar="FILE", help="also write a Makefile-style dependency file"
        )
        parser.add_argument(
            "--no-trial", action="store_true", help="do not run the model's self-test in an emulator"
        )
        group = parser.add_argument_group("partitions of a Zephyr firmware")
        group.add_argument("-d", "--build-dir", type=Path, metavar="DIR", help="its build")
        group.add_argument("-b", "--board", metavar="BOARD", help="configure it for this board")
        add_app_argument(parser)

    def run(self, args: argparse.Namespace, console: Console) -> int:
        if args.show:
            return _show(args.model, console)
        _check(args)
        if args.data:
            return _pack_data(args, console)
        from tinyml.pipeline import write_depfile
        from tinyml.slots import container, image, keys
        from tinyml.slots.pack import pack_model
        from tinyml.slots.trial import try_self_test
        from tinyml.slots.version import parse_version

        version = parse_version(args.version)
        key = keys.signing_key(args.key) if args.key else None
        slots, target = _where(args)
        options = options_from(args, target)
        _refuse_npu(options)
        packed = pack_model(args.model, options, slots, version, key)
        tested = "" if args.no_trial else try_self_test(packed)
        container.save(args.output, packed.pack)
        if args.depfile:
            data = options.quantize.files if options.quantize else []
            write_depfile(
                args.depfile, args.output, [*packed.compiled.files_read, *data, *compiler_sources()]
            )
        images = list(packed.pack.images.values())
        facts = packed.facts
        console.print(
            f"{facts.name} {version} for {target}: {len(images[0]):,} bytes in a slot, arena "
            f"{facts.arena_bytes:,} bytes, state {facts.state_bytes:,} bytes, "
            f"{'signed' if key else 'not signed'} -> {args.output}",
            markup=False,
            soft_wrap=True,
        )
        for slot in slots:
            console.print(f"  {slot.name} at {slot.address:#010x}", markup=False)
        if tested:
            console.print(f"  {tested}", markup=False, soft_wrap=True)
        if len(images) > 1:
            console.print(f"  the images differ in {image.differing_bytes(images)} bytes", markup=False)
        return 0


def _show(path: Path, console: Console) -> int:
    from tinyml.base.errors import ConfigError
    from tinyml.slots import container
    from tinyml.slots.data_pack import holds_data
    from tinyml.slots.data_reading import read_data
    from tinyml.slots.data_text import describe
    from tinyml.slots.families import FAMILIES

    pack = container.load(path)
    if not holds_data(pack):
        raise ConfigError(
            f"{path} has code, which --show does not print", "imgtool dumpinfo reads its images"
        )
    for name, content in pack.images.items():
        known = FAMILIES[name].description if name in FAMILIES else "a family of a later version"
        console.print(f"{name}: {known}", markup=False, style="bold")
        for line in describe(read_data(content)):
            console.print(f"  {line}", markup=False, soft_wrap=True, highlight=False)
    return 0


def _check(args: argparse.Namespace) -> None:
    from tinyml.base.errors import ConfigError
    from tinyml.slots.container import SUFFIX

    if args.output is None:
        raise ConfigError("pack needs a file to write", "-o model.tmodel")
    check_suffix(args.output, "a pack", SUFFIX)
    if args.data and args.slots:
        raise ConfigError("a pack without code fits any slot", "--data without --slots")
    if not args.data and not args.slots:
        raise ConfigError(
            "a pack with code needs the addresses of its slots",
            "--slots a=0x60000,b=0x70000, or --data for a pack without code",
        )
    if args.families and not args.data:
        raise ConfigError("--for belongs to packs without code", "--data, or --target for one core")


def _pack_data(args: argparse.Namespace, console: Console) -> int:
    from tinyml.pipeline import write_depfile
    from tinyml.slots import container, keys
    from tinyml.slots.data_pack import pack_data
    from tinyml.slots.families import parse_families
    from tinyml.slots.version import parse_version

    version = parse_version(args.version)
    key = keys.signing_key(args.key) if args.key else None
    options = options_from(args, args.target)
    pack, variants = pack_data(
        args.model, options, parse_families(args.families or args.target), version, key
    )
    container.save(args.output, pack)
    if args.depfile:
        data = options.quantize.files if options.quantize else []
        read = [file for one in variants for file in one.compiled.files_read]
        write_depfile(args.depfile, args.output, [*dict.fromkeys(read), *data, *compiler_sources()])
    name, signed = variants[0].compiled.name, "signed" if key else "not signed"
    console.print(
        f"{name} {version} as data, {signed} -> {args.output}",
        markup=False,
        soft_wrap=True,
    )
    for one in variants:
        console.print(
            f"  {one.family.name:8} {len(one.image.content):9,} bytes, arena "
            f"{one.compiled.plan.arena_bytes:,}, state {one.image.state_bytes:,}, {one.image.calls} calls: "
            f"{one.family.description}",
            markup=False,
            soft_wrap=True,
        )
    return 0


def _refuse_npu(options: Options) -> None:
    from tinyml.base.errors import ConfigError

    if options.npu:
        raise ConfigError(
            "a model in a slot cannot use an NPU: slots have no driver to call", "pack it with --npu none"
        )


def _where(args: argparse.Namespace) -> tuple[tuple[Slot, ...], str]:
    """The slots and the core."""
    from tinyml.base.errors import ConfigError
    from tinyml.slots.places import parse_slots

    found = parse_slots(args.slots)
    names = tuple(word for word in found if isinstance(word, str))
    if args.build_dir:
        return _of_build(args, args.build_dir, found)
    if args.board:
        from tinyml.harness.zephyr import Build, find_site
        from tinyml.projects.folder import find_application

        with tempfile.TemporaryDirectory(prefix="tinyml-") as scratch:
            app = find_application(args.app, Path.cwd()).root
            Build(find_site(), args.board, app.resolve(), Path(scratch), "").configure()
            return _of_build(args, Path(scratch), found)
    if names:
        raise ConfigError(
            f"{names[0]!r} is not an address, and there is no Zephyr build to look it up in",
            "--slots a=0x60000,b=0x70000, or -d BUILD or -b BOARD",
        )
    return _only_slots(found), args.target


def _of_build(
    args: argparse.Namespace, build: Path, found: tuple[Slot, ...] | tuple[str, ...]
) -> tuple[tuple[Slot, ...], str]:
    """The partitions and the core of a Zephyr build. native_sim receives packs, but for some other core."""
    from tinyml.slots.places import slots_of_build, target_of_build

    target = target_of_build(build)
    names = tuple(word for word in found if isinstance(word, str))
    slots = slots_of_build(build, names) if names else _only_slots(found)
    return slots, args.target if target == "host" else target


def _only_slots(found: tuple[object, ...]) -> tuple[Slot, ...]:
    from tinyml.slots.pack import Slot

    return tuple(slot for slot in found if isinstance(slot, Slot))
