# This project declares its targets here: compiler options as private interface targets, and one
# function each for libraries, programs and tests, so that a folder's CMakeLists.txt only lists its sources.

find_program(FLASHLIGHT_CCACHE ccache)
if(is_top_level AND FLASHLIGHT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness is what ccache's manual asks for with GCC's precompiled headers. Build folders of
  # a checkout share what they compile in the same way.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_NOHASHDIR=1
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${FLASHLIGHT_CCACHE})
endif()

# A build from nothing takes a third of the time when files of a target are compiled together, since
# they share headers and what is instantiated of them; after a change it takes longer, so everyday
# work goes without.
set(CMAKE_UNITY_BUILD ${FLASHLIGHT_UNITY})

# flashlight_compile_alone(a.cpp b.cpp)
#
# Also in such a build: for files that declare a name, in an unnamed namespace, that another file of
# the target declares, too.
function(flashlight_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

add_library(flashlight_warnings INTERFACE)
target_compile_options(
  flashlight_warnings INTERFACE -Wall -Wextra -Wpedantic -Wnon-virtual-dtor
                                $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local -Winvalid-pch>)
if(FLASHLIGHT_UNITY) # Each file is included, hence no "main file", where unnamed namespaces are usual.
  target_compile_options(flashlight_warnings
                         INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()

add_library(flashlight_sanitizers INTERFACE)
foreach(sanitizer IN LISTS FLASHLIGHT_SANITIZE)
  target_compile_options(
    flashlight_sanitizers INTERFACE -fsanitize=${sanitizer} -fno-sanitize-recover=all
                                    -fno-omit-frame-pointer)
  target_link_options(flashlight_sanitizers INTERFACE -fsanitize=${sanitizer})
endforeach()

# g++ 12 drops the rounding of float64 to float32 and back where it makes vectors of two such values.
add_library(flashlight_code_generation INTERFACE)
target_compile_options(flashlight_code_generation
                       INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fno-tree-slp-vectorize>)

# Settings of every target of ours. BUILD_INTERFACE keeps them out of the installed package. All
# targets are position independent in the same way: a precompiled header is shared between them.
function(flashlight_target_defaults target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -fPIC)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:flashlight_warnings>
                                          $<BUILD_INTERFACE:flashlight_code_generation>
                                          $<BUILD_INTERFACE:flashlight_sanitizers>)
endfunction()

# flashlight_library(composit_ir ALIAS composit::ir SOURCES a.cpp b.cpp PUBLIC_HEADERS a.h
#                    SUPPORT_HEADERS b.h)
#
# A static library made of the current folder. Headers are included by path from the project root.
# Public ones are installed under include/flashlight with the same path, and are documented (`./dev
# docs`); each compiles alone. Support headers are what public ones cannot do without: installed, and
# documented nowhere. No other header is installed. tools/check_headers.py, a test, compares the two
# lists with what public headers include.
function(flashlight_library target)
  cmake_parse_arguments(arg "" "ALIAS" "SOURCES;PUBLIC_HEADERS;SUPPORT_HEADERS" ${ARGN})
  string(REGEX MATCH "^(.+)::(.+)$" _ "${arg_ALIAS}")
  set(namespace ${CMAKE_MATCH_1})
  set(name ${CMAKE_MATCH_2})

  add_library(${target} STATIC ${arg_SOURCES})
  add_library(${arg_ALIAS} ALIAS ${target})
  flashlight_target_defaults(${target})
  target_include_directories(
    ${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                     $<BUILD_INTERFACE:${FLASHLIGHT_GENERATED_DIR}>
                     $<INSTALL_INTERFACE:include> $<INSTALL_INTERFACE:include/flashlight>)

  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS ${target} EXPORT ${namespace}-targets ARCHIVE DESTINATION lib)
  flashlight_headers(${arg_ALIAS} public ${arg_PUBLIC_HEADERS})
  flashlight_headers(${arg_ALIAS} support ${arg_SUPPORT_HEADERS})
endfunction()

# flashlight_headers(composit::ir public a.h b.h)
#
# Installs headers of the current folder, and notes them in the global property FLASHLIGHT_HEADERS: a
# line "public composit/ir/a.h composit::ir" each. cmake/install.cmake writes these into
# ${PROJECT_BINARY_DIR}/headers.txt, which the documentation and the tests of headers read.
# <root>/flashlight goes to include/flashlight, every other <root>/folder to
# include/flashlight/folder.
function(flashlight_headers target kind)
  foreach(header IN LISTS ARGN)
    get_filename_component(file ${header} ABSOLUTE)
    if(NOT EXISTS ${file})
      message(FATAL_ERROR "${target} names a header that is not there: ${file}")
    endif()
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${file})
    set_property(GLOBAL APPEND PROPERTY FLASHLIGHT_HEADERS "${kind} ${path} ${target}")
    get_filename_component(folder ${path} DIRECTORY)
    string(REGEX REPLACE "^flashlight(/|$)" "" folder "${folder}")
    install(FILES ${file} DESTINATION include/flashlight/${folder})
  endforeach()
