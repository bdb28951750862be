# The project's dependencies. `./dev setup` installs it all on Debian 12.

find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)

if(FLASHLIGHT_WITH_TORCH)
  if(SKBUILD AND NOT Torch_DIR)
    # pip builds in an environment of its own; -I looks into the one that is installed into.
    execute_process(
      COMMAND ${Python3_EXECUTABLE} -I -c "import torch; print(torch.utils.cmake_prefix_path)"
      OUTPUT_VARIABLE torch_prefix OUTPUT_STRIP_TRAILING_WHITESPACE
      RESULT_VARIABLE failed ERROR_VARIABLE reason)
    if(failed)
      message(FATAL_ERROR "flashlight-torch is built against the torch that is installed, and "
                          "none is: pip install torch==2.13.0 before\n${reason}")
    endif()
    list(APPEND CMAKE_PREFIX_PATH ${torch_prefix})
  endif()
  # LibTorch is found through Torch_DIR, CMAKE_PREFIX_PATH, or the .venv that `./dev setup` makes.
  set(kineto_LIBRARY c10) # TorchConfig.cmake warns when no file is found; kineto is in libtorch_cpu.
  find_package(Torch 2.13 REQUIRED)
  find_library(TORCH_PYTHON_LIBRARY torch_python PATHS "${TORCH_INSTALL_PREFIX}/lib" NO_DEFAULT_PATH)
  find_package(Boost 1.74 REQUIRED) # Hana: headers only
endif()
if(FLASHLIGHT_TESTS)
  find_package(GTest REQUIRED)
  find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
  set(FLASHLIGHT_PYTHON ${PROJECT_SOURCE_DIR}/.venv/bin/python
      CACHE FILEPATH "The Python that has the packages of requirements-test.txt")
endif()
if(FLASHLIGHT_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
