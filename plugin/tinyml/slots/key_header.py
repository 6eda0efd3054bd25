# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``python -m tinyml.slots.key_header KEY.pem OUTPUT.h``: the public key of a firmware, for CMake."""

from __future__ import annotations

import sys
from pathlib import Path

from tinyml.base.errors import TinymlError
from tinyml.slots.keys import public_key_header


def main(arguments: list[str]) -> int:
    key, output = (Path(word) for word in arguments)
    try:
        text = public_key_header(key)
    except TinymlError as error:
        print(error, file=sys.stderr)
        return 1
    output.parent.mkdir(parents=True, exist_ok=True)
    if not output.is_file() or output.read_text(encoding="utf-8") != text:
        output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
