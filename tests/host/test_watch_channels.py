# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``watch_channels: true``: the channels of an input, counted one by one against references of their own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tinyml
from tests.support.watching import CHANNELS, STEPS, model_of_steps, on_device, several, without_cycles
from tests.support.watching import steps as steps_of
from tinyml.base.errors import ConfigError
from tinyml.pipeline import Options, compile_model
from tinyml.report.watch_page import watch_page
from tinyml.report.watch_text import as_json, lines_of
from tinyml.verbs.cli import main


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("steps")
    np.save(folder / "typical.npy", steps_of(300, 1))
    return model_of_steps(folder)


@pytest.mark.parametrize("io", ["arena", "rows"])
def test_a_device_counts_what_numpy_counts(steps: Path, io: str) -> None:
    """A change of one small channel shows in its own drift, where that of the input does not notice it."""
    compiled = tinyml.compile(
        steps,
        target="host",
        watch=True,
        watch_data=steps.with_name("typical.npy"),
        watch_channels=True,
        io=io,
    )
    usual = steps_of(100, 2)
    found, expected = on_device(compiled, "host", {"x": usual})
    assert without_cycles(found) == expected.cbor
    assert [part.name for part in found.channels] == [f"x[{channel}]" for channel in range(CHANNELS)]
    assert sum(sum(part.bins) for part in found.channels) == sum(found.inputs[0].bins)
    assert found.drift is not None
    assert found.drift < 0.02
    changed = usual.copy()
    changed[..., 1] *= 3.0
    found, expected = on_device(compiled, "host", {"x": changed})
    assert without_cycles(found) == expected.cbor
    drifts = [part.drift for part in found.channels]
    assert found.drift == drifts[1] == max(drifts)  # type: ignore[type-var]
    assert drifts[1] > 0.05  # type: ignore[operator]
    assert found.inputs[0].drift < 0.02  # type: ignore[operator]
    assert any("channel x[1]: drift" in line for line in lines_of(found, 1))
    assert "x[1]" in watch_page([found])
    assert json.loads(as_json(found))["channels"][1]["drift"] == drifts[1]


def test_the_memory_is_planned(steps: Path) -> None:
    data = steps.with_name("typical.npy")
    without, with_them = (
        compile_model(steps, Options(name="m", watch=True, watch_data=data, watch_channels=channels))
        for channels in (False, True)
    )
    assert with_them.summary["state_bytes"] - without.summary["state_bytes"] == 32 * CHANNELS
    assert with_them.summary["weights_bytes"] - without.summary["weights_bytes"] == 60 * CHANNELS
    assert with_them.summary["watch"]["channels"] == CHANNELS
    assert "channel" not in without.files["m.c"]
    assert "watch/channels.c" not in without.summary["sources"]["runtime"]


def test_mistakes(steps: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to compare channels with"):
        Options(watch=True, watch_channels=True)
    path = several(tmp_path)
    data = tmp_path / "typical.npz"
    with pytest.raises(ConfigError, match="the model has 2 inputs"):
        compile_model(path, Options(watch=True, watch_data=data, watch_channels=True))
    wide = model_of_steps(tmp_path, channels=65)
    np.save(tmp_path / "wide.npy", np.zeros((4, STEPS, 1, 65), np.float32))
    with pytest.raises(ConfigError, match="with 65 channels"):
        compile_model(wide, Options(watch=True, watch_data=tmp_path / "wide.npy", watch_channels=True))


def test_replay_counts_channels_too(steps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = steps.with_name("typical.npy")
    usual = steps_of(40, 2)
    np.save(tmp_path / "seen.npy", usual)
    compiled = tinyml.compile(steps, target="host", watch=True, watch_data=data, watch_channels=True)
    found, _ = on_device(compiled, "host", {"x": usual})
    (replayed,) = tinyml.replay(steps, tmp_path / "seen.npy", watch_data=data, watch_channels=True)
    assert without_cycles(replayed) == without_cycles(found)
    words = [str(steps), "--replay", str(tmp_path / "seen.npy"), "--watch-data", str(data)]
    assert main(["watch", *words, "--watch-channels", "--limit", "drift=0.0001"]) == 3
    assert "channel x[4]: drift" in capsys.readouterr().out
