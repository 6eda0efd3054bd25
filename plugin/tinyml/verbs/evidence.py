# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`evidence`: what is known about the models of an image, in one file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.verbs.base import Verb
from tinyml.verbs.build_folder import DEFAULT
from tinyml.verbs.output_files import check_suffix

if TYPE_CHECKING:
    from rich.console import Console

    from tinyml.api.evidence import Source


class Evidence(Verb):
    """Write what is known about the models of a finished build into one file, for others to check.

    The file has hashes from the model to the image, versions of all tools, a bill of materials, the report,
    bounds, the memory plan and its validation, goldens with their results on the emulated core, the kernels
    and how they were tested, deviations from coding rules, and a page that explains it. The same build gives
    the same bytes. With --check, everything is made again and compared. docs/evidence.md has more.

    Exit code: 0 if nothing is wrong, 1 if a check failed or the files differ.
    """

    name = "evidence"
    help = "hashes, bounds, results and proofs of the models in an image, in one file"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "-d",
            "--build-dir",
            type=Path,
            default=DEFAULT,
            metavar="BUILD",
            help="the folder of a finished `west build` (default: %(default)s)",
        )
        kinds = parser.add_mutually_exclusive_group(required=True)
        kinds.add_argument("-o", "--output", type=Path, metavar="FILE.zip", help="the file to write")
        kinds.add_argument("--check", type=Path, metavar="FILE.zip", help="compare with this file")
        parser.add_argument(
            "--samples", type=int, default=4, metavar="N", help="goldens of each model (default: %(default)s)"
        )

    def run(self, args: argparse.Namespace, console: Console) -> int:
        from tinyml.api.evidence import differences, make, read_bundle
        from tinyml.base import whole_files
        from tinyml.base.errors import ConfigError

        if args.output is not None:
            check_suffix(args.output, "a zip file", ".zip")
        if args.samples < 1:
            raise ConfigError("--samples must be at least 1")
        old = read_bundle(args.check) if args.check else None
        bundle = make(sources(args.build_dir), args.build_dir, old.samples if old else args.samples)
        found = list(bundle.problems)
        if old is None:
            whole_files.save(args.output, bundle.content)
            said = f"{len(bundle.files)} files, {len(bundle.content):,} bytes -> {args.output}"
        else:
            changed = differences(old, bundle)
            found += changed
            said = (
                f"{len(changed)} files differ"
                if changed
                else f"{args.check}: {len(bundle.files)} files, all equal"
            )
        for problem in found:
            console.print(problem, style="bold red", markup=False, soft_wrap=True)
        console.print(said, markup=False, soft_wrap=True)
        return 1 if found else 0


def sources(folder: Path) -> list[Source]:
    """The models of a build, with their files and options as the build's own commands have them."""
    from tinyml.api.evidence import Source
    from tinyml.base.errors import ConfigError
    from tinyml.bounds.images import built_models
    from tinyml.verbs.compile import Compile
    from tinyml.verbs.settings import options_from

    found = []
    for built in built_models(folder):
        place = built.generated.folder / f"{built.generated.name}.command"
        try:
            words = place.read_text(encoding="utf-8").strip().split(";")
            words = words[words.index("compile") + 1 :]
        except (OSError, ValueError):
            raise ConfigError(
                f"{place} does not say how {built.generated.name} was compiled",
                "the folder of a `west build` with this version",
            ) from None
        parser = argparse.ArgumentParser()
        Compile().add_arguments(parser)
        args, _ = parser.parse_known_args(words)
        found.append(Source(built, args.model, options_from(args, args.target)))
    images = {source.built.image for source in found}
    if len(images) > 1:
        raise ConfigError(
            f"{folder} has {len(images)} images with models", "the folder of one of them, in the same folder"
        )
    return found
