# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: would the tests notice a fault? python -m tools.mutate [--sample N] [NAME …]

A mutant is one small change in a kernel, a pass, the planner or the emitter. It is made in a copy of the
repository and run against the tests of that place; the tests must fail. Without arguments the named mutants
run; --sample N adds N changed comparisons and constants, chosen at random with a fixed seed.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = "plugin/tinyml"
KERNELS = "tests/host/test_every_kernel.py"
CORES = "tests/standalone/test_kernels.py"


@dataclass(frozen=True)
class Mutant:
    """``before`` occurs in ``file``; the first occurrence becomes ``after``."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]


NAMED = (
    Mutant(
        "fast path despite dilation (2, 1)",
        f"{PLUGIN}/runtime/conv/conv_stream_s8.h",
        "w->dilation_h != 1 || w->dilation_w != 1 || g->in_c",
        "w->dilation_w != 1 || g->in_c",
        (f"{KERNELS}", "-k", "tinyml_conv_s8"),
    ),
    Mutant(
        "a plane filled past its end",
        f"{PLUGIN}/runtime/conv/plane_s8.h",
        "tinyml_plane_min(w->in_h, plane->height - w->pad_top)",
        "w->in_h",
        (f"{KERNELS}", "-k", "tinyml_depthwise_conv_s8"),
    ),
    Mutant(
        "a clamp fused across different scales",
        f"{PLUGIN}/passes/fuse_activation.py",
        "if edit.tensors[before.outputs[0]].quant != edit.tensors[node.outputs[0]].quant:",
        "if False:",
        ("tests/host/test_pass_texts.py",),
    ),
    Mutant(
        "a reshape moved past quantisation per channel",
        f"{PLUGIN}/passes/sink_reshape.py",
        "if any(t.quant is not None and t.quant.per_channel for t in (*operands, y)):",
        "if False:",
        ("tests/host/test_pass_texts.py",),
    ),
    Mutant(
        "outputs freed by the schedule",
        f"{PLUGIN}/schedule.py",
        "if not memory.kept and not",
        "if not",
        ("tests/host/test_survivors.py", "-k", "schedule"),
    ),
    Mutant(
        "a tensor read twice inside a band",
        f"{PLUGIN}/bands/join.py",
        "if len(users) != 1 or name not in self.maker",
        "if not users or name not in self.maker",
        ("tests/host/test_survivors.py", "-k", "band"),
    ),
    Mutant(
        "a DSP kernel with shift 0",
        f"{PLUGIN}/runtime/weighted/output_s8.h",
        "__builtin_expect(shift < 0, 1)",
        "__builtin_expect(shift <= 0, 1)",
        (f"{KERNELS}", "-k", "tinyml_conv_s8 or tinyml_dense_s8"),
    ),
    Mutant(
        "*/ in comments",
        f"{PLUGIN}/c.py",
        '.replace("*/", "* /")',
        "",
        ("tests/host/test_survivors.py", "-k", "comment"),
    ),
    Mutant(
        "tied tables of different types",
        f"{PLUGIN}/kernel.py",
        "(values.dtype.str, hashlib.sha256(values.tobytes()).digest())",
        '("", hashlib.sha256(values.tobytes()).digest())',
        ("tests/host/test_survivors.py", "-k", "tables"),
    ),
)

SAMPLED = {
    f"{PLUGIN}/runtime/conv/conv_s8.c": (KERNELS, "-k", "tinyml_conv_s8"),
    f"{PLUGIN}/runtime/conv/conv_stream_s8.h": (KERNELS, "-k", "tinyml_conv_s8"),
    f"{PLUGIN}/runtime/conv/conv_loops.h": (KERNELS, "-k", "tinyml_conv_f32"),
    f"{PLUGIN}/runtime/conv/plane_s8.h": (KERNELS, "-k", "tinyml_depthwise_conv_s8"),
    f"{PLUGIN}/runtime/conv/depthwise_conv_s8.c": (KERNELS, "-k", "tinyml_depthwise_conv_s8"),
    f"{PLUGIN}/runtime/dense/dense_s8.c": (KERNELS, "-k", "tinyml_dense_s8"),
    f"{PLUGIN}/passes/fuse_activation.py": ("tests/host/test_pass_texts.py",),
    f"{PLUGIN}/passes/move_quantization.py": ("tests/host/test_pass_texts.py",),
    f"{PLUGIN}/passes/unsigned_to_signed.py": ("tests/host/test_pass_texts.py",),
    f"{PLUGIN}/plan/storage.py": ("tests/host/test_plan.py", "tests/host/test_survivors.py"),
    f"{PLUGIN}/emit/layers.py": ("tests/host/test_emit.py", "tests/host/test_survivors.py"),
}
"""Where sampled mutants are made, and the tests of each place."""

EQUIVALENT = {
    "type_ = node.op.infer([stored, *others])[-1]": "the operator has one output",
    "if before is None or edit.only_reader(node.inputs[-1]) is not node:": "a clamp has one input",
    "for (; CONV_TILE >= 1 && end - oc >= CONV_TILE; oc += CONV_TILE) {": "a tile of one is no tile",
}
"""Changes that change no result, so that no test can notice them; they are not sampled."""

CHANGES = (
    (r" < ", " <= "), (r" > ", " >= "), (r" == ", " != "), (r" != ", " == "), (r" \+ ", " - "),
    (r" and ", " or "), (r" && ", " || "), (r"\[0\]", "[-1]"), (r" not ", " "), (r" \* ", " + "),
)  # fmt: skip


def sampled(count: int, seed: int = 18) -> Iterator[Mutant]:
    """Single changes at random places of the files above, comments excepted."""
    rng = random.Random(seed)
    places = []
    for file in SAMPLED:
        for number, line in enumerate((ROOT / file).read_text().splitlines()):
            if line.lstrip().startswith(("*", "/*", "#", '"""', "from ", "import ", "TINYML_ASSERT(")):
                continue
            for pattern, after in CHANGES:
                changed = re.sub(pattern, after, line, count=1)
                if changed != line and '"""' not in line and changed.strip() not in EQUIVALENT:
                    places.append((file, number, line, changed))
    for file, number, line, after in rng.sample(places, min(count, len(places))):
        yield Mutant(f"{Path(file).name}:{number + 1}: {after.strip()}", file, line, after, SAMPLED[file])


