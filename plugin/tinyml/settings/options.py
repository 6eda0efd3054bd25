# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The settings that determine the generated code.

Each is one entry: a field of ``Options``. The option of the command line, the key of tinyml.yaml, the
argument of zephyr_tinyml_model(), the option of platformio.ini, the parameter of ``tinyml.compile()``, their
checks and their documentation are made from it. ``table.py`` has the settings that only builds use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tinyml.base.errors import ConfigError
from tinyml.base.lazy_dataclass import dataclass
from tinyml.cores.targets import TARGETS
from tinyml.settings.adapt_request import KEYS as ADAPT_KEYS
from tinyml.settings.adapt_request import Adapt
from tinyml.settings.forms import DataFile, Files, Names, Switch, Text
from tinyml.settings.model_forms import (
    ARITHMETIC,
    KERNELS,
    Accelerator,
    Bounds,
    Classes,
    Passing,
    Shapes,
    Spending,
)
from tinyml.settings.optimize import BALANCED, GOALS
from tinyml.settings.passing import Io
from tinyml.settings.quantize_request import KEYS, Request
from tinyml.settings.request_forms import Adapting, Frontend, Quantize
from tinyml.settings.setting import CMAKE, COMMAND, INI, PYTHON, YAML, Setting

if TYPE_CHECKING:
    from tinyml.features.settings import FrontEnd
    from tinyml.ir import Shape


