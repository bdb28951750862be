# The header that generated code includes beside flashlight.hpp, as text in the library.
include(${PROJECT_SOURCE_DIR}/flashlight/runtime/read_header.cmake)

read_header(flashlight/runtime/flashlight.hpp shipped_apart)
read_header(flashlight/runtime/mosaic.hpp text)
string(REPLACE "#pragma once\n" "#pragma once\n\n#include \"flashlight.hpp\"\n" text "${text}")
string(REGEX REPLACE "\n\n\n+" "\n\n" text "${text}")
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/flashlight_mosaic_runtime.inc
     CONTENT "R\"runtime(@text@)runtime\"\n" @ONLY)

# Of written programs, beside it.
read_header(flashlight/runtime/profile.hpp text)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/flashlight_mosaic_profile.inc
     CONTENT "R\"runtime(@text@)runtime\"\n" @ONLY)
