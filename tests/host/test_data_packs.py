# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Packs without code: the same numbers as compiled code, and messages for what does not work."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.chains import Chain
from tinyml.base.errors import ConfigError
from tinyml.cores.targets import find_target
from tinyml.datasets.generated_samples import generated
from tinyml.harness.run import run_files
from tinyml.ops.conv.conv import Conv
from tinyml.pipeline import Options, compile_built, compile_model
from tinyml.player.choice import chosen, runs_on
from tinyml.projects.cmake import calls
from tinyml.projects.edit import remove_model
from tinyml.projects.manifest import parse
from tinyml.slots import container, firmware
from tinyml.slots.data import data_image
from tinyml.slots.data_pack import pack_data
from tinyml.slots.data_reading import read_data
from tinyml.slots.data_text import describe
from tinyml.slots.families import (
    DSP,
    FAMILIES,
    HELIUM,
    PLAIN,
    RISCV,
    Family,
    choose,
    parse_families,
    playable_by,
)
from tinyml.slots.firmware import kernels_of_firmware
from tinyml.slots.playing import played_on
from tinyml.slots.version import Version
from tinyml.verbs.cli import main

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pack") / "digits.tmodel"
    container.save(path, pack_data(DIGITS, Options(), (PLAIN, DSP), Version(3, 1, 0, 0))[0])
    return path


def test_played_is_compiled(pack: Path) -> None:
    compiled = compile_model(DIGITS, Options(target="host", kernels="portable"))
    samples = generated(compiled.graph, 3)
    played = played_on(pack, "host").run(samples)
    for ours, theirs in zip(run_files(compiled.files, "host", samples).outputs, played.outputs, strict=True):
        assert ours.keys() == theirs.keys()
        for name, values in ours.items():
            np.testing.assert_array_equal(values, theirs[name])


def test_what_the_image_says(pack: Path) -> None:
    images = container.load(pack).images
    assert list(images) == ["plain", "dsp"]
    model = read_data(images["plain"])
    compiled = compile_model(DIGITS, Options(target="generic", kernels="portable"))
    assert model.version == Version(3, 1, 0, 0)
    assert model.arena_bytes == compiled.plan.arena_bytes
    assert [port.name for port in model.inputs] == list(compiled.graph.inputs)
    assert [port.shape for port in model.outputs] == [
        compiled.graph.tensors[n].shape for n in compiled.graph.outputs
    ]
    text = "\n".join(describe(model))
    for call in model.run:
        assert call.kernel.name.split()[0] in text


def test_the_same_model_gives_the_same_bytes(pack: Path) -> None:
    again, _ = pack_data(DIGITS, Options(), (PLAIN, DSP), Version(3, 1, 0, 0))
    assert container.encode(again) == pack.read_bytes()


