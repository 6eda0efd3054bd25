# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The bundle: a zip file whose bytes depend on its content alone."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tinyml.api.evidence.bill import bill
from tinyml.api.evidence.chain import DIFFERENT, chain
from tinyml.api.evidence.deviations import DEVIATIONS
from tinyml.api.evidence.kernels import kernels
from tinyml.api.evidence.models import Remade, Source, remade
from tinyml.api.evidence.page import page
from tinyml.api.evidence.tool_versions import tool_versions
from tinyml.api.evidence.trials import trials
from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.bounds import NoBoundError
from tinyml.compare.validation import validate
from tinyml.pipeline import check_plan
from tinyml.report.collect import describe
from tinyml.report.stages import Watch

SCHEMA = 1
START = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file can hold
INDEX = "evidence.json"
ZIP = b"PK"


@dataclass(frozen=True)
class Bundle:
    """Files by name, and what went wrong while they were made."""

    files: Mapping[str, bytes]
    problems: tuple[str, ...] = ()

    @property
    def content(self) -> bytes:
        """The zip file. Nothing is compressed: releases of zlib compress differently."""
        with io.BytesIO() as stream:
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
                for name, content in sorted(self.files.items()):
                    entry = zipfile.ZipInfo(name, START)
                    entry.create_system, entry.external_attr = 3, 0o644 << 16
                    archive.writestr(entry, content)
            return stream.getvalue()

    @property
    def samples(self) -> int:
        """How many goldens each model has."""
        try:
            return int(json.loads(self.files[INDEX])["samples"])
        except (KeyError, ValueError, TypeError):
            raise ConfigError("the file has no evidence", "a file that `tinyml evidence` wrote") from None


def read_bundle(path: Path) -> Bundle:
    """A bundle that was written before."""
    try:
        with zipfile.ZipFile(path) as archive:
            return Bundle({name: archive.read(name) for name in archive.namelist()})
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except (
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        NotImplementedError,
        RuntimeError,
        EOFError,
        zlib.error,
    ):
        with path.open("rb") as stream:
            damaged = stream.read(len(ZIP)) == ZIP
        found = "a damaged zip file, or one cut short" if damaged else "not a zip file"
        raise ConfigError(f"{path} is {found}", "a file that `tinyml evidence` wrote") from None


def differences(first: Bundle, second: Bundle) -> list[str]:
    """The files that are not the same in both, in words."""
    found = []
    for name in sorted({*first.files, *second.files}):
        if name not in second.files:
            found.append(f"{name}: no longer there")
        elif name not in first.files:
            found.append(f"{name}: new")
        elif first.files[name] != second.files[name]:
            found.append(f"{name}: {_where(first.files[name], second.files[name])}")
    return found


def _where(first: bytes, second: bytes) -> str:
    """The first line that differs, if it is text."""
    try:
        old, new = first.decode().splitlines(), second.decode().splitlines()
    except UnicodeDecodeError:
        return "other bytes"
    for number, (a, b) in enumerate(zip(old, new, strict=False), 1):
        if a != b:
            return f"line {number} was {a.strip()!r}, is {b.strip()!r}"
    return f"{len(old)} lines before, {len(new)} now"


def make(sources: Sequence[Source], build: Path, samples: int) -> Bundle:
    """The evidence about all models of an image."""
    models = [remade(source) for source in sources]
    links = chain(models, build)
    versions = tool_versions(build, models[0].built.image)
    problems = [
        f"{row['source']}, compiled again, gives {DIFFERENT} than {row['file']} has"
        for row in links["objects"]
        if row["compiled_again"] == DIFFERENT
    ]
    files: dict[str, bytes] = {}
    told = []
    for model in models:
        facts, own, wrong = _about(model, samples)
        told.append(facts)
        problems += wrong
        files |= {f"{model.name}/{name}": content for name, content in own.items()}
    index = {"schema": SCHEMA, "samples": samples, "models": [m.name for m in models], "problems": problems}
    files |= {
        INDEX: _json(index),
        "chain.json": _json(links),
        "tools.json": _json(versions),
        "sbom.json": bill(links, versions).encode(),
        "deviations.json": _json([vars(one) for one in DEVIATIONS]),
        "README.md": page(links, versions, told, problems).encode(),
    }
    return Bundle(files, tuple(problems))


def _about(model: Remade, samples: int) -> tuple[dict[str, Any], dict[str, bytes], list[str]]:
    """Facts for the page, files, and problems."""
    compiled = model.model.compiled
    watch = Watch()
    for stage, graph in model.model.stages:
        watch(stage, graph)
    report = describe(compiled, model.model.file.path.name, model.model.options.kernels, watch.stages)
    check_plan(compiled)
    plan = {
        "arena_bytes": report.arena_bytes,
        "lower_bound_bytes": report.arena_lower_bound_bytes,
        "tensors": [vars(tensor) for tensor in report.tensors],
        "scratch": [
            {"step": layer.step, "offset": layer.scratch_offset, "bytes": layer.scratch_bytes}
            for layer in report.layers
            if layer.scratch_bytes
        ],
        "validated": "a run was simulated byte by byte: every layer finds the bytes that it reads",
    }
    try:
        bound: dict[str, Any] = model.built.bound().as_json()
    except NoBoundError as error:
        bound = {"model": model.name, "none": str(error)}
    tried = trials(model, samples)
    parts = validate(model.model.imported, compiled.graph)
    used = kernels(model)
    problems = (
        [] if tried.fine else [f"{model.name}: the goldens do not agree; see {model.name}/goldens.json"]
    )
    problems += [
        f"{model.name}: {part.tensor} is not what the imported graph computes"
        for part in parts
        if not part.fine
    ]
    files = {
        "report.json": report.to_json().encode(),
        "bounds.json": _json(bound),
        "plan.json": _json(plan),
        "validation.json": _json([vars(part) for part in parts]),
        "kernels.json": _json(used),
        "goldens.json": _json(tried.facts),
        **{f"goldens/{name}": content for name, content in tried.files.items()},
    }
    facts = {
        "name": model.name,
        "report": report,
        "bound": bound,
        "plan": plan,
        "parts": parts,
        "trials": tried.facts,
        "kernels": used,
    }
    return facts, files, problems


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=1, sort_keys=True) + "\n").encode()
