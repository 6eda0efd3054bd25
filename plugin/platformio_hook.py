# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The PlatformIO hook: adds the project's models to SCons' graph.

Runs as this library's ``extraScript`` (a project then needs one line, ``lib_deps``), or as a
project's own ``extra_scripts = pre:.../platformio_hook.py``. Each model is a command that SCons runs when the
model, an option or the compiler has changed. A model that has changed is compiled while scripts are read:
SCons must know then which kernels it has to compile. The command writes what was compiled.
"""

from __future__ import annotations

import atexit
import inspect
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from platformio.package.manager.library import LibraryPackageManager
from SCons.Errors import UserError
from SCons.Script import COMMAND_LINE_TARGETS, DefaultEnvironment, GetBuildFailures, GetOption, Import

HERE = Path(inspect.getfile(lambda: None)).resolve().parent
PLUGIN = HERE if (HERE / "tinyml").is_dir() else HERE.parents[1]  # in a clone, or in tinyml/module
if str(PLUGIN) not in sys.path:
    sys.path.insert(0, str(PLUGIN))

RUNTIME = PLUGIN / "tinyml" / "runtime"
ZEPHYR_CMSIS_NN = ("modules", "lib", "cmsis-nn")
WHOLE_BUILDS = {"buildprog", "upload", "program", "checkprogsize", "size"}  # targets that link the program
KERNELS = "TINYML_KERNELS"  # the files of the runtime, in the default environment
DONE = "TINYML_ADDED"  # in the default environment: PlatformIO may read this script twice in a build


def main(env: Any, as_library: bool) -> None:
    """Add the project's models to the build, or stop it with one message."""
    from tinyml.base.errors import TinymlError

    try:
        from tinyml.projects.platformio.install import install

        install(allowed=may_install(env))
        add_models(env, as_library)
    except (TinymlError, OSError) as error:
        complain(error)
        env.Exit(1)


def may_install(env: Any) -> bool:
    """Whether the project lets the build install Python packages."""
    from tinyml.projects.platformio.install import OPTION

    return dict(env.GetProjectOptions()).get(OPTION, "no").lower() in ("yes", "true", "1")


def complain(error: Exception) -> None:
    """Print a user's mistake on stderr, without a traceback."""
    sys.stdout.flush()
    print(f"tinyml: error: {error}", file=sys.stderr, flush=True)


def add_models(env: Any, as_library: bool) -> None:
    """Add the generated sources as nodes, and their folder to everyone's include path."""
    from tinyml.projects.platformio import called_kernels, cmsis_nn
    from tinyml.projects.platformio.install import install
    from tinyml.projects.platformio.model_files import remove_stale
    from tinyml.projects.platformio.project import SUFFIXES, read_models, read_settings
    from tinyml.setup import requirements
    from tinyml.setup.compiler_sources import fingerprint

    default = DefaultEnvironment()
    board = board_of(env)
    project = Path(env.subst("$PROJECT_DIR"))
    build = Path(env.subst("$BUILD_DIR"))
    options = dict(env.GetProjectOptions())
    settings = read_settings(project, options)
    found = list(library_folders(env))
    library = cmsis_nn.choose(settings.cmsis_nn, found)
    models = read_models(project, options, board, library is not None)
    if any(model.options.quantize for model in models):
        install(requirements.QUANTIZE, may_install(env))
    folder = build / "tinyml"
    includes = [str(folder), str(RUNTIME / "include")]
    if library:
        includes.append(str(library / "Include"))
    show_includes(env, includes, as_library)
    debug = "debug" in env.GetBuildType()
    flags = [] if debug else settings.flags([model.options.optimize for model in models])
    if GetOption("clean"):
        kernels = called_kernels.every_source()
    elif default.get(DONE):
        kernels = default[KERNELS]
    else:
        played = called_kernels.write_player(settings.player, board.target, project, folder)
        kernels = default[KERNELS] = called_kernels.sources(models, fingerprint(), folder, played)
    if as_library:  # PlatformIO compiles the kernels, as specified in library.json
        env.Append(CCFLAGS=flags)
        env.Replace(SRC_FILTER=[f"+<{path.relative_to(RUNTIME).as_posix()}>" for path in kernels])
    if default.get(DONE):
        return
    if settings.player:
        add_player(env, folder, flags)
    elif not models:
        print(f"tinyml: no models found; put {' or '.join(SUFFIXES)} files into models/")
    elif not library and (old := cmsis_nn.outdated(found)):
        print(f"tinyml: CMSIS-NN in {old} is older than version 7; models use the portable kernels")
    remove_stale(folder, [model.name for model in models])
    default[DONE] = True
    summaries = [
        add_model(env, model, board, folder, [] if debug else settings.flags([model.options.optimize]))
        for model in models
    ]
    if not as_library:
        default.Append(LIBS=archive(env, "tinyml", kernels, flags))
    if library:
        leave_to_us(env, library, as_library)
        default.Append(LIBS=cmsis_nn_archive(env, folder, summaries, [*flags, "-w"]))
    if "zephyr" not in env.get("PIOFRAMEWORK", []):  # which links libraries in its own way
        default.AppendUnique(LIBS=["m"])  # for float models; not every platform links it
    if summaries and not set(COMMAND_LINE_TARGETS) - WHOLE_BUILDS and not GetOption("clean"):
        atexit.register(print_memory, [Path(str(node)) for node in summaries])
    default.AddCustomTarget(
        "tinyml-report",
        summaries,
        env.Action(print_reports, cmdstr=None),
        title="Model report",
        description="Memory and layers of the project's models",
    )


