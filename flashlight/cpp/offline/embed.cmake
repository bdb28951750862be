# The files of written programs as string literals, by name; see template.h.
set(files "")
foreach(file safetensors.hpp model.h.in model_c.cpp.in main.cpp.in CMakeLists.txt.in)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/${file})
  file(READ ${CMAKE_CURRENT_LIST_DIR}/${file} text)
  string(APPEND files "{\"${file}\", R\"file(${text})file\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/flashlight_cpp_files.inc CONTENT "@files@" @ONLY)

target_sources(flashlight_cpp PRIVATE offline.cpp template.cpp weight_loader.cpp)
target_link_libraries(flashlight_cpp PUBLIC composit::io PRIVATE spdlog::spdlog)
