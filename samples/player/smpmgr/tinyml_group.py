# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The management group of models in slots, for smpmgr.

    smpmgr --plugin-path=samples/player/smpmgr --ip 127.0.0.1 tinyml upload model.tmodel
    smpmgr --plugin-path=samples/player/smpmgr --ip 127.0.0.1 tinyml state|test|confirm|reject|erase

It needs nothing of west-tinyml: docs/smp.md has all that a client must know.
"""

import asyncio
import struct
import zlib
from pathlib import Path
from typing import Annotated, Any, ClassVar, cast

import typer
from pydantic import BaseModel, ConfigDict
from smp import error, message
from smpclient import SMPClient
from smpclient.generics import success
from smpmgr.common import Options, connect_with_spinner, get_smpclient

GROUP = 84  # CONFIG_TINYML_SMP_GROUP_ID
SECONDS = 60.0  # erasing a slot, checking a signature
ENTRY = struct.Struct("<24sIII")  # of a .tmodel file: name, address, position, bytes
FIRST_ENTRY = 12
DATA = 2  # the interface of images without code
STATES = ("free", "received", "kept", "rejected")

app = typer.Typer(name="tinyml", help=f"Models in slots ({GROUP})")


class Slot(BaseModel):
    state: int
    version: str | None = None


class ErrorV1(error.ErrorV1):
    _GROUP_ID = GROUP


class Refusal(BaseModel):
    group: int
    rc: int


class ErrorV2(message.Response):
    RESPONSE_TYPE = message.ResponseType.ERROR_V2
    _GROUP_ID = GROUP
    err: Refusal


class StateResponse(message.ReadResponse):
    model_config = ConfigDict(extra="ignore", frozen=True)
    _GROUP_ID = GROUP
    _COMMAND_ID = 0
    slots: list[Slot]
    active: int | None = None
    trial: bool = False
    name: str = ""
    free: int | None = None
    address: int = 0
    bytes: int = 0
    core: int | None = None


class State(message.ReadRequest):
    _GROUP_ID = GROUP
    _COMMAND_ID = 0
    _Response: ClassVar[Any] = StateResponse
    _ErrorV1: ClassVar[Any] = ErrorV1
    _ErrorV2: ClassVar[Any] = ErrorV2


class UploadResponse(message.WriteResponse):
    model_config = ConfigDict(extra="ignore", frozen=True)
    _GROUP_ID = GROUP
    _COMMAND_ID = 1
    off: int
    crc: int = 0


class Begin(message.WriteRequest):
    _GROUP_ID = GROUP
    _COMMAND_ID = 1
    _Response: ClassVar[Any] = UploadResponse
    _ErrorV1: ClassVar[Any] = ErrorV1
    _ErrorV2: ClassVar[Any] = ErrorV2
    len: int
    resume: bool = True


class Data(message.WriteRequest):
    _GROUP_ID = GROUP
    _COMMAND_ID = 1
    _Response: ClassVar[Any] = UploadResponse
    _ErrorV1: ClassVar[Any] = ErrorV1
    _ErrorV2: ClassVar[Any] = ErrorV2
    off: int
    data: bytes


class Done(message.WriteResponse):
    model_config = ConfigDict(extra="ignore", frozen=True)
    _GROUP_ID = GROUP
    _COMMAND_ID = 2


class Action(message.WriteRequest):
    """Without arguments: test, confirm, reject, erase."""

    _GROUP_ID = GROUP
    _COMMAND_ID = 2
    _Response: ClassVar[Any] = Done
    _ErrorV1: ClassVar[Any] = ErrorV1
    _ErrorV2: ClassVar[Any] = ErrorV2


class Confirm(Action):
    _COMMAND_ID = 3


class Reject(Action):
    _COMMAND_ID = 4


class Erase(Action):
    _COMMAND_ID = 5


async def ask(client: SMPClient, request: Any) -> Any:
    answer = await client.request(request, timeout_s=SECONDS)
    if not success(answer):
        code = answer.err.rc if isinstance(answer, ErrorV2) else answer.rc
        print(f"refused: error {code} (docs/smp.md)")
        raise typer.Exit(code=1)
    return answer


def image_for(pack: bytes, device: StateResponse) -> bytes:
    """The image that the device can use: linked for the free slot, or the best one for its core."""
    if not pack.startswith(b"TMODEL\0\1"):
        return pack  # an image
    (count,) = struct.unpack_from("<I", pack, 8)
    best, found = -1, b""
    for index in range(count):
        _, address, position, size = ENTRY.unpack_from(pack, FIRST_ENTRY + index * ENTRY.size)
        image = pack[position : position + size]
        interface, core = struct.unpack_from("<HI", image, 38)
        if interface != DATA and address == device.address:
            return image
        if interface == DATA and device.core is not None and not core & ~device.core and core > best:
            best, found = core, image
    if not found:
        print("the pack has no image for this device")
        raise typer.Exit(code=1)
    return found


async def send(client: SMPClient, pack: bytes) -> None:
    image = image_for(pack, await ask(client, State()))
    begun = await ask(client, Begin(len=len(image), resume=True))
    if begun.off and begun.crc != zlib.crc32(image[: begun.off]):
        begun = await ask(client, Begin(len=len(image), resume=False))
    done = begun.off
    print(f"{len(image)} bytes, {done} of them were there already")
    step = client._transport.max_unencoded_size - 40
    while done < len(image):
        done = (await ask(client, Data(off=done, data=image[done : done + step]))).off


def connected(context: typer.Context, work: Any) -> None:
    client = get_smpclient(cast(Options, context.obj))

    async def run() -> None:
        await connect_with_spinner(client)
        await work(client)

    asyncio.run(run())


@app.command()
def state(ctx: typer.Context) -> None:
    """What is in the slots."""

    async def work(client: SMPClient) -> None:
        found = await ask(client, State())
        for index, slot in enumerate(found.slots):
            use = ""
            if index == found.active:
                use = f", in use: {found.name}" + (", on trial" if found.trial else "")
            print(f"slot {index}: {STATES[slot.state]} {slot.version or ''}{use}")

    connected(ctx, work)


@app.command()
def upload(ctx: typer.Context, file: Annotated[Path, typer.Argument(help="a .tmodel file")]) -> None:
    """Send the image of a pack that is for this device; one that was interrupted is resumed."""
    connected(ctx, lambda client: send(client, file.read_bytes()))


@app.command()
def test(ctx: typer.Context) -> None:
    """Check what was sent, and try the model."""
    connected(ctx, lambda client: ask(client, Action()))


@app.command()
def confirm(ctx: typer.Context) -> None:
    """Keep the model."""
    connected(ctx, lambda client: ask(client, Confirm()))


@app.command()
def reject(ctx: typer.Context) -> None:
    """Go back to the model before."""
    connected(ctx, lambda client: ask(client, Reject()))


@app.command()
def erase(ctx: typer.Context) -> None:
    """Erase the slot that is free."""
    connected(ctx, lambda client: ask(client, Erase()))