def survives(mutant: Mutant) -> bool:
    """Whether the tests pass with the mutant in place."""
    with tempfile.TemporaryDirectory(prefix="tinyml-mutant-") as name:
        copy = Path(name) / "repository"
        ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "build", "twister-out*")
        shutil.copytree(ROOT, copy, ignore=ignored)
        path = copy / mutant.file
        text = path.read_text(encoding="utf-8")
        if mutant.before not in text:
            raise SystemExit(f"{mutant.name}: {mutant.file} has no {mutant.before!r} any more")
        path.write_text(text.replace(mutant.before, mutant.after, 1), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": f"{copy / 'plugin'}{os.pathsep}{copy}"}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *mutant.tests],
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode not in (0, 1):  # pytest found no tests, or could not run them
            raise SystemExit(f"{mutant.name}: {' '.join(mutant.tests)} does not run:\n{done.stdout[-2000:]}")
        return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the names of named mutants (default: all)")
    parser.add_argument(
        "--sample", type=int, default=0, metavar="N", help="also try this many sampled mutants"
    )
    args = parser.parse_args()
    named = [m for m in NAMED if not args.names or any(name in m.name for name in args.names)]
    mutants = [*named, *sampled(args.sample)]
    alive = []
    for mutant in mutants:
        survived = survives(mutant)
        print(f"{'SURVIVED' if survived else 'killed'}: {mutant.name}", flush=True)
        alive += [mutant.name] if survived else []
    print(f"{len(mutants) - len(alive)} of {len(mutants)} mutants killed")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
