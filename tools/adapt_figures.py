# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Measure what models that learn cost and bring, and write the tables of docs/adapt.md.

``python -m tools.adapt_figures [--only costs|gesture|own|word]``

Costs are those of keyword spotting of MLPerf Tiny on emulated cores. The gesture sample meets users that it
was not trained for; their recordings are synthesised as the sample does it.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tinyml import harness
from tinyml.bench import record
from tinyml.datasets.arrays import pattern_inputs
from tinyml.harness.footprint import MODEL, RUNTIME, Footprint
from tinyml.pipeline import Options, compile_model
from tools import benchmarks
from tools.adapt_samples import ROUNDS, SEEDS, gesture_gains, own_gesture
from tools.adapt_words import PERSONS, own_word

PAGE = ROOT / "docs" / "adapt.md"
MACHINES = ("qemu-cortex-m0", "qemu-cortex-m3", "qemu-cortex-m4", "qemu-cortex-m55", "qemu-riscv32")
KINDS: Mapping[str, Mapping[str, object]] = {
    "last": {"kind": "last"},
    "prototypes": {"kind": "prototypes", "classes": 12},
}
_EXAMPLE = {"last": "kws_learn(3)", "prototypes": "kws_enroll(3)"}
_CALLED = {
    "last": ("learn", "learnt", "restore", "factory"),
    "prototypes": ("enroll", "nearest", "forget", "learnt", "restore", "factory"),
}

LEARNING = """
int kws_run(void)
{
	const int status = kws_plain();

	return status != 0 ? status : EXAMPLE < 0 ? TINYML_EINVAL : 0;
}
"""
"""A run that takes an example."""

CALLING = """
static const void *const volatile kws_called[] = {FUNCTIONS};

int kws_run(void)
{
	return kws_called[0] == NULL ? TINYML_EINVAL : kws_plain();
}
"""
"""Keeps all functions that an application calls."""


@dataclass(frozen=True)
class Costs:
    """In addition to the same model that does not learn."""

    flash_bytes: int  # code and constants, without the C library
    ram_bytes: int
    run_instructions: int  # of the model that does not learn
    step_instructions: int
    learnt_instructions: int  # that a run takes longer when something is learnt

    @property
    def step_share(self) -> float:
        return self.step_instructions / self.run_instructions


def _flash(footprint: Footprint | None) -> int:
    assert footprint is not None
    return footprint.part(MODEL).flash + footprint.part(RUNTIME).flash


def costs(file: Path, kind: str, machine: str) -> Costs:
    """Of keyword spotting on a machine that counts instructions."""
    target = harness.find_machine(machine).target.name
    plain = compile_model(file, Options(name="kws", target=target))
    learning = compile_model(file, Options(name="kws", target=target, adapt=KINDS[kind]))
    sample = pattern_inputs(plain.graph)
    source = re.sub(
        r"^int kws_run\(void\)$", "static int kws_plain(void)", learning.files["kws.c"], flags=re.M
    )
    called = ", ".join(f"(const void *)kws_{name}" for name in _CALLED[kind])
    programs = (LEARNING.replace("EXAMPLE", _EXAMPLE[kind]), CALLING.replace("FUNCTIONS", called))
    before = harness.run_files(plain.files, machine, [sample])
    learns, calls = (
        harness.run_files({**learning.files, "kws.c": _declared(source) + program}, machine, [sample] * 2)
        for program in programs
    )
    assert before.instructions is not None
    assert learns.instructions is not None
    assert calls.instructions is not None
    step = learns.instructions[0] - calls.instructions[0]
    array = 4 * len(_CALLED[kind])
    return Costs(
        _flash(calls.footprint) - _flash(before.footprint) - array,
        int(learning.summary["adapt"]["ram_bytes"]),
        before.instructions[0],
        step,
        learns.instructions[1] - step - before.instructions[0],
    )


def _declared(source: str) -> str:
    """The function is used by ``kws_model`` under its own name; the copy that is measured has another."""
    return source.replace("#define AT(", "static int kws_plain(void);\n\n#define AT(", 1)


def costs_table() -> list[str]:
    """All machines, as the lines of a table."""
    file = Path(os.environ["TINYML_MODELS"]) / "mlperf_kws_int8.tflite"
    lines = [
        "| | core | RAM | flash | one example | share of a run | a run takes longer by |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for kind in KINDS:
        for machine in MACHINES:
            found = costs(file, kind, machine)
            target = harness.find_machine(machine).target.name
            lines.append(
                f"| `{kind}` | {target} | {found.ram_bytes:,} | {found.flash_bytes:,} "
                f"| {found.step_instructions:,} | {100 * found.step_share:.2f} % "
                f"| {found.learnt_instructions:,} |"
            )
    return lines


def _range(values: Sequence[float]) -> str:
    return f"{100 * np.mean(values):.1f} % ± {100 * np.std(values):.1f}"


def gesture_table() -> list[str]:
    """Users of the gesture sample, as the lines of a table."""
    lines = [
        f"| user ({len(SEEDS)} seeds, mean ± deviation) | before | each example once "
        f"| with copies, {ROUNDS} rounds | of what was lost, came back | a usual user then |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    gains = gesture_gains()
    lines.append(f"| as in training | {_range(gains[0].usual)} | | | | |")
    for gain in gains:
        back = " → ".join(f"{100 * np.mean(gain.regained(then)):.0f} %" for then in (gain.once, gain.after))
        lines.append(
            f"| {gain.user.words} | {_range(gain.before)} | {_range(gain.once)} | {_range(gain.after)} "
            f"| {back} | {_range(gain.usual_after)} |"
        )
    return lines


def own_table() -> list[str]:
    """The sample gesture_own, as the lines of a table."""
    lines = [
        f"| examples of the new gesture ({len(SEEDS)} seeds, mean ± deviation) "
        "| new gesture | trained ones |",
        "|---:|---:|---:|",
    ]
    for examples in (1, 3, 5):
        new, trained = own_gesture(examples)
        lines.append(f"| {examples} | {_range(new)} | {_range(trained)} |")
    return lines


def word_table() -> list[str]:
    """The sample wake_word_own, as the lines of a table."""
    lines = [
        f"| examples of the new word ({len(PERSONS)} voices, mean ± deviation) "
        "| recognised when said again | other words that are mistaken for it |",
        "|---:|---:|---:|",
    ]
    for examples in (1, 3, 5):
        same, other = own_word(examples)
        lines.append(f"| {examples} | {_range(same)} | {_range(other)} |")
    return lines


TABLES = {"costs": costs_table, "gesture": gesture_table, "own": own_table, "word": word_table}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", choices=TABLES, help="measure one table")
    only = parser.parse_args().only
    for name, measure in TABLES.items():
        if only in (None, name):
            table = "\n".join(measure())
            page = PAGE.read_text(encoding="utf-8")
            head, _, rest = page.partition(f"<!-- {name} -->\n")
            tail = rest.partition(f"<!-- /{name} -->")[2]
            text = f"{head}<!-- {name} -->\n{table}\n<!-- /{name} -->{tail}"
            PAGE.write_text(text, encoding="utf-8")
            print(f"{name}:\n{table}")
    kept = record.load(benchmarks.RECORD)
    benchmarks.PAGE.write_text(benchmarks.page(kept), encoding="utf-8")  # has some of the costs, too


if __name__ == "__main__":
    main()
