"""``python -m tinyml`` is the ``tinyml`` command."""

from tinyml.cli import main

raise SystemExit(main())
