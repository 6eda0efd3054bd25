# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Debian's riscv64-unknown-elf-gcc with picolibc's semihosting; `pio run -t qemu` runs the image."""

from SCons.Script import Default, DefaultEnvironment

env = DefaultEnvironment()
board = env.BoardConfig()
prefix = "riscv64-unknown-elf-"
core = [f"-march={board.get('build.march')}", f"-mabi={board.get('build.mabi')}", "--specs=picolibc.specs"]
flash, ram = 0x80000000, 0x80400000  # two halves of the RAM that QEMU starts from
size = board.get("upload.maximum_size")

env.Replace(
    AR=f"{prefix}gcc-ar",
    AS=f"{prefix}as",
    CC=f"{prefix}gcc",
    CXX=f"{prefix}g++",
    LINK=f"{prefix}gcc",
    RANLIB=f"{prefix}gcc-ranlib",
    SIZETOOL=None,
    PROGNAME="firmware",
    PROGSUFFIX=".elf",
)
env.Append(
    CCFLAGS=[*core, "-Os", "-Wall", "-Wextra", "-Werror", "-ffunction-sections", "-fdata-sections"],
    LINKFLAGS=[
        *core,
        "--oslib=semihost",
        "--crt0=hosted",
        "-Wl,--gc-sections",
        f"-Wl,--defsym=__flash={flash:#x},--defsym=__flash_size={size}",
        f"-Wl,--defsym=__ram={ram:#x},--defsym=__ram_size={size}",
    ],
)
image = env.BuildProgram()
env.AddPlatformTarget(
    "qemu",
    image,
    "qemu-system-riscv32 -M virt -bios none -nographic -monitor none -serial null "
    '-semihosting-config enable=on,target=native -kernel "$SOURCE"',
    "Run in QEMU",
)
Default(image)
