# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0

# zephyr_tinyml_model() and what it needs. Included once, by the module's CMakeLists.txt; functions
# are global in CMake, so an application calls zephyr_tinyml_model() after find_package(Zephyr).

include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/memory.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/compile.cmake)

get_filename_component(TINYML_MODULE_DIR ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
set(TINYML_PLUGIN_DIR  ${TINYML_MODULE_DIR}/plugin)
if(NOT EXISTS ${TINYML_PLUGIN_DIR}/tinyml) # installed by pip: the module is in the Python package, as tinyml/module
  get_filename_component(TINYML_PLUGIN_DIR ${TINYML_MODULE_DIR}/../.. ABSOLUTE)
endif()
set(TINYML_RUNTIME_DIR ${TINYML_PLUGIN_DIR}/tinyml/runtime)
set_property(GLOBAL PROPERTY TINYML_RUNTIME_DIR ${TINYML_RUNTIME_DIR})
set_property(GLOBAL PROPERTY TINYML_REGISTRY_ENTRY ${TINYML_MODULE_DIR}/zephyr_module/src/registry_entry.c.in)
set_property(GLOBAL PROPERTY TINYML_ADAPT_ENTRY ${TINYML_MODULE_DIR}/zephyr_module/src/adapt_entry.c.in)
set_property(GLOBAL PROPERTY TINYML_WATCH_ENTRY ${TINYML_MODULE_DIR}/zephyr_module/src/watch_entry.c.in)

# How to run the compiler: from this module, whether or not it is installed in Python.
set(tinyml_python_path ${TINYML_PLUGIN_DIR})
if(NOT "$ENV{PYTHONPATH}" STREQUAL "")
  if(CMAKE_HOST_WIN32)
    string(APPEND tinyml_python_path "\\;$ENV{PYTHONPATH}")
  else()
    string(APPEND tinyml_python_path ":$ENV{PYTHONPATH}")
  endif()
endif()
set_property(GLOBAL PROPERTY TINYML_PYTHON
  ${CMAKE_COMMAND} -E env PYTHONPATH=${tinyml_python_path} ${PYTHON_EXECUTABLE})

# The compiler's own sources: generated code depends on them as it depends on the model.
if(CONFIG_TINYML)
  file(GLOB_RECURSE tinyml_compiler_sources CONFIGURE_DEPENDS
    ${TINYML_PLUGIN_DIR}/tinyml/*.py ${TINYML_PLUGIN_DIR}/tinyml/*.j2)
  set_property(GLOBAL PROPERTY TINYML_COMPILER_SOURCES ${tinyml_compiler_sources})
endif()

# The name of the core as `tinyml compile --target` knows it.
function(tinyml_target out)
  zephyr_get(TINYML_TARGET)
  if(TINYML_TARGET)
    set(target ${TINYML_TARGET})
  elseif(CONFIG_ARMV8_1_M_MVEI AND CONFIG_FPU) # without the FPU's registers compilers use no MVE either
    if(CONFIG_CPU_CORTEX_M85)
      set(target cortex-m85)
    else()
      set(target cortex-m55)
    endif()
  elseif(CONFIG_CPU_CORTEX_M7)
    set(target cortex-m7)
  elseif(CONFIG_CPU_CORTEX_M4)
    set(target cortex-m4)
  elseif(CONFIG_ARMV8_M_DSP OR CONFIG_ARMV8_1_M_MVEI)
    set(target cortex-m33)
  elseif(CONFIG_ARMV8_M_MAINLINE) # without the DSP extension
    set(target cortex-m33-nodsp)
  elseif(CONFIG_CPU_CORTEX_M AND CONFIG_ARMV7_M_ARMV8_M_MAINLINE)
    set(target cortex-m3)
  elseif(CONFIG_CPU_CORTEX_M)
    set(target cortex-m0)
  elseif(CONFIG_ARCH_POSIX)
    set(target host) # native_sim
  elseif(CONFIG_RISCV AND NOT CONFIG_64BIT)
    set(target riscv32)
  else()
    set(target generic) # plain C: Xtensa, Cortex-A
  endif()
  set(${out} ${target} PARENT_SCOPE)
endfunction()

# The compiler options for the kernels and the models.
function(tinyml_configure_library library)
  if(NOT TARGET tinyml_options)
    # An interface library, because its options follow those of zephyr_interface, and the last -O counts.
    add_library(tinyml_options INTERFACE)
    if(NOT CONFIG_TINYML_OPTIMIZE_IMAGE)
      # TINYML_SMALL is a property of the library that is compiled. That of the kernels is known only when all
      # models are.
      target_compile_options(tinyml_options INTERFACE
        $<IF:$<BOOL:$<TARGET_PROPERTY:TINYML_SMALL>>,$<TARGET_PROPERTY:compiler,optimization_size>,$<TARGET_PROPERTY:compiler,optimization_speed>>)
    endif()
    # Zephyr compiles for a freestanding C where it uses its minimal library. Copies of a few bytes are then
    # calls of memcpy(), a tenth of all instructions of a small model; -fbuiltin inlines them again.
    target_compile_options(tinyml_options INTERFACE $<$<C_COMPILER_ID:GNU,Clang,AppleClang>:-fbuiltin>)
  endif()
  set_target_properties(${library} PROPERTIES TINYML_SMALL "${CONFIG_TINYML_OPTIMIZE_SIZE}")
  target_link_libraries(${library} PRIVATE zephyr_interface tinyml_options)
  add_dependencies(${library} zephyr_generated_headers)
endfunction()

# Whether models may call CMSIS-NN; if not, and this was not the user's choice, why not.
function(tinyml_has_cmsis_nn out out_why_not)
  set(has FALSE)
  set(why_not "")
  if(NOT CONFIG_TINYML_KERNELS_PORTABLE)
    # A file that was added in version 7, the first compatible with the generated code.
    set(new Source/FullyConnectedFunctions/arm_fully_connected_per_channel_s8.c)
    if(NOT DEFINED ZEPHYR_CMSIS_NN_MODULE_DIR)
      set(why_not "this workspace has no project cmsis-nn")
    elseif(NOT EXISTS ${ZEPHYR_CMSIS_NN_MODULE_DIR}/${new})
      set(why_not "cmsis-nn in this workspace is older than version 7")
    else()
      set(has TRUE)
    endif()
  endif()
  set(${out} ${has} PARENT_SCOPE)
  set(${out_why_not} ${why_not} PARENT_SCOPE)
endfunction()

# The kernel libraries: what the models call, and without a model nothing.
function(tinyml_add_kernels)
  add_library(tinyml_kernels STATIC EXCLUDE_FROM_ALL) # its sources follow when all models are known
  tinyml_configure_library(tinyml_kernels)
  # Zephyr 3.7 names the compiler's own library before those of the application, which need it, too.
  target_link_libraries(tinyml_kernels PUBLIC ${TOOLCHAIN_LIBS})
  tinyml_has_cmsis_nn(has_cmsis_nn why_not)
  if(why_not)
    message(STATUS "TinyML: ${why_not}; models use the portable kernels")
  endif()
  if(has_cmsis_nn)
    target_include_directories(tinyml_kernels PUBLIC ${ZEPHYR_CMSIS_NN_MODULE_DIR}/Include)
    target_link_libraries(tinyml_kernels PUBLIC tinyml_cmsis_nn) # our variants of its functions call others of it
    # Once all models are known.
    cmake_language(EVAL CODE
      "cmake_language(DEFER DIRECTORY [[${CMAKE_SOURCE_DIR}]] CALL tinyml_add_cmsis_nn)")
  endif()
endfunction()

# The library of those functions of CMSIS-NN that models call. Only the compiled models tell which these
# are, so they are in one source that is generated after the models.
function(tinyml_add_cmsis_nn)
  get_property(models GLOBAL PROPERTY TINYML_MODELS)
  get_property(python GLOBAL PROPERTY TINYML_PYTHON)
  set(source ${PROJECT_BINARY_DIR}/tinyml/cmsis_nn.c)
  set(summaries "")
  set(compiled "")
  foreach(model IN LISTS models)
    list(APPEND summaries ${APPLICATION_BINARY_DIR}/tinyml/${model}/${model}.json)
    list(APPEND compiled tinyml_compile_${model})
  endforeach()
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${python} -m tinyml.projects.cmsis_nn_source ${source} ${summaries}
    DEPENDS ${summaries} ${compiled}
    VERBATIM
  )
  add_library(tinyml_cmsis_nn STATIC EXCLUDE_FROM_ALL ${source})
  if(CONFIG_CMSIS_NN)
    # The application has Zephyr's own library too, with some of these functions: those take precedence.
    target_compile_options(tinyml_cmsis_nn PRIVATE $<$<C_COMPILER_ID:GNU,Clang,AppleClang>:-fno-lto>)
    add_custom_command(TARGET tinyml_cmsis_nn POST_BUILD
      COMMAND ${CMAKE_OBJCOPY} --weaken $<TARGET_FILE:tinyml_cmsis_nn> VERBATIM)
  endif()
  tinyml_configure_library(tinyml_cmsis_nn)
  target_compile_options(tinyml_cmsis_nn PRIVATE -w) # not our code, and Twister turns warnings into errors
  target_include_directories(tinyml_cmsis_nn PRIVATE ${ZEPHYR_CMSIS_NN_MODULE_DIR}/Include)
endfunction()

# Read the manifest beside the application's CMakeLists.txt (or -DTINYML_MANIFEST=FILE) and add its
# models. Python checks it and prints what is wrong with it.
function(tinyml_add_models_of_application)
  zephyr_get(TINYML_MANIFEST)
  if(TINYML_MANIFEST)
    get_filename_component(manifest ${TINYML_MANIFEST} ABSOLUTE BASE_DIR ${APPLICATION_SOURCE_DIR})
    if(NOT EXISTS ${manifest})
      message(FATAL_ERROR "TINYML_MANIFEST: file not found: ${manifest}")
    endif()
  else()
    set(manifest ${APPLICATION_SOURCE_DIR}/tinyml.yaml)
  endif()
  # Unlike CMAKE_CONFIGURE_DEPENDS, a glob also notices when the file is created or deleted.
  file(GLOB found CONFIGURE_DEPENDS ${manifest})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${found})
  set(calls ${PROJECT_BINARY_DIR}/tinyml/manifest.cmake)
  get_property(python GLOBAL PROPERTY TINYML_PYTHON)
  execute_process(
    COMMAND ${python} -m tinyml.projects.cmake ${manifest} ${calls}
    RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said
  )
  if(result)
    string(STRIP "${said}" said)
    message(FATAL_ERROR "${said}")
  endif()
  include(${calls})
endfunction()

# Called when the application's CMakeLists.txt is through.
function(tinyml_check_models)
  get_property(models GLOBAL PROPERTY TINYML_MODELS)
  if(NOT models AND NOT CONFIG_TINYML_SLOTS AND NOT CONFIG_TINYML_PLAYER)
    message(WARNING
      "TinyML: CONFIG_TINYML=y, but the application has no model: there is no tinyml.yaml with models in "
      "${APPLICATION_SOURCE_DIR}, and its CMakeLists.txt does not call zephyr_tinyml_model().\n"
      "  try: west tinyml add MODEL")
  endif()
  tinyml_choose_kernels()
  if(models) # (gdb) source build/tinyml/gdb.py
    get_property(runtime GLOBAL PROPERTY TINYML_RUNTIME_DIR)
    configure_file(${runtime}/../harness/gdb_commands.py ${APPLICATION_BINARY_DIR}/tinyml/gdb.py COPYONLY)
  endif()
  # Kernels serve all models: they are compiled for size if every model is.
  set(small ${models})
  foreach(model IN LISTS models)
    get_target_property(is_small tinyml_model_${model} TINYML_SMALL)
    if(NOT is_small)
      set(small)
    endif()
  endforeach()
  foreach(library tinyml_kernels tinyml_cmsis_nn)
    if(small AND TARGET ${library})
      set_target_properties(${library} PROPERTIES TINYML_SMALL y)
    endif()
  endforeach()
endfunction()

# Additional dependencies of a quantised model: the data named in QUANTIZE settings.
function(tinyml_calibration_files out)
  set(files)
  foreach(setting IN LISTS ARGN)
    if(setting MATCHES "^(calibration|labels)=(.*)$")
      set(data "${CMAKE_MATCH_2}")
      if(IS_DIRECTORY "${data}")
        file(GLOB_RECURSE inside CONFIGURE_DEPENDS "${data}/*")
        list(APPEND files ${inside})
      else()
        list(APPEND files "${data}")
      endif()
    endif()
  endforeach()
  set(${out} "${files}" PARENT_SCOPE)
endfunction()

# Fail if the image has no driver for the NPU of a model, or one for another NPU.
function(tinyml_check_npu name npu)
  if(NOT CONFIG_ETHOS_U)
    message(FATAL_ERROR
      "TinyML: model ${name} is for the NPU ${npu}, and the image has no driver for it.\n"
      "  try: CONFIG_ETHOS_U=y in prj.conf, with the project hal_ethos_u in the west manifest")
  elseif(NOT CONFIG_ETHOS_U_NPU_NAME STREQUAL npu)
    message(FATAL_ERROR
      "TinyML: model ${name} is for the NPU ${npu}, and the image's driver is for ${CONFIG_ETHOS_U_NPU_NAME}.\n"
      "  try: npu: ${CONFIG_ETHOS_U_NPU_NAME} in tinyml.yaml, or the Kconfig choice for ${npu}")
  endif()
  # The driver's own cache variable keeps its first value when the Kconfig choice changes.
  string(REGEX REPLACE "-[0-9]+$" "" family ${npu})
  if(DEFINED CACHE{ETHOSU_TARGET_NPU_CONFIG} AND NOT $CACHE{ETHOSU_TARGET_NPU_CONFIG} MATCHES "^${family}-")
    message(FATAL_ERROR
      "TinyML: model ${name} is for the NPU ${npu}, and this build folder still has the driver for $CACHE{ETHOSU_TARGET_NPU_CONFIG}.\n"
      "  try: west build -p always")
  endif()
endfunction()

#[==[
Compile a model into the application.

  zephyr_tinyml_model(<name> <file> [<SETTING> <value>...]...)

<name>        the model's prefix in C: kws gives <kws.h> with kws_run(), kws_input(), kws_output()
<file>        the .onnx or .tflite file, relative to the current source directory
<SETTING>     as a key of tinyml.yaml, in capitals: KERNELS portable, OPTIMIZE ram, SHAPES audio=1x16x8.
              A mapping is a list of <key>=<value>; names are separated by commas; paths are absolute.
              docs/settings.md lists all settings. Python knows them (plugin/tinyml/settings/), checks their
              values and tells this function their names: those that need nothing of CMake pass through.

The generated files are in <build>/tinyml/<name>. The model is a separate library,
tinyml_model_<name>, linked to the application.
]==]
function(zephyr_tinyml_model name file)
  if(NOT CONFIG_TINYML)
    message(FATAL_ERROR "zephyr_tinyml_model(${name}): CONFIG_TINYML is off. Put CONFIG_TINYML=y into prj.conf.")
  endif()
  get_property(with_one GLOBAL PROPERTY TINYML_ARGUMENTS_WITH_ONE_VALUE)
  get_property(with_many GLOBAL PROPERTY TINYML_ARGUMENTS_WITH_MANY_VALUES)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "${with_one}" "${with_many}")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "zephyr_tinyml_model(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(TARGET tinyml_model_${name})
    message(FATAL_ERROR "zephyr_tinyml_model(${name}): there is already a model called ${name}")
  endif()
  get_filename_component(model ${file} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
  if(NOT EXISTS ${model})
    message(FATAL_ERROR "TinyML: the file of model ${name} does not exist: ${model}")
  endif()
  tinyml_has_cmsis_nn(has_cmsis_nn why_not)
  set(library)
  if(has_cmsis_nn)
    set(library --cmsis-nn)
    if(CONFIG_TINYML_KERNELS_CMSIS_NN AND NOT arg_KERNELS)
      set(arg_KERNELS cmsis-nn)
    endif()
  endif()
  if(arg_KERNELS STREQUAL cmsis-nn AND NOT has_cmsis_nn)
    message(FATAL_ERROR
      "TinyML: model ${name} requires CMSIS-NN, which this build does not have.\n"
      "  try: add the project cmsis-nn (version 7 or later) to the west manifest, and remove CONFIG_TINYML_KERNELS_PORTABLE=y")
  endif()
  set(goal balanced)
  foreach(choice speed size ram)
    string(TOUPPER ${choice} symbol)
    if(CONFIG_TINYML_OPTIMIZE_${symbol})
      set(goal ${choice})
    endif()
  endforeach()
  if(NOT arg_OPTIMIZE)
    set(arg_OPTIMIZE ${goal})
  endif()
  tinyml_target(target)
  foreach(operator IN LISTS arg_OPERATORS)
    if(NOT EXISTS ${operator})
      message(FATAL_ERROR "TinyML: the file with operators of model ${name} does not exist: ${operator}")
    endif()
  endforeach()
  tinyml_calibration_files(calibration ${arg_QUANTIZE})
  tinyml_arena_node(arena_node arena_node_in_c ${name} "${arg_ARENA_REGION}")
  tinyml_weights_node(weights_node ${name} "${arg_WEIGHTS}")
  tinyml_memory_limits(limits "${arena_node}" "${weights_node}")
  if(arg_WEIGHTS STREQUAL ram)
    list(APPEND limits --weights-in-ram)
  endif()
  if(CONFIG_CPU_HAS_FPU AND NOT CONFIG_FPU AND NOT CONFIG_ARCH_POSIX)
    list(APPEND limits --no-fpu)
  endif()
  if(arg_NPU)
    tinyml_check_npu(${name} ${arg_NPU})
  endif()
  foreach(budget IN LISTS arg_BUDGET)
    list(APPEND limits "--limit=${budget},the budget of model ${name}")
  endforeach()
  set(settings)
  foreach(keyword IN LISTS with_one with_many)
    get_property(option GLOBAL PROPERTY TINYML_OPTION_${keyword})
    get_property(is_switch GLOBAL PROPERTY TINYML_SWITCH_${keyword})
    if(option AND is_switch)
      if(arg_${keyword})
        list(APPEND settings ${option})
      endif()
    elseif(option)
      foreach(value IN LISTS arg_${keyword})
        list(APPEND settings "${option}=${value}")
      endforeach()
    endif()
  endforeach()

  get_property(compiler_sources GLOBAL PROPERTY TINYML_COMPILER_SOURCES)
  set(dir ${APPLICATION_BINARY_DIR}/tinyml/${name})
  set(generated ${dir}/${name}.c ${dir}/${name}.h ${dir}/${name}_weights.h)
  get_property(script GLOBAL PROPERTY TINYML_COMPILE_SCRIPT)
  set(command ${script} ${dir} ${name} compile ${model} -o ${dir} --name ${name} --report --no-notes
    --target ${target} ${library} ${settings} ${limits} --depfile ${dir}/${name}.d)
  set(comment "TinyML: compiling model ${name} for ${target}")
  tinyml_compile_now(${name} ${dir} "${comment}" ${command})
  tinyml_compile_later(${name} ${dir} "${comment}" GENERATED ${generated} COMMAND ${command}
    FILES ${model} ${calibration} ${arg_OPERATORS} COMPILER ${compiler_sources} ${script})
  set_property(GLOBAL APPEND PROPERTY TINYML_MODELS ${name})
  add_custom_target(tinyml_compile_${name} DEPENDS ${generated})
  add_library(tinyml_model_${name} STATIC ${generated})
  add_dependencies(tinyml_model_${name} tinyml_compile_${name})
  tinyml_configure_library(tinyml_model_${name})
  string(COMPARE EQUAL ${arg_OPTIMIZE} size is_small)
  set_target_properties(tinyml_model_${name} PROPERTIES TINYML_SMALL ${is_small})
  target_include_directories(tinyml_model_${name} PUBLIC ${dir})
  tinyml_place_weights(${name} "${arg_WEIGHTS}" "${weights_node}")
  tinyml_want_arena(${name} "${arena_node}" "${arena_node_in_c}")
  target_link_libraries(tinyml_model_${name} PRIVATE tinyml_arenas tinyml_kernels)
  if(CONFIG_USERSPACE) # state, and weights in RAM
    set(ZEPHYR_CURRENT_LIBRARY tinyml_model_${name})
    zephyr_library_app_memory(tinyml_partition)
  endif()
  target_link_libraries(app PUBLIC tinyml_model_${name})
  if(CONFIG_TINYML_REGISTRY)
    get_property(entry GLOBAL PROPERTY TINYML_REGISTRY_ENTRY)
    configure_file(${entry} ${dir}/${name}_entry.c @ONLY)
    target_sources(app PRIVATE ${dir}/${name}_entry.c)
  endif()
  if(CONFIG_TINYML_WATCH AND arg_WATCH)
    get_property(entry GLOBAL PROPERTY TINYML_WATCH_ENTRY)
    configure_file(${entry} ${dir}/${name}_watch_entry.c @ONLY)
    target_sources(app PRIVATE ${dir}/${name}_watch_entry.c)
  endif()
  if(CONFIG_TINYML_ADAPT AND arg_ADAPT)
    get_property(entry GLOBAL PROPERTY TINYML_ADAPT_ENTRY)
    configure_file(${entry} ${dir}/${name}_adapt_entry.c @ONLY)
    target_sources(app PRIVATE ${dir}/${name}_adapt_entry.c)
  endif()
endfunction()
