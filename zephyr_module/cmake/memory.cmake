# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0

# The memories that models use: devicetree regions, their sizes as limits for the compiler, and the
# arenas, one for each model or shared.

include_guard(GLOBAL)

# The devicetree node of a zephyr,memory-region, by its label; ``said`` is the user's text.
function(tinyml_region out_node out_name label said)
  dt_nodelabel(node NODELABEL "${label}")
  tinyml_check_region("${node}" name "${said}")
  set(${out_node} ${node} PARENT_SCOPE)
  set(${out_name} ${name} PARENT_SCOPE)
endfunction()

# The linker's name of the memory region that a node describes; an error if it is not a memory region.
function(tinyml_check_region node out_name said)
  if(node)
    dt_prop(name PATH ${node} PROPERTY "zephyr,memory-region")
    dt_node_has_status(enabled PATH ${node} STATUS okay)
  endif()
  if(NOT node OR NOT name OR NOT enabled)
    message(FATAL_ERROR
      "TinyML: ${said} must name an enabled devicetree node with compatible = \"zephyr,memory-region\".\n"
      "  found: ${node}\n"
      "  try: the label of such a node (dtcm, ocram, ...), or an overlay that adds the compatible to one; "
      "without a choice the board's own RAM and flash are used.")
  endif()
  zephyr_string(SANITIZE name ${name})
  set(${out_name} ${name} PARENT_SCOPE)
endfunction()

# Where a model's arena goes: the node of a region, and how C names that node; both empty for .noinit.
# ``label`` is the model's own choice, empty for the application's (chosen tinyml,arena).
function(tinyml_arena_node out_node out_c name label)
  set(c "")
  if(label)
    tinyml_region(node unused ${label} "arena_region: ${label}, of model ${name}")
    set(c "DT_NODELABEL(${label})")
  else()
    dt_chosen(node PROPERTY "tinyml,arena")
    if(node)
      tinyml_check_region(${node} unused "chosen tinyml,arena")
      set(c "DT_CHOSEN(tinyml_arena)")
    endif()
  endif()
  set(${out_node} "${node}" PARENT_SCOPE)
  set(${out_c} "${c}" PARENT_SCOPE)
endfunction()

# The size of a region as a `--limit` option for the compiler.
function(tinyml_region_limit out kind node)
  dt_reg_size(size PATH ${node})
  dt_prop(name PATH ${node} PROPERTY "zephyr,memory-region")
  math(EXPR size "${size}")
  set(${out} "--limit=${kind}=${size},memory region ${name}" PARENT_SCOPE)
endfunction()

# The sizes of a model's memories, as `--limit` options for the compiler.
function(tinyml_memory_limits out arena_node weights_node)
  set(limits "")
  set(partition 0)
  if(CONFIG_FLASH_LOAD_SIZE)
    math(EXPR partition "${CONFIG_FLASH_LOAD_SIZE}") # 0x0, which is true to CMake: up to the end of the flash
  endif()
  if(arena_node)
    tinyml_region_limit(limit arena ${arena_node})
    list(APPEND limits ${limit})
  elseif(CONFIG_SRAM_SIZE)
    math(EXPR size "${CONFIG_SRAM_SIZE} * 1024")
    list(APPEND limits "--limit=ram=${size},the board")
  endif()
  if(weights_node)
    tinyml_region_limit(limit flash ${weights_node})
    list(APPEND limits ${limit})
  elseif(partition)
    list(APPEND limits "--limit=flash=${partition},the code partition")
  elseif(CONFIG_XIP AND CONFIG_FLASH_SIZE)
    math(EXPR size "${CONFIG_FLASH_SIZE} * 1024")
    list(APPEND limits "--limit=flash=${size},the board")
  endif()
  set(${out} "${limits}" PARENT_SCOPE)
endfunction()

# Where a model's weights go: the node of a region, if ``where`` is the label of one.
function(tinyml_weights_node out name where)
  set(node "")
  if(where AND NOT where MATCHES "^(flash|ram)$")
    tinyml_region(node unused ${where} "weights: ${where}, of model ${name}")
  endif()
  set(${out} "${node}" PARENT_SCOPE)
endfunction()

