# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0

# find_package(tinyml): models as libraries of any CMake project.
#
#   find_package(tinyml REQUIRED)                 # -Dtinyml_DIR="$(tinyml cmake)"
#   tinyml_add_model(kws models/kws.onnx TARGET cortex-m4 OPTIONS --optimize ram)
#   target_link_libraries(firmware PRIVATE kws)
#
# A model is compiled when CMake configures, so that its sources are known, and CMake runs again when it changes.

cmake_minimum_required(VERSION 3.20)

if(NOT tinyml_COMMAND)
  # The package that this file belongs to, in the Python that has its requirements.
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  get_filename_component(_tinyml_path ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
  set(tinyml_COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${_tinyml_path} ${Python3_EXECUTABLE} -m tinyml)
endif()
get_filename_component(tinyml_RUNTIME_DIR ${CMAKE_CURRENT_LIST_DIR}/../../runtime ABSOLUTE)

# tinyml_add_model(NAME FILE [TARGET CORE] [OPTIONS ...]): the library NAME with the header NAME.h. OPTIONS are
# those of `tinyml compile`. Without TARGET, the C runs on any core.
function(tinyml_add_model name file)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "TARGET" "OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tinyml_add_model(${name}): what is ${arg_UNPARSED_ARGUMENTS}?\n  try: OPTIONS before it")
  endif()
  if(NOT arg_TARGET)
    set(arg_TARGET generic)
  endif()
  get_filename_component(file ${file} ABSOLUTE)
  set(dir ${CMAKE_CURRENT_BINARY_DIR}/tinyml/${name})
  execute_process(
    COMMAND ${tinyml_COMMAND} compile ${file} -o ${dir} --name ${name} --target ${arg_TARGET} ${arg_OPTIONS}
    RESULT_VARIABLE result ERROR_VARIABLE said OUTPUT_VARIABLE printed
  )
  if(result)
    message(FATAL_ERROR "tinyml: model ${name} cannot be compiled.\n${said}")
  endif()
  string(STRIP "${printed}" printed)
  message(STATUS "tinyml: ${printed}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${dir}/${name}.json summary)
  string(JSON others LENGTH "${summary}" sources cmsis-nn)
  if(others)
    message(FATAL_ERROR "tinyml: model ${name} needs CMSIS-NN.\n  try: OPTIONS --kernels portable")
  endif()
  string(JSON count LENGTH "${summary}" sources runtime)
  set(sources ${dir}/${name}.c)
  set(index 0)
  while(index LESS count)
    string(JSON source GET "${summary}" sources runtime ${index})
    list(APPEND sources ${tinyml_RUNTIME_DIR}/${source})
    math(EXPR index "${index} + 1")
  endwhile()
  list(REMOVE_DUPLICATES sources)
  # Kernels are compiled with each model; the linker keeps one copy of what two models share.
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${dir} ${tinyml_RUNTIME_DIR}/include)
  set_target_properties(${name} PROPERTIES C_STANDARD 11)
endfunction()
