# Generates <flashlight/version.h>: versions of the project and of the LibTorch it is built with.

set(FLASHLIGHT_GENERATED_DIR ${PROJECT_BINARY_DIR}/include)
set(FLASHLIGHT_TORCH_VERSION "")
if(FLASHLIGHT_WITH_TORCH)
  set(FLASHLIGHT_TORCH_VERSION ${Torch_VERSION})
endif()

configure_file(cmake/version.h.in ${FLASHLIGHT_GENERATED_DIR}/flashlight/version.h @ONLY)
install(FILES ${FLASHLIGHT_GENERATED_DIR}/flashlight/version.h DESTINATION include/flashlight)
set_property(GLOBAL APPEND PROPERTY FLASHLIGHT_HEADERS "public flashlight/version.h composit::ir")
