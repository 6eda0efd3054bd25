# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A wake word as components of ESPHome: ``tinyml``, which all wake words share, and ``tinyml_NAME``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

from tinyml.base import c
from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.templates import render
from tinyml.projects.flat import flattened, reached

SHARED = "tinyml"
FROM_CPP = ("tinyml/tinyml.h", "tinyml/decision.h", "tinyml/stream.h")
"""Headers that the C++ of the component reads."""
RUNTIME = ("signal/ring.c", "signal/decision.c")
"""What the component itself needs of the runtime."""
RATE_HZ = 16000
CUTOFF, WINDOW, STEP_MS = 0.9, 5, 10
WRITTEN = "written by tinyml esphome"


@dataclass(frozen=True)
class WakeWord:
    """What microWakeWord's description of a model says, or our defaults."""

    model: Path
    word: str = ""
    cutoff: float = CUTOFF
    window: int = WINDOW
    step_ms: int = STEP_MS
    arena_bytes: int | None = None
    """The block that TensorFlow Lite Micro gets for the model."""


def described(path: Path) -> WakeWord:
    """A model file, or the .json file that microWakeWord writes beside it."""
    if path.suffix.lower() != ".json":
        return WakeWord(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        micro = content.get("micro", {})
        return WakeWord(
            path.parent / content["model"],
            str(content.get("wake_word", "")),
            float(micro.get("probability_cutoff", CUTOFF)),
            int(micro.get("sliding_window_size", micro.get("sliding_window_average_size", WINDOW))),
            int(micro.get("feature_step_size", STEP_MS)),
            micro.get("tensor_arena_size"),
        )
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}", "the model's .json or .tflite file") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{path} does not describe a wake word: {error!r}",
            'the .json file beside the model: {"model": "hey_jarvis.tflite", "micro": {...}}, or the model',
        ) from None


def components(
    sources: Mapping[str, bytes], summary: Mapping[str, Any], word: WakeWord, runtime: Path
) -> dict[str, bytes]:
    """All files of both components, by path."""
    files = {path: content.decode() for path, content in sources.items()}
    files |= {f"runtime/{name}": (runtime / name).read_text(encoding="utf-8") for name in RUNTIME}
    name = summary["name"]
    context = _context(summary, word)
    own = [path for path in files if "/" not in path]
    needed = [path for path in reached(files, [*own, *FROM_CPP, *_sources(files)]) if path not in own]
    common = flattened(files, needed, reached(files, FROM_CPP))
    model = flattened(files, own, [f"{name}.h"], f"esphome/components/{SHARED}/")
    rendered = {
        f"{SHARED}/__init__.py": "esphome_shared.py.j2",
        f"{SHARED}/wake_word.h": "esphome_wake_word.h.j2",
        f"{SHARED}/wake_word.cpp": "esphome_wake_word.cpp.j2",
        f"{SHARED}_{name}/__init__.py": "esphome_model.py.j2",
        f"{SHARED}_{name}/wake_word_{name}.h": "esphome_model.h.j2",
        f"{SHARED}_{name}/README.md": "esphome_readme.md.j2",
    }
    return {
        **{f"{SHARED}/{path}": text.encode() for path, text in common.items()},
        **{f"{SHARED}_{name}/{path}": text.encode() for path, text in model.items()},
        **{path: render("projects", template, context).encode() for path, template in rendered.items()},
    }


def _sources(files: Mapping[str, str]) -> list[str]:
    return [path for path in files if path.endswith(".c")]


def _context(summary: Mapping[str, Any], word: WakeWord) -> dict[str, Any]:
    """What the templates say; everything that they print is checked here, or passes ``c.plain``."""
    name, frontend = summary["name"], summary["frontend"]
    if frontend["sample"] != "int16_t" or frontend["axes"] != 1 or frontend["rate"] != RATE_HZ:
        raise ConfigError(
            f"the front end takes {frontend['rate']:g} samples a second of {frontend['axes']} channels as "
            f"{frontend['sample']}; microphones of ESPHome give {RATE_HZ} of one, as int16_t",
            f"--frontend micro --frontend step_ms={STEP_MS}",
        )
    if not 0 < word.cutoff <= 1 or word.window < 1:
        raise ConfigError(
            f"probability_cutoff is {word.cutoff:g} and sliding_window_size {word.window}",
            "a cutoff above 0 and up to 1, and a window of at least 1",
        )
    model = summary["arena_bytes"] + summary["state_bytes"] - frontend["ram_bytes"]
    spoken = word.word or name.replace("_", " ").title()
    return {
        "name": name,
        "macro": name.upper(),
        "word": spoken,
        "literal": c.Code(json.dumps(spoken)),  # a string of Python's
        "cutoff": f"{word.cutoff:g}",
        "window": word.window,
        "classes": prod(summary["outputs"][0]["shape"]),
        "ram_bytes": summary["arena_bytes"] + summary["state_bytes"],
        "written": WRITTEN,
        "version": summary["version"],
        "model_ram": f"{model:,}",
        "frontend_ram": f"{frontend['ram_bytes']:,}",
        "weights": f"{summary['weights_bytes']:,}",
        "arena": f"{word.arena_bytes:,}" if word.arena_bytes else "",
    }
