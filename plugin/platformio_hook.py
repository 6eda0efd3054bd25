"""PlatformIO's way in: models of the project become C in SCons' graph.

Runs as this library's ``extraScript`` (``lib_deps`` is then the one line a project needs), or as a
project's own ``extra_scripts = pre:.../platformio_hook.py``. Nothing is compiled while scripts are read:
each model is a command that SCons runs when the model, an option or the compiler has changed.
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any

from platformio.package.manager.library import LibraryPackageManager
from SCons.Errors import UserError
from SCons.Script import DefaultEnvironment, Import

PLUGIN = Path(inspect.getfile(lambda: None)).resolve().parent
if str(PLUGIN) not in sys.path:
    sys.path.insert(0, str(PLUGIN))

DONE = "TINYML_OBJECTS"  # in the default environment: PlatformIO may read this script twice in a build


def main(env: Any, as_library: bool) -> None:
    """Add the project's models to the build, or stop it with one message."""
    from tinyml.errors import TinymlError

    try:
        from tinyml.package import requirements

        requirements.install()
        add_models(env, as_library)
    except TinymlError as error:
        complain(error)
        env.Exit(1)


def complain(error: Exception) -> None:
    """A mistake of the user's, on stderr, without a traceback."""
    sys.stdout.flush()
    print(f"tinyml: error: {error}", file=sys.stderr, flush=True)


def add_models(env: Any, as_library: bool) -> None:
    """The generated sources as nodes, their folder as an include folder for everybody."""
    from tinyml.package import platformio, requirements

    default = DefaultEnvironment()
    board = board_of(env)
    project = Path(env.subst("$PROJECT_DIR"))
    cmsis_nn = find_cmsis_nn(env) if as_library else None
    models = platformio.read_models(project, dict(env.GetProjectOptions()), board, cmsis_nn is not None)
    if any(model.quantize for model in models):
        requirements.install(requirements.QUANTIZE)
    folder = Path(env.subst("$BUILD_DIR")) / "tinyml"
    includes = [str(folder), str(PLUGIN / "tinyml" / "runtime" / "include")]
    if cmsis_nn:
        includes.append(str(cmsis_nn / "Include"))
        build_sources_only(env, cmsis_nn)
    show_includes(env, includes, as_library)
    if default.get(DONE) is not None:
        return
    if not models:
        print(f"tinyml: no models found; put {' or '.join(platformio.SUFFIXES)} files into models/")
    platformio.remove_stale(folder, [model.name for model in models])
    compiler = platformio.fingerprint(PLUGIN / "tinyml")
    objects, summaries = [], []
    for model in models:
        nodes = env.Command(
            [env.File(str(folder / name)) for name in platformio.generated_files(model.name)],
            env.File(str(model.path)),
            env.VerboseAction(generate, f"Compiling model {model.path.name}"),
            TINYML_MODEL=model,
            TINYML_BOARD=board,
        )
        env.Depends(nodes, env.Value(model.key(compiler)))
        others = platformio.external_files(model.path) + (model.quantize.files if model.quantize else [])
        env.Depends(nodes, [env.File(str(path)) for path in others])
        objects += env.Object(nodes[0])
        summaries.append(nodes[-1])
    if not as_library:
        objects += runtime_objects(env)
    default[DONE] = objects
    default.Append(PIOBUILDFILES=objects)
    default.AddCustomTarget(
        "tinyml-report",
        summaries,
        print_reports,
        title="Model report",
        description="Memory and layers of the project's models",
    )


def find_cmsis_nn(env: Any) -> Path | None:
    """CMSIS-NN, if it is among the project's libraries."""
    for storage in map(Path, env.GetLibSourceDirs()):
        for item in sorted(storage.iterdir()) if storage.is_dir() else ():
            path = item
            if LibraryPackageManager.is_symlink(str(item)):
                path = Path(LibraryPackageManager.resolve_symlink(str(item))[0] or item)
            if (path / "Include" / "arm_nnfunctions.h").is_file():
                return path
    return None


def build_sources_only(env: Any, cmsis_nn: Path) -> None:
    """CMSIS-NN has no manifest for PlatformIO, which would compile all of its repository, tests included."""
    sources = cmsis_nn.resolve() / "Source"

    def skip_others(env: Any, node: Any) -> Any:
        path = Path(node.srcnode().get_abspath()).resolve()
        return None if cmsis_nn.resolve() in path.parents and sources not in path.parents else node

    for each in (DefaultEnvironment(), *(builder.env for builder in env.GetLibBuilders())):
        each.AddBuildMiddleware(skip_others)


def show_includes(env: Any, includes: list[str], as_library: bool) -> None:
    """Let the project, and every library of it, include the generated headers."""
    env.AppendUnique(CPPPATH=includes)
    DefaultEnvironment().AppendUnique(CPPPATH=includes)  # libraries that PlatformIO looks at after us
    if as_library:
        for builder in env.GetLibBuilders():  # and those it has looked at already
            builder.env.AppendUnique(CPPPATH=includes)


def board_of(env: Any) -> Any:
    """What PlatformIO knows of the board."""
    from tinyml.package.platformio import Board

    if "BOARD" not in env:
        return Board()
    config = env.BoardConfig()
    return Board(
        str(config.get("build.cpu", "")),
        config.get("upload.maximum_ram_size", None),
        config.get("upload.maximum_size", None),
    )


def generate(target: list[Any], source: list[Any], env: Any) -> int:
    """SCons' action that compiles one model; what it needs comes in ``env``, for SCons hashes closures."""
    from tinyml.errors import TinymlError
    from tinyml.package.platformio import check_budget
    from tinyml.pipeline import Options, compile_model

    model = env["TINYML_MODEL"]
    try:
        options = Options(
            name=model.name,
            target=model.target,
            kernels=model.kernels,
            shapes=model.dimensions,
            quantize=model.quantize,
            cmsis_nn=model.cmsis_nn,
        )
        compiled = compile_model(model.path, options)
        check_budget(compiled.summary, model, env["TINYML_BOARD"])
    except TinymlError as error:
        complain(error)
        return 1
    if compiled.quantization:
        for line in (f"int8: {compiled.quantization.headline()}", *compiled.quantization.advice()):
            print(f"tinyml: {model.name}: {line}", flush=True)
    for node in target:
        path = Path(str(node))
        path.write_text(compiled.files[path.name], encoding="utf-8", newline="\n")
    return 0


def runtime_objects(env: Any) -> list[Any]:
    """The portable kernels; as a library PlatformIO builds them from ``library.json``."""
    sources = env.CollectBuildFiles("$BUILD_DIR/tinyml_runtime", str(PLUGIN / "tinyml" / "runtime"))
    return [node for source in sources for node in env.Object(source)]


def print_reports(target: list[Any], source: list[Any], env: Any) -> None:
    """Action of the target ``tinyml-report``."""
    from tinyml.package.describe import describe

    for node in source:
        print(describe(json.loads(Path(str(node)).read_text(encoding="utf-8"))))


def imported(name: str) -> Any:
    """A variable that PlatformIO exports to this script; None where it does not."""
    try:
        Import(name)
    except UserError:
        return None
    return globals()[name]


main(imported("env"), as_library=imported("pio_lib_builder") is not None)
