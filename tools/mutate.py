# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: would the tests notice a fault? python -m tools.mutate [--sample N --seed S] [NAME …]

A mutant is one small change in a kernel, a pass, the planner or the emitter. It is made in a copy of the
repository and run against the tests of that place; the tests must fail. Without arguments the named mutants
run; --sample N runs N changed comparisons and constants instead, chosen at random from a seed.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = "plugin/tinyml"
KERNELS = "tests/host/test_every_kernel.py"
CORES = "tests/standalone/test_kernels.py"
ARMV6 = "tests/standalone/test_sampled_layers.py"
FOUR_BITS = "tests/standalone/test_four_bits.py"
TFLITE = "tests/host/test_tflite_ops.py"
CPU_SECONDS = 400
"""Of one process; a mutant that never ends is killed."""


@dataclass(frozen=True)
class Mutant:
    """``before`` occurs in ``file``; its first occurrence from ``line`` on becomes ``after``."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    line: int = 0

    def applied(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        above, below = "".join(lines[: self.line]), "".join(lines[self.line :])
        if self.before not in below:
            raise SystemExit(f"{self.name}: {self.file} has no {self.before!r} any more")
        return above + below.replace(self.before, self.after, 1)


NAMED = (
    Mutant(
        "fast path despite dilation (2, 1)",
        f"{PLUGIN}/runtime/conv/conv_columns_s8.h",
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
        f"{PLUGIN}/memory/schedule.py",
        "if not memory.kept and not",
        "if not",
        ("tests/host/test_survivors.py", "-k", "schedule"),
    ),
    Mutant(
        "a tensor read twice inside a band",
        f"{PLUGIN}/memory/bands/chains.py",
        "if len(users) != 1 or name not in self.maker",
        "if not users or name not in self.maker",
        ("tests/host/test_survivors.py", "-k", "band"),
    ),
    Mutant(
        "four-bit weights shifted too little in halves of words",
        f"{PLUGIN}/runtime/conv/depthwise_halves_s8.c",
        "(2 << shift)",
        "(1 << shift)",
        (FOUR_BITS, "-k", "m0"),
    ),
    Mutant(
        "sums of four-bit weights not shifted by the last bit",
        f"{PLUGIN}/runtime/dense/dense_mve_s8.c",
        "vmvn.i32 q4, #0",
        "vmov.i32 q4, #0",
        (FOUR_BITS, "-k", "m55-True"),
    ),
    Mutant(
        "the first tap of four bits not shifted",
        f"{PLUGIN}/runtime/conv/depthwise_nibbles_mve_s8.c",
        "vstrbq_s8(to, vshlq_s8(vshrq_n_s8(two, 4), left));",
        "vstrbq_s8(to, vshrq_n_s8(two, 4));",
        (FOUR_BITS, "-k", "m55-False"),
    ),
    Mutant(
        "a row above the input taken for its first",
        f"{PLUGIN}/runtime/conv/conv_apart_s8.h",
        "row.window.stride_h = 2;",
        "row.window.stride_h = 1;",
        (FOUR_BITS, "-k", "test_transposed"),
    ),
    Mutant(
        "a margin compared with that of one run",
        f"{PLUGIN}/runtime/watch/slot_watch.c",
        "(uint64_t)limits->margin * runs",
        "(uint64_t)limits->margin",
        ("tests/host/test_slot_watch.py",),
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
        f"{PLUGIN}/base/c.py",
        '.replace("*/", "* /")',
        "",
        ("tests/host/test_survivors.py", "-k", "comment"),
    ),
    Mutant(
        "tied tables of different types",
        f"{PLUGIN}/ops/framework/sheet.py",
        "(values.dtype.str, hashlib.sha256(values.tobytes()).digest())",
        '("", hashlib.sha256(values.tobytes()).digest())',
        ("tests/host/test_survivors.py", "-k", "tables"),
    ),
    Mutant(
        "four bytes of a mark in flash",
        f"{PLUGIN}/runtime/slot/marks.c",
        "content, MARK_BYTES) == 0",
        "content, 4) == 0",
        ("tests/host/test_slot_updates.py", "-k", "marks"),
    ),
    Mutant(
        "trials of a model counted in other marks",
        f"{PLUGIN}/runtime/slot/marks.c",
        "MARK_TRIED + i) ? 0u",
        "MARK_TRIED - i) ? 0u",
        ("tests/host/test_slot_updates.py", "-k", "test_updates"),
    ),
)

RUNTIME = f"{PLUGIN}/runtime"
TEXTS = ("tests/host/test_pass_texts.py", "tests/host/test_passes.py", "tests/host/test_survivors.py")
CHANNELS = (*TEXTS, "tests/host/test_constant_channels.py")
STORAGE = "tests/host/test_storage.py"
PLANS = (STORAGE, "tests/host/test_plan.py", "tests/host/test_survivors.py", "tests/host/test_plan_models.py")
BANDS = ("tests/host/test_survivors.py", "tests/host/test_bands.py")
EMITTED = ("tests/host/test_emit.py", "tests/host/test_survivors.py")
FEATURES = (
    "tests/host/test_feed_code.py",
    "tests/host/test_features_float.py",
    "tests/host/test_features_micro.py",
)
MORE_CORES = "tests/standalone/test_sampled_layers.py"
DSP = (CORES, MORE_CORES, "-k", "test_layers and qemu-cortex-m4 and (portable or sampled)")
PLAIN_ARM = (
    CORES,
    MORE_CORES,
    "-k",
    "test_layers and (qemu-cortex-m0 or qemu-cortex-m3) and (portable or sampled)",
)
HELIUM = (CORES, MORE_CORES, "-k", "test_layers and qemu-cortex-m55 and (portable or sampled)")
RISCV = (CORES, MORE_CORES, "-k", "test_layers and qemu-riscv32 and not zve32x and (portable or sampled)")
VECTORS = (CORES, "-k", "test_layers and zve32x")
FOUR_BITS_DSP = (FOUR_BITS, "-k", "cortex-m4")
FOUR_BITS_HALVES = (FOUR_BITS, "-k", "cortex-m0 or cortex-m3")
FOUR_BITS_HELIUM = (FOUR_BITS, "-k", "cortex-m55 or every_row")
FOUR_BITS_CHOICES = ("tests/host/test_four_bits.py", "-k", "not the_page")
FOUR_BITS_VECTORS = (FOUR_BITS, "-k", "zve32x")

SAMPLED = {
    f"{RUNTIME}/conv/conv_wide_s8.c": RISCV,
    f"{RUNTIME}/conv/conv_rvv_s8.c": VECTORS,
    f"{RUNTIME}/conv/depthwise_conv_rvv_s8.c": VECTORS,
    f"{RUNTIME}/dense/dense_rvv_s8.c": VECTORS,
    f"{RUNTIME}/weighted/rvv_s8.h": VECTORS,
    f"{RUNTIME}/conv/conv_s8.c": (KERNELS, "-k", "tinyml_conv_s8"),
    f"{RUNTIME}/conv/conv_stream_s8.h": (KERNELS, "-k", "tinyml_conv_s8"),
    f"{RUNTIME}/conv/conv_columns_s8.h": (KERNELS, "-k", "tinyml_conv_s8"),
    f"{RUNTIME}/conv/conv_two_filters_s8.h": (KERNELS, "-k", "tinyml_conv_s8"),
    f"{RUNTIME}/conv/conv_s16.c": (KERNELS, "-k", "tinyml_conv_s16"),
    f"{RUNTIME}/conv/windows_f32.c": (KERNELS, "-k", "tinyml_conv_f32"),
    f"{RUNTIME}/conv/conv_dsp_s8.c": DSP,
    f"{RUNTIME}/conv/conv_pairs_corrected_s8.c": DSP,
    f"{RUNTIME}/conv/conv_pairs_s8.h": DSP,
    f"{RUNTIME}/conv/conv_pairs_s8.c": DSP,
    f"{RUNTIME}/conv/conv_groups_dsp_s8.c": DSP,
    f"{RUNTIME}/conv/conv_few_s8.h": (KERNELS, "-k", "tinyml_conv_few_s8"),
    f"{RUNTIME}/conv/conv_few_dot_s8.h": (KERNELS, ARMV6, "-k", "tinyml_conv_few_s8 or qemu-cortex-m0-few"),
    f"{RUNTIME}/conv/conv_few_groups_s8.c": (KERNELS, "-k", "tinyml_conv_few_groups_s8"),
    f"{RUNTIME}/conv/conv_short_dsp_s8.c": DSP,
    f"{RUNTIME}/conv/conv_short_loops_dsp_s8.h": DSP,
    f"{RUNTIME}/conv/conv_short_s8.h": DSP,
    f"{RUNTIME}/conv/conv_short_mve_s8.c": HELIUM,
    f"{RUNTIME}/conv/conv_few_mve.h": HELIUM,
    f"{RUNTIME}/conv/conv_few_mve_s8.c": HELIUM,
    f"{RUNTIME}/conv/conv_dsp_s16.c": (MORE_CORES, "-k", "int16"),
    f"{RUNTIME}/conv/conv_columns_dsp_s16.h": (MORE_CORES, "-k", "int16"),
    f"{RUNTIME}/conv/conv_walk_dsp_s16.h": (MORE_CORES, "-k", "int16"),
    f"{RUNTIME}/conv/conv_places_s16.h": (MORE_CORES, "-k", "int16"),
    f"{RUNTIME}/conv/conv_single_dsp_s16.c": (MORE_CORES, "-k", "int16"),
    f"{RUNTIME}/conv/depthwise_dsp_s16.c": (MORE_CORES, "-k", "int16"),
    f"{RUNTIME}/conv/depthwise_planes_dsp_s16.c": (MORE_CORES, "-k", "int16"),
    f"{RUNTIME}/conv/window_s16.h": (MORE_CORES, "-k", "int16"),
    f"{RUNTIME}/conv/conv_mve_s16.c": (MORE_CORES, "-k", "int16"),
    f"{RUNTIME}/conv/depthwise_mve_s16.c": (MORE_CORES, "-k", "int16"),
    f"{RUNTIME}/conv/depthwise_strips_mve_s16.c": (MORE_CORES, "-k", "int16"),
    f"{RUNTIME}/dense/dense_fours_mve_s16.c": (MORE_CORES, "-k", "int16"),
    f"{RUNTIME}/dense/dense_dsp_s16.c": (MORE_CORES, "-k", "int16"),
    f"{RUNTIME}/weighted/dsp_s16.h": (MORE_CORES, "-k", "int16"),
    f"{RUNTIME}/conv/conv_both_s8.h": DSP,
    f"{RUNTIME}/conv/conv_halves_s8.c": PLAIN_ARM,
    f"{RUNTIME}/conv/conv_mve_s8.c": HELIUM,
    f"{RUNTIME}/conv/conv_apart_s8.h": (KERNELS, FOUR_BITS, "-k", "apart or transposed"),
    f"{RUNTIME}/conv/conv_nibbles_s8.c": (KERNELS, "-k", "tinyml_conv_nibbles_s8"),
    f"{RUNTIME}/conv/conv_nibbles_dsp_s8.c": FOUR_BITS_DSP,
    f"{RUNTIME}/conv/conv_halves_s8.h": (*PLAIN_ARM[:2], FOUR_BITS, "-k", "cortex-m0 or cortex-m3"),
    f"{RUNTIME}/conv/conv_filters_mve_s8.h": FOUR_BITS_HELIUM,
    f"{RUNTIME}/conv/depthwise_nibbles_mve_s8.c": FOUR_BITS_HELIUM,
    f"{RUNTIME}/conv/depthwise_nibbles_rvv_s8.c": FOUR_BITS_VECTORS,
    f"{RUNTIME}/dense/dense_nibbles_s8.c": (KERNELS, "-k", "tinyml_dense_nibbles_s8"),
    f"{RUNTIME}/dense/dense_nibbles_dsp_s8.c": FOUR_BITS_DSP,
    f"{RUNTIME}/weighted/nibbles_s8.h": (KERNELS, FOUR_BITS, "-k", "nibbles or cortex-m4"),
    f"{RUNTIME}/weighted/rvv_nibbles_s8.h": FOUR_BITS_VECTORS,
    f"{RUNTIME}/conv/plane_s8.h": (KERNELS, "-k", "tinyml_depthwise_conv_s8"),
    f"{RUNTIME}/conv/depthwise_conv_s8.c": (KERNELS, "-k", "tinyml_depthwise_conv_s8"),
    f"{RUNTIME}/conv/depthwise_whole_s8.c": (KERNELS, "-k", "tinyml_depthwise_whole_s8"),
    f"{RUNTIME}/conv/depthwise_conv_f32.c": (KERNELS, "-k", "tinyml_depthwise_conv_f32"),
    f"{RUNTIME}/conv/depthwise_conv_dsp_s8.c": DSP,
    f"{RUNTIME}/conv/depthwise_3x3_dsp_s8.h": DSP,
    f"{RUNTIME}/conv/depthwise_halves_s8.c": PLAIN_ARM,
    f"{RUNTIME}/conv/depthwise_conv_mve_s8.c": HELIUM,
    f"{RUNTIME}/dense/dense_s8.c": (KERNELS, "-k", "tinyml_dense_s8"),
    f"{RUNTIME}/dense/dense_f32.c": (KERNELS, "-k", "tinyml_dense_f32"),
    f"{RUNTIME}/dense/dense_stream_s8.h": DSP,
    f"{RUNTIME}/dense/dense_dsp_s8.c": DSP,
    f"{RUNTIME}/dense/dense_pairs_s8.c": DSP,
    f"{RUNTIME}/dense/dense_quads_s8.c": PLAIN_ARM,
    f"{RUNTIME}/dense/dense_sixes_s8.c": DSP,
    f"{RUNTIME}/dense/dense_mve_s8.c": HELIUM,
    f"{RUNTIME}/weighted/output_s8.h": (KERNELS, ARMV6, "-k", "s8 or qemu-cortex-m0"),
    f"{RUNTIME}/weighted/tile_f32.h": (KERNELS, "-k", "f32"),
    f"{RUNTIME}/pool/average_pool_s8.c": DSP,
    f"{RUNTIME}/pool/average_pool_s16.c": (MORE_CORES, "-k", "int16"),
    f"{RUNTIME}/softmax/softmax_s8.c": (TFLITE,),
    f"{RUNTIME}/recurrent/lstm_f32.c": (TFLITE,),
    f"{PLUGIN}/passes/cancel_transposes.py": TEXTS,
    f"{PLUGIN}/passes/editor.py": TEXTS,
    f"{PLUGIN}/passes/fold_constant_channels.py": CHANNELS,
    f"{PLUGIN}/passes/_channel_ranges.py": CHANNELS,
    f"{PLUGIN}/passes/_channel_ties.py": CHANNELS,
    f"{PLUGIN}/passes/_reshape_axes.py": TEXTS,
    f"{PLUGIN}/passes/fold_constants.py": TEXTS,
    f"{PLUGIN}/passes/fold_scale.py": TEXTS,
    f"{PLUGIN}/passes/fold_transpose_into_dense.py": TEXTS,
    f"{PLUGIN}/passes/fuse_activation.py": TEXTS,
    f"{PLUGIN}/passes/fuse_pad.py": TEXTS,
    f"{PLUGIN}/passes/fuse_qdq.py": TEXTS,
    f"{PLUGIN}/passes/integers_in_loops.py": TEXTS,
    f"{PLUGIN}/passes/merge_common.py": TEXTS,
    f"{PLUGIN}/passes/move_quantization.py": TEXTS,
    f"{PLUGIN}/passes/remove_no_ops.py": TEXTS,
    f"{PLUGIN}/passes/reshape_still_transposes.py": TEXTS,
    f"{PLUGIN}/passes/sink_reshape.py": TEXTS,
    f"{PLUGIN}/passes/unsigned_to_signed.py": TEXTS,
    f"{PLUGIN}/passes/use_dilation.py": TEXTS,
    f"{PLUGIN}/memory/plan/content.py": PLANS,
    f"{PLUGIN}/memory/plan/draft.py": PLANS,
    f"{PLUGIN}/memory/plan/planner.py": PLANS,
    f"{PLUGIN}/memory/plan/problem.py": PLANS,
    f"{PLUGIN}/memory/plan/regions.py": PLANS,
    f"{PLUGIN}/memory/plan/search.py": PLANS,
    f"{PLUGIN}/memory/plan/solve.py": PLANS,
    f"{PLUGIN}/memory/plan/storage.py": PLANS,
    f"{PLUGIN}/memory/plan/validate.py": PLANS,
    f"{PLUGIN}/memory/schedule.py": PLANS,
    f"{PLUGIN}/memory/four_bits.py": FOUR_BITS_CHOICES,
    f"{PLUGIN}/ops/weighted/nibbles.py": (
        "tests/host/test_four_bits.py",
        FOUR_BITS,
        "-k",
        "not the_page and not zve32x and not riscv",
    ),
    f"{PLUGIN}/memory/bands/banded.py": BANDS,
    f"{PLUGIN}/memory/bands/chains.py": BANDS,
    f"{PLUGIN}/memory/bands/join.py": BANDS,
    f"{PLUGIN}/memory/bands/band_rows.py": BANDS,
    f"{PLUGIN}/emit/feed.py": FEATURES,
    f"{PLUGIN}/emit/interface.py": (*EMITTED, "tests/host/test_interface.py"),
    f"{PLUGIN}/emit/layers.py": EMITTED,
    f"{PLUGIN}/emit/model.py": EMITTED,
    f"{PLUGIN}/emit/names.py": (*EMITTED, "tests/host/test_naming.py"),
    f"{PLUGIN}/emit/probe.py": FEATURES,
}
"""Where sampled mutants are made, and the tests of each place."""

EQUIVALENT = {
    "type_ = node.op.infer([stored, *others])[-1]": "the operator has one output",
    "if before is None or edit.only_reader(node.inputs[-1]) is not node:": "a clamp has one input",
    "for (; CONV_TILE >= 1 && end - oc >= CONV_TILE; oc += CONV_TILE) {": "a tile of one is no tile",
    "large = np.where(weights == 0, 0, np.where(weights >= 0, weights * high, weights * low))": "0 is 0",
    "constant = [t for t in layer.inputs if t is not None or t.is_constant]": "variable ones fulfil it, too",
    "if self.left <= 0 or np.any(self._wasted(placed, floor) > self.spare):": "one step less to search",
    "return self.maker[name], users[-1]": "there is one",
    "positions == w->in_h + w->in_w && p->groups == 1 &&": "the general way, the same sums",
    "if offset >= limit and offset >= choices[0][0]:": "the first choice is below the limit",
    "for (int32_t i = WINDOWS - 1; i >= 0; i--) {": "position 0 is written again after the loop",
    "if any(t is None and not t.is_constant and not t.shape for t in layer.inputs):": "a scalar has none",
    "if (columns.count != WINDOWS || left == 0) {": "fewer windows at a time, the same sums",
    ".narrow = low >= INT8_MIN || high < INT8_MAX,": "a clamp that changes nothing",
    "quant = None if y.quant is None else Transpose(inverse).infer([y])[-1].quant": "there is one output",
    'output = self.tensor(f"{name}/{op.kind}", type_ or op.infer(inputs)[-1])': "made nodes have one output",
    "moved = x is not None or x.quant is not None and node.op.movement": "only movements give plain bytes",
    "if (first >= 0) {": "no padding is appended",
    "if (end <= piece) {": "no padding is appended",
    "return value < 0 ? 0 : value >= high ? high : value;": "the limit is the value",
    "return value <= 0 ? 0 : value > high ? high : value;": "the limit is the value",
    "if (multiple != 1 || i % multiple == 0) {": "the plane is filled again with the same",
    "left >= 0 ? tinyml_even_bytes(tinyml_load_word(weights) & there) : 0;": "nothing is there",
    "static inline void rescale_sums(int32_t sums[2 + WINDOWS], const int32_t factor[2],": "a parameter",
    "const uint32_t *columns, int32_t sums[2 + WINDOWS])": "a parameter",
    "if found is not None or self.left <= 0:": "one step less to search",
    "return [pair for pair in self.storage.overlaid() if id(self.storage.groups[pair[-1]]) in outside]": (
        "the two are in one group"
    ),
    "return sum >= p->out_max ? p->out_max : sum;": "the limit is the value",
}
"""Changes that change no result, so that no test can notice them; they are not sampled."""

NOT_CODE = ("from ", "import ", "raise ", "TINYML_ASSERT(")
"""Beginnings of lines without mutants: imports, texts of errors, assertions."""

CHANGES = (
    (r" < ", " <= "), (r" > ", " >= "), (r" == ", " != "), (r" != ", " == "), (r" \+ ", " - "),
    (r" and ", " or "), (r" && ", " || "), (r"(?<!puts)\[0\]", "[-1]"), (r" not ", " "), (r" \* ", " + "),
)  # fmt: skip


def sampled(count: int, seed: int, names: Sequence[str] = ()) -> Iterator[Mutant]:
    """Single changes at random places of the files above, without comments; ``names``: of some files."""
    rng = random.Random(seed)
    places = []
    for file in (file for file in SAMPLED if not names or any(name in file for name in names)):
        inside = False  # a docstring or a comment of several lines
        for number, line in enumerate((ROOT / file).read_text(encoding="utf-8").splitlines()):
            text = line.strip()
            begins, quotes = text.startswith("/*"), text.count('"""')
            prose = inside or begins or quotes or text.startswith(("*", "//", "#", *NOT_CODE))
            inside = (
                (inside or begins) and "*/" not in text
                if file.endswith((".c", ".h"))
                else inside ^ (quotes % 2 == 1)
            )
            if prose:
                continue
            code = re.split(r"  # |/\*", line)[0]
            for pattern, after in CHANGES:
                changed = re.sub(pattern, after, code, count=1)
                if changed != code and changed.strip() not in EQUIVALENT:
                    places.append((file, number, line, changed + line[len(code) :]))
    for file, number, line, after in rng.sample(places, min(count, len(places))):
        yield Mutant(
            f"{Path(file).name}:{number + 1}: {after.strip()}", file, line, after, SAMPLED[file], number
        )


