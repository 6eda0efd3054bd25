# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml esphome`: components that ESPHome's own tool accepts, and C++ that hears what the sample hears."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.esphome import STAND_INS, esphome
from tinyml.verbs.cli import main

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "wake_word"
HEARD = "Heard 'Wake Word' in run 91: 87 %"  # 2.75 s and 87 %, as in the sample's sample.yaml

PROGRAM = r"""
#include <cstdlib>
#include <cstring>
#include "esphome.h"

using esphome::tinyml_wake_word::Listener;

int main(int count, char **words)
{
	static Listener listener;
	static esphome::microphone::MicrophoneSource source;
	FILE *file = fopen(words[1], "rb");
	const size_t bytes = strtoul(words[2], nullptr, 0);
	std::vector<uint8_t> block(bytes);

	listener.set_microphone_source(&source);
	listener.set_wake_word("Wake Word");
	listener.set_probability_cutoff(0.8f);
	listener.set_sliding_window_size(4);
	listener.get_wake_word_detected_trigger()->action = [](const std::string &word) {
		printf("trigger %s\n", word.c_str());
	};
	listener.setup();
	listener.dump_config();
	fseek(file, 44, SEEK_SET);
	while (fread(block.data(), 1, bytes, file) == bytes) {
		if (source.running) {
			source.callback(block);
		}
		if (count == 3) {
			listener.loop();
		}
	}
	listener.loop(); /* with a fourth word: the first one, after all samples */
	listener.stop();
	const bool running = listener.is_running() || source.running;
	printf("%u runs, %s\n", listener.get_runs(), running ? "running" : "stopped");
	return 0;
}
"""
ESP32 = """
esphome: {name: listener}
esp32: {board: esp32-s3-devkitc-1, framework: {type: esp-idf}}
logger:
external_components:
  - source: {type: local, path: components}
i2s_audio: {i2s_lrclk_pin: GPIO5, i2s_bclk_pin: GPIO6}
microphone:
  - {platform: i2s_audio, id: mic, adc_type: external, i2s_din_pin: GPIO4, sample_rate: 16000}
tinyml_wake_word:
  id: listening
  microphone: {microphone: mic, gain_factor: 4}
  on_wake_word_detected:
    - tinyml.stop: listening
    - logger.log: {format: "%s", args: [wake_word.c_str()]}
    - if: {condition: {tinyml.is_running: listening}, then: [{tinyml.start: listening}]}
"""


def write(folder: Path, *words: str) -> Path:
    assert main(["esphome", *words, "-o", str(folder / "components")]) == 0
    return folder / "components"


@pytest.fixture(scope="module")
def components(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("esphome"), str(SAMPLE / "model.onnx"), "--name", "wake_word")


