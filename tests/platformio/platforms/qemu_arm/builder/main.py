# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Debian's arm-none-eabi-gcc with newlib's semihosting; `pio run -t qemu` runs the image.

Zephyr brings its own C library, linker scripts and flags, and a BuildProgram() that links twice.
"""

from pathlib import Path

from SCons.Script import Default, DefaultEnvironment

env = DefaultEnvironment()
board = env.BoardConfig()
start = Path(env.PioPlatform().get_dir()) / "start"
prefix = "arm-none-eabi-"
core = [f"-mcpu={board.get('build.cpu')}", "-mthumb"]

env.Replace(
    AR=f"{prefix}gcc-ar",
    AS=f"{prefix}as",
    CC=f"{prefix}gcc",
    CXX=f"{prefix}g++",
    LINK=f"{prefix}gcc",
    RANLIB=f"{prefix}gcc-ranlib",
    OBJCOPY=f"{prefix}objcopy",
    SIZETOOL=f"{prefix}size",
    SIZEPRINTCMD="$SIZETOOL $SOURCES",
    PROGNAME="firmware",
    PROGSUFFIX=".elf",
)
if "zephyr" in env.get("PIOFRAMEWORK", []):
    package = Path(env.PioPlatform().get_package_dir("framework-zephyr"))
    env.SConscript(str(package / "scripts" / "platformio" / "platformio-build-pre.py"), exports={"env": env})
else:
    env.Append(
        ASFLAGS=core,
        CCFLAGS=[*core, "-Os", "-g", "-Wall", "-Wextra", "-ffunction-sections", "-fdata-sections"],
        LINKFLAGS=[*core, "--specs=rdimon.specs", "-Wl,--gc-sections", f"-T{start / 'mps2.ld'}"],
    )
    env.BuildSources("$BUILD_DIR/start", str(start))
image = env.BuildProgram()
env.AddPlatformTarget(
    "qemu",
    image,
    f"qemu-system-arm -M {board.get('build.qemu_machine')} -nographic -monitor none -serial null "
    '-semihosting-config enable=on,target=native -kernel "$SOURCE"',
    "Run in QEMU",
)
Default(image)
