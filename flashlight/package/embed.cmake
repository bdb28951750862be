# Makes string literals of the files that programs are shipped with; see shipped.h.
include(${PROJECT_SOURCE_DIR}/flashlight/runtime/read_header.cmake)

# add_shipped(NAME TEXT)
function(add_shipped name text)
  set_property(DIRECTORY APPEND_STRING PROPERTY shipped_files
                                                "{\"${name}\", R\"file(${text})file\"},\n")
endfunction()

# add_runtime_header(FILE NAME): a header of the runtime, which includes flashlight.hpp.
function(add_runtime_header file name)
  read_header(${file} text)
  string(REPLACE "#pragma once\n" "#pragma once\n\n#include \"flashlight.hpp\"\n" text "${text}")
  string(REGEX REPLACE "\n\n\n+" "\n\n" text "${text}")
  add_shipped(${name} "${text}")
endfunction()

read_header(flashlight/runtime/flashlight.hpp text)
string(REGEX REPLACE "\n\n\n+" "\n\n" text "${text}")
add_shipped(flashlight.hpp "${text}")
add_runtime_header(flashlight/runtime/mosaic.hpp flashlight_mosaic.hpp)
add_runtime_header(flashlight/runtime/steps.hpp flashlight_steps.hpp) # after flashlight_mosaic.hpp

# Headers that come with code that uses them: flashlight_order.hpp, …
foreach(header flashlight/runtime/arena.hpp flashlight/runtime/aten.hpp flashlight/runtime/guards.hpp
               composit/shipped/matrices.h composit/shipped/order.h flashlight/runtime/parts.hpp
               flashlight/runtime/random.hpp flashlight/runtime/special.hpp)
  get_filename_component(name ${header} NAME_WE)
  add_runtime_header(${header} flashlight_${name}.hpp)
endforeach()
read_header(flashlight/runtime/profile.hpp text)
add_shipped(flashlight_profile.hpp "${text}")
set_property(DIRECTORY PROPERTY runtime_headers "") # it does not include flashlight.hpp
read_header(flashlight/runtime/cuda.cuh text)
add_shipped(flashlight_cuda.cuh "${text}")
read_header(flashlight/runtime/cuda_aten.cuh text)
add_shipped(flashlight_cuda_aten.cuh "${text}")

# Files of written programs, and templates of them.
foreach(file safetensors.hpp model.h.in model_c.cpp.in main.cpp.in CMakeLists.txt.in)
  set(path ${CMAKE_CURRENT_LIST_DIR}/files/${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} text)
  add_shipped(${file} "${text}")
endforeach()

get_property(shipped_files DIRECTORY PROPERTY shipped_files)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/flashlight_shipped.inc
     CONTENT "@shipped_files@" @ONLY)
