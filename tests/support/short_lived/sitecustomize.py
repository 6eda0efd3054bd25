# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Python imports this at its start: the scripts of a Zephyr build end soon, and need no garbage collector.

A run of CMake starts some twenty of them; without it they take a tenth less. Some need not run at all.
"""

import gc
import os
import sys

gc.disable()

KEEPERS = {
    "zephyr_lists": "list_boards list_shields list_hardware gen_driver_kconfig_dts",
    "kept_scripts": "check_init_priorities gen_defines gen_dts_cmake gen_edt gen_isr_tables gen_kobject_list "
    "gen_offset_header gen_syscalls kconfig parse_syscalls snippets zephyr_module",
}
"""The modules beside this file that keep answers, and of which scripts; no other script waits for them."""

if (cache := os.environ.get("TINYML_TEST_ZEPHYR_LISTS")) and len(sys.orig_argv) > 1:
    script, ending = os.path.splitext(os.path.basename(sys.orig_argv[1]))
    for keeper, scripts in KEEPERS.items():
        if ending == ".py" and script in scripts.split():
            from importlib import import_module
            from pathlib import Path

            import_module(keeper).answer_or_keep(sys.orig_argv, Path(cache))

if sys.orig_argv[1:] == ["-m", "west", "topdir"]:
    # Each run of CMake asks this, and all commands of west would be imported for the answer.
    from contextlib import suppress
    from pathlib import PurePath

    with suppress(ImportError, OSError, RuntimeError):  # the last one: no workspace, which west says in words
        from west.util import west_topdir

        print(PurePath(west_topdir()).as_posix(), flush=True)
        os._exit(0)
