# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0

# After an error in a first configuration there is no build.ninja, and `west build` runs ninja without CMake: it
# would need `-p always`. Until CMake writes the real file, this one runs CMake again.
function(tinyml_configure_again)
  if(NOT CMAKE_GENERATOR STREQUAL Ninja OR EXISTS ${CMAKE_BINARY_DIR}/build.ninja)
    return()
  endif()
  set(command "\"${CMAKE_COMMAND}\" -S \"${CMAKE_SOURCE_DIR}\" -B \"${CMAKE_BINARY_DIR}\"")
  string(REPLACE "$" "$$" command "${command}")
  file(WRITE ${CMAKE_BINARY_DIR}/build.ninja
    "rule configure\n"
    "  command = ${command}\n"
    "  description = The last configuration failed: CMake runs again\n"
    "  generator = 1\n"
    "  pool = console\n"
    "build always: phony\n"
    "build build.ninja: configure always\n")
endfunction()