# Place the weights of a model; its C has a macro for that.
function(tinyml_place_weights model where node)
  if(where STREQUAL ram)
    target_compile_definitions(tinyml_model_${model} PRIVATE TINYML_WEIGHTS_IN_RAM)
  elseif(node)
    tinyml_check_region(${node} region "weights")
    target_compile_definitions(tinyml_model_${model} PRIVATE TINYML_WEIGHTS_IN="${region}")
    # Zephyr's own section of a region is not loaded, so weights need another one.
    get_property(placed GLOBAL PROPERTY TINYML_WEIGHTS_REGIONS)
    if(NOT region IN_LIST placed)
      set_property(GLOBAL APPEND PROPERTY TINYML_WEIGHTS_REGIONS ${region})
      set(script ${PROJECT_BINARY_DIR}/tinyml/weights_${region}.ld)
      string(MAKE_C_IDENTIFIER TINYML_WEIGHTS_${region}_LD_ guard) # as in linker/tinyml_arena.ld
      file(CONFIGURE OUTPUT ${script} @ONLY CONTENT
"/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ${guard}
#define ${guard}
tinyml_weights_${region} : ALIGN(16) { *(\".tinyml_weights.${region}.*\") } > ${region} AT> ${region}
#endif
")
      zephyr_linker_sources(SECTIONS ${script})
      if(CONFIG_CMAKE_LINKER_GENERATOR) # the same for CMake's linker generator
        zephyr_linker_section(NAME tinyml_weights_${region} VMA ${region} LMA ${region} NOINPUT)
        zephyr_linker_section_configure(
          SECTION tinyml_weights_${region} INPUT ".tinyml_weights.${region}.*")
      endif()
    endif()
  endif()
endfunction()

# Register a model's arena, in the region ``node`` (``node_in_c`` in C) or in .noinit.
function(tinyml_want_arena model node node_in_c)
  get_property(models GLOBAL PROPERTY TINYML_ARENA_MODELS)
  if(NOT models) # the first model: define the arenas once all are known
    cmake_language(EVAL CODE
      "cmake_language(DEFER DIRECTORY [[${CMAKE_SOURCE_DIR}]] CALL tinyml_define_arenas)")
  endif()
  set_property(GLOBAL APPEND PROPERTY TINYML_ARENA_MODELS ${model})
  if(NOT CONFIG_TINYML_ARENA_SHARED)
    set(arena ${model})
  elseif(node)
    string(MAKE_C_IDENTIFIER "region_${node}" arena)
  else()
    set(arena shared)
  endif()
  get_property(arenas GLOBAL PROPERTY TINYML_ARENAS)
  if(NOT arena IN_LIST arenas)
    set_property(GLOBAL APPEND PROPERTY TINYML_ARENAS ${arena})
    set_property(GLOBAL PROPERTY TINYML_ARENA_NODE_${arena} "${node_in_c}")
  endif()
  set_property(GLOBAL APPEND PROPERTY TINYML_ARENA_MODELS_${arena} ${model})
endfunction()

# The source that defines all arenas. Their sizes are in the models' headers, which do not exist yet.
function(tinyml_define_arenas)
  get_property(models GLOBAL PROPERTY TINYML_ARENA_MODELS)
  get_property(arenas GLOBAL PROPERTY TINYML_ARENAS)
  list(LENGTH models model_count)
  list(LENGTH arenas arena_count)
  if(CONFIG_TINYML_ARENA_EXCLUSIVE AND model_count GREATER 1)
    message(STATUS "TinyML: ${model_count} models, each with an arena of its own; "
                   "CONFIG_TINYML_ARENA_SHARED=y would let them share one")
  endif()
  set(includes "")
  foreach(model IN LISTS models)
    string(APPEND includes "#include <${model}.h>\n")
  endforeach()
  set(definitions "")
  foreach(arena IN LISTS arenas)
    get_property(node GLOBAL PROPERTY TINYML_ARENA_NODE_${arena})
    get_property(sharers GLOBAL PROPERTY TINYML_ARENA_MODELS_${arena})
    if(node)
      set(placed "TINYML_IN_REGION(${arena}, ${node})")
    else()
      set(placed "TINYML_IN_NOINIT(${arena})")
    endif()
    set(parts "")
    set(gifts "")
    foreach(model IN LISTS sharers)
      string(TOUPPER ${model} macro)
      string(APPEND parts "\tTINYML_PART(${model}, ${macro}_ARENA_BYTES);\n")
      string(APPEND gifts "TINYML_GIVE_ARENA(${model}, ${arena});\n")
    endforeach()
    string(APPEND definitions
      "\nunion tinyml_arena_${arena} {\n${parts}};\n\nTINYML_DEFINE_ARENA(${arena}, ${placed});\n${gifts}")
  endforeach()
  set(source ${PROJECT_BINARY_DIR}/tinyml/arenas.c)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
"/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The memory that the models of this application compute in. Written by CMake; do not edit. */

#include <tinyml_arenas.h>

${includes}${definitions}")
  add_library(tinyml_arenas STATIC ${source})
  tinyml_configure_library(tinyml_arenas)
  foreach(model IN LISTS models)
    target_include_directories(tinyml_arenas PRIVATE
      $<TARGET_PROPERTY:tinyml_model_${model},INTERFACE_INCLUDE_DIRECTORIES>)
    add_dependencies(tinyml_arenas tinyml_compile_${model})
  endforeach()
endfunction()
