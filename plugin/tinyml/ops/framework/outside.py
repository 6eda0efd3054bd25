# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Loads operators from outside: Python files of the user, and installed packages.

Such a file registers operators exactly as the files in ``ops/`` do, through the names in ``tinyml.plugin``.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from tinyml.base.errors import ConfigError, TinymlError
from tinyml.ops import catalog  # noqa: F401  (registers the built-in operators first)
from tinyml.ops.framework.kernel import forget_kernels, kernel_table
from tinyml.ops.framework.reading import ONNX_READERS, TFLITE_CUSTOM_READERS, TFLITE_READERS
from tinyml.ops.framework.registration import OUTSIDE, outside_faults

ENTRY_POINTS = "tinyml.operators"
"""The group of entry points by which installed packages offer operators."""

HINT = "a Python file that registers operators; `tinyml new-operator NAME` writes an example"

_loaded: dict[Path, str] = {}  # hashes of the files
_packages: set[str] = set()


def load(files: Iterable[Path]) -> None:
    """Load these files, each once. Nothing of a file that fails stays registered.

    C files among them are no operators: the emitter takes them as they are.
    """
    for file in files:
        path = file.resolve()
        if is_c(path):
            continue
        try:
            content = path.read_bytes()
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot read the operators in {file}: {error}", HINT) from None
        digest = hashlib.sha256(content).hexdigest()
        if _loaded.get(path) == digest:
            continue
        if path in _loaded:
            raise ConfigError(f"{file} has changed since it was loaded", "start Python again")
        with _all_or_nothing():
            _execute(path, content, digest)
        _loaded[path] = digest


def is_c(file: Path) -> bool:
    """Whether a file is C that kernels from outside call, and not Python."""
    return file.suffix == ".c"


def load_installed() -> None:
    """Load the operators of installed packages, each package once."""
    for entry in _offered(tuple(sys.path)):
        if entry.value in _packages:
            continue
        with _all_or_nothing():
            try:
                entry.load()
            except TinymlError:
                raise
            except Exception as error:
                owner = entry.dist.name if entry.dist else entry.name
                raise ConfigError(
                    f"the operators of the package {owner} cannot be loaded: {type(error).__name__}: {error}",
                    f"update or remove it: pip uninstall {owner}",
                ) from error
        _packages.add(entry.value)


@functools.cache
def _offered(path: tuple[str, ...]) -> tuple[metadata.EntryPoint, ...]:
    """The entry points of all packages on ``sys.path``: finding them opens a file of each package."""
    return tuple(metadata.entry_points(group=ENTRY_POINTS))


def sources(files: Iterable[Path]) -> list[Path]:
    """The files with operators and the C beside them that their kernels use: a build depends on all."""
    paths = [file.resolve() for file in files]
    modules = {name for name, path in OUTSIDE.items() if path in paths}
    kernels = [kernel for listed in kernel_table().values() for kernel in listed]
    used = [
        file
        for kernel in kernels
        if sys.modules[type(kernel).__module__].__file__ in modules
        for file in kernel.code_files()
    ]
    return [*paths, *dict.fromkeys(used)]


def _execute(path: Path, content: bytes, digest: str) -> None:
    name = f"tinyml_operators_{digest[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise ConfigError(f"{path} is not a Python file", HINT)
    module = importlib.util.module_from_spec(spec)
    OUTSIDE[str(path)] = path
    sys.modules[name] = module  # dataclasses look their module up
    try:
        with outside_faults():
            exec(compile(content, str(path), "exec"), module.__dict__)
    except SyntaxError as error:
        raise ConfigError(f"{error.filename}:{error.lineno}: {error.msg}", HINT) from None


@contextmanager
def _all_or_nothing() -> Iterator[None]:
    undo = snapshot()
    try:
        yield
    except BaseException:
        undo()
        raise


def snapshot() -> Callable[[], None]:
    """A function that forgets all that is registered from now on."""
    readers: tuple[dict[Any, Any], ...] = (ONNX_READERS, TFLITE_READERS, TFLITE_CUSTOM_READERS)
    tables: tuple[dict[Any, Any], ...] = (*readers, OUTSIDE, _loaded)
    before, kernels = [dict(table) for table in tables], dict(kernel_table())

    def restore() -> None:
        for table, entries in zip(tables, before, strict=True):
            table.clear()
            table.update(entries)
        forget_kernels(kernels)

    return restore
