# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml watch`: replayed data, reports of devices, limits, the page."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tinyml
from tests.support.watching import noise, several
from tinyml.api.connected import Device
from tinyml.base.errors import ConfigError
from tinyml.harness.links import Link
from tinyml.harness.opening import BareMachine
from tinyml.report.watch_page import watch_page
from tinyml.report.watch_text import bars, lines_of
from tinyml.verbs.cli import main
from tinyml.watch.figures import Figures, ValueFigures
from tinyml.watch.limits import KINDS, broken, parse_limits


@pytest.fixture(scope="module")
def periods(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[Figures, ...]]:
    """The folder of the model and its data, of which the second half is three times as loud."""
    folder = tmp_path_factory.mktemp("watch")
    model = several(folder)
    quiet, loud = noise(40, 2), noise(40, 3, 3.0)
    np.savez(folder / "day.npz", **{name: np.concatenate([quiet[name], loud[name]]) for name in quiet})  # type: ignore[arg-type]
    found = tinyml.replay(model, folder / "day.npz", watch_data=folder / "typical.npz", period=40)
    return folder, found


def test_drift_rises(periods: tuple[Path, tuple[Figures, ...]]) -> None:
    quiet, loud = periods[1]
    assert quiet.drift is not None
    assert loud.drift is not None
    assert loud.drift > 5 * quiet.drift


def test_limits(periods: tuple[Path, tuple[Figures, ...]]) -> None:
    quiet, loud = periods[1]
    limits = parse_limits(["drift=0.05", "margin=0", "errors=0"])
    assert list(broken(limits, quiet)) == []
    (complaint,) = broken(limits, loud)
    assert complaint.startswith("drift is 0.")
    assert complaint.endswith("allowed is drift at most 0.05")
    assert next(broken(parse_limits(["margin=1.1"]), quiet)).endswith("margin at least 1.1")
    blind = replace(quiet, inputs=(), outputs=())
    assert list(broken(parse_limits(["drift=1", "score=0"]), blind)) == [
        "drift is not known: the model has no reference or no such figure",
        "score is not known: the model has no reference or no such figure",
    ]
    for text, message in (
        ("drif=1", "there is no figure 'drif' to limit; did you mean drift"),
        ("drift", "'drift' is not a limit"),
        ("drift=inf", "'drift=inf' is not a limit"),
    ):
        with pytest.raises(ConfigError, match=message):
            parse_limits([text])


def test_the_command(
    periods: tuple[Path, tuple[Figures, ...]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder, (quiet, loud) = periods
    for number, figures in enumerate((quiet, loud)):
        (tmp_path / f"{number}.cbor").write_bytes(figures.cbor)
    files = [str(tmp_path / f"{number}.cbor") for number in range(2)]
    page = tmp_path / "page.html"
    assert main(["watch", "--cbor", *files, "--limit", "drift=0.05", "--html", str(page)]) == 3
    said = capsys.readouterr().out
    assert "1: several: 40 runs" in said
    assert said.count("limit: drift is") == 1
    assert "output p: " in said
    assert "output v: drift 0." in said
    assert page.read_text(encoding="utf-8") == watch_page([quiet, loud], parse_limits(["drift=0.05"]))
    assert main(["watch", "--cbor", files[0], "--limit", "drift=0.05", "--json"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert line["drift"] == quiet.drift
    assert line["raw"]["runs"] == 40
    assert main(["watch", "--replay", str(folder / "day.npz")]) == 1
    assert "--replay needs the model file" in capsys.readouterr().err


def test_the_command_replays(
    periods: tuple[Path, tuple[Figures, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, (quiet, _) = periods
    words = ["watch", str(folder / "several.onnx"), "--replay", str(folder / "day.npz"), "--period", "40"]
    assert main([*words, "--watch-data", str(folder / "typical.npz"), "--json"]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert bytes.fromhex(first["raw"]["sha256"]) == quiet.raw["sha256"]
    assert first["drift"] == quiet.drift


def test_a_device_is_read_again_and_again(
    periods: tuple[Path, tuple[Figures, ...]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []

    class Fake:
        def watch(self, model: str | None, reset: bool) -> Figures:
            asked.append((model, reset))
            return periods[1][len(asked) % 2]

        def release(self) -> None:
            asked.append("released")

        def __enter__(self) -> Fake:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr("tinyml.api.connected.connect", lambda to, baud: Fake())
    words = ["watch", "kws", "--serial", "PORT", "--reset", "--every", "0.001", "--periods", "2"]
    assert main(words) == 0
    assert asked == [("kws", True), "released", ("kws", True)]
    assert "2: several" in capsys.readouterr().out
    assert hasattr(Device, "release")
    assert main(["watch", "--serial", "PORT", "--every", "0"]) == 1


@contextmanager
def on_a_line(link: Link) -> Iterator[str]:
    """A device behind a socket, as behind a port: one connection after the other."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = threading.Event()

        def serve() -> None:
            while not done.is_set():
                with contextlib.suppress(OSError), server.accept()[0] as line:
                    line.settimeout(0.01)
                    while not done.is_set():
                        with contextlib.suppress(TimeoutError):
                            if not (data := line.recv(4096)):
                                break
                            link.write(data)
                        line.sendall(link.read(0.01))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"socket://127.0.0.1:{server.getsockname()[1]}"
        finally:
            done.set()
            with contextlib.suppress(OSError):  # wakes the one that waits for a connection
                socket.create_connection(server.getsockname(), 1).close()
            thread.join(10)


def test_a_program_on_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command reads a device that has run; a broken limit is its exit code, and the page is written."""
    model, page = several(tmp_path), tmp_path / "page.html"
    data = tmp_path / "typical.npz"
    compiled = tinyml.compile(model, target="host", watch=True, watch_data=data, name="m")
    with BareMachine(compiled.built.files, "host") as link, on_a_line(link) as address:
        with tinyml.connect(address) as device:
            device.run(None, noise(20, 3, 3.0))
        words = ["watch", "--serial", address, "--reset", "--html", str(page)]
        assert main([*words, "--limit", "drift=0.01"]) == 3
        assert "20 runs" in capsys.readouterr().out
        assert main(["watch", "--serial", address, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["runs"] == 0
    assert "prefers-color-scheme" in page.read_text(encoding="utf-8")


def test_the_page(periods: tuple[Path, tuple[Figures, ...]]) -> None:
    text = watch_page(periods[1])
    assert "prefers-color-scheme: dark" in text
    assert "http" not in text.replace("http-equiv", "")  # nothing is loaded from elsewhere
    assert text.count("<figure>") == len([name for name in KINDS if name != "errors"]) + 4  # x, z, v, w
    assert "period 2: 0." in text
    odd = replace(periods[1][0], name="<script>alert(1)</script>")
    assert "<script>" not in watch_page([odd])
    with pytest.raises(ConfigError, match="no period was read"):
        watch_page([])


def test_lines(periods: tuple[Path, tuple[Figures, ...]]) -> None:
    full = replace(periods[1][0], runs=10, most_runs=10, errors=2, cycles_max=7, cycles_mean=5.0)
    assert next(lines_of(full, 3)) == "3: several: 10 runs, 2 errors, 5 cycles (0 to 7), full: reset it"
    assert bars((0.0, 0.5, 1.0)) == " ▄█"
    assert bars(()) == ""
    plain = replace(full, inputs=(ValueFigures("x", (1,) * 8, (0.0,) * 7, (), None),))
    assert "no reference" in list(lines_of(plain, 1))[1]