@dataclass(frozen=True)
class Options:
    """Everything except the model that determines the generated code."""

    name: str = ""  # C prefix; default: the file's name
    target: Setting[str, str] = Setting(
        "cortex-m3",
        Text(),
        f"the core to compile for: {', '.join(TARGETS)}",
        places=(COMMAND, INI, PYTHON),
        metavar="T",
        command=f"one of {', '.join(TARGETS)}",
        ini="the core to compile for (default: the board's)",
        describe=lambda target: (),  # it is in the file's first lines
    )
    kernels: Setting[str, str] = Setting(
        "auto",
        KERNELS,
        f"where the kernels come from: {', '.join(KERNELS.choices)} (default: the build's setting)",
        command="cmsis-nn: CMSIS-NN wherever it has a kernel; portable: never; auto: for each layer the one "
        "with fewer instructions among those available",
        ini=f"where the kernels come from: {', '.join(KERNELS.choices)}",
    )
    io: Setting[Io, str | Sequence[str]] = Setting(
        Io(),
        Passing(),
        "`int8`: the inputs and outputs of a quantised model with a float interface become integers; "
        "scales and zero points are in the header. `rows`: the application feeds the input in rows as they "
        "arrive, so that it is never in RAM as a whole. `rows,int8`: both",
    )
    optimize: Setting[str, str] = Setting(
        BALANCED.name,
        Spending(),
        f"what to spend: {', '.join(GOALS)} (default: the build's setting, else balanced)",
        ini=f"what models may spend: {', '.join(GOALS)} (default: balanced); `image`: balanced, but "
        "compiled with the flags of the rest of the image",
    )
    arithmetic: Setting[str, str] = Setting(
        "float32",
        ARITHMETIC,
        "`float16`: float layers with float16 weights add up their products in float16 on cores with "
        "instructions for that, see [floats.md](floats.md)",
        command="float16: float layers with float16 weights add up their products in float16 on Cortex-M55 "
        "and M85, which takes fewer instructions and loses accuracy; other cores compute in float32",
        ini="`float16`: float layers with float16 weights add up their products in float16 on cores with "
        "instructions for that, see [floats.md](floats.md)",
    )
    shapes: Setting[Mapping[str, Shape], None] = Setting(
        {},
        Shapes(),
        "shapes of inputs that the model leaves open, as `input: 1x16x8`",
        flag="--shape",
        metavar="INPUT=1x16x8",
        command="fix the shape of an input that the model leaves open (repeatable; default: 1 for each)",
        ini="shapes of inputs that a model leaves open, as `input=1x16x8`, one per line",
        describe=lambda shapes: (f"shape {name}={'x'.join(map(str, s))}" for name, s in shapes.items()),
    )
    bounds: Setting[Mapping[str, int], Mapping[str, int]] = Setting(
        {},
        Bounds(),
        "the most results of nodes whose number depends on data, as `NonMaxSuppression_5: 100`, see "
        "[detectors.md](detectors.md); and the longest past of a decoder, as `past_sequence_length: 128`, "
        "see [decoders.md](decoders.md)",
        flag="--bound",
        metavar="NODE=100",
        command="the most results of a node whose number depends on data, or the longest past of a decoder "
        "(repeatable; default: as many results as there can be)",
        ini="the most results of nodes whose number depends on data, as `NODE=100`, one per line, see "
        "[detectors.md](detectors.md); and the longest past of a decoder, see [decoders.md](decoders.md)",
        describe=lambda bounds: (f"bound {name}={most}" for name, most in bounds.items()),
    )
    outputs: Setting[tuple[str, ...], Sequence[str]] = Setting(
        (),
        Names("[probabilities]"),
        "the outputs to keep, as `[probabilities]`: layers that only the others need are left out",
        metavar="A,B,..",
        command="the outputs to keep, as `probabilities`: layers that only the others need are left out",
        describe=lambda outputs: [f"outputs {' '.join(outputs)}"],
    )
    operators: Setting[tuple[Path, ...], str | Path | Sequence[str | Path]] = Setting(
        (),
        Files("my_operators.py"),
        "Python files with operators of your own that the model uses, relative to tinyml.yaml",
        metavar="FILE",
        command="a Python file with operators of your own, or a C file that their kernels call (repeatable); "
        "see `new-operator`",
        ini="Python files with operators of your own that models use, and C files that their kernels "
        "call, one per line",
        describe=lambda files: (f"operators {file.name}" for file in files),
    )
    npu: Setting[str, str] = Setting(
        "",
        Accelerator(),
        "the Arm Ethos-U that computes what it can of an int8 model, as `ethos-u55-128`",
        metavar="ACCELERATOR",
        command="the Arm Ethos-U that computes what it can of an int8 model, as ethos-u55-128; "
        "none: the CPU alone, whatever tinyml.yaml has",
        ini="the Arm Ethos-U that computes what it can of int8 models, as ethos-u55-128",
    )
    frontend: Setting[FrontEnd | None, Mapping[str, object] | str] = Setting(
        None,
        Frontend(),
        "what makes the model's input from samples, as `kind: micro`: gives kws_feed()",
        metavar="KIND|KEY=VALUE",
        command="add a front end, so that NAME_feed() takes samples: its kind, then KEY=VALUE (repeatable) "
        "as in tinyml.yaml",
        ini="front end that makes the input from samples: kind, then `key=value` as in tinyml.yaml",
        describe=lambda frontend: [frontend.describe()] if frontend else [],
    )
    quantize: Setting[Request | None, None] = Setting(
        None,
        Quantize(),
        "make a float model int8 in the build, calibrated with the data in `calibration: calib.npz`",
        places=(COMMAND, YAML, CMAKE, INI),
        metavar="DATA|KEY=VALUE",
        command="make a float model int8 first, calibrated on DATA; KEY=VALUE (repeatable) as in "
        "tinyml.yaml: " + ", ".join(KEYS),
        ini="make float models int8: calibration data, then `key=value` as in tinyml.yaml, one per line",
        describe=lambda request: [request.describe()] if request else [],
    )
    classes: Setting[tuple[str, ...], Sequence[str]] = Setting(
        (),
        Classes(),
        "names of the classes in the order of the outputs, as `[circle, idle]`: KWS_LABELS in the header",
        places=(COMMAND, YAML, CMAKE, PYTHON),
        metavar="A,B,..",
        command="names of the classes in the order of the outputs, or a file with one per line: NAME_LABELS",
        verbs=("compile", "add"),
        describe=lambda classes: (),  # they do not change what is computed
    )

    watch: Setting[bool, bool | str] = Setting(
        False,
        Switch(),
        "`true`: the model counts what it sees and decides: kws_watch(), drift against the data of its "
        "calibration; see [watch.md](watch.md)",
        command="count what the model sees and decides in every run: NAME_watch()",
        ini="`true`: models count what they see and decide: see [watch.md](watch.md)",
        describe=lambda watch: ["watched"],
    )
    watch_data: Setting[Path | None, str | Path] = Setting(
        None,
        DataFile("typical.npz"),
        "samples that the watched inputs are compared with (default: what `quantize` was calibrated on), "
        "relative to tinyml.yaml",
        metavar="DATA",
        command="samples that the watched inputs are compared with: .npz, .npy, .csv, or a folder "
        "(default: what the model was calibrated on)",
        describe=lambda file: [f"watched against {file.name}"] if file else [],
    )
    watch_channels: Setting[bool, bool | str] = Setting(
        False,
        Switch(),
        "`true`: the channels of the input (mel bands, features, axes) are counted one by one, each against "
        "its own reference from watch_data",
        command="count the channels of the input one by one, against --watch-data",
        ini="`true`: the channels of the input are counted one by one: see [watch.md](watch.md)",
        describe=lambda channels: ["by channel"],
    )

    adapt: Setting[Adapt | None, Mapping[str, object] | str | Adapt] = Setting(
        None,
        Adapting(),
        "what the model learns on the device: `last`, `prototypes` or `threshold`, or a mapping with `kind` "
        "and its settings; gives kws_learn() or kws_enroll(): see [adapt.md](adapt.md)",
        metavar="KIND|KEY=VALUE",
        command="what the model learns on the device: last, prototypes or threshold, then KEY=VALUE "
        "(repeatable) as in tinyml.yaml: " + ", ".join(ADAPT_KEYS),
        ini="what models learn on the device: kind, then `key=value` as in tinyml.yaml, one per line: see "
        "[adapt.md](adapt.md)",
        describe=lambda adapt: [adapt.describe()] if adapt else [],
    )

    # Of the build and of tests, not of a model.
    cmsis_nn: bool = False  # whether the build has CMSIS-NN, so that "auto" may use it
    expose: tuple[str, ...] = ()  # inner tensors to expose as outputs, for inspection
    byte_weights: bool = False  # whether weights stay bytes where four bits would do, floats for float16
    attention_apart: bool = False  # whether attention stays its parts, which have figures on every core
    bands: bool = True  # whether layers may be computed a few rows at a time; if not, all exist as a whole

    def __post_init__(self) -> None:
        if self.frontend and self.io.caller:
            raise ConfigError(
                "a front end writes the input itself: it cannot be in the caller's memory", "io arena"
            )
        if self.frontend and self.io.rows:
            raise ConfigError(
                "a front end computes the rows of the input itself: the application cannot feed them",
                "io arena",
            )
        if self.adapt and self.io.rows:
            raise ConfigError("a model whose input arrives in rows cannot learn", "io arena, or no adapt")
        if self.watch_data is not None and not self.watch:
            raise ConfigError("watch_data is for a model that is watched", "watch: true, or no watch_data")
        if self.watch_channels and self.watch_data is None:
            raise ConfigError(
                "watch_channels has nothing to compare channels with: a model file has references of whole "
                "inputs only",
                "watch_data with typical samples, or no watch_channels",
            )

    def describe(self) -> str:
        """Options that are not the default, for the provenance comment."""
        parts = ["with CMSIS-NN"] if self.kernels == "auto" and self.cmsis_nn else []
        for setting in of_options().values():
            parts += setting.described(getattr(self, setting.name))
        return ", ".join(parts)


def of_options() -> dict[str, Setting[object, object]]:
    """The settings that are fields of ``Options``, in their order."""
    return {name: found for name, found in vars(Options).items() if isinstance(found, Setting)}
