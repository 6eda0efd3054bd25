# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Generated C as a program: on the host, on bare-metal QEMU with exact instruction counts, in Zephyr."""

from tinyml.cores.machines import CORES, MACHINES, Machine, find_machine
from tinyml.harness.footprint import Footprint, Sizes
from tinyml.harness.program_build import Image, Options, build
from tinyml.harness.run import Result, command, execute, run, run_files
from tinyml.harness.runner import Runner, Standalone

__all__ = [
    "CORES",
    "MACHINES",
    "Footprint",
    "Image",
    "Machine",
    "Options",
    "Result",
    "Runner",
    "Sizes",
    "Standalone",
    "build",
    "command",
    "execute",
    "find_machine",
    "run",
    "run_files",
]
