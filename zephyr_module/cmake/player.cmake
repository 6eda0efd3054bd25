# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
#
# Models that are data: the player, and the kernels that it can call.

include_guard(GLOBAL)

# A library of its own: the player, the table of its kernels, and these kernels.
function(tinyml_add_player)
  get_property(words GLOBAL PROPERTY TINYML_PLAYER_KERNELS) # `player:` in tinyml.yaml
  if(NOT CONFIG_TINYML_PLAYER)
    if(words)
      message(WARNING "TinyML: `player:` in tinyml.yaml is ignored, because CONFIG_TINYML_PLAYER is off.\n"
        "  try: CONFIG_TINYML_PLAYER=y in prj.conf")
    endif()
    return()
  endif()
  if(NOT words)
    string(STRIP "${CONFIG_TINYML_PLAYER_KERNELS}" words)
    string(REGEX REPLACE "[ ,]+" ";" words "${words}")
    if(NOT words)
      message(FATAL_ERROR "TinyML: CONFIG_TINYML_PLAYER_KERNELS names no kernels.\n"
        "  try: \"all\", or a list of groups and models; or CONFIG_TINYML_PLAYER=n")
    endif()
  endif()
  set(folder ${PROJECT_BINARY_DIR}/tinyml/player)
  tinyml_target(target)
  get_property(python GLOBAL PROPERTY TINYML_PYTHON)
  execute_process(
    COMMAND ${python} -m tinyml player ${words} --target ${target} -o ${folder}
    WORKING_DIRECTORY ${APPLICATION_SOURCE_DIR}
    RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said
  )
  string(STRIP "${said}" said)
  if(result)
    message(FATAL_ERROR "TinyML: the player's kernels: ${said}")
  endif()
  message(STATUS "TinyML: the player: ${said}")
  foreach(word IN LISTS words)
    if(word MATCHES "\\.(onnx|tflite|tmodel)$")
      get_filename_component(model ${word} ABSOLUTE BASE_DIR ${APPLICATION_SOURCE_DIR})
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${model})
    endif()
  endforeach()
  get_property(compiler_sources GLOBAL PROPERTY TINYML_COMPILER_SOURCES)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${compiler_sources})
  file(STRINGS ${folder}/sources.txt sources ENCODING UTF-8)
  list(TRANSFORM sources PREPEND ${TINYML_RUNTIME_DIR}/)
  if(CONFIG_TINYML_SLOTS)
    list(FILTER sources EXCLUDE REGEX "/slot/") # these are in the library of slots
    list(APPEND sources ${TINYML_RUNTIME_DIR}/player/slot_player.c)
  endif()
  if(CONFIG_FILE_SYSTEM)
    list(APPEND sources ${TINYML_MODULE_DIR}/zephyr_module/src/player_file.c)
  endif()
  add_library(tinyml_player STATIC ${folder}/tinyml_play_kernels.c ${sources})
  tinyml_configure_library(tinyml_player)
  target_link_libraries(tinyml_player PUBLIC ${TOOLCHAIN_LIBS})
  zephyr_append_cmake_library(tinyml_player)
  zephyr_compile_definitions(TINYML_PLAYER_TENSORS=${CONFIG_TINYML_PLAYER_TENSORS})
endfunction()

# zephyr_tinyml_data_pack(<file> MODEL <model> [FOR <cores>] [NAME <name>] [VERSION <version>] [KEY <pem>])
#
# A pack without code, as a part of the build; <file> is in the build folder. FOR names cores, or `all`; without
# it, the pack is for the core of this firmware. The target tinyml_packs makes all packs.
function(zephyr_tinyml_data_pack file)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MODEL;NAME;VERSION;KEY;FOR" "")
  get_filename_component(model ${arg_MODEL} ABSOLUTE BASE_DIR ${APPLICATION_SOURCE_DIR})
  set(output ${APPLICATION_BINARY_DIR}/${file})
  tinyml_pack_options(options)
  tinyml_target(target)
  if(arg_FOR)
    set(target ${arg_FOR})
  endif()
  get_property(python GLOBAL PROPERTY TINYML_PYTHON)
  get_property(compiler_sources GLOBAL PROPERTY TINYML_COMPILER_SOURCES)
  tinyml_recorded_command(recorded ${output})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${recorded} ${python} -m tinyml pack ${model} --data --for ${target} ${options} -o ${output}
      --depfile ${output}.d
    DEPENDS ${model} ${arg_KEY} ${compiler_sources}
    DEPFILE ${output}.d
    COMMENT "TinyML: packing ${file}"
    VERBATIM
  )
  if(NOT TARGET tinyml_packs)
    add_custom_target(tinyml_packs)
  endif()
  string(MAKE_C_IDENTIFIER ${file} name)
  add_custom_target(tinyml_pack_${name} DEPENDS ${output})
  add_dependencies(tinyml_packs tinyml_pack_${name})
endfunction()
