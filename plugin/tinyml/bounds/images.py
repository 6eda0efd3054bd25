# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Images that a build left behind: where they are, which models they have, and their generated C."""

from __future__ import annotations

from pathlib import Path

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.bounds.elf import read_elf
from tinyml.bounds.image_bounds import Bound, bound_image, models_in
from tinyml.cores.machines import MACHINES, Machine
from tinyml.cores.toolchains import ARM
from tinyml.harness.generated import Generated, read_generated


@dataclass(frozen=True)
class BuiltModel:
    """A model in the image of a build."""

    image: Path
    generated: Generated

    def bound(self) -> Bound:
        source = self.generated.source.read_text(encoding="utf-8")
        return bound_image(self.image, self.generated.name, self.generated.target, source)


def built_models(folder: Path, name: str = "", any_core: bool = False) -> list[BuiltModel]:
    """The models of a Zephyr build, or the one called ``name``."""
    images = [folder / "zephyr" / "zephyr.elf", *sorted(folder.glob("*/zephyr/zephyr.elf"))]
    found, unused = [], []
    for image in images:
        if image.is_file():
            names = models_in(read_elf(image, any_core))
            folders = [path.parent for path in sorted(image.parent.parent.glob("tinyml/*/*.c"))]
            found += [BuiltModel(image, read_generated(place)) for place in folders if place.name in names]
            unused += [place.name for place in folders if place.name not in names]
    chosen = [model for model in found if name in ("", model.generated.name)]
    lost = [one for one in unused if name in ("", one)]
    if not chosen and lost:
        raise ConfigError(
            f"the image in {folder} lacks the model {lost[0]}: nothing calls it, so the linker left it out",
            f"call {lost[0]}_run() in the application, and build again",
        )
    if not found:
        raise ConfigError(
            f"{folder} has no image with a model: no zephyr/zephyr.elf with generated C in tinyml",
            "the folder of a finished `west build`, usually build",
        )
    if not chosen:
        known = ", ".join(model.generated.name for model in found)
        raise ConfigError(f"the image has no model called {name}", f"one of: {known}")
    return chosen


def machine_for(target: str) -> Machine:
    """An emulated machine with this core, for which images are linked."""
    for machine in MACHINES.values():
        if machine.target.name == target and machine.board and machine.board.toolchain == ARM:
            return machine
    known = sorted({m.target.name for m in MACHINES.values() if m.board and m.board.toolchain == ARM})
    raise ConfigError(f"there are no bounds for {target}", f"one of: {', '.join(known)}")
