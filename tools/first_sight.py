# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Models of kinds that once went wrong at first sight: python -m tools.first_sight [WORDS IN NAMES]

All files are made here (tests/first_sight), nothing is fetched. Every model is compiled and compared with its
reference, or must be refused with the right words.
"""

from __future__ import annotations

import argparse
import sys

from tests.first_sight import all_cases, complaint


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("words", nargs="*", help="only cases whose name has one of these")
    args = parser.parse_args()
    cases = {
        name: case
        for name, case in all_cases().items()
        if not args.words or any(word in name for word in args.words)
    }
    wrong = 0
    for name, case in cases.items():
        why = complaint(case)
        wrong += bool(why)
        print(f"{'wrong' if why else 'ok':5} {name}{f': {why}' if why else ''}", flush=True)
    print(f"{len(cases)} cases, {wrong} wrong")
    return 1 if wrong or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
