# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Estimates of layers that are loops in the model's own C: work counted by hand, and held-out layers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinyml.cost.loops.conditions import UnknownCondition, true_part
from tinyml.cost.loops.loop_work import Setting, normalized, work_of
from tinyml.cost.loops.tree import parse
from tinyml.cost.model import find_model
from tinyml.pipeline import Options, compile_model
from tools.cost_errors import GOAL, own_loop_layers
from tools.fit_own_loops import fitted

DIGITS = Path(__file__).parents[2] / "samples" / "digits" / "model.onnx"
FLOATS = Setting("element-wise loops", "float32", "float32,float32>float32", "float", 4, False)
ADDED = """\
	for (int32_t i0 = 0; i0 < 7; i0++) {
		for (int32_t i1 = 0; i1 < 48; i1++) {
			y[i0 * 48 + i1] = x0[i0 * 48 + i1] +
				x1[i0];
		}
	}
"""
POOLED = """\
	for (int32_t o0 = 0; o0 < 3; o0++) {
		float best = -INFINITY;

		for (int32_t k0 = 0; k0 < 3; k0++) {
			const int32_t i0 = o0 + k0 - 1;

			if (i0 < 0 || i0 >= 3) {
				continue;
			}
			best = x[i0] > best ? x[i0] : best;
		}
		y[o0] = best;
	}
"""
SQUARE = """\
	for (int32_t c = 0; c < 16; c++) {
		for (int32_t k0 = 0; k0 < 2; k0++) {
			for (int32_t k1 = 0; k1 < 2; k1++) {
				best = x[k0 * 2 + k1] > best ? x[k0 * 2 + k1] : best;
			}
		}
	}
"""
PADDED = """\
	for (int32_t i = 0; i < 5; i++) {
		memmove(&y[16 - i * 4], &x[12 - i * 3], 12);
	}
"""
FEWEST_CLOSE = {"qemu-cortex-m4": 0.66}
"""The part of the held-out layers whose estimate is within 10 %."""


def test_broadcast_sum() -> None:
    """Two loops: how often each begins and turns, and what its body does, on a line that was broken."""
    work = work_of(ADDED, FLOATS)
    assert work["begin around 1 float"] == 1
    assert work["turn around 1 float"] == work["begin inner float"] == 7
    assert work["turn inner float"] == work["turn by 16 float"] == 7 * 48
    assert work["operation float +"] == work["operation float [o]"] == 7 * 48
    assert work["operation float [1]"] == 2 * 7 * 48
    assert work["statement without calls float32,float32>float32 y[1] = x[1] + x[o];"] == 7 * 48


def test_padding_is_skipped_as_often_as_in_the_c() -> None:
    """Of nine taps two are outside: one of the first window and one of the last."""
    taps = parse(POOLED).inner[0].inner[0]
    times = dict(taps.statements)
    assert times["const int32_t i0 = o0 + k0 - 1;"] == 9
    assert times["best = x[i0] > best ? x[i0] : best;"] == pytest.approx(7)
    assert taps.inner[0].times == pytest.approx(2)


def test_a_loop_of_one_turn_is_no_loop() -> None:
    work = work_of("\tfor (int32_t i = 0; i < 1; i++) {\n\t\ty[i] = x[i];\n\t}\n", FLOATS)
    assert not any(name.startswith(("turn", "begin")) for name in work)


def test_loops_that_a_compiler_may_write_out_together() -> None:
    """Windows of two by two, and the same with conditions, which keep the loops."""
    kind = "2 around 2 element-wise loops float32,float32>float32"
    assert work_of(SQUARE, FLOATS)[f"turn {kind}"] == 16 * 4
    assert work_of(SQUARE, FLOATS)[f"begin {kind}"] == 16
    condition = "\t\t\tif (c + k0 > 3) {\n\t\t\t\tcontinue;\n\t\t\t}\n"
    conditional = SQUARE.replace("\t\t\tfor", f"{condition}\t\t\tfor")
    assert f"turn {kind}" not in work_of(conditional, FLOATS)
    assert f"turn {kind.replace(' 2 e', ' 2 if e')}" in work_of(conditional, FLOATS)
    assert "turn 3 around 3 if element-wise loops float32,float32>float32" in work_of(POOLED, FLOATS)


def test_copies_over_themselves_go_backwards() -> None:
    """Rows of three are moved apart in place: the last is far from its source, the first two overlap it."""
    apart = parse(PADDED, element_bytes=4).copies.values()
    (inside,) = parse(PADDED, element_bytes=4, in_place=True).copies.values()
    assert [copy.backwards for copy in apart] == [0.0]
    assert inside.backwards == pytest.approx(2 / 5)  # by 2 and by 1 of 3 elements; the first one not at all
    assert inside.size == 12


@pytest.mark.parametrize(
    "condition,part",
    [
        ("i < 0 || i >= 3", 3 / 6),
        ("i / 2 == 0", 3 / 6),  # -1 / 2 is 0, as C rounds it
        ("i % 2 == -1", 1 / 6),
        ("(i + 2 * j) > 2 && j != 0", 4 / 12),
        ("7 > 3", 1.0),
    ],
)
def test_conditions_are_decided_as_in_c(condition: str, part: float) -> None:
    assert true_part(condition, {"i": range(-1, 5), "j": range(2)}) == pytest.approx(part)


