# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0

# When models and kernels are compiled. A model that is new, or whose settings have changed, is compiled when
# CMake configures: its errors come before anything is built, and the kernels that it calls are known.
# Whenever the model changes later, ninja compiles it.

include_guard(GLOBAL)

set_property(GLOBAL PROPERTY TINYML_COMPILE_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/../scripts/compile_model.py)

# Compile a model now, with the script and arguments of the build, unless they have compiled it before.
function(tinyml_compile_now name dir comment)
  set(record ${dir}/${name}.command)
  if(EXISTS ${record} AND EXISTS ${dir}/${name}.c AND EXISTS ${dir}/${name}.kernels)
    file(READ ${record} before)
    if("${before}" STREQUAL "${ARGN}")
      return()
    endif()
  endif()
  file(REMOVE ${record} ${dir}/${name}.fresh)
  message(STATUS "${comment}")
  get_property(python GLOBAL PROPERTY TINYML_PYTHON)
  execute_process(COMMAND ${python} ${ARGN} RESULT_VARIABLE result)
  if(result)
    message(FATAL_ERROR "TinyML: model ${name} cannot be compiled: see the message above")
  endif()
  file(WRITE ${record} "${ARGN}")
  file(TOUCH ${dir}/${name}.fresh)
endfunction()

# Give the library of kernels the sources that the models call. Called when all models are known.
function(tinyml_choose_kernels)
  get_property(models GLOBAL PROPERTY TINYML_MODELS)
  get_property(runtime GLOBAL PROPERTY TINYML_RUNTIME_DIR)
  file(GLOB_RECURSE every CONFIGURE_DEPENDS ${runtime}/*.c)
  list(FILTER every EXCLUDE REGEX "/runtime/(host|slot)/") # not kernels
  set(sources ${every})
  list(FILTER sources INCLUDE REGEX "/runtime/signal/") # applications call them too
  # Only ninja compiles a model before it decides whether CMake has to run again.
  if(models AND CMAKE_GENERATOR STREQUAL Ninja)
    foreach(model IN LISTS models)
      set(list ${APPLICATION_BINARY_DIR}/tinyml/${model}/${model}.kernels)
      file(STRINGS ${list} needed ENCODING UTF-8)
      list(TRANSFORM needed PREPEND ${runtime}/)
      list(APPEND sources ${needed})
      set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
    endforeach()
    list(REMOVE_DUPLICATES sources)
  else()
    set(sources ${every})
  endif()
  target_sources(tinyml_kernels PRIVATE ${sources})
endfunction()
