# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Records of measurements: stored, compared, and shown with those of other runtimes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tinyml.base.errors import ConfigError
from tinyml.bench import record, revision
from tinyml.bench.measure import Row, kernel_choices, title
from tinyml.bench.peer_table import COLUMNS, groups, markdown
from tinyml.bench.peers import peers
from tinyml.pipeline import Options
from tinyml.verbs.cli import main
from tools import benchmarks

KWS = next(model for model in peers().models.values() if model.key == "kws")
ROW = Row(
    model="kws",
    sha256=KWS.sha256,
    machine="qemu-cortex-m4",
    kernels="cmsis-nn",
    optimize="-O2",
    macs=1000,
    instructions=4000,
    constants_bytes=100,
    kernels_bytes=50,
    glue_bytes=20,
    library_bytes=10,
    arena_bytes=500,
    arena_lower_bound_bytes=500,
    state_bytes=8,
    other_ram_bytes=4,
    stack_bytes=60,
    output="80",
)


def test_pages_are_current() -> None:
    kept = record.load(benchmarks.RECORD)
    assert benchmarks.PAGE.read_text() == benchmarks.page(kept), "run: python -m tools.benchmarks"
    assert benchmarks.README.read_text() == benchmarks.readme(kept), "run: python -m tools.benchmarks"


def test_record_survives_a_file(tmp_path: Path) -> None:
    kept = record.Record("gcc 1", (ROW,))
    record.save(tmp_path / "r.json", kept)
    assert record.load(tmp_path / "r.json") == kept


def test_sums() -> None:
    assert (ROW.code_bytes, ROW.flash_bytes, ROW.ram_bytes) == (80, 180, 512)


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 1, "compiler": "x", "rows": [{}]}', '{"schema": 9}'])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(ConfigError):
        record.load(tmp_path / "r.json")


def test_changes_are_found() -> None:
    new = replace(ROW, instructions=4100, glue_bytes=10)
    other = replace(ROW, machine="qemu-cortex-m3", instructions=1)
    changes = list(record.compare([ROW], [new, other]))
    assert [str(change) for change in changes] == [
        "kws on qemu-cortex-m4 with cmsis-nn: instructions 4,000 -> 4,100 (+2.5%)",
        "kws on qemu-cortex-m4 with cmsis-nn: code bytes 80 -> 70 (-12.5%)",
    ]


def test_model_retrained_under_its_name_is_compared() -> None:
    new = replace(ROW, sha256="00", instructions=8000)
    assert [change.ratio for change in record.compare([ROW], [new])] == [2.0]


def test_peers_are_beside_ours() -> None:
    (group,) = groups([ROW])
    assert group.title == f"{KWS.title}: kws"
    assert [line.ours for line in group.lines] == [True, False, False, False, False]
    assert all(len(line.cells) == len(COLUMNS) for line in group.lines)
    assert group.lines[1].cells[:2] == ("TFLM + CMSIS-NN (code at -O2)", "7,697,231 (1924.31x)")
    assert "| cortex-m4 | cmsis-nn | 4,000 | 4.00 |" in markdown([group])


def test_every_figure_has_a_source_and_a_model() -> None:
    for figure in peers().figures:
        assert peers().sources[figure.peer]
        assert figure.machine in benchmarks.MACHINES
        assert figure.instructions > 0


def test_names() -> None:
    assert title(Path("samples/digits/model.onnx")) == "digits"
    assert title(Path("kws.tflite")) == "kws"


def test_kernel_choices() -> None:
    assert kernel_choices("portable,cmsis-nn") == ["portable", "cmsis-nn"]
    assert kernel_choices("auto") == ["auto"]
    with pytest.raises(ConfigError):
        kernel_choices("fast")


def test_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1 for growth, 0 for none; the measurements themselves are tested in tests/standalone."""
    monkeypatch.setattr("tinyml.bench.measure.measure", lambda *_: replace(ROW, instructions=5000))
    record.save(tmp_path / "old.json", record.Record("gcc 1", (ROW,)))
    arguments = ["bench", "kws.tflite", "--on", "qemu-cortex-m4", "--kernels", "cmsis-nn"]
    monkeypatch.setattr("tinyml.bench.record.compiler_name", lambda machines: "gcc 1")
    assert main([*arguments, "--json", str(tmp_path / "new.json")]) == 0
    assert json.loads((tmp_path / "new.json").read_text())["rows"][0]["instructions"] == 5000
    assert main([*arguments, "--against", str(tmp_path / "old.json")]) == 1
    assert "4,000 -> 5,000 (+25.0%)" in capsys.readouterr().out
    assert main([*arguments, "--against", str(tmp_path / "old.json"), "--tolerance", "30"]) == 0
    assert main([*arguments, "--against", str(tmp_path / "new.json")]) == 0
    assert "nothing changed" in capsys.readouterr().out


def test_models_of_the_application(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured: list[tuple[Path, str]] = []

    def measure(path: Path, machine: str, kernels: str, options: Options, *_: object) -> Row:
        measured.append((path.resolve(), str(options.io)))
        return replace(ROW, io=str(options.io))

    monkeypatch.setattr("tinyml.bench.measure.measure", measure)
    monkeypatch.chdir(benchmarks.DIGITS.parent)
    assert main(["bench", "--on", "qemu-cortex-m4"]) == 0
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "--on", "qemu-cortex-m4"]) == 1
    assert "error" in capsys.readouterr().err
    (tmp_path / "CMakeLists.txt").write_text("find_package(Zephyr)\n")
    (tmp_path / "tinyml.yaml").write_text(
        "models:\n  - {name: a, file: a.onnx, io: rows}\n  - {name: b, file: b.onnx}\n"
    )
    assert main(["bench", "--on", "qemu-cortex-m4"]) == 0
    assert "io rows" in capsys.readouterr().out
    files = [(benchmarks.DIGITS, "arena"), (tmp_path / "a.onnx", "rows"), (tmp_path / "b.onnx", "arena")]
    assert measured == files


def test_against_no_commit(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="neither a file nor"):
        revision.measure_revision("no-such-commit", [])
