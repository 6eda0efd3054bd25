# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Run ONNX's own node tests as generated C; write docs/ONNX_CONFORMANCE.md and the list of passed cases.

``python -m tools.conformance [--check] [PATTERN]``

``--check`` writes nothing; a case that fails, or that passed before and no longer does, is an error.
PATTERN (a regular expression on names) runs some of the cases and prints the result of each.
"""

from __future__ import annotations

import argparse
import re
import sys
import time

from tests.conformance.cases import collect
from tests.conformance.record import PAGE, PASSED_FILE, page, passed_text, problems, recorded
from tests.conformance.run import PASSED, run_cases


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="", help="only cases whose name matches")
    parser.add_argument("--check", action="store_true", help="compare with the record; write nothing")
    options = parser.parse_args()
    start = time.monotonic()
    cases = [case for case in collect() if re.search(options.pattern, case.name)]
    print(f"{len(cases)} cases")
    verdicts = run_cases(cases, print)
    if options.pattern:
        for verdict in verdicts:
            print(f"{verdict.status:8}{' (constants)' if verdict.baked else ''} {verdict.case.name}")
            if verdict.reason:
                print(f"         {verdict.reason}")
    passed = sum(verdict.status == PASSED for verdict in verdicts)
    found = problems(verdicts, recorded())
    print("\n".join(found) if found else "no case fails, and none that passed before is refused")
    print(f"{passed} of {len(verdicts)} pass; {time.monotonic() - start:.0f} s")
    if not options.check and not options.pattern:
        PASSED_FILE.write_text(passed_text(verdicts), encoding="utf-8")
        PAGE.write_text(page(verdicts), encoding="utf-8")
        print(f"wrote {PAGE.name} and {PASSED_FILE.name}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
