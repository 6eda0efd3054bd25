# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
#
# Models in slots: the code that checks and replaces them, the key they are signed with, and packs as part
# of a build.

include_guard(GLOBAL)

# The core, for `tinyml pack -d BUILD`.
if(CONFIG_TINYML)
  tinyml_target(tinyml_target_name)
  file(CONFIGURE OUTPUT ${APPLICATION_BINARY_DIR}/tinyml/target.txt CONTENT "@tinyml_target_name@\n" @ONLY)
endif()

# Into the library `tinyml`, which the caller has made.
function(tinyml_add_slots)
  file(GLOB sources CONFIGURE_DEPENDS ${TINYML_RUNTIME_DIR}/slot/*.c)
  list(FILTER sources EXCLUDE REGEX "/trust_")
  zephyr_library_sources(${sources} ${TINYML_MODULE_DIR}/zephyr_module/src/slots.c)
  zephyr_library_sources_ifdef(CONFIG_TINYML_SHELL ${TINYML_MODULE_DIR}/zephyr_module/src/slots_shell.c)
  if(CONFIG_TINYML_SLOTS_WATCH) # without models in the firmware, there is no library of kernels that has them
    file(GLOB watch CONFIGURE_DEPENDS ${TINYML_RUNTIME_DIR}/watch/*.c)
    zephyr_library_sources(${watch})
  endif()
  if(CONFIG_TINYML_SMP)
    zephyr_library_sources(
      ${TINYML_MODULE_DIR}/zephyr_module/src/smp.c ${TINYML_MODULE_DIR}/zephyr_module/src/smp_requests.c)
  endif()
  if(CONFIG_TINYML_HAWKBIT)
    foreach(part "" _http _json)
      zephyr_library_sources(${TINYML_MODULE_DIR}/zephyr_module/src/hawkbit${part}.c)
    endforeach()
  endif()
  zephyr_library_sources_ifdef(
    CONFIG_TINYML_SLOTS_STREAM_FLASH ${TINYML_MODULE_DIR}/zephyr_module/src/slots_stream.c)
  if(NOT CONFIG_TINYML_SLOTS_KEY)
    message(STATUS "TinyML: models in slots need no signature, because CONFIG_TINYML_SLOTS_KEY names no key")
    return()
  endif()
  tinyml_public_key()
  if(CONFIG_TINYML_SLOTS_PSA)
    zephyr_library_sources(${TINYML_RUNTIME_DIR}/slot/trust_psa.c)
  else()
    tinyml_add_monocypher()
  endif()
endfunction()

# Write the public key as a header.
function(tinyml_public_key)
  get_filename_component(key ${CONFIG_TINYML_SLOTS_KEY} ABSOLUTE BASE_DIR ${APPLICATION_SOURCE_DIR})
  set(folder ${PROJECT_BINARY_DIR}/tinyml/key)
  get_property(python GLOBAL PROPERTY TINYML_PYTHON)
  execute_process(
    COMMAND ${python} -m tinyml.slots.key_header ${key} ${folder}/tinyml_slot_key.h
    RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said
  )
  if(result)
    string(STRIP "${said}" said)
    message(FATAL_ERROR "CONFIG_TINYML_SLOTS_KEY: ${said}")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${key})
  zephyr_library_include_directories(${folder})
endfunction()

function(tinyml_add_monocypher)
  zephyr_get(TINYML_MONOCYPHER)
  if(NOT TINYML_MONOCYPHER)
    set(TINYML_MONOCYPHER ${WEST_TOPDIR}/modules/crypto/monocypher)
  endif()
  set(source ${TINYML_MONOCYPHER}/src)
  if(NOT EXISTS ${source}/optional/monocypher-ed25519.c)
    message(FATAL_ERROR
      "CONFIG_TINYML_SLOTS_MONOCYPHER: there is no Monocypher in ${TINYML_MONOCYPHER}.\n"
      "  try: west config manifest.group-filter -- +slots && west update monocypher; "
      "or -DTINYML_MONOCYPHER=FOLDER; or no CONFIG_TINYML_SLOTS_KEY, which turns signatures off")
  endif()
  zephyr_library_sources(
    ${TINYML_RUNTIME_DIR}/slot/trust_monocypher.c
    ${source}/monocypher.c
    ${source}/optional/monocypher-ed25519.c
  )
  zephyr_library_include_directories(${source} ${source}/optional)
  set_source_files_properties(
    ${source}/monocypher.c ${source}/optional/monocypher-ed25519.c PROPERTIES COMPILE_OPTIONS "-w")
endfunction()

# The options of `tinyml pack` that packs with and without code have, from the caller's arguments.
function(tinyml_pack_options result)
  set(options "")
  foreach(argument NAME VERSION KEY)
    if(arg_${argument})
      string(TOLOWER ${argument} option)
      list(APPEND options --${option} ${arg_${argument}})
    endif()
  endforeach()
  set(${result} ${options} PARENT_SCOPE)
endfunction()

# zephyr_tinyml_pack(<file> MODEL <model> SLOTS <labels> [NAME <name>] [VERSION <version>] [KEY <pem>])
#
# A pack for the partitions of this firmware, as a part of its build; <file> is in the build folder. The
# target tinyml_packs makes all of them.
function(zephyr_tinyml_pack file)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MODEL;NAME;VERSION;KEY;SLOTS" "")
  get_filename_component(model ${arg_MODEL} ABSOLUTE BASE_DIR ${APPLICATION_SOURCE_DIR})
  set(output ${APPLICATION_BINARY_DIR}/${file})
  tinyml_pack_options(options)
  get_property(python GLOBAL PROPERTY TINYML_PYTHON)
  get_property(compiler_sources GLOBAL PROPERTY TINYML_COMPILER_SOURCES)
  tinyml_target(target)
  if(target STREQUAL "host")
    set(target cortex-m3) # native_sim receives packs, but cannot run them
  endif()
  tinyml_recorded_command(recorded ${output})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${recorded} ${CMAKE_COMMAND} -E env ZEPHYR_BASE=${ZEPHYR_BASE} ${python} -m tinyml pack ${model}
      --slots ${arg_SLOTS} --build-dir ${APPLICATION_BINARY_DIR} --target ${target} ${options} -o ${output}
      --depfile ${output}.d
    DEPENDS ${model} ${arg_KEY} ${compiler_sources} ${EDT_PICKLE} # the partitions
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
