# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Deviations from MISRA C:2012 in the runtime and in generated C, each with its reason.

`python -m tools.misra` checks with cppcheck that there are no others. No mandatory rule has one.
"""

from __future__ import annotations

from tinyml.base.lazy_dataclass import dataclass

REQUIRED, ADVISORY = "required", "advisory"


@dataclass(frozen=True)
class Deviation:
    """A rule that the code does not follow, and why."""

    rule: str
    category: str
    what: str
    reason: str


DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        "2.2",
        REQUIRED,
        "operations whose result is 0 by a constant",
        "Kernels are written once for several constants; with some of them a term vanishes.",
    ),
    Deviation(
        "2.3",
        ADVISORY,
        "a type that is not used",
        "ISO C requires a declaration in a file that is otherwise empty.",
    ),
    Deviation(
        "2.4",
        ADVISORY,
        "structures that one source does not use",
        "Headers are shared by sources that use others.",
    ),
    Deviation(
        "2.5", ADVISORY, "macros that one source does not use", "Headers are shared; cores use some of them."
    ),
    Deviation(
        "5.6",
        REQUIRED,
        "one name for two types, in two sources",
        "Headers with the loops of a kernel are compiled for several element types, each in its own source.",
    ),
    Deviation(
        "5.7",
        REQUIRED,
        "one enumeration name in two sources",
        "Each is private to its source; none is in a header.",
    ),
    Deviation("5.9", ADVISORY, "static functions of one name in two sources", "As for 5.6."),
    Deviation(
        "7.2",
        REQUIRED,
        "limits of unsigned types without u",
        "They are the macros of <stdint.h>, as the checker's own headers define them.",
    ),
    Deviation(
        "8.7",
        ADVISORY,
        "functions that only their own source calls",
        "They are part of the interface; applications call them.",
    ),
    Deviation(
        "8.9", ADVISORY, "tables that one function uses", "They stand beside the text that explains them."
    ),
    Deviation(
        "8.11",
        ADVISORY,
        "arrays declared without a size",
        "They are generated; what follows them has their size.",
    ),
    Deviation(
        "9.2",
        REQUIRED,
        "initialisers with designators in one level of braces",
        "The text table has one level only.",
    ),
    Deviation(
        "9.3",
        REQUIRED,
        "arrays that are initialised in part",
        "The other elements are meant to be zero, as C defines.",
    ),
    Deviation(
        "9.5", REQUIRED, "an array without a size, with designators", "Its size is asserted where it is used."
    ),
    Deviation(
        "10.1",
        REQUIRED,
        "shifts and masks of signed integers",
        "Fixed-point arithmetic shifts signed sums; all supported compilers shift arithmetically.",
    ),
    Deviation(
        "10.3",
        REQUIRED,
        "sums and products stored in narrower types",
        "Limits are checked by the compiler before the C is written; -Wconversion finds the others.",
    ),
    Deviation(
        "10.4",
        REQUIRED,
        "signed and unsigned operands of one operator",
        "Constants of plain int beside unsigned fields; -Wsign-conversion finds those that change a value.",
    ),
    Deviation(
        "10.6",
        REQUIRED,
        "results that are stored in a wider type",
        "The operands' limits are known; see 10.3.",
    ),
    Deviation("10.7", REQUIRED, "operands of a wider operator", "The operands' limits are known; see 10.3."),
    Deviation(
        "10.8",
        REQUIRED,
        "casts of results to another kind of number",
        "Quantising converts between integers and floats; the values are limited before.",
    ),
    Deviation(
        "11.1",
        REQUIRED,
        "pointers to functions that are converted",
        "The player's kernels have one type; the checker takes function names in tables for conversions.",
    ),
    Deviation(
        "11.2", REQUIRED, "pointers to types that are not complete", "Loops are addresses in assembly tables."
    ),
    Deviation(
        "11.3",
        REQUIRED,
        "casts between pointers to objects",
        "A structure whose first member is the other one; aligned weights that are read as words.",
    ),
    Deviation(
        "11.4",
        ADVISORY,
        "conversions between pointers and integers",
        "Alignment and overlap of buffers are checked by address.",
    ),
    Deviation(
        "11.5",
        ADVISORY,
        "conversions from void pointers",
        "The arena and operands of kernels have no type; the validated memory plan gives them one.",
    ),
    Deviation(
        "11.8", REQUIRED, "casts that remove const", "One structure describes both inputs and outputs."
    ),
    Deviation(
        "11.9",
        REQUIRED,
        "0 compared with a pointer",
        "The checker misreads an index: the operand is an integer.",
    ),
    Deviation(
        "12.1",
        ADVISORY,
        "precedence that is not shown by parentheses",
        "The usual order: a * b + c, a < b && c.",
    ),
    Deviation("12.2", REQUIRED, "a shift by a variable", "Its limits are checked before the C is written."),
    Deviation(
        "12.3", ADVISORY, "commas in declarations and loops", "int i = 0, j = 0; and two steps of a loop."
    ),
    Deviation(
        "13.3",
        ADVISORY,
        "increments inside other expressions",
        "*to++ = *from++ is the usual form of a copy.",
    ),
    Deviation(
        "14.1",
        REQUIRED,
        "loops over pointers",
        "The rule is about floats; the checker counts any other type too.",
    ),
    Deviation(
        "14.2",
        REQUIRED,
        "for loops without a counter of the usual form",
        "Steps halve, or two counters move.",
    ),
    Deviation(
        "15.4",
        ADVISORY,
        "more than one break in a loop",
        "Loops over a queue of boxes stop at a limit that is fixed, at the end of the queue, or at the place "
        "that they look for; one condition for all would compare more in each turn.",
    ),
    Deviation(
        "15.5", ADVISORY, "more than one return", "Functions check their arguments first and return an error."
    ),
    Deviation("15.7", REQUIRED, "else if without else", "Nothing is to be done in the other case."),
    Deviation(
        "17.7",
        REQUIRED,
        "results that are not used",
        "They are those of memcpy, memset and memmove: their first argument.",
    ),
    Deviation(
        "17.8",
        ADVISORY,
        "parameters that are changed",
        "Pointers and counts that are passed by value walk along.",
    ),
    Deviation(
        "18.4",
        ADVISORY,
        "arithmetic on pointers",
        "Kernels walk through tensors; the plan's validator and proofs\
 check where.",
    ),
    Deviation(
        "19.2", ADVISORY, "unions", "The bits of a float; memcpy is used where the compiler sees through it."
    ),
    Deviation("20.1", ADVISORY, "#include after declarations", "As for 5.6: macros first, then the loops."),
    Deviation("20.5", ADVISORY, "#undef", "Macros of one source do not reach the next."),
    Deviation(
        "20.7", REQUIRED, "macro parameters without parentheses", "They are names, types or text of assembly."
    ),
    Deviation(
        "20.9",
        REQUIRED,
        "names in #if that are not defined",
        "They are those of the compiler, such as __has_include.",
    ),
    Deviation("20.10", ADVISORY, "# and ##", "Names of functions for several types; text of assembly."),
    Deviation("21.14", REQUIRED, "memcmp of text", "The magic word of a file has a fixed length and no end."),
)