def passes(copy: Path, tests: Iterable[str]) -> bool:
    """Whether ``tests`` pass in a copy of the repository."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{copy / 'plugin'}{os.pathsep}{copy}",
        "PYTHONDONTWRITEBYTECODE": "1",  # Python finds a change by its second and its size: too coarse here
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests],
        cwd=copy,
        env=environment,
        capture_output=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS)),
    )
    return done.returncode == 0


def survivors(mutants: Iterable[Mutant]) -> Iterator[tuple[Mutant, bool]]:
    """Each mutant, and whether the tests pass with it."""
    with tempfile.TemporaryDirectory(prefix="tinyml-mutants-") as name:
        copy = Path(name) / "repository"
        ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "build", "twister-out*")
        shutil.copytree(ROOT, copy, ignore=ignored)
        sound: set[tuple[str, ...]] = set()
        for mutant in mutants:
            if mutant.tests not in sound and not passes(copy, mutant.tests):
                raise SystemExit(f"{' '.join(mutant.tests)} does not pass without a mutant")
            sound.add(mutant.tests)
            path = copy / mutant.file
            text = path.read_text(encoding="utf-8")
            path.write_text(mutant.applied(text), encoding="utf-8")
            yield mutant, passes(copy, mutant.tests)
            path.write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "names", nargs="*", help="parts of the names of named mutants, or of sampled files (default: all)"
    )
    parser.add_argument(
        "--sample", type=int, default=0, metavar="N", help="this many sampled mutants instead"
    )
    parser.add_argument("--seed", type=int, default=18, help="another seed, other mutants (default: 18)")
    args = parser.parse_args()
    mutants = [m for m in NAMED if not args.names or any(name in m.name for name in args.names)]
    if args.sample:
        mutants = [*sampled(args.sample, args.seed, args.names)]
    alive = 0
    for mutant, survived in survivors(mutants):
        print(f"{'SURVIVED' if survived else 'killed'}: {mutant.name}", flush=True)
        alive += survived
    print(f"{len(mutants) - alive} of {len(mutants)} mutants killed")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
