# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``python -m tinyml`` is the ``tinyml`` command."""

from tinyml.verbs.cli import main

raise SystemExit(main())
