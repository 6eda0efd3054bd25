# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml web`: the page computes what the C computes, in a real browser, and wrong requests are errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.browser import Browser, browser
from tinyml import harness
from tinyml.base.errors import ConfigError, ToolError
from tinyml.datasets import recordings
from tinyml.features.settings import from_mapping
from tinyml.harness.tools import web_compiler
from tinyml.ir import Shape
from tinyml.pipeline import Options, compile_model
from tinyml.report.web import giving
from tinyml.verbs.cli import main

SAMPLES = Path(__file__).parents[2] / "samples"
DIGITS = SAMPLES / "digits" / "model.onnx"
WAKE_WORD = SAMPLES / "wake_word"
SOUND = {"axes": 1, "rate": 16000.0}
MOTION = {"axes": 3, "rate": 50.0}
TEXT = "document.getElementById('{}').textContent"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(autouse=True)
def tools(request: pytest.FixtureRequest) -> None:
    if "tmp_path" in request.fixturenames:
        try:
            web_compiler()
        except ToolError as error:
            pytest.skip(str(error))


@pytest.mark.parametrize(
    "shape, frontend, kind",
    [
        ((1, 1, 8, 8), None, giving.DRAW),
        ((1, 28, 28, 1), None, giving.DRAW),
        ((1, 28, 28), None, giving.DRAW),
        ((1, 96, 96, 1), None, giving.PICTURE),
        ((1, 3, 32, 32), None, giving.PICTURE),
        ((1, 49, 10, 1), None, giving.NUMBERS),
        ((1, 13), None, giving.NUMBERS),
        ((1, 1, 3, 40), SOUND, giving.SOUND),
        ((1, 3, 64), MOTION, giving.RECORDING),
    ],
)
def test_what_fits_a_model(shape: Shape, frontend: dict[str, float] | None, kind: str) -> None:
    assert giving.choose([shape], frontend) == kind


def test_what_does_not_fit() -> None:
    with pytest.raises(
        ConfigError, match="--give sound does not fit this model: its input is 1x13, and it has no"
    ):
        giving.choose([(1, 13)], None, giving.SOUND)
    assert giving.choose([(1, 8, 8), (1, 4)], None) == giving.NUMBERS
    assert giving.frame_of((1, 3, 32, 40)) == giving.Frame(32, 40, 3, True)
    assert giving.frame_of((1, 32, 40, 3)) == giving.Frame(32, 40, 3, False)


def make(tmp_path: Path, *words: str) -> Path:
    page = tmp_path / "page.html"
    assert main(["web", *words, "-o", str(page)]) == 0
    return page


@pytest.mark.parametrize("io", ["arena", "int8"])
def test_drawn_and_clicked_digits(chromium: Browser, tmp_path: Path, io: str) -> None:
    """Every byte of the examples equals that of the C program; a drawn line is a one."""
    pixels = np.random.default_rng(3).uniform(0, 1, (6, 1, 1, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "data.npz", image=pixels)
    page = make(
        tmp_path, str(DIGITS), "--io", io, "--input", str(tmp_path / "data.npz"), "--title", "</script>"
    )
    chromium.open(page)
    chromium.run("window.ready.then(() => null)")
    assert chromium.run(TEXT.format("check")).startswith("6 of 6 examples")
    assert chromium.run("document.title") == "</script>"
    x, y = chromium.place("canvas.pad")
    chromium.mouse("mousePressed", x, y - 100)
    for step in range(0, 201, 20):
        chromium.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y - 100 + step, button="left")
    chromium.mouse("mouseReleased", x, y + 100)
    assert chromium.run(TEXT.format("decision")) == "1"
    compiled = compile_model(DIGITS, Options("digits", target="host", kernels="portable"))
    inputs = [{"image": pixels[2]}]
    logits = harness.run_files(compiled.files, "host", inputs).outputs[0]["logits"]
    chromium.click("#examples button:nth-child(3)")
    assert chromium.run(TEXT.format("decision")) == str(int(np.argmax(logits)))
    assert chromium.run(TEXT.format("failure")) == ""


