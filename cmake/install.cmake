# The installed package: find_package(flashlight-torch CONFIG), then link flashlight::flashlight, or
# what needs no LibTorch alone: composit's libraries (composit::ir, io, op, ops, eval, ad, passes,
# numpy, nn), flashlight::scalar, flashlight::fixed and flashlight::toolchain. tests/install builds a project that does so.

include(CMakePackageConfigHelpers)
set(package_dir lib/cmake/flashlight-torch)

install(EXPORT composit-targets NAMESPACE composit:: DESTINATION ${package_dir})
install(EXPORT flashlight-targets NAMESPACE flashlight:: DESTINATION ${package_dir})

configure_package_config_file(
  cmake/flashlight-torch-config.cmake.in ${PROJECT_BINARY_DIR}/flashlight-torch-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/flashlight-torch-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/flashlight-torch-config.cmake
              ${PROJECT_BINARY_DIR}/flashlight-torch-config-version.cmake
        DESTINATION ${package_dir})

install(TARGETS flashlight_cli RUNTIME DESTINATION bin)

get_property(headers GLOBAL PROPERTY FLASHLIGHT_HEADERS)
list(JOIN headers "\n" headers)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/headers.txt CONTENT "@headers@\n" @ONLY)