def add_player(env: Any, folder: Path, flags: list[str]) -> None:
    """Add the table of kernels to the program; the library has the player and the kernels."""
    from tinyml.slots.firmware import TABLE

    table = env.File(str(folder / "player" / TABLE))
    DefaultEnvironment().Append(PIOBUILDFILES=compiled(env, table, flags))


def add_model(env: Any, model: Any, board: Any, folder: Path, flags: list[str]) -> Any:
    """Add a model's C and object to the program; returns the node of its summary."""
    from tinyml.projects.platformio.model_files import generated_files, read_files
    from tinyml.setup.compiler_sources import fingerprint

    nodes = env.Command(
        [env.File(str(folder / name)) for name in generated_files(model.name)],
        env.File(str(model.path)),
        env.VerboseAction(generate, f"Compiling model {model.path.name}"),
        TINYML_MODEL=model,
        TINYML_BOARD=board,
    )
    env.Depends(nodes, env.Value(f"{model.key(fingerprint())} {board}"))
    env.Depends(nodes, [env.File(str(path)) for path in read_files(model)])
    DefaultEnvironment().Append(PIOBUILDFILES=compiled(env, nodes[0], flags))
    return nodes[-1]


def compiled(env: Any, source: Any, flags: list[str], target: str | None = None) -> Any:
    """An object with additional flags, placed after those that the platform may set later."""
    settings = {"CCCOM": f"{env['CCCOM']} $TINYML_FLAGS", "TINYML_FLAGS": flags}
    return env.Object(target, source, **settings) if target else env.Object(source, **settings)


def archive(env: Any, name: str, sources: list[Path], flags: list[str]) -> Any:
    """An ordinary archive, from which the linker takes only what the models call."""
    objects = [
        compiled(env, env.File(str(path)), flags, f"$BUILD_DIR/{name}/{path.parent.name}/{path.stem}.o")
        for path in sources
    ]
    return env.StaticLibrary(f"$BUILD_DIR/lib{name}", objects)


def cmsis_nn_archive(env: Any, folder: Path, summaries: list[Any], flags: list[str]) -> Any:
    """The functions of CMSIS-NN that the models call, according to their summaries."""
    source = env.Command(
        env.File(str(folder / "cmsis_nn" / "cmsis_nn.c")),
        summaries,
        env.VerboseAction(collect_cmsis_nn, "Collecting functions of CMSIS-NN"),
    )
    return env.StaticLibrary("$BUILD_DIR/libtinyml_cmsis_nn", compiled(env, source, flags))


def collect_cmsis_nn(target: list[Any], source: list[Any], env: Any) -> None:
    """SCons' action: the source that includes those of CMSIS-NN."""
    from tinyml.projects.cmsis_nn_source import write

    write(Path(str(target[0])), [Path(str(node)) for node in source])