endfunction()

# flashlight_program(demo SOURCES main.cpp LIBRARIES flashlight::flashlight)
function(flashlight_program target)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${target} ${arg_SOURCES})
  flashlight_target_defaults(${target})
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES})
endfunction()

# flashlight_test(ir_tests SOURCES node_test.cpp LIBRARIES composit::ir)
#
# A GoogleTest program; every TEST becomes a CTest test named after the program and itself. With
# ONE_PROCESS the program is one CTest test: right for many small tests that need LibTorch, which
# takes half a second to load. With INSTRUCTIONS avx512f avx512_bf16, called as in /proc/cpuinfo, it is
# compiled for these, and skipped on a processor that lacks one; a build from nothing
# (FLASHLIGHT_UNITY) does not compile it there.
function(flashlight_test target)
  cmake_parse_arguments(arg "ONE_PROCESS" "" "SOURCES;LIBRARIES;INSTRUCTIONS" ${ARGN})
  if(arg_INSTRUCTIONS AND FLASHLIGHT_UNITY)
    list(JOIN arg_INSTRUCTIONS " " instructions)
    set(where_able ${PROJECT_SOURCE_DIR}/tools/run_where_able.sh "${instructions}" true)
    execute_process(COMMAND ${where_able} --gtest_list_tests OUTPUT_VARIABLE missing)
    if(missing)
      add_test(NAME ${target} COMMAND ${where_able})
      set_tests_properties(${target} PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED")
      return()
    endif()
  endif()
  flashlight_program(${target} SOURCES ${arg_SOURCES} LIBRARIES ${arg_LIBRARIES})
  target_link_libraries(${target} PRIVATE GTest::gmock GTest::gtest_main)
  set(runner "")
  if(arg_INSTRUCTIONS)
    foreach(instruction IN LISTS arg_INSTRUCTIONS)
      string(REGEX REPLACE "^(avx|avx512)_" "\\1" option ${instruction})
      string(REPLACE "amx_" "amx-" option ${option})
      target_compile_options(${target} PRIVATE -m${option})
    endforeach()
    list(JOIN arg_INSTRUCTIONS " " instructions)
    list(APPEND runner ${PROJECT_SOURCE_DIR}/tools/run_where_able.sh ${instructions})
  endif()
  if("address" IN_LIST FLASHLIGHT_SANITIZE)
    list(APPEND runner ${PROJECT_SOURCE_DIR}/tools/run_sanitized.sh)
  endif()
  if(runner)
    set_target_properties(${target} PROPERTIES CROSSCOMPILING_EMULATOR "${runner}")
  endif()
  if(arg_ONE_PROCESS)
    add_test(NAME ${target} COMMAND ${target})
  else()
    gtest_discover_tests(
      ${target} TEST_PREFIX ${target}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120)
  endif()
endfunction()

# flashlight_starts_early(install.python)
#
# For CTest tests of minutes: begun first, they do not keep one core busy when the others are done.
# Tests of several processors begin before those, while all are free.
function(flashlight_starts_early)
  foreach(test IN LISTS ARGN)
    get_test_property(${test} PROCESSORS processors)
    set(cost 100)
    if(processors GREATER 1)
      set(cost 200)
    endif()
    set_tests_properties(${test} PROPERTIES COST ${cost})
  endforeach()
endfunction()
