# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Count the test cases that each kernel computes, and list the sources that have proofs.

``python -m tools.kernel_checks [--check]``

`tinyml evidence` shows these figures for the kernels of a model. Cases on the computer are those of
``tests/ops`` and the TFLite cases; those on emulated cores are the layers of
``tests/standalone/test_kernels.py`` on all machines. Each is compared with the definition of its operator.
Takes minutes, because every case is compiled.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from typing import Any

from tools.environment import ROOT

sys.path.insert(0, str(ROOT / "plugin"))  # the compiler of this tree, whatever is installed

from tests.proofs.proving import harnesses
from tests.standalone.test_kernels import MACHINES, layers
from tests.support.any_plan import any_plan
from tinyml import harness
from tinyml.api.evidence.kernels import CHECKS
from tinyml.emit.model import Provenance
from tinyml.ir import Graph
from tinyml.pipeline import Options, compile_graph
from tools.analyze_c import graphs


def count(graph: Graph, options: Options, found: Counter[str]) -> None:
    """Add the layers of a graph to the counts of their kernels."""
    compiled = compile_graph(graph, "case", Provenance("case", "0" * 64, ""), options)
    found.update(chosen.kernel.name for chosen in compiled.selected)


def cases() -> dict[str, dict[str, int]]:
    """By kernel: how many layers of the tests it computes, and where."""
    host: Counter[str] = Counter()
    cores: Counter[str] = Counter()
    with any_plan():
        for _, graph in graphs():
            count(graph, Options(target="host", kernels="portable"), host)
        for machine in MACHINES:
            target = harness.find_machine(machine).target.name
            for kernels in ("portable", "cmsis-nn"):
                count(layers(once=kernels == "portable"), Options(target=target, kernels=kernels), cores)
    return {name: {"computer": host[name], "cores": cores[name]} for name in sorted({*host, *cores})}


def proofs() -> dict[str, str]:
    """By source of the runtime: the harness that proves it, and for which shapes."""
    return {
        name: f"{harness.name}: {harness.key('shapes')}"
        for harness in harnesses()
        for name in harness.proves
        if name.endswith(".c")
    }


def text(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=1, sort_keys=True) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--proofs", action="store_true", help="only the list of proofs, in a second")
    parser.add_argument("--check", action="store_true", help="exit with 1 if the file is out of date")
    options = parser.parse_args()
    known = json.loads(CHECKS.read_text(encoding="utf-8"))["cases"] if options.proofs else cases()
    new = text({"cases": known, "proofs": proofs()})
    if options.check:
        return int(CHECKS.read_text(encoding="utf-8") != new)
    CHECKS.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
