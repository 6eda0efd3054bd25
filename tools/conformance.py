# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Run ONNX's own node tests as generated C; write docs/ONNX_CONFORMANCE.md and the list of passed cases.

``python -m tools.conformance [--own] [--check] [--name PATTERN] [OPERATOR]``

Cases of our own, for int16 and recurrent layers, run too; ``--own`` runs only those and writes their section.

``--check`` writes nothing; a case that fails, or that passed before and no longer does, is an error.
OPERATOR (as ONNX or TFLite spells it, in any case) runs the cases of one operator and prints the result of
each; ``--name PATTERN`` (a regular expression) does the same for cases by their names.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Sequence

from tests.conformance.cases import NodeCase, collect
from tests.conformance.own_cases import GROUPS, own_cases
from tests.conformance.record import (
    OWN,
    PAGE,
    PASSED_FILE,
    own_section,
    page,
    passed_text,
    problems,
    recorded,
)
from tests.conformance.run import PASSED, run_cases
from tinyml.base.errors import did_you_mean


def operator_of(case: NodeCase) -> str:
    """The operator under test; cases on int16 say so after its name."""
    return case.op_type.split()[0]


def chosen(cases: Sequence[NodeCase], operator: str = "", name: str = "") -> list[NodeCase]:
    """The cases of an operator, in any spelling of upper and lower case, whose names match."""
    return [
        case
        for case in cases
        if operator.lower() in ("", operator_of(case).lower()) and re.search(name, case.name)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("operator", nargs="?", default="", help="only cases of this operator")
    parser.add_argument("--name", default="", metavar="PATTERN", help="only cases whose name matches")
    parser.add_argument("--check", action="store_true", help="compare with the record; write nothing")
    parser.add_argument("--own", action="store_true", help="only our own cases")
    options = parser.parse_args()
    start = time.monotonic()
    everything = [*([] if options.own else collect()), *own_cases()]
    cases = chosen(everything, options.operator, options.name)
    if not cases:
        operators = sorted({operator_of(case) for case in everything})
        asked = options.operator or options.name
        print(f"no case matches {asked!r}{did_you_mean(asked, operators)}", file=sys.stderr)
        print(f"operators: {' '.join(operators)}", file=sys.stderr)
        return 2
    some = bool(options.operator or options.name)
    print(f"{len(cases)} cases")
    verdicts = run_cases(cases, print)
    if some:
        for verdict in verdicts:
            print(f"{verdict.status:8}{' (constants)' if verdict.baked else ''} {verdict.case.name}")
            if verdict.reason:
                print(f"         {verdict.reason}")
    passed = sum(verdict.status == PASSED for verdict in verdicts)
    found = problems(verdicts, recorded())
    print("\n".join(found) if found else "no case fails, and none that passed before is refused")
    print(f"{passed} of {len(verdicts)} pass; {time.monotonic() - start:.0f} s")
    if not options.check and not some:
        own = [verdict for verdict in verdicts if verdict.case.group in GROUPS]
        theirs = [verdict for verdict in verdicts if verdict.case.group not in GROUPS]
        begin = PAGE.read_text(encoding="utf-8").split(OWN)[0]
        if theirs:
            PASSED_FILE.write_text(passed_text(theirs), encoding="utf-8")
            begin = page(theirs) + "\n"
        PAGE.write_text(begin.rstrip("\n") + "\n\n" + own_section(own), encoding="utf-8")
        print(f"wrote {PAGE.name}{f' and {PASSED_FILE.name}' if theirs else ''}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