@pytest.mark.parametrize("condition", ["x[i] > 3", "i ? 1 : 0", "abs(i) > 1", "i / 0 == 1", "k < 2", "i ="])
def test_conditions_on_data_are_unknown(condition: str) -> None:
    with pytest.raises(UnknownCondition):
        true_part(condition, {"i": range(4)})


@pytest.mark.parametrize(
    "text,expected",
    [
        (
            "y[i] = (int8_t)tinyml_clamp((x[i] - (17)) + (-111), -128, 127);",
            "y[1] = (int8_t)offset(x[1] by );",
        ),
        ("y[i] = tinyml_clamp((x[i] - (3)) + (7), -128, 127);", "y[1] = offset(x[1] by high);"),
        (
            "const int32_t a = tinyml_rescale(x0[0], 1073741824, 0);",
            "const int32_t a = tinyml_rescale(x[o], P, Z);",
        ),
        ("y[i] = tinyml_div_s32(x[i], 64);", "y[1] = (x[1] + (x[1] >> N & N)) >> N;"),
        ("y[i] = tinyml_div_s64(x[i], INT64_C(60));", "y[1] = tinyml_div_s64(x[1], INT64_C(N));"),
        ("y[j * 9] = kws_lookup1_table[(uint8_t)x[j]];", "y[s] = T[(uint8_t)x[1]];"),
    ],
)
def test_what_does_not_change_the_code_is_left_out(text: str, expected: str) -> None:
    counter = "j" if "[j" in text else "i"
    assert normalized(text, counter, "uint8" if "17" in text else "int8") == expected


def test_the_fit_finds_what_was_put_in() -> None:
    """General names explain the layers, so that an unseen loop of known operations is estimated."""
    works = [{"turn inner float": float(n), "body only here": float(n % 3)} for n in range(20, 60)]
    figures = fitted(works, [6 * work["turn inner float"] for work in works])
    assert figures["turn inner float"] == pytest.approx(6, rel=0.05)


@pytest.mark.parametrize("machine", FEWEST_CLOSE)
def test_layers_that_were_held_out(machine: str) -> None:
    held_out = list(own_loop_layers(machine))
    assert len(held_out) > 500
    assert all(one.estimated >= 1 for one in held_out)
    close = sum(abs(one.estimated / one.counted - 1) <= GOAL for one in held_out) / len(held_out)
    assert close >= FEWEST_CLOSE[machine]


def test_a_kernel_that_was_not_counted_keeps_its_older_estimate() -> None:
    model = find_model("cortex-m4")
    assert model is not None
    assert "layer element-wise loops" in model.instructions.own_loops
    assert "layer tree walk" not in model.instructions.own_loops


@pytest.mark.parametrize(
    "statement,expected",
    [
        ("y[i] = q_even(x[i], 1.0f, 0, -128, 127);", "y[1] = q_even_undivided(x[1], N, 0, -N, N);"),
        ("y[i] = q_away(x[i], 0.0078125f, 3, 0, 255);", "y[1] = q_away_multiplied(x[1], N, N, 0, N);"),
        ("y[i] = q_even(x[i], 0.02f, 0, -128, 127);", "y[1] = q_even(x[1], N, 0, -N, N);"),
        ("y[i] = q_even(x[i], 1.00000001e-10f, 0, 0, 255);", "y[1] = q_even(x[1], N, 0, 0, N);"),
        ("y[i] = 1.0f * (float)(x[i] - 3);", "y[1] = (float)(x[1] - N);"),
        ("y[i] = 21.0f * (float)(x[i] - 3);", "y[1] = N * (float)(x[1] - N);"),
    ],
)
def test_a_scale_of_one_is_left_out_and_a_power_of_two_is_multiplied_by(
    statement: str, expected: str
) -> None:
    """Compilers do that: on cores without an FPU, a division takes longer than all else."""
    source, wanted = (text.replace("q_", "tinyml_quantize_") for text in (statement, expected))
    assert normalized(source, "i", "float32") == wanted


def test_loops_in_bands_are_known_by_the_names_of_a_function_of_their_own() -> None:
    """Rows of a chain lie in its scratch memory, but a kernel's loops over them are the same code there."""
    whole = compile_model(DIGITS, Options("digits", "cortex-m3"))
    rows = compile_model(DIGITS, Options("digits", "cortex-m3", io="rows"))
    alone = next(step for step, one in enumerate(whole.selected) if one.kernel.name == "quantize loop")
    expected = work_of(whole.tallies[alone].body, FLOATS)
    chain = next(tally for tally in rows.tallies.values() if tally.in_bands)
    quantized = [part for part in chain.in_bands if "tinyml_quantize_even(" in part.tally.body]
    assert sum(part.bands for part in quantized) == 4
    for part in quantized:
        names = {name for name in work_of(part.tally.body, FLOATS) if name.startswith("statement")}
        assert names == {name for name in expected if name.startswith("statement")}
    copied = sum(part.bands * part.tally.executed["copied byte"] for part in chain.in_bands)
    assert copied == 0 < chain.executed["copied byte"], "the chain moves its rows, not its operators"