def test_a_page_that_computes_something_else_says_so(chromium: Browser, tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", image=np.zeros((1, 1, 1, 8, 8), np.float32))
    page = make(tmp_path, str(DIGITS), "--input", str(tmp_path / "data.npz"))
    text = page.read_text(encoding="utf-8")
    start, found, end = re.split(r"(?<=id=\"data\">)(.*)(?=</script>)", text, maxsplit=1)
    data = json.loads(found)
    expected = data["runs"][0]["outputs"][0]
    data["runs"][0]["outputs"][0] = ("A" if expected[0] != "A" else "B") + expected[1:]
    page.write_text(start + json.dumps(data) + end, encoding="utf-8")
    chromium.open(page)
    chromium.run("window.ready.then(() => null)")
    assert chromium.run(TEXT.format("check")).startswith("0 of 1 examples")


def test_a_recording_through_the_front_end(chromium: Browser, tmp_path: Path) -> None:
    """The page's last scores are those of the C on the features that the compiler's front end computes."""
    wav = WAKE_WORD / "replay.wav"
    page = make(tmp_path, "wake_word", "--app", str(WAKE_WORD), "--input", str(wav))
    chromium.open(page)
    chromium.run("window.ready.then(() => null)")
    chromium.click("#examples button")
    assert chromium.run(TEXT.format("failure")) == ""
    frontend = from_mapping({"kind": "micro", "step_ms": 10}, "test")
    options = Options("wake_word", target="host", kernels="portable", frontend=frontend)
    compiled = compile_model(WAKE_WORD / "model.onnx", options)
    runs, _ = recordings.read([wav], (1, 1, 3, 40), frontend)
    outputs = harness.run_files(
        compiled.files, "host", [{"input": run} for run in runs], reset_before={0}
    ).outputs
    found = chromium.run("window.ready.then((model) => model.read(0))")
    assert found == outputs[-1]["scores"].ravel().astype(float).tolist()


def test_numbers(chromium: Browser, tmp_path: Path) -> None:
    page = make(tmp_path, str(DIGITS), "--give", "numbers")
    chromium.open(page)
    chromium.run("window.ready.then(() => document.querySelector('textarea').value = '1 2 3')")
    chromium.click("button.main")
    assert chromium.run(TEXT.format("failure")) == "image has 64 numbers; these are 3"
    chromium.run("document.querySelector('textarea').value = 'a,b\\n' + '0.5, '.repeat(64)")
    chromium.click("button.main")
    assert chromium.run(TEXT.format("failure")) == ""
    assert chromium.run("document.querySelectorAll('.bar').length") == 10


def test_bools_and_numbers_of_64_bits(chromium: Browser, tmp_path: Path) -> None:
    """Types that are no picture; names that are no HTML."""
    node = onnx.helper.make_node("Where", ["</script>", "a", "b"], ["y"])
    shapes = {"</script>": onnx.TensorProto.BOOL, "a": onnx.TensorProto.INT64, "b": onnx.TensorProto.INT64}
    inputs = [onnx.helper.make_tensor_value_info(name, kind, [3]) for name, kind in shapes.items()]
    output = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.INT64, [3])
    graph = onnx.helper.make_graph([node], "g", inputs, [output])
    model = tmp_path / "where.onnx"
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), model
    )
    wide = np.array([[1, -(2**60), 3]])
    np.savez(tmp_path / "data.npz", in0=np.array([[True, False, True]]), in1=-wide, in2=wide)
    chromium.open(make(tmp_path, str(model), "--input", str(tmp_path / "data.npz")))
    chromium.run("window.ready.then(() => null)")
    assert chromium.run(TEXT.format("check")).startswith("1 of 1 examples")
    chromium.click("#examples button")
    assert chromium.run("window.ready.then((model) => model.read(0))") == [-1, -(2**60), -3]


def test_black_that_is_white(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert main(["web", str(DIGITS), "-o", str(page), "--range", "1", "1"]) == 1
    assert "--range gives black and white the same value" in capsys.readouterr().err
    assert not page.exists()


def test_without_the_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tinyml.harness.tools.shutil.which", lambda name: None)
    page = tmp_path / "page.html"
    assert main(["web", str(DIGITS), "-o", str(page)]) == 1
    said = capsys.readouterr().err
    assert "WebAssembly requires clang, lld, wasi-libc, libclang-rt-dev-wasm32: not installed" in said
    assert "sudo apt-get install clang lld wasi-libc libclang-rt-dev-wasm32" in said
    assert not page.exists()
