# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Give broken files to the importers, the calibration readers and the manifest reader.

``python -m tools.fuzz [--runs 1000000] [--seed 0] [--target onnx] [--atheris CORPUS]``

Good files are changed at random, by a fixed seed, and each is read and compiled. Anything but a result or a
TinymlError is a finding: it is saved in --out, and its traceback printed. --atheris lets atheris (from PyPI)
choose the changes, guided by coverage, for one target.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError


def _instrumented() -> AbstractContextManager[object]:
    """With --atheris, counters go into the compiler while it is imported."""
    if "--atheris" not in sys.argv:
        return nullcontext()
    import atheris

    found: AbstractContextManager[object] = atheris.instrument_imports(include=["tinyml"])
    return found


with _instrumented():
    from tests.support.fuzz_targets import TARGETS, Target, small_limits, tried

SECONDS = 60
"""An input that takes longer, in time of the processor, is a finding."""

MEMORY_BYTES = 6 * 2**30


class TooSlow(Exception):
    """An input took too long."""


def inputs(target: Target, seed: int, runs: int) -> Iterator[tuple[int, bytes]]:
    """Numbered inputs; one can be made again from its number and the seed."""
    good = target.seeds()
    for number in range(runs):
        rng = random.Random(f"{seed} {number}")
        try:
            yield number, target.change(rng.choice(good), rng)
        except (ValueError, TypeError, OverflowError):
            continue  # protobuf does not take the value


def place(error: BaseException) -> str:
    """The last line of ours in a traceback: findings with the same one are the same."""
    own = [f for f in traceback.extract_tb(error.__traceback__) if "/tinyml/" in f.filename]
    last = own[-1] if own else traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"


def fuzz(name: str, seed: int, runs: int, out: Path) -> tuple[int, int, Counter[str]]:
    """Inputs tried, inputs accepted, and findings by place."""
    target, found, accepted, count = TARGETS[name], Counter[str](), 0, 0
    started = last = time.monotonic()
    for number, content in inputs(target, seed, runs):
        count += 1
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            accepted += tried(target, content)
        except Exception as error:  # a finding, whatever it is
            signal.setitimer(signal.ITIMER_PROF, 0)
            what = place(error)
            found[what] += 1
            if found[what] == 1:
                file = out / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"
                out.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
                print(f"{name} {number}: {what}: {error!s:.200}\n  saved as {file}", flush=True)
                traceback.print_exception(error, limit=-6)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if time.monotonic() - last > 60:
            last = time.monotonic()
            rate = count / (last - started)
            print(
                f"{name}: {count} inputs, {accepted} accepted, {rate:.0f}/s, {len(found)} findings",
                flush=True,
            )
    return count, accepted, found


def with_atheris(name: str, corpus: Path, runs: int) -> None:
    import atheris

    target = TARGETS[name]
    corpus.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(target.seeds()):
        (corpus / f"seed{i}").write_bytes(seed)
    arguments = [f"-runs={runs}", "-rss_limit_mb=6000", f"-timeout={SECONDS}", "-max_len=65536", str(corpus)]

    def changed(data: bytes, most: int, seed: int) -> bytes:
        """Half of the changes are libFuzzer's, half know the format."""
        rng = random.Random(seed)
        try:
            return target.change(data, rng)[:most] if rng.random() < 0.5 else atheris.Mutate(data, most)
        except (ValueError, TypeError, OverflowError, DecodeError):  # no message of ONNX any more
            return bytes(atheris.Mutate(data, most))

    def one(data: bytes) -> None:
        tried(target, data)

    atheris.Setup([sys.argv[0], *arguments], one, custom_mutator=changed)
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000, help="inputs, shared among the targets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=TARGETS, action="append", help="only these")
    parser.add_argument("--out", type=Path, default=Path("fuzz-findings"), help="folder for findings")
    parser.add_argument("--atheris", type=Path, metavar="CORPUS", help="guided by coverage, for one target")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    names = options.target or list(TARGETS)
    with small_limits():
        if options.atheris:
            with_atheris(names[0], options.atheris, options.runs)
            return 0
        signal.signal(signal.SIGPROF, _too_slow)
        shares = {name: 4 if name in ("onnx", "tflite") else 1 for name in names}
        findings = 0
        for name in names:
            runs = options.runs * shares[name] // sum(shares.values())
            count, accepted, found = fuzz(name, options.seed, runs, options.out)
            findings += len(found)
            print(f"{name}: {count} inputs, {accepted} accepted, {len(found)} findings", flush=True)
            for what, times in found.most_common():
                print(f"  {times:6} {what}")
    return 1 if findings else 0


def _too_slow(signum: int, frame: Any) -> None:
    raise TooSlow(f"more than {SECONDS} seconds")


if __name__ == "__main__":
    sys.exit(main())
