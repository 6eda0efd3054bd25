# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The interface of a verb, and the entry point that runs one."""

from __future__ import annotations

import argparse
import inspect
import io
import logging
import os
import re
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tinyml.base.errors import INTERRUPTED, ConfigError, TinymlError
from tinyml.ops.framework.registration import outside_faults
from tinyml.verbs.output_files import refuse_overwriting
from tinyml.verbs.parser import Parser, add_loudness

if TYPE_CHECKING:
    from rich.console import Console

TERMINATED = 143
"""The exit code of programs that SIGTERM ends."""


class Verb(ABC):
    """One command. The docstring of a subclass is its long help."""

    name: ClassVar[str]
    help: ClassVar[str]

    @abstractmethod
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command line."""

    @abstractmethod
    def run(self, args: argparse.Namespace, console: Console) -> int:
        """Run the verb; returns the exit code. Raises TinymlError for mistakes that the user can fix."""


def add_app_argument(parser: argparse.ArgumentParser) -> None:
    """`--app`, the same for all verbs that work on an application."""
    parser.add_argument(
        "--app",
        type=Path,
        metavar="DIR",
        help="the application's folder (default: the one that contains the current folder)",
    )


def print_notes(console: Console, notes: Iterable[str], prefix: str = "") -> None:
    """What the user must know about how the model was read."""
    typed = getattr(console, "typed", str)
    for note in notes:
        console.print(f"{prefix}note: {typed(note)}", markup=False, soft_wrap=True)


def commands_typed_as(prog: str, verbs: Iterable[str]) -> Callable[[str], str]:
    """Messages say `tinyml compile`; who types `west tinyml` may not have the command `tinyml`."""
    command = re.compile(
        rf"(?<![\w/.-])(?<!west )tinyml (?=(?:{'|'.join(verbs)})(?:[ `,;:)]|$))", re.MULTILINE
    )
    return lambda text: command.sub(f"{prog} ", text)


def roomy(console: Console, width: int = 160) -> Console:
    """A console for tables: a log has no width, so lines need not wrap at 80 columns."""
    from rich.console import Console as NewConsole

    if console.is_terminal or "COLUMNS" in os.environ:
        return console
    return NewConsole(file=console.file, width=width, highlight=False, quiet=console.quiet)


def add_clock_argument(parser: argparse.ArgumentParser) -> None:
    """`--mhz`: estimated cycles as a time."""
    parser.add_argument(
        "--mhz",
        type=_clock_rate,
        metavar="MHZ",
        help="the core's clock: shows estimated cycles in milliseconds",
    )


def _clock_rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a clock rate in MHz, for example 120")
    return rate


def build_parser(
    verbs: Iterable[Verb], prog: str, version: str, only: Container[str] | None = None
) -> Parser:
    """The command line of all verbs under one program name; with the arguments of ``only`` these verbs."""
    parser = Parser(
        prog=prog, description="Neural networks as source files of a firmware: ONNX and TFLite compiled to C."
    )
    parser.add_argument("--version", action="version", version=f"west-tinyml {version}")
    add_loudness(parser, default=0)
    choices = parser.add_subparsers(metavar="VERB", required=True)
    for verb in verbs:
        description = inspect.cleandoc(type(verb).__doc__ or verb.help)
        sub = choices.add_parser(
            verb.name,
            help=verb.help,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if only is not None and verb.name not in only:
            continue
        verb.add_arguments(sub)
        add_loudness(sub, default=argparse.SUPPRESS)  # so that it does not undo what stands before the verb
        sub.set_defaults(verb=verb, parser=sub)
    return parser


def main(verbs: Iterable[Verb], argv: Sequence[str], prog: str, version: str) -> int:
    """Parse ``argv``, run the verb, print a user's mistake without a traceback."""
    verbs = tuple(verbs)
    as_typed = commands_typed_as(prog, [verb.name for verb in verbs])
    completing = "_ARGCOMPLETE" in os.environ  # then the words are in another variable
    parser = build_parser(verbs, prog, version, only=None if completing else argv)
    _complete(parser)
    args, unknown = parser.parse_known_args(list(argv) or ["--help"])
    if unknown:
        args.parser.unknown(unknown)
    _expect_any_text()
    from rich.console import Console  # after --help, which works without any installed package

    class Output(Console):
        typed = staticmethod(as_typed)

        def on_broken_pipe(self) -> None:
            """Rich would end the program with an error."""
            raise  # called where BrokenPipeError is handled

    if args.loudness > 0:
        _log_to_stderr()
    try:
        for word in argv:
            if "\0" in word:  # no system passes one, but a program that calls this may
                raise ConfigError(f"{word!r} has a NUL character and is not a file name")
        refuse_overwriting(args)
        with outside_faults(), _terminable():
            code: int = args.verb.run(args, Output(highlight=False, quiet=args.loudness < 0))
            sys.stdout.flush()  # here an error can still be reported
    except TinymlError as error:
        return _complain(error, as_typed)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return INTERRUPTED
    except _Terminated:
        return TERMINATED
    except BrokenPipeError:  # `tinyml ops | head`: nobody reads the rest
        _drop_output()
        return 0
    except OSError as error:  # of the system, and nothing closer to it has explained it
        logging.getLogger("tinyml").debug("where it happened:", exc_info=True)
        code = _complain(_of_the_system(error), as_typed)
        _drop_output()  # which may be what cannot be written
    except MemoryError:
        few = TinymlError("there is not enough memory", "a smaller model, or fewer samples")
        return _complain(few, as_typed)
    return code


def _complain(error: TinymlError, as_typed: Callable[[str], str]) -> int:
    from rich.console import Console

    complaint = Console(stderr=True, highlight=False, soft_wrap=True)
    complaint.print("error:", style="bold red", end=" ")
    complaint.print(as_typed(str(error)), markup=False)
    return 1


def _of_the_system(error: OSError) -> TinymlError:
    """An error that the operating system reports: a full disk, a file that may not be read."""
    try:
        Path.cwd()
    except OSError:
        return ConfigError("the current folder no longer exists", "change into another folder")
    where = f"{error.filename}: " if error.filename else ""
    return ConfigError(f"{where}{error.strerror or error}", "-v shows where it happened")


def _drop_output() -> None:
    """Nothing more can be written to stdout, so what waits there would fail when the program ends."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # captured in memory
        return


def _expect_any_text() -> None:
    """Write characters that a terminal's encoding lacks as escapes, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if os.environ.get("COLUMNS") == "0":  # some consoles say so; rich would print nothing
        del os.environ["COLUMNS"]


class _Terminated(BaseException):
    """SIGTERM: unlike the system's way, files that are half written and programs that run are tidied up."""


@contextmanager
def _terminable() -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():  # only there signals can be handled
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell if it is completing a command line (see the verb `completion`); else do nothing."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete  # the script that set the variable came from this package

        argcomplete.autocomplete(parser)


def _log_to_stderr() -> None:
    log = logging.getLogger("tinyml")
    log.addHandler(logging.StreamHandler())
    log.setLevel(logging.DEBUG)
