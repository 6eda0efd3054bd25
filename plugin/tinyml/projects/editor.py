# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Files for VS Code in a new Zephyr application: tasks, a debugger that stops at a layer, the schema."""

from __future__ import annotations

import json
from typing import Any

from tinyml.settings.schema import schema

EMULATOR = "qemu_cortex_m3"
EXTENSIONS = ("ms-vscode.cpptools", "redhat.vscode-yaml")


def editor_files(model: str, board: str) -> dict[str, str]:
    """By path in the application."""
    files = {
        "settings.json": {"yaml.schemas": {".vscode/tinyml.schema.json": "tinyml.yaml"}},
        "tinyml.schema.json": schema(),
        "extensions.json": {"recommendations": list(EXTENSIONS)},
        "tasks.json": {"version": "2.0.0", "tasks": _tasks(model, board or EMULATOR)},
        "launch.json": {"version": "0.2.0", "configurations": [_debugging()]},
    }
    return {f".vscode/{name}": json.dumps(content, indent=1) + "\n" for name, content in files.items()}


def _tasks(model: str, board: str) -> list[dict[str, Any]]:
    def task(label: str, command: str, **more: Any) -> dict[str, Any]:
        return {"label": label, "type": "shell", "command": command, "problemMatcher": [], **more}

    build = {"group": {"kind": "build", "isDefault": True}, "problemMatcher": ["$gcc"]}
    waiting = {
        "owner": "tinyml",
        "pattern": {"regexp": "^never$"},
        "background": {"activeOnStart": True, "beginsPattern": ".", "endsPattern": "debugserver|wait|gdb"},
    }
    return [
        task("build", f"west build -b {board} .", **build),
        task("run in the emulator", "west build -t run"),
        task("test", "west twister --integration -T .", group={"kind": "test", "isDefault": True}),
        task("memory of the models", "west tinyml report -d build"),
        task("report of the model", f"west tinyml report {model} --html build/report.html"),
        task("debug server", "west build -t debugserver", isBackground=True, problemMatcher=[waiting]),
    ]


def _debugging() -> dict[str, Any]:
    """For a target that waits at port 1234. In the debug console: -exec tinyml break LAYER."""
    return {
        "name": "stop at the first layer",
        "type": "cppdbg",
        "request": "launch",
        "program": "${workspaceFolder}/build/zephyr/zephyr.elf",
        "cwd": "${workspaceFolder}",
        "MIMode": "gdb",
        "miDebuggerPath": "gdb-multiarch",
        "miDebuggerServerAddress": "localhost:1234",
        "preLaunchTask": "debug server",
        "setupCommands": [
            {"text": "source ${workspaceFolder}/build/tinyml/gdb.py"},
            {"text": "tinyml break 0", "ignoreFailures": True},
        ],
    }
