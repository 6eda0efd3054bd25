# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Bluetooth without a radio: two controllers of Bumble, one for Zephyr over TCP, one for a client of MCUmgr.

The host and the GATT server under test are Zephyr's; controllers, link and client are Bumble's.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

SERVICE = "8D53DC1D-1DB7-4CD3-868B-8A527460AA84"
CHARACTERISTIC = "DA2E7828-FBCE-4E01-AE9E-261174997C48"
MTU = 247
FOUND_SECONDS = 60
HEADER_BYTES = 8

T = TypeVar("T")


class Radio:
    """The link, in a thread of its own: Zephyr's controller must answer while a test does other things."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._hci: Any = None
        self.client: Any = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def within(self, work: Coroutine[Any, Any, T]) -> T:
        """The same, awaited in another loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def start(self) -> None:
        from bumble.controller import Controller
        from bumble.device import Device
        from bumble.hci import Address
        from bumble.host import Host
        from bumble.link import LocalLink
        from bumble.transport import open_transport

        logging.getLogger("bumble").setLevel(logging.CRITICAL)  # it does not know one of Zephyr's commands
        link = LocalLink()
        self._hci = await open_transport(f"tcp-server:127.0.0.1:{self.port}")
        # Without a public address, Zephyr makes a random one: the link knows no others.
        Controller("zephyr", host_source=self._hci.source, host_sink=self._hci.sink, link=link)
        host = Host()
        host.controller = Controller("client", link=link)
        self.client = Device(name="client", address=Address("F0:F1:F2:F3:F4:F5"), host=host)
        await self.client.power_on()

    async def find(self) -> Any:
        """The address of a device that advertises the service."""
        from bumble.core import UUID, AdvertisingData

        found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def seen(advertisement: Any) -> None:
            kind = AdvertisingData.Type.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS
            if UUID(SERVICE) in (advertisement.data.get(kind) or ()) and not found.done():
                found.set_result(advertisement.address)

        self.client.on("advertisement", seen)
        await self.client.start_scanning()
        address = await asyncio.wait_for(found, FOUND_SECONDS)
        await self.client.stop_scanning()
        return address

    async def stop(self) -> None:
        await self._hci.close()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


class RadioTransport:
    """What smpclient's own transport for Bluetooth does with the radio of a computer."""

    def __init__(self, radio: Radio) -> None:
        self._radio = radio
        self._parts: asyncio.Queue[bytes]
        self._connection: Any = None
        self._characteristic: Any = None
        self._mtu = 23
        self._buffer = 0

    @property
    def max_unencoded_size(self) -> int:
        """Longer requests than a write travel in parts."""
        return self._buffer or self._mtu - 3

    def initialize(self, size: int) -> None:
        """The device says how long requests may be."""
        self._buffer = size

    async def connect(self, address: str, timeout_s: float) -> None:
        await self._radio.within(self._connect())

    async def disconnect(self) -> None:
        await self._radio.within(self._connection.disconnect())

    async def send(self, data: bytes) -> None:
        await self._radio.within(self._send(data))

    async def receive(self) -> bytes:
        return await self._radio.within(self._receive())

    async def send_and_receive(self, data: bytes) -> bytes:
        await self.send(data)
        return await self.receive()

    async def _connect(self) -> None:
        from bumble.core import UUID
        from bumble.device import Peer

        self._parts = asyncio.Queue()
        self._connection = await self._radio.client.connect(await self._radio.find())
        peer = Peer(self._connection)
        self._mtu = await peer.request_mtu(MTU)
        for service in await peer.discover_services():
            await service.discover_characteristics()
        (self._characteristic,) = peer.get_characteristics_by_uuid(UUID(CHARACTERISTIC))
        await self._characteristic.subscribe(self._parts.put_nowait)

    async def _send(self, data: bytes) -> None:
        most = self._mtu - 3
        for start in range(0, len(data), most):
            await self._characteristic.write_value(data[start : start + most], with_response=False)

    async def _receive(self) -> bytes:
        data = await self._parts.get()
        while len(data) < HEADER_BYTES + int.from_bytes(data[2:4], "big"):
            data += await self._parts.get()
        return data


@contextmanager
def on_air(port: int) -> Iterator[Radio]:
    radio = Radio(port)
    try:
        radio.run(radio.start())
        yield radio
        radio.run(radio.stop())
    finally:
        radio.close()
