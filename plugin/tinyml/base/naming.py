# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Model names: the default from a file's name, and which names are allowed.

A model's name is a prefix in C and the name of a header: ``kws`` gives ``kws.h`` and ``kws_run()``. The
folder of that header is in the include path of the whole firmware, so the name must not be one that others
include.
"""
# ruff: noqa: SIM905 (one name per line would fill pages)

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tinyml.base.c_keywords import KEYWORDS
from tinyml.base.errors import ConfigError

CPP_KEYWORDS = frozenset(
    """alignas alignof and and_eq asm bitand bitor catch char8_t char16_t char32_t class co_await co_return
    co_yield compl concept const_cast consteval constexpr constinit decltype delete dynamic_cast explicit
    export friend module mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected
    public reinterpret_cast requires static_assert static_cast template this thread_local throw try typeid
    typename using virtual wchar_t xor xor_eq""".split()
)
HEADERS = {
    "a standard C header": """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp
        signal stdalign stdarg stdatomic stdbit stdbool stdckdint stddef stdint stdio stdlib stdnoreturn
        string tgmath threads time uchar wchar wctype""".split(),
    "a POSIX header": """aio cpio dirent dlfcn endian fcntl fmtmsg fnmatch ftw glob grp iconv langinfo libgen
        libintl monetary mqueue ndbm netdb nl_types poll pthread pwd regex sched search semaphore spawn
        strings stropts syslog tar termios trace ulimit unistd utime utmpx wordexp""".split(),
    "a header of the C library": "alloca features malloc memory newlib picolibc reent".split(),
    "a header of Zephyr, Arduino or FreeRTOS": """arduino autoconf device eeprom freertos kernel sdkconfig
        spi wire zephyr""".split(),
}
DEVICES = frozenset(
    ("con", "prn", "aux", "nul", *(f"{kind}{number}" for kind in ("com", "lpt") for number in range(1, 10)))
)
"""Names that Windows does not allow for files, whatever their suffix."""

LONGEST = 100
"""Characters of a name: it begins the names of files and tables, and file systems end them at 255."""

TABLES = "_weights"
"""After a model's name: the header with its constants."""

MEMBERS = (
    *("adapter", "enroll", "factory", "forget", "learn", "learnt", "nearest", "restore", "unusual"),
    *("feed", "input", "model", "output", "reset", "run", "watch", "watcher", "weights"),
)
"""After a model's name: functions, and files with their names. Ports continue them: ``kws_input_left()``."""

PREFIX = "tinyml"
"""Names that begin with it belong to the runtime."""


def shape_text(shape: Sequence[int]) -> str:
    """``8x8x16``."""
    return "x".join(map(str, shape)) or "scalar"


MODEL_SUFFIXES = (".onnx", ".tflite")
PACK_SUFFIX = ".tmodel"


def model_name(path: Path) -> str:
    """The name that a model gets unless the user gives one: the file's name, in lower case."""
    return _allowed(path.stem)


def check_name(name: str) -> None:
    """Refuse a name that the user gave and that would not work in C or as a header."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise ConfigError(
            f"{name!r} cannot be a model's name: it becomes a prefix in C",
            f"letters, digits and _ only, starting with a letter; for example {_allowed(name)}",
        )
    if len(name) > LONGEST:
        raise ConfigError(
            f"{name!r} cannot be a model's name: it has {len(name)} characters", f"at most {LONGEST}"
        )
    if reason := _reserved(name):
        raise ConfigError(f"{name!r} cannot be a model's name: {reason}", f"for example {_allowed(name)}")


def check_unique(names: Iterable[str]) -> None:
    """Refuse two models whose names differ only in case (C macros and some file systems ignore it), and two
    of which one is called like a function or a file of the other."""
    names = tuple(names)
    seen: dict[str, str] = {}
    for name in names:
        other = seen.get(name.lower())
        if other is not None:
            same = f"two models are called {name!r}"
            raise ConfigError(
                same if other == name else f"{other!r} and {name!r} differ only in case",
                "give each model a name of its own",
            )
        seen[name.lower()] = name
    for name in names:
        for member in MEMBERS:
            taken = f"{name}_{member}".lower()
            for other in names:
                if other.lower() == taken or other.lower().startswith(f"{taken}_"):
                    raise ConfigError(
                        f"model {name!r} has {name}_{member} in its C, so no other can be called {other!r}",
                        f"a name that does not begin with {name}_{member}",
                    )


def short(name: str, most: int = 40) -> str:
    """The distinctive part of a layer's or tensor's name, for people: TFLite joins those of fused layers."""
    last = next((part for part in reversed(name.split(";")) if part), name)
    return last if len(last) <= most else f"...{last[-most + 3 :]}"


def _reserved(name: str) -> str | None:
    """Why a name cannot be used, or None if it can."""
    lower = name.lower()
    if lower.startswith(PREFIX):
        return f"names that begin with {PREFIX!r} belong to the runtime"
    if name in KEYWORDS or lower in KEYWORDS:
        return "it is a keyword or a reserved name of C"
    if lower in CPP_KEYWORDS:
        return "it is a keyword of C++"
    if lower in DEVICES:
        return f"Windows does not allow a file called {name}.h"
    for kind, headers in HEADERS.items():
        if lower in headers:
            return f"{name}.h would hide {kind}"
    return None


def _allowed(text: str) -> str:
    """The allowed name that is closest to ``text``."""
    name = re.sub(r"\W+", "_", text.lower(), flags=re.ASCII).strip("_")[: LONGEST - len("model_")].strip("_")
    while name.startswith(PREFIX):
        name = name.removeprefix(PREFIX).strip("_")
    if not name:
        return "model"
    if name[0].isdigit():
        return f"model_{name}"
    return f"{name}_model" if _reserved(name) else name
