# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The command line of the samples that search for models, and what they print."""

from __future__ import annotations

import argparse
from typing import Any

import tinyml


def arguments(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=40, help="of all processes together (default: 40)")
    parser.add_argument("--storage", help="a file or database that several processes share")
    parser.add_argument("--plot", help="write the plot to this SVG file")
    parser.add_argument("--seed", type=int)
    return parser


def search(args: argparse.Namespace, build: Any, train: Any, budget: dict[str, Any], mhz: float) -> None:
    """Look for models that are accurate and fast on a Cortex-M4 within a budget, and show the best ones."""
    found = tinyml.search(
        build,
        train,
        budget=budget,
        target="cortex-m4",
        mhz=mhz,
        objectives=("score", "milliseconds"),
        trials=args.trials,
        storage=args.storage,
        seed=args.seed,
    )
    show(found, args.plot)


def show(found: tinyml.SearchResult, plot: str | None) -> None:
    """The candidates that no other one beats, and the plot."""
    pruned = sum(one.score is None for one in found.candidates)
    print(f"{len(found.candidates)} candidates, {pruned} over the budget")
    for one in found.front:
        sizes = "-".join(str(value) for key, value in one.parameters.items() if key.startswith("width"))
        flash, time = one.costs["flash"], one.costs["milliseconds"]
        print(f"{100 * (one.score or 0):.1f} %  {time:.2f} ms  {flash:,.0f} bytes of flash  {sizes}")
    if plot:
        found.save_plot(plot)
