# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the files of a new model are: their paths in tinyml.yaml, and which of them must be copied."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from tinyml.base.errors import ConfigError, ModelError
from tinyml.projects import folder
from tinyml.projects.cmake import refuse_semicolon
from tinyml.settings import quantize_request


def existing_model(model: Path) -> Path:
    """The model's file, with its full path."""
    if not model.exists():
        raise ModelError(f"there is no file {model}")
    if not model.is_file():
        raise ModelError(f"{model} is not a file", "the .onnx or .tflite file itself")
    return model.resolve()


def place(
    source: Path,
    app: folder.Application,
    second_name: str,
    own: Collection[Path] = (),
    taken: Collection[Path] = (),
) -> tuple[str, bool]:
    """The path of a file in the manifest, and whether the file must be copied there first.

    Many files are called model.onnx: if another one has that place, the copy gets the ``second_name``.
    ``own``: files that may be overwritten; ``taken``: places that other copies are about to have.
    """
    refuse_semicolon(str(source))
    if folder.shared_root(app.root, source):
        return folder.relative(source, app.root), False
    places = list(dict.fromkeys(f"models/{name}{source.suffix}" for name in (source.stem, second_name)))
    for file in places:
        copy = app.root / file
        if copy in taken:
            continue
        if not copy.exists():
            return file, True
        if copy.read_bytes() == source.read_bytes():
            return file, False
        if copy.resolve() in own:
            return file, True
    raise ConfigError(
        f"{source} is outside the application's repository and would be copied to {' or '.join(places)}, "
        "but another file already exists there",
        "another --name, or copy the file into the application yourself and name the copy",
    )


def external_data(
    model: Path, read: Sequence[Path], copy: Path, own: Collection[Path] = ()
) -> dict[Path, Path]:
    """The files beside a model that hold its weights, by the place to which they are copied with it.

    ``torch.onnx.export`` writes ``model.onnx.data`` by default. ``read``: all files that the compiler read;
    ``own``: files that may be overwritten.
    """
    copies = {}
    for source in read:
        if source == model:
            continue
        place = copy.parent / source.relative_to(model.parent)
        if place.exists() and place.resolve() not in own and place.read_bytes() != source.read_bytes():
            raise ConfigError(
                f"{source} holds weights of {model.name} and would be copied to {place}, but another file "
                "already exists there",
                "rename one of the two models before exporting, or store this one as a single file",
            )
        copies[place] = source
    return copies


def calibration(
    items: list[str], app: folder.Application, name: str, own: Collection[Path] = ()
) -> tuple[dict[str, str], dict[Path, Path]]:
    """Settings with paths relative to the manifest, and the files that must be copied first.

    ``name``: the model's, from which a second file of the same name gets its own.
    """
    if not items:
        return {}, {}
    settings = quantize_request.parse_items(items, "--quantize")
    copies: dict[Path, Path] = {}
    for key in quantize_request.PATHS:
        if key not in settings:
            continue
        data = Path(settings[key]).resolve()
        if not data.exists():
            raise ConfigError(f"--quantize: there is no {key} {settings[key]}", quantize_request.KEYS[key])
        if data.is_dir() and not folder.shared_root(app.root, data):
            raise ConfigError(
                f"the folder {data} is outside the application's repository",
                "copy it into the application, so that the build finds it on other machines too",
            )
        settings[key], copied = place(data, app, f"{name}_{key}", own, copies)
        if copied:
            copies[app.root / settings[key]] = data
    return settings, copies


def operators(files: list[Path], app: folder.Application) -> tuple[str, ...]:
    """Files with operators, relative to the application; they are not copied, because C belongs to them."""
    for file in files:
        if not file.is_file():
            raise ConfigError(f"there is no operator file {file}")
        if not folder.shared_root(app.root, file.resolve()):
            raise ConfigError(
                f"{file} is outside the application's repository",
                "copy it and its C into the application, so that the build finds them on other machines too",
            )
    return tuple(folder.relative(file.resolve(), app.root) for file in files)
