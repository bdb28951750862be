# The headers that generated code includes, as text in the library.
include(${PROJECT_SOURCE_DIR}/flashlight/runtime/read_header.cmake)

read_header(flashlight/runtime/flashlight.hpp runtime_text)
string(REGEX REPLACE "\n\n\n+" "\n\n" runtime_text "${runtime_text}")
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/flashlight_cpp_runtime.inc
     CONTENT "R\"runtime(@runtime_text@)runtime\"\n" @ONLY)

# Headers that come with code that uses them: flashlight_order.hpp, …
set(runtime_headers "")
foreach(header flashlight/runtime/arena.hpp flashlight/runtime/aten.hpp flashlight/runtime/guards.hpp
               composit/shipped/matrices.h composit/shipped/order.h flashlight/runtime/parts.hpp
               flashlight/runtime/random.hpp flashlight/runtime/special.hpp)
  get_filename_component(name ${header} NAME_WE)
  read_header(${header} text)
  string(REPLACE "#pragma once\n" "#pragma once\n\n#include \"flashlight.hpp\"\n" text "${text}")
  string(REGEX REPLACE "\n\n\n+" "\n\n" text "${text}")
  string(APPEND runtime_headers "{\"flashlight_${name}.hpp\", R\"runtime(${text})runtime\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/flashlight_cpp_runtime_headers.inc
     CONTENT "@runtime_headers@" @ONLY)
