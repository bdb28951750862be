# The header that generated code includes: `file` with the project's headers that it includes in
# their places, so that one file is shipped.
function(read_header file result)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
  set_property(DIRECTORY APPEND PROPERTY runtime_headers ${file})
  file(READ ${PROJECT_SOURCE_DIR}/${file} text)
  string(REGEX MATCHALL "#include \"[^\"]+\"" includes "${text}")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "#include \"(.*)\"" "\\1" included "${include}")
    get_property(seen DIRECTORY PROPERTY runtime_headers)
    set(body "")
    if(NOT included IN_LIST seen)
      read_header(${included} body)
      string(REPLACE "#pragma once\n" "" body "${body}")
    endif()
    string(REPLACE "${include}\n" "\n${body}" text "${text}")
  endforeach()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

read_header(flashlight/cpp/runtime/flashlight.hpp runtime_text)
string(REGEX REPLACE "\n\n\n+" "\n\n" runtime_text "${runtime_text}")
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/flashlight_cpp_runtime.inc
     CONTENT "R\"runtime(@runtime_text@)runtime\"\n" @ONLY)

# Headers that come with code that uses them: flashlight_order.hpp, …
set(runtime_headers "")
foreach(name aten guards matrices order parts random special)
  read_header(flashlight/cpp/runtime/${name}.hpp text)
  string(REPLACE "#include \"\n" "" text "${text}")
  string(REPLACE "#pragma once\n" "#pragma once\n\n#include \"flashlight.hpp\"\n" text "${text}")
  string(REGEX REPLACE "\n\n\n+" "\n\n" text "${text}")
  string(APPEND runtime_headers "{\"flashlight_${name}.hpp\", R\"runtime(${text})runtime\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/flashlight_cpp_runtime_headers.inc
     CONTENT "@runtime_headers@" @ONLY)