@pytest.fixture(scope="module")
def program(components: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As ESPHome builds it: one include folder, and every header of every component in one C++ source."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    source = tmp_path_factory.mktemp("src")
    shutil.copytree(STAND_INS / "esphome", source / "esphome")
    for folder in components.iterdir():
        shutil.copytree(folder, source / "esphome" / "components" / folder.name)
    headers = sorted(path.relative_to(source) for path in source.rglob("*.h"))
    (source / "esphome.h").write_text("".join(f'#include "{header}"\n' for header in headers))
    (source / "main.cpp").write_text(PROGRAM)
    strict = ["-O1", "-Wall", "-Wextra", "-Werror", f"-I{source}"]
    objects: list[Path] = []
    for path in sorted([*source.rglob("*.c"), *source.rglob("*.cpp")]):
        objects.append(source / f"{len(objects)}.o")
        tool = (
            ["gcc", "-std=gnu11"] if path.suffix == ".c" else ["g++", "-std=gnu++20", "-Wno-unused-parameter"]
        )
        run(*tool, *strict, "-c", path, "-o", objects[-1])
    run("g++", *objects, "-lm", "-o", source / "program")
    return source / "program"


def run(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("block", [640, 200, 2])
def test_it_hears_what_the_sample_hears(block: int, program: Path) -> None:
    said = run(program, SAMPLE / "replay.wav", block)
    assert HEARD in said
    assert said.count("Heard") == said.count("trigger Wake Word") == 1
    assert said.endswith("145 runs, stopped\n")


def test_samples_that_are_lost_are_told(program: Path) -> None:
    said = run(program, SAMPLE / "replay.wav", 640, "late")
    assert "Too slow: samples were lost" in said
    assert "Heard" not in said


def test_what_it_says_of_memory(components: Path, program: Path) -> None:
    """The bytes that the firmware prints, its README states, and the C has."""
    said = run(program, SAMPLE / "replay.wav", 640)
    text = (components / "tinyml_wake_word" / "README.md").read_text()
    assert "| RAM of the model | 1,544 |" in text
    assert "| RAM of the front end | 2,752 |" in text
    assert "Model and front end: 4296 bytes of RAM" in said
    assert "Samples: 3840 bytes of RAM" in said


def test_a_description_by_micro_wake_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(SAMPLE / "model.onnx", tmp_path / "m.onnx")
    micro = {
        "probability_cutoff": 0.8,
        "sliding_window_size": 4,
        "feature_step_size": 10,
        "tensor_arena_size": 17840,
    }
    text = json.dumps({"type": "micro", "wake_word": 'Hey "you"', "model": "m.onnx", "micro": micro})
    (tmp_path / "hey.json").write_text(text)
    written = write(tmp_path, str(tmp_path / "hey.json"))
    assert "1,544 bytes of RAM for the model (microWakeWord asks for 17,840)" in capsys.readouterr().out
    code = (written / "tinyml_hey" / "__init__.py").read_text()
    assert r'wake_word="Hey \"you\"", probability_cutoff=0.8, sliding_window_size=4' in code
    compile(code, "__init__.py", "exec")


def test_two_words_share_their_kernels(tmp_path: Path, components: Path) -> None:
    write(tmp_path, str(SAMPLE / "model.onnx"), "--name", "first")
    written = write(tmp_path, str(SAMPLE / "model.onnx"), "--name", "second")
    assert sorted(path.name for path in written.iterdir()) == ["tinyml", "tinyml_first", "tinyml_second"]
    one, other = components / "tinyml", written / "tinyml"
    assert {path.name: path.read_bytes() for path in one.iterdir()} == {
        path.name: path.read_bytes() for path in other.iterdir()
    }


@pytest.mark.parametrize(
    "text, said",
    [
        ("{", "does not describe a wake word"),
        ("{}", "'model'"),
        ('{"model": "m.onnx", "micro": {"probability_cutoff": 7}}', "probability_cutoff is 7"),
        ('{"model": "nothing.tflite"}', "nothing.tflite"),
    ],
)
def test_descriptions_that_are_none(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(SAMPLE / "model.onnx", tmp_path / "m.onnx")
    (tmp_path / "word.json").write_text(text)
    assert main(["esphome", str(tmp_path / "word.json"), "-o", str(tmp_path / "components")]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "components").exists()


def test_other_front_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, place = str(SAMPLE / "model.onnx"), str(tmp_path / "components")
    assert main(["esphome", model, "-o", place, "--frontend", "micro", "--frontend", "rate=8000"]) == 1
    assert "8000" in capsys.readouterr().err
    (tmp_path / "components" / "tinyml").mkdir(parents=True)
    assert main(["esphome", model, "--name", "wake_word", "-o", place]) == 1
    assert "already exists, and is something else" in capsys.readouterr().err


@pytest.mark.parametrize("rate, fault", [(16000, ""), (48000, "16000")])
def test_esphome_accepts_the_configuration(rate: int, fault: str, components: Path) -> None:
    """`esphome config`, for a board with an ESP32-S3 and an I2S microphone."""
    path = components.parent / f"rate_{rate}.yaml"
    path.write_text(ESP32.replace("16000", str(rate)))
    done = esphome("config", path)
    said = done.stdout + done.stderr
    assert (done.returncode == 0) == (not fault), said
    assert (fault or "Configuration is valid") in said
