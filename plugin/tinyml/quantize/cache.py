# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A cache of quantised models: the same model, data and settings are quantised once."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx

from tinyml.errors import ConfigError, ModelError
from tinyml.importers import onnx_model
from tinyml.ir import Shape
from tinyml.quantize.calibrate import Progress
from tinyml.quantize.engine import quantize, silent
from tinyml.quantize.report import Report
from tinyml.quantize.request import Request
from tinyml.workspace import cache_folder


@dataclass(frozen=True)
class Result:
    """An int8 model as the bytes of an ONNX file."""

    content: bytes
    report: Report

    def proto(self) -> onnx.ModelProto:
        return onnx_model.parse(Path("int8.onnx"), self.content)


def quantized(
    path: Path, request: Request, shapes: Mapping[str, Shape] | None = None, progress: Progress = silent
) -> Result:
    """Quantise, or return the cached result for the same model, data and settings."""
    request.check_files()
    folder = cache_folder() / "quantized" / _key(path, request, shapes or {})
    model, report = folder / "model.onnx", folder / "report.json"
    try:
        return Result(model.read_bytes(), Report.from_json(json.loads(report.read_text(encoding="utf-8"))))
    except (OSError, ValueError, KeyError, TypeError):
        pass  # missing or incomplete: quantise
    found = quantize(path, request, shapes, progress)
    result = Result(found.model.SerializeToString(deterministic=True), found.report)
    _store(folder, {
        "model.onnx": result.content,
        "report.json": json.dumps(result.report.as_json(), indent=2).encode(),
    })  # fmt: skip
    return result


def _store(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write each file by renaming a finished copy. Without a cache builds are only slower: ignore errors."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            handle, temporary = tempfile.mkstemp(dir=folder)
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            Path(temporary).replace(folder / name)
    except OSError:
        return


def _key(path: Path, request: Request, shapes: Mapping[str, Shape]) -> str:
    """One hash over everything that determines the result, including which layers have an integer form."""
    from tinyml.reference import session

    digest = hashlib.sha256()
    for text in (
        session.require().__version__,
        onnx.__version__,
        request.describe(),
        str(sorted(shapes.items())),
    ):
        digest.update(text.encode() + b"\0")
    compiler = Path(__file__).parents[1]
    parts = ("importers", "ops", "passes", "quantize", "reference")
    own = [file for part in parts for file in (compiler / part).rglob("*.py")]
    own.append(compiler / "states.py")
    for file in (*sorted(own), *_model_files(path), *request.files):
        digest.update(file.name.encode() + b"\0")
        try:
            digest.update(hashlib.sha256(file.read_bytes()).digest())
        except OSError as error:
            raise ConfigError(f"cannot read {file}: {error.strerror}") from None
    return digest.hexdigest()[:32]


def _model_files(path: Path) -> Iterable[Path]:
    """The model and its external data files."""
    from tinyml.importers import TFLITE_MAGIC

    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise ModelError(f"there is no model file {path}", "check the path") from None
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from None
    if content[4:8] == TFLITE_MAGIC:
        return [path]
    bare = onnx.ModelProto()
    try:
        bare.ParseFromString(content)
    except Exception:  # not a model: quantising reports it
        return [path]
    places = {e.value for t in bare.graph.initializer for e in t.external_data if e.key == "location"}
    return [path, *(path.parent / place for place in sorted(places) if (path.parent / place).is_file())]
