# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The pages of `tinyml report`, as the guide shows them: made with the site, of the digits sample."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "samples" / "digits" / "model.onnx"
FOLDER = "reports"

SHOWN = """
### The pages

`tinyml report model.onnx --html report.html`, as it opens in a browser:

```{raw} html
<div class="shown"><iframe src="reports/report.html" height="640" title="A report"></iframe></div>
<p><a href="reports/report.html">The page alone</a></p>
```

`tinyml report model.onnx -b nrf52840dk --summary page.html`, the page for somebody who decides:

```{raw} html
<div class="shown"><iframe src="reports/summary.html" height="640" title="A summary"></iframe></div>
<p><a href="reports/summary.html">The page alone</a></p>
```
"""


def pages(folder: Path) -> str:
    """Write both pages; returns the section that shows them."""
    folder.mkdir(parents=True)
    report = [sys.executable, "-m", "tinyml", "-q", "report", str(MODEL), "--name", "digits"]
    for words in (("--html", "report.html"), ("-b", "nrf52840dk", "--summary", "summary.html")):
        subprocess.run([*report, *words[:-1], str(folder / words[-1])], check=True)
    return SHOWN