def test_damage_is_found(pack: Path) -> None:
    content = bytearray(container.load(pack).images["plain"])
    content[len(content) // 2] ^= 1
    with pytest.raises(ConfigError, match="damaged"):
        read_data(bytes(content))


def test_families() -> None:
    assert parse_families("cortex-m4,cortex-m7,generic") == (DSP, PLAIN)
    assert playable_by(find_target("cortex-m55")) == (HELIUM, DSP, PLAIN)
    assert choose(("plain", "dsp"), find_target("cortex-m85")) == "dsp"
    assert playable_by(find_target("riscv32")) == (RISCV, PLAIN)
    with pytest.raises(ConfigError, match="no image that cortex-m0 can play; it has dsp"):
        choose(("dsp",), find_target("cortex-m0"))
    with pytest.raises(ConfigError, match="names no core"):
        parse_families(" , ")


FEW = {"filters": (1, 3), "groups": (3, 6), "groups of two": (2, 4)}
"""Groups and filters of convolutions with kernels of their own, in whose place the player has others."""


@pytest.mark.parametrize("form", FEW)
@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_kernels_of_a_pack_run_on_its_cores(family: Family, form: str) -> None:
    groups, filters = FEW[form]
    chain = Chain(1, extents=(9, 9), channels=6)
    op = Conv(pads=(1, 1, 1, 1), groups=groups, few=True)
    chain._weighted(op, (filters, 3, 3, 6 // groups), 0)
    target = find_target(family.target)
    made = compile_built(chain.graph(), Options(target=target.name, kernels="portable"))
    kernels = read_data(data_image(made, Version(1, 0, 0, 0)).content).kernels
    assert kernels
    assert [kernel.name for kernel in kernels if not runs_on(kernel, target)] == []


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--data"], "pack needs a file to write"),
        (["--data", "-o", "x.tmodel", "--slots", "a=0x1000"], "fits any slot"),
        (["-o", "x.tmodel"], "needs the addresses of its slots"),
        (["-o", "x.tmodel", "--slots", "a=0x1000", "--for", "all"], "--for belongs to packs without code"),
        (["--data", "-o", "x.tmodel", "--for", "cortex-m5"], "unknown target 'cortex-m5'"),
    ],
)
def test_messages(arguments: list[str], message: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tinyml", "pack", str(DIGITS), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert message in " ".join(done.stderr.split())
    assert not list(tmp_path.iterdir())


def test_the_key_player() -> None:
    """`player:` in tinyml.yaml: kept when models are added, refused if it is nonsense, words for CMake."""
    text = "player: [conv, models/x.onnx]\nmodels:\n  - name: a\n    file: a.onnx\n"
    assert parse(text, "tinyml.yaml").player == ("conv", "models/x.onnx")
    assert parse("player: all\n", "tinyml.yaml").player == ("all",)
    without = remove_model(text, "a")
    assert without is not None
    assert parse(without, "tinyml.yaml").player == ("conv", "models/x.onnx")
    with pytest.raises(ConfigError, match="'player' must be a word or a list of words, found a int"):
        parse("player: 3\n", "tinyml.yaml")
    with pytest.raises(ConfigError, match="'player' is a list of words, and 7 is none"):
        parse("player: [conv, 7]\n", "tinyml.yaml")
    for nothing in ("[]", "null", ""):
        with pytest.raises(ConfigError, match="'player' names no kernels"):
            parse(f"player: {nothing}\n", "tinyml.yaml")


@pytest.mark.parametrize(
    "word, advice",
    [
        ("conw", "did you mean conv"),
        ("conv,dense", "name them one by one, as in: conv dense"),
    ],
)
def test_words_that_are_no_kernels(word: str, advice: str) -> None:
    with pytest.raises(ConfigError) as error:
        chosen(find_target("cortex-m4"), [word])
    assert f"there are no kernels called {word!r}" in str(error.value)
    assert advice in str(error.value)


def test_the_key_player_in_cmake(tmp_path: Path) -> None:
    (tmp_path / "tinyml.yaml").write_text("player: [conv, x.onnx, y.tmodel]\n")
    said = calls(tmp_path / "tinyml.yaml")
    folder = tmp_path.as_posix()
    assert f"TINYML_PLAYER_KERNELS [=[conv]=] [=[{folder}/x.onnx]=] [=[{folder}/y.tmodel]=])" in said


@pytest.mark.parametrize("core", ["host", "cortex-m4", "cortex-m55"])
def test_the_player_of_a_pack(core: str, pack: Path, tmp_path: Path) -> None:
    """It has the kernels that the image for the core calls, no others but those of every player."""
    family = {"host": PLAIN, "cortex-m4": DSP, "cortex-m55": DSP}[core]
    needed = set(read_data(container.load(pack).images[family.name]).kernels)
    target = find_target(core)
    found = kernels_of_firmware([pack.name], core, pack.parent)
    assert found == chosen(target, [], needed)
    assert needed - set(chosen(target, []))
    assert kernels_of_firmware([pack.name, "pool"], core, pack.parent) == chosen(target, ["pool"], needed)
    assert main(["player", str(pack), "--target", core, "-o", str(tmp_path)]) == 0
    assert (tmp_path / "sources.txt").is_file()


def test_a_player_where_a_file_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["player", "-o", str(tmp_path / "file")]) == 1
    assert "it is not a folder" in capsys.readouterr().err


def test_the_player_of_a_pack_that_it_could_not_play(
    pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One without an image for the core, one with tables for older kernels, one that is not there."""
    one = tmp_path / "m4.tmodel"
    container.save(one, replace(container.load(pack), images={"dsp": container.load(pack).images["dsp"]}))
    with pytest.raises(ConfigError, match="no image that cortex-m0 can play; it has dsp"):
        kernels_of_firmware([one.name], "cortex-m0", tmp_path)
    with pytest.raises(ConfigError, match=r"cannot read .*none.tmodel"):
        kernels_of_firmware(["none.tmodel"], "cortex-m0", tmp_path)
    old = replace(read_data(container.load(pack).images["dsp"]), layouts=0)
    changed = replace(old, run=tuple(replace(c, kernel=replace(c.kernel, layouts=1)) for c in old.run))
    monkeypatch.setattr(firmware, "read_data", lambda _: changed)
    with pytest.raises(ConfigError, match="an older tinyml made the pack"):
        kernels_of_firmware([one.name], "cortex-m4", tmp_path)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["verify", "PACK"], "does not contain the model"),
        (["verify", "PACK", "--of", "MODEL", "-b", "qemu_cortex_m3"], "played without Zephyr"),
        (["verify", "MODEL", "--of", "MODEL"], "--of belongs to packs"),
        (["evaluate", "MODEL", "--of", "MODEL", "--data", "x.npz"], "--of belongs to packs"),
        (["bench", "PACK", "--io", "int8"], "says itself how inputs and outputs are passed"),
        (["profile", "PACK", "--json", "x.json"], "a pack is profiled on a machine"),
        (["deploy", "PACK", "--smp", "tcp:1.2.3.4"], "names no transport"),
        (["deploy", "PACK", "--smp", "udp:1.2.3.4:x"], "has no port that exists"),
        (["deploy", "PACK", "--serial", "x", "--group", "90"], "--group belongs to MCUmgr"),
        (["deploy", "PACK", "--smp", "udp:1.2.3.4", "--group", "65536"], "no management group 65536"),
        (["deploy", "PACK", "--smp", "udp:1.2.3.4", "--group", "-1"], "no management group -1"),
    ],
)
def test_misuse(
    pack: Path, arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"PACK": str(pack), "MODEL": str(DIGITS)}
    assert main([files.get(word, word) for word in arguments]) == 1
    assert message in " ".join(capsys.readouterr().err.split())


def test_files_that_are_no_packs(pack: Path, tmp_path: Path) -> None:
    """Cut off anywhere, without images, or with numbers that are wrong; a family that is not known yet."""
    content = pack.read_bytes()
    wrong = {
        "nothing is not a pack": b"",
        "half is cut off: it has": content[: len(content) // 2],
        "table is damaged": content[:40],
        "empty is damaged: it has no images": content[:8] + bytes(4) + content[12:],
        "million is damaged|million is cut off": content[:8] + (10**6).to_bytes(4, "little") + content[12:],
        "model is not a pack": DIGITS.read_bytes(),
        "bit is damaged: the checksum of its image 'plain' is wrong": content[:600] + b"?" + content[601:],
    }
    for said, other in wrong.items():
        what = said.split()[0]
        with pytest.raises(ConfigError, match=said):
            container.decode(other, what)
    images = container.load(pack).images
    later = tmp_path / "later.tmodel"
    container.save(later, container.Pack({"quantum": images["plain"], **images}))
    assert played_on(later, "host").model.name == "model"
    assert main(["pack", str(later), "--show"]) == 0
