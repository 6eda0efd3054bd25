# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a setting of a model is: its name, values, default, help, and where users can write it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

COMMAND, YAML, CMAKE, INI, PYTHON = "command line", "tinyml.yaml", "CMake", "platformio.ini", "Python"
"""Where a setting can be written."""
PLACES = (COMMAND, YAML, CMAKE, INI, PYTHON)

T = TypeVar("T")  # the value in Options
G = TypeVar("G")  # what Python also accepts for it


class Form:
    """How the values of a setting are written.

    A value has three forms: as YAML has it; as words, which the command line, CMake and platformio.ini have;
    and as the fields of ``Options``. In between, an application's entry holds the checked value, in which
    paths are relative. Methods raise ConfigError for what is not allowed; ``where`` starts its message.
    """

    key = ""  # the setting's name
    many = False  # several words: repeated on the command line, a list in CMake, lines in platformio.ini
    switch = False  # on the command line, the option alone means yes
    keyed = False  # words are key=value, and those of two places add up
    choices: tuple[str, ...] = ()
    meanings: Mapping[str, str] = MappingProxyType({})  # of the words in choices, for the command line
    empty: Any = None  # the checked value of what is not given

    def read(self, value: Any, where: str) -> Any:
        """The checked value of what tinyml.yaml or Python has."""
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        """What ``read`` accepts in tinyml.yaml, as JSON Schema: a part of it that an editor can check."""
        return {"enum": list(self.choices)} if self.choices else {"type": "string"}

    def parse(self, words: Sequence[str], where: str) -> Any:
        """The checked value of words."""
        return self.read(words[-1], where)

    def check_project(self, value: Any, where: str) -> None:
        """Refuse a checked value that the builds of applications cannot have."""

    def words(self, value: Any, folder: Path | None = None) -> list[str]:
        """A checked value as words; with ``folder``, in which relative paths are, these become absolute."""
        return [str(value)]

    def yaml(self, value: Any) -> Any:
        """A checked value as tinyml.yaml has it."""
        return value

    def relocated(self, value: Any, to: Callable[[str], str]) -> Any:
        """A checked value with other paths."""
        return value

    def option(self, value: Any, folder: Path) -> Any:
        """A checked value as a field of ``Options``; ``folder`` has the files with relative paths."""
        return value

    def accept(self, value: Any) -> Any:
        """What Python passes to ``Options``."""
        return self.read(value, "")

    def merged(self, common: Any, own: Any) -> Any:
        """A field of ``Options`` from a value for all models and one for this model."""
        return own or common


class Setting(Generic[T, G]):
    """An entry of the table, and the field of ``Options`` with its value (a descriptor).

    ``about`` is the help of tinyml.yaml and of the reference page; ``command`` and ``ini`` replace it there.
    ``verbs`` lists the commands that have the option; empty: all that compile a model. ``describe`` gives the
    words for the provenance comment of generated C, in which default values do not appear.
    """

    def __init__(
        self,
        default: T,
        form: Form,
        about: str,
        *,
        name: str = "",
        places: Iterable[str] = PLACES,
        flag: str = "",
        metavar: str = "",
        command: str = "",
        ini: str = "",
        verbs: Sequence[str] = (),
        describe: Callable[[T], Iterable[str]] | None = None,
        into: str = "",
    ) -> None:
        self.default, self.form, self.about = default, form, about
        self.places = frozenset(places)
        self.flag, self.metavar, self.verbs = flag, metavar, verbs
        self.command, self.ini = command or about, ini or about
        self.into = into  # the setting whose values these join
        self._describe = describe
        if name:
            self.__set_name__(object, name)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.form.key = name
        self.flag = self.flag or f"--{name.replace('_', '-')}"

    def __get__(self, options: object, owner: type) -> T:
        if options is None:
            return DEFAULT
        value: T = options.__dict__[self.name]
        return value

    def __set__(self, options: object, value: T | G) -> None:
        options.__dict__[self.name] = self.default if value is DEFAULT else self.form.accept(value)

    @property
    def keyword(self) -> str:
        """The name of the argument in CMake."""
        return self.name.upper()

    def described(self, value: T) -> list[str]:
        """A value for the provenance comment; nothing for the default."""
        if value == self.default:
            return []
        if self._describe is not None:
            return list(self._describe(value))
        return [f"{self.name} {','.join(self.form.words(value))}"]


DEFAULT: Final[Any] = type("Default", (), {"__repr__": lambda self: "the default"})()
"""What a dataclass takes for the default of a field: a setting's own may be a mapping."""
