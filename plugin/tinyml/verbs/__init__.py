# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The verbs of the command line. `tinyml ...` and `west tinyml ...` offer the same ones.

A verb's module imports quickly: parsing arguments and printing help must work without numpy and onnx.
Heavy modules are imported when a verb runs.
"""

from __future__ import annotations

from tinyml.verbs.add import Add
from tinyml.verbs.base import Verb
from tinyml.verbs.bench import Bench
from tinyml.verbs.bound import Bound
from tinyml.verbs.build_systems import CmakePackage, PlatformioHook, RuntimeFolder, ZephyrModule
from tinyml.verbs.compile import Compile
from tinyml.verbs.completion import Completion
from tinyml.verbs.cost import Cost
from tinyml.verbs.demo import Demo
from tinyml.verbs.deploy import Deploy
from tinyml.verbs.doctor import Doctor
from tinyml.verbs.esphome import Esphome
from tinyml.verbs.evaluate import Evaluate
from tinyml.verbs.evidence import Evidence
from tinyml.verbs.explore import Explore
from tinyml.verbs.features import Features
from tinyml.verbs.gdb import Gdb
from tinyml.verbs.list_models import ListModels
from tinyml.verbs.make_test import MakeTest
from tinyml.verbs.new import New
from tinyml.verbs.new_operator import NewOperator
from tinyml.verbs.notebook import Notebook
from tinyml.verbs.ops import Ops
from tinyml.verbs.opt import Opt
from tinyml.verbs.pack import Pack
from tinyml.verbs.packages import Arduino, CmsisPack, EspIdf
from tinyml.verbs.player import Player
from tinyml.verbs.profile import Profile
from tinyml.verbs.quantize import Quantize
from tinyml.verbs.remove import Remove
from tinyml.verbs.report import Report
from tinyml.verbs.run import Run
from tinyml.verbs.schema import PrintSchema
from tinyml.verbs.verify import Verify
from tinyml.verbs.watch import Watch
from tinyml.verbs.web import Web

VERBS: tuple[Verb, ...] = (
    Demo(),
    Notebook(),
    New(),
    Add(),
    ListModels(),
    Remove(),
    MakeTest(),
    Compile(),
    Run(),
    Pack(),
    Player(),
    Deploy(),
    Quantize(),
    Features(),
    Ops(),
    Opt(),
    NewOperator(),
    Cost(),
    Bound(),
    Evidence(),
    Explore(),
    Report(),
    Verify(),
    Evaluate(),
    Profile(),
    Gdb(),
    Watch(),
    Web(),
    Bench(),
    Doctor(),
    RuntimeFolder(),
    ZephyrModule(),
    PlatformioHook(),
    Arduino(),
    EspIdf(),
    CmsisPack(),
    Esphome(),
    CmakePackage(),
    PrintSchema(),
    Completion(),
)

__all__ = ["VERBS", "Verb"]
