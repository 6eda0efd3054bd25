"""The host's own compiler, as strict as it goes; nothing to download."""

from SCons.Script import Default, DefaultEnvironment

env = DefaultEnvironment()
env.Replace(PROGNAME="program", SIZETOOL=None)
env.Append(
    CCFLAGS=["-O1", "-g", "-Wall", "-Wextra", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    LINKFLAGS=["-fsanitize=address,undefined"],
    LIBS=["m"],
)
Default(env.BuildProgram())
