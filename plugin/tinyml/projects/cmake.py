# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The manifest for CMake: ``python -m tinyml.projects.cmake MANIFEST OUT`` writes one call per model.

The build runs it at configure time, so it loads quickly. It also checks that the Python packages that
the compiler requires are installed: a clear message now is better than a traceback during the build.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tinyml.base.naming import MODEL_SUFFIXES, PACK_SUFFIX
from tinyml.setup import requirements


def calls(manifest_path: Path) -> str:
    """CMake text: one call of zephyr_tinyml_model() per model."""
    from tinyml.projects.manifest import load
    from tinyml.settings import table
    from tinyml.settings.setting import CMAKE

    manifest = load(manifest_path)
    lines = []
    folder = manifest_path.parent
    if manifest.player:
        words = [
            (folder / word).as_posix() if word.endswith((*MODEL_SUFFIXES, PACK_SUFFIX)) else word
            for word in manifest.player
        ]
        for word in words:
            refuse_semicolon(word, "player: ")
        lines.append(f"set_property(GLOBAL PROPERTY TINYML_PLAYER_KERNELS {' '.join(map(_quoted, words))})\n")
    keywords = {setting.keyword for setting in table.settings(CMAKE).values()}
    for entry in manifest.models:
        words = [entry.name, (folder / entry.file).as_posix()]
        if request := entry.request(folder):
            request.check_files()
        for key, setting in table.settings(CMAKE).items():
            if key in entry.given:
                values = setting.form.words(entry.given[key], folder)
                # an output may have the name of an argument; names lose the blank again
                words += [setting.keyword, *(f" {value}" if value in keywords else value for value in values)]
        for word in words:
            refuse_semicolon(word, f"model {entry.name}: ")
        lines.append(f"zephyr_tinyml_model({' '.join(map(_quoted, words))})\n")
    return "".join(lines)


def arguments() -> str:
    """CMake text: the arguments of zephyr_tinyml_model(), and the options of `tinyml compile` for them."""
    from tinyml.settings import table
    from tinyml.settings.setting import CMAKE, COMMAND

    known = table.settings(CMAKE).values()
    lines = []
    for many, name in (
        (False, "TINYML_ARGUMENTS_WITH_ONE_VALUE"),
        (True, "TINYML_ARGUMENTS_WITH_MANY_VALUES"),
    ):
        words = ";".join(setting.keyword for setting in known if setting.form.many == many)
        lines.append(f'set_property(GLOBAL PROPERTY {name} "{words}")\n')
    lines += [
        f"set_property(GLOBAL PROPERTY TINYML_OPTION_{setting.keyword} {setting.flag})\n"
        for setting in known
        if COMMAND in setting.places
    ]
    lines += [
        f"set_property(GLOBAL PROPERTY TINYML_SWITCH_{setting.keyword} TRUE)\n"
        for setting in known
        if setting.form.switch
    ]
    return "".join(lines)


def refuse_semicolon(word: str, where: str = "") -> None:
    """It separates the elements of CMake's lists, however a word is quoted."""
    from tinyml.base.errors import ConfigError

    if ";" in word:
        raise ConfigError(
            f"{where}{word!r} has a semicolon, at which CMake splits words",
            "rename the file or folder without it",
        )


def _quoted(word: str) -> str:
    """A CMake bracket argument: nothing inside it is interpreted, whatever a path contains."""
    level = "="
    while f"]{level}]" in word:
        level += "="
    return f"[{level}[{word}]{level}]"


def main(argv: Sequence[str]) -> int:
    manifest_path, out = Path(argv[0]), Path(argv[1])
    missing = requirements.missing()
    if missing:
        project = Path(__file__).resolve().parents[3]
        print(f"TinyML requires Python packages that {sys.executable} does not have: {', '.join(missing)}")
        print(f"  try: {sys.executable} -m pip install {project}")
        return 1
    from tinyml.base.errors import TinymlError

    try:
        text = f"# SPDX-License-Identifier: Apache-2.0\n\n{arguments()}\n{calls(manifest_path)}"
    except TinymlError as error:
        print(error)
        return 1
    if not out.exists() or out.read_text(encoding="utf-8") != text:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
