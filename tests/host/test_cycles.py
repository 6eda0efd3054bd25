# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What blocks of code weigh, on listings made by hand. Real images are weighed in tests/standalone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tinyml.cost import cost_tables, mca
from tinyml.cost.cycles import Model, milliseconds, weigh_phases
from tinyml.cost.instructions import Instruction, Kind, disassemble
from tinyml.cost.plugin import Block, Phase

LISTING = """
image:     file format elf32-littlearm

00000100 <work>:
     100:\tldrd\tr0, r1, [r2], #8
     104:\tldr.w\tr3, [r4], #4
     108:\tldr\tr5, [r4, #4]
     10a:\tldr\tr6, [r5, #0]
     10c:\tsmlad\tr7, r0, r3, r7
     110:\tadds\tr2, r2, #4
     112:\tstr\tr7, [r2, #0]
     114:\tit\tne
     116:\tmlane\tr0, r1, r2, r3
     11a:\tbne.n\t100 <work>

0000011c <other>:
     11c:\tpush\t{r4, r5, r6, lr}
     11e:\tpop\t{r4-r6, pc}
     120:\tbics\tr0, r1
     122:\tbls.n\t11c <other>\t; comment
"""


def lines(*text: str) -> list[Instruction]:
    """Instructions by their text; all are four bytes long."""
    body = "\n".join(f"  {4 * index:x}:\t{line}" for index, line in enumerate(text))
    return list(disassemble(f"{body}\n  {4 * len(text):x}:\tnop").values())[:-1]


def test_listings_are_read() -> None:
    code = disassemble(LISTING)
    assert [code[at].kind for at in (0x100, 0x104, 0x10C, 0x114, 0x116, 0x11A, 0x11C, 0x120, 0x122)] == [
        *(Kind.PAIR, Kind.LOAD, Kind.ORDINARY, Kind.CONDITION, Kind.ACCUMULATE, Kind.BRANCH),
        *(Kind.LIST, Kind.ORDINARY, Kind.BRANCH),
    ]
    assert (code[0x104].name, code[0x104].size, code[0x104].writes_back) == ("ldr", 4, True)
    assert (code[0x11C].listed, code[0x11E].listed) == (4, 4)
    assert code[0x11E].function == "other"
    assert code[0x122].operands == "11c <other>"


@pytest.mark.parametrize(
    "text,m3,m4",
    [
        (["ldr\tr0, [r1, #0]"], 2, 2),
        (["ldr\tr0, [r1, #0]", "ldr\tr2, [r1, #4]", "ldr\tr3, [r1, #8]"], 4, 4),  # they overlap
        (["ldr\tr0, [r1], #4", "ldr\tr2, [r1], #4"], 4, 4),  # a moving address: they do not
        (["ldr\tr0, [r1, #0]", "ldr\tr2, [r0, #0]"], 4, 4),  # the second needs the first
        (["ldrd\tr0, r1, [r2]"], 3, 3),
        (["ldmia\tr0!, {r1, r2, r3, r4}"], 5, 5),
        (["add\tr0, r1", "ldr\tr2, [r0, #0]"], 4, 4),  # an address that was just computed
        (["str\tr0, [r1, #4]"], 1, 1),
        (["str\tr0, [r1, r2]"], 2, 2),
        (["mla\tr0, r1, r2, r3"], 2, 1),
        (["smull\tr0, r1, r2, r3"], 4, 1),
        (["smlal\tr0, r1, r2, r3"], 5, 1),
        (["smlalbb\tr0, r1, r2, r3"], 1, 1),
        (["vfma.f32\ts0, s1, s2"], 3, 3),
        (["vmul.f32\ts0, s1, s2", "vadd.f32\ts3, s3, s0"], 3, 3),  # waits for the product
        (["vmul.f32\ts0, s1, s2", "vadd.f32\ts3, s3, s4"], 2, 2),
        (["vldmia\tr0!, {s0-s7}"], 9, 9),
        (["vldr\ts0, [r0]"], 2, 2),
        (["vdiv.f32\ts0, s1, s2"], 14, 14),
    ],
)
def test_cortex_m3_and_m4(text: list[str], m3: int, m4: int) -> None:
    assert (cost_tables.m3(lines(*text)).cycles, cost_tables.m4(lines(*text)).cycles) == (m3, m4)


def test_jumps_refill_the_pipeline() -> None:
    assert cost_tables.m4(lines("bne\t0 <x>")) == cost_tables.Weight(1, 2)
    assert cost_tables.m4(lines("cmp\tr0, r1")) == cost_tables.Weight(1, 0)
    assert cost_tables.m0plus(lines("bne\t0 <x>")) == cost_tables.Weight(1, 1)
    assert cost_tables.m0plus(lines("bl\t0 <x>")) == cost_tables.Weight(1, 2)
    assert (
        cost_tables.m0plus(lines("ldrb\tr0, [r1, #0]", "muls\tr0, r1", "pop\t{r4, pc}")).cycles == 2 + 1 + 5
    )


def test_phases_are_weighed_without_the_clock() -> None:
    """Executions times weight, jumps, and the transfers of unaligned loads; what profiles is left out."""
    code = disassemble(LISTING.replace("<other>", "<clock_read>"))
    phase = Phase([Block(0x110, 2, 10, 0), Block(0x11A, 1, 10, 9), Block(0x11C, 2, 50, 50)], unaligned=7)
    model = Model(lambda blocks: [cost_tables.m4(one) for one in blocks], "", unaligned=1)
    assert weigh_phases([phase], code, model) == [10 * (1 + 1 + 1) + 10 + 9 * 2 + 7]


def test_an_old_llvm_mca_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM 14 takes the name of a Cortex-M55 and estimates nonsense."""
    program = tmp_path / "llvm-mca"
    monkeypatch.setenv("PATH", str(tmp_path))
    for version, used in (("14.0.6", False), ("21.1.0", True), ("", False)):
        program.write_text(f"#!/bin/sh\necho 'Debian LLVM version {version}'\n", encoding="utf-8")
        program.chmod(0o755)
        mca.find.cache_clear()
        assert (mca.find() == str(program)) == used
    mca.find.cache_clear()


@pytest.mark.skipif(not mca.knows("cortex-m7"), reason="no llvm-mca here")
def test_llvm_mca_weighs_blocks() -> None:
    """Two independent additions fit into a cycle of the Cortex-M7, four dependent ones do not fit into two;
    a line that it cannot read does not spoil the others."""
    independent = lines("add\tr0, r1, r2", "add\tr3, r4, r5")
    dependent = lines(*["add\tr0, r0, r1"] * 4)
    unreadable = lines("nonsense\tr0", "adds\tr0, r0, r1")
    call = lines("adds\tr0, r0, r1", "bl\t100 <somewhere>")
    weights = mca.weigh([independent, dependent, unreadable, call], "cortex-m7")
    assert weights[0].cycles == 1
    assert weights[1].cycles == 4
    assert 1 <= weights[2].cycles <= 2
    assert weights[3].cycles <= 2
    assert weights[3].taken > 0 == weights[0].taken


def test_time() -> None:
    assert milliseconds(6_000_000, 120) == 50
