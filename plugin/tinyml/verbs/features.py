# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`features`: recordings to the features that the device computes."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.verbs.base import Verb
from tinyml.verbs.settings import add_setting, chosen

if TYPE_CHECKING:
    from rich.console import Console


class Features(Verb):
    """Compute the features of recordings, for training: the numbers that NAME_feed() computes on the device.

    Takes WAV files (kinds micro and mfcc), CSV files with one sample per line or .npy arrays (kinds spectral
    and normalize), and folders of them. Writes an .npz: for one file the array "features", one row per step;
    for a folder, one array per file, by its path below the folder.

      tinyml features yes.wav -o yes.npz --frontend micro --frontend step_ms=10
    """

    name = "features"
    help = "compute a front end's features of recordings"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "recording", type=Path, metavar="FILE|DIR", help="the recording, or a folder of recordings"
        )
        parser.add_argument(
            "-o", "--output", type=Path, required=True, metavar="FILE.npz", help="where to write them"
        )
        add_setting(
            parser,
            "frontend",
            help="the front end: its kind, then KEY=VALUE (repeatable) as in tinyml.yaml",
        )

    def run(self, args: argparse.Namespace, console: Console) -> int:
        import numpy as np

        from tinyml.base import whole_files
        from tinyml.base.errors import ConfigError, writing
        from tinyml.datasets import recordings
        from tinyml.features.kinds import KINDS

        frontend = chosen(args, ("frontend",)).frontend
        if frontend is None:
            raise ConfigError("no front end is given", f"--frontend {' | '.join(KINDS)}")
        if args.output.suffix.lower() != ".npz":
            raise ConfigError(
                f"features are written as .npz, but {args.output} does not end in .npz", "-o features.npz"
            )
        rows = recordings.features(args.recording, frontend)
        with writing(args.output):
            args.output.parent.mkdir(parents=True, exist_ok=True)
        packed = io.BytesIO()
        np.savez_compressed(packed, **rows)  # type: ignore[arg-type]
        whole_files.save(args.output, packed.getvalue())
        total = sum(len(found) for found in rows.values())
        console.print(
            f"{total} rows of {frontend.settings.width} features of {len(rows)} recordings -> {args.output}",
            markup=False,
            soft_wrap=True,
        )
        return 0
