# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``python -m tinyml`` is the ``tinyml`` command."""

import sys

try:
    from tinyml.verbs.cli import main

    raise SystemExit(main())
except ImportError as error:
    if (error.name or "").startswith("tinyml"):
        raise  # a bug of ours
    from tinyml.setup.installation import for_pip

    sys.exit(
        f"error: tinyml requires a Python package that {sys.executable} does not have: {error}\n"
        f"  try: {sys.executable} -m pip install {for_pip()}"
    )
