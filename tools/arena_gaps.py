# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""How far arenas are above their lower bounds: python -m tools.arena_gaps [--count N] [MODEL...]

Without models, random networks with many branches are compiled. The lower bound is the largest number of
bytes that are live at once if all buffers are shared that can be; no plan in this order is smaller.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.branching import network
from tinyml.emit.model import Provenance
from tinyml.importers import onnx_graph
from tinyml.pipeline import Compiled, Options, compile_graph, compile_model

TARGET = "cortex-m4"


def compiled(models: list[Path], first: int, count: int) -> Iterator[tuple[str, Compiled]]:
    options = Options(target=TARGET)
    for path in models:
        yield path.name, compile_model(path, options)
    for seed in range(first, first + count) if not models else ():
        graph = onnx_graph.read(network(seed), "random", {})
        yield f"seed {seed}", compile_graph(graph, "random", Provenance("random", "0" * 64, ""), options)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    parser.add_argument("--count", type=int, default=100, help="random networks (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the first of them (default: %(default)s)")
    args = parser.parse_args()
    total, gaps = 0, []
    for name, model in compiled(args.models, args.seed, args.count):
        total += 1
        arena, bound = model.summary["arena_bytes"], model.summary["arena_lower_bound_bytes"]
        if arena > bound:
            gaps.append(arena / bound)
            print(f"{name}: {arena:,} for {bound:,} ({gaps[-1]:.3f})", flush=True)
    print(f"{len(gaps)} of {total} above the bound, at most {max(gaps, default=1):.3f} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
