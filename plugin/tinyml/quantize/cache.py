# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A cache of quantised models: the same model, data and settings are quantised once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import onnx

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.base.progress import Progress, silent
from tinyml.base.whole_files import write_whole
from tinyml.importers import ModelFile, onnx_model
from tinyml.ir import Shape
from tinyml.ops.framework.registration import OUTSIDE
from tinyml.quantize.engine import quantize
from tinyml.quantize.report import Report
from tinyml.settings.quantize_request import Request
from tinyml.setup.workspace import cache_folder


@dataclass(frozen=True)
class Result:
    """An int8 model as the bytes of an ONNX file."""

    content: bytes
    report: Report

    def proto(self) -> onnx.ModelProto:
        return onnx_model.parse(ModelFile(Path("int8.onnx"), self.content))


def quantized(
    file: ModelFile, request: Request, shapes: Mapping[str, Shape] | None = None, progress: Progress = silent
) -> Result:
    """Quantise, or return the cached result for the same model, data and settings."""
    request.check_files()
    key = _key(file, request, shapes or {})
    folder = cache_folder() / "quantized" / key
    kept = _kept(folder)
    if kept is not None:
        return kept
    found = quantize(file, request, shapes, progress)
    if _key(file, request, shapes or {}) != key:
        raise ConfigError(
            "the calibration data, or this program, changed while it ran", "run the command again"
        )
    result = Result(found.model.SerializeToString(deterministic=True), found.report)
    report = {"model_sha256": _sha256(result.content), **result.report.as_json()}
    _store(folder, {"model.onnx": result.content, "report.json": json.dumps(report, indent=2).encode()})
    return result


def _kept(folder: Path) -> Result | None:
    """What the cache has, if it is whole: a model that is not the one the report belongs to is made again."""
    try:
        content = (folder / "model.onnx").read_bytes()
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        if report.pop("model_sha256") == _sha256(content):
            return Result(content, Report.from_json(report))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass  # not there, or not whole
    return None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _store(folder: Path, files: Mapping[str, bytes]) -> None:
    """Errors are ignored: without a cache, builds are only slower."""
    try:
        for name, content in files.items():
            write_whole(folder / name, content)
    except OSError:
        return


def _key(file: ModelFile, request: Request, shapes: Mapping[str, Shape]) -> str:
    """One hash over everything that decides the result: which layers have an integer form, too."""
    from tinyml.reference import session

    digest = hashlib.sha256()
    for text in (
        session.require().__version__,
        onnx.__version__,
        request.describe(),
        str(sorted(shapes.items())),
        str(file.outputs),
        file.sha256,
    ):
        digest.update(text.encode() + b"\0")
    compiler = Path(__file__).parents[1]
    parts = ("datasets", "importers", "ops", "passes", "quantize", "reference", "watch")
    own = [file for part in parts for file in (compiler / part).rglob("*.py")]
    if request.auto is not None:  # costs decide as well
        own += [file for part in ("cost", "emit", "memory") for file in (compiler / part).rglob("*.py")]
        own += (compiler / "cost").rglob("*.json")
    for source in (*sorted(own), *sorted(OUTSIDE.values()), *request.files):
        digest.update(source.name.encode() + b"\0")
        try:
            digest.update(hashlib.sha256(source.read_bytes()).digest())
        except OSError as error:
            raise ConfigError(f"cannot read {source}: {error.strerror}") from None
    return digest.hexdigest()[:32]
