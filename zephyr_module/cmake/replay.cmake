# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0

# Devices that replay a recording: nodes with the property 'recording', relative to the application.

set(TINYML_RECORDING_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/../scripts/recording.py)
set(TINYML_GREYS_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/../scripts/greys.py)

# Add the driver `source` to the current library, and the recording of every node that it drives. Words
# after them are options of the script; @NAME is the value of that property of the node.
function(tinyml_add_replay compatible source)
  zephyr_library_sources(${source})
  dt_comp_path(nodes COMPATIBLE ${compatible})
  foreach(node IN LISTS nodes)
    dt_node_has_status(okay PATH ${node} STATUS okay)
    if(NOT okay)
      continue()
    endif()
    dt_prop(recording PATH ${node} PROPERTY recording)
    set(options)
    foreach(word IN LISTS ARGN)
      if(word MATCHES "^@(.*)")
        dt_prop(word PATH ${node} PROPERTY ${CMAKE_MATCH_1})
      endif()
      list(APPEND options ${word})
    endforeach()
    get_filename_component(file ${recording} ABSOLUTE BASE_DIR ${APPLICATION_SOURCE_DIR})
    if(NOT EXISTS ${file})
      message(FATAL_ERROR "TinyML: the node ${node} replays ${file}, which does not exist.\n"
        "  try: a path relative to the application in its property 'recording'")
    endif()
    get_filename_component(name ${node} NAME)
    string(TOLOWER ${name} name)
    string(MAKE_C_IDENTIFIER tinyml_recording_${name} name)
    set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.c)
    set(command ${PYTHON_EXECUTABLE} ${TINYML_RECORDING_SCRIPT} ${file} ${output} --name ${name} ${options})
    # A recording that does not fit the device is an error now, not after Zephyr has been compiled.
    execute_process(COMMAND ${command} --check RESULT_VARIABLE result ERROR_VARIABLE said)
    if(result)
      message(FATAL_ERROR "TinyML: the node ${node} cannot replay its recording.\n  ${said}")
    endif()
    add_custom_command(
      OUTPUT ${output}
      COMMAND ${command}
      DEPENDS ${file} ${TINYML_RECORDING_SCRIPT} ${TINYML_GREYS_SCRIPT}
      COMMENT "Recording ${recording}"
      VERBATIM)
    zephyr_library_sources(${output})
  endforeach()
endfunction()