def library_folders(env: Any) -> Iterator[Path]:
    """Folders that may hold CMSIS-NN: the project's libraries, and the modules of the Zephyr package."""
    for storage in map(Path, env.GetLibSourceDirs()):
        for item in sorted(storage.iterdir()) if storage.is_dir() else ():
            if LibraryPackageManager.is_symlink(str(item)):
                yield Path(LibraryPackageManager.resolve_symlink(str(item))[0] or item)
            else:
                yield item
    if "zephyr" in env.get("PIOFRAMEWORK", []):
        yield Path(env.PioPlatform().get_package_dir("framework-zephyr") or "", "_pio", *ZEPHYR_CMSIS_NN)


def leave_to_us(env: Any, cmsis_nn: Path, as_library: bool) -> None:
    """Keep PlatformIO from compiling CMSIS-NN, which has no manifest: it would compile the tests, too."""

    def skip(env: Any, node: Any) -> Any:
        return None if cmsis_nn.resolve() in Path(node.srcnode().get_abspath()).resolve().parents else node

    DefaultEnvironment().AddBuildMiddleware(skip)  # libraries that PlatformIO processes after us
    if as_library:
        for builder in env.GetLibBuilders():  # and those it has already processed
            builder.env.AddBuildMiddleware(skip)


def show_includes(env: Any, includes: list[str], as_library: bool) -> None:
    """Let the project and all its libraries include the generated headers."""
    env.AppendUnique(CPPPATH=includes)
    DefaultEnvironment().AppendUnique(CPPPATH=includes)
    if as_library:
        for builder in env.GetLibBuilders():
            builder.env.AppendUnique(CPPPATH=includes)


def board_of(env: Any) -> Any:
    """What PlatformIO knows about the board."""
    from tinyml.projects.platformio.boards import Board

    if "BOARD" not in env:
        return Board()
    config = env.BoardConfig()
    return Board(
        str(config.get("build.cpu", "")),
        config.get("upload.maximum_ram_size", None),
        config.get("upload.maximum_size", None),
        str(config.get("build.mcu", "")),
        str(config.get("build.march", "")),
    )


def generate(target: list[Any], source: list[Any], env: Any) -> int:
    """SCons' action that compiles one model; its data comes in ``env``, because SCons hashes closures."""
    from tinyml.base.errors import TinymlError
    from tinyml.pipeline import write_folder
    from tinyml.projects.platformio.called_kernels import compile_once
    from tinyml.projects.platformio.checked_limits import check_budget, estimated_flash, most_instructions
    from tinyml.report.ways_out import pricing
    from tinyml.settings.setting import INI
    from tinyml.setup.compiler_sources import fingerprint

    model = env["TINYML_MODEL"]
    try:
        compiled = compile_once(model, fingerprint())
        ways = pricing(model.path, model.options, compiled, INI)
        check_budget(
            *(compiled.summary, model, env["TINYML_BOARD"], estimated_flash(compiled), ways),
            lambda: most_instructions(compiled),
        )
        write_folder(compiled, Path(str(target[0])).parent)
    except (TinymlError, OSError) as error:
        complain(error)
        return 1
    if compiled.quantization:
        for line in (f"int8: {compiled.quantization.headline()}", *compiled.quantization.advice()):
            print(f"tinyml: {model.name}: {line}", flush=True)
    if model.options.npu:
        print(
            f"tinyml: {model.name}: {model.options.npu} is called through tinyml_ethos_u_run(), which your "
            "application provides (docs/npu.md, Other systems)",
            flush=True,
        )
    return 0


def print_memory(summaries: list[Path]) -> None:
    """What each model takes, after a build: PlatformIO's own lines have the whole program.

    Not an action of SCons: the program would be linked again whenever its actions change.
    """
    from tinyml.report.describe import memory_line

    if not GetBuildFailures():
        for path in filter(Path.is_file, summaries):
            print(f"tinyml: {memory_line(json.loads(path.read_text(encoding='utf-8')))}", flush=True)


def print_reports(target: list[Any], source: list[Any], env: Any) -> None:
    """Action of the target ``tinyml-report``."""
    from tinyml.report.describe import describe

    for node in source:
        summary = json.loads(Path(str(node)).read_text(encoding="utf-8"))
        print(describe(summary, shutil.get_terminal_size((100, 24)).columns))


def imported(name: str) -> Any:
    """A variable that PlatformIO exports to this script; None if it does not."""
    try:
        Import(name)
    except UserError:
        return None
    return globals()[name]


main(imported("env"), as_library=imported("pio_lib_builder") is not None)
