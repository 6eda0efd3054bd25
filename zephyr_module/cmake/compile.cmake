# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0

# When models and kernels are compiled. A model that is new, or whose settings have changed, is compiled when
# CMake configures: its errors come before anything is built, and the kernels that it calls are known.
# Whenever the model changes later, ninja compiles it. Ninja takes a file that is older than the C for one that has
# not changed, so a script compares contents before ninja does anything else: see sources.py.

include_guard(GLOBAL)

set_property(GLOBAL PROPERTY TINYML_COMPILE_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/../scripts/compile_model.py)
set_property(GLOBAL PROPERTY TINYML_SOURCES_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/../scripts/sources.py)

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

# Compile the model in the build whenever something that it depends on changes. Ninja does it in two steps,
# because CMake depends on the list of kernels: see compile_model.py. The first one names no file of the user
# or of the compiler, which are in its depfile: while a file that is named here is missing, because its user has
# renamed it or an update has removed it, ninja would refuse to run CMake.
function(tinyml_compile_later name dir comment)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "GENERATED;COMMAND;FILES;COMPILER")
  get_property(python GLOBAL PROPERTY TINYML_PYTHON)
  set(made ${dir}/${name}.json ${dir}/${name}_report.html ${dir}/${name}_report.json)
  set(kernels)
  if(CMAKE_GENERATOR STREQUAL Ninja)
    list(POP_FRONT arg_COMMAND script)
    set(kernels ${dir}/${name}.kernels)
    set(unruly ${arg_FILES})
    list(FILTER unruly INCLUDE REGEX "[]$#'\"&?*<>|;`^%[\\]") # names that a depfile cannot hold
    add_custom_command(
      OUTPUT ${kernels}
      COMMAND ${python} ${script} --kernels ${arg_COMMAND}
      DEPENDS ${unruly}
      DEPFILE ${dir}/${name}.kernels.d
      COMMENT "${comment}"
      VERBATIM
    )
    list(PREPEND arg_COMMAND ${script})
  else()
    list(APPEND made ${dir}/${name}.kernels)
  endif()
  add_custom_command(
    OUTPUT ${arg_GENERATED}
    BYPRODUCTS ${made}
    COMMAND ${python} ${arg_COMMAND}
    # Unchanged headers keep their time stamps, so that files that include them are not rebuilt. The source
    # gets the time at which the model was read, so a model that is replaced meanwhile is compiled next time.
    DEPENDS ${arg_FILES} ${arg_COMPILER} ${kernels}
    DEPFILE ${dir}/${name}.d
    COMMENT "${comment}"
    VERBATIM
  )
endfunction()

# A command that runs another one and records the sources of its output, which are in its depfile.
function(tinyml_recorded_command variable output)
  get_property(python GLOBAL PROPERTY TINYML_PYTHON)
  get_property(script GLOBAL PROPERTY TINYML_SOURCES_SCRIPT)
  set_property(GLOBAL APPEND PROPERTY TINYML_RECORDS ${output}.sources)
  set(${variable} ${python} ${script} --record ${output}.sources ${output}.d ${output} -- PARENT_SCOPE)
endfunction()

# Compare the sources of models and packs with what they were, whenever ninja runs. Its output never exists, so it
# is always out of date. Only build.ninja depends on it, which ninja looks at first: there is still "no work to do".
function(tinyml_compare_sources)
  get_property(models GLOBAL PROPERTY TINYML_MODELS)
  get_property(records GLOBAL PROPERTY TINYML_RECORDS)
  get_property(python GLOBAL PROPERTY TINYML_PYTHON)
  get_property(script GLOBAL PROPERTY TINYML_SOURCES_SCRIPT)
  set(dir ${APPLICATION_BINARY_DIR}/tinyml)
  foreach(model IN LISTS models)
    list(APPEND records ${dir}/${model}/${model}.sources)
  endforeach()
  if(NOT records)
    return()
  endif()
  if(NOT EXISTS ${dir}/replaced.stamp)
    file(TOUCH ${dir}/replaced.stamp)
  endif()
  if(CMAKE_GENERATOR STREQUAL Ninja)
    add_custom_command(
      OUTPUT ${dir}/compared
      BYPRODUCTS ${dir}/replaced.stamp
      COMMAND ${python} ${script} ${dir}/replaced.stamp ${records}
      COMMENT "TinyML: comparing models with those of the last build"
      VERBATIM
    )
    set_source_files_properties(${dir}/compared PROPERTIES SYMBOLIC TRUE)
    set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${dir}/replaced.stamp)
    add_custom_target(tinyml_compare_sources DEPENDS ${dir}/compared)
  else()
    add_custom_target(tinyml_compare_sources
      COMMAND ${python} ${script} ${dir}/replaced.stamp ${records} VERBATIM)
    foreach(model IN LISTS models)
      if(TARGET tinyml_compile_${model})
        add_dependencies(tinyml_compile_${model} tinyml_compare_sources)
      endif()
    endforeach()
  endif()
endfunction()

# Give the library of kernels the sources that the models call. Called when all models are known.
function(tinyml_choose_kernels)
  get_property(models GLOBAL PROPERTY TINYML_MODELS)
  get_property(runtime GLOBAL PROPERTY TINYML_RUNTIME_DIR)
  file(GLOB_RECURSE every CONFIGURE_DEPENDS ${runtime}/*.c)
  list(FILTER every EXCLUDE REGEX "/runtime/(host|player|slot)/") # not kernels
  set(sources ${every})
  set(called signal|watch)
  if(CONFIG_TINYML_ADAPT)
    string(APPEND called |adapt)
  endif()
  list(FILTER sources INCLUDE REGEX "/runtime/(${called})/") # applications call them too
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
  tinyml_compare_sources()
endfunction()
