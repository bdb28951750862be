# cmake -DSOURCE_DIR=... -DPYTHON=... -DWORK_DIR=... -DCXX_COMPILER=... -DCXX_FLAGS=... -DUNITY=...
#       -DOWN_TORCH=... -P python.cmake
#
# `pip install .` in a clean virtual environment: refused with a reason where torch is missing, then
# built against the torch that is there, and used. Compiled as the preset `dev` or `ci` is, whose
# compiler cache it shares. With OWN_TORCH, pip installs torch into the environment; without, a path
# file lends it the packages of PYTHON, against whose headers all else has been compiled.

include(${CMAKE_CURRENT_LIST_DIR}/../run_command.cmake)

file(REMOVE_RECURSE ${WORK_DIR})
run(${PYTHON} -m venv ${WORK_DIR}/venv)
set(pip ${WORK_DIR}/venv/bin/python -m pip --disable-pip-version-check)

execute_process(
  COMMAND ${pip} install ${SOURCE_DIR}
  RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT failed OR NOT output MATCHES "pip install torch==2.13.0 before")
  message(FATAL_ERROR "expected a refusal that names the missing torch, received:\n${output}")
endif()

if(OWN_TORCH)
  run(${pip} install --quiet torch==2.13.0 numpy)
else()
  execute_process(
    COMMAND ${PYTHON} -c "import sysconfig; print(sysconfig.get_path('purelib'))"
    OUTPUT_VARIABLE packages COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE ${WORK_DIR}/venv/lib/python3.11/site-packages/lent.pth "${packages}")
endif()
run(${pip} install --quiet ${SOURCE_DIR} -C cmake.build-type=RelWithDebInfo
    -C cmake.define.CMAKE_CXX_COMPILER=${CXX_COMPILER} -C cmake.define.FLASHLIGHT_UNITY=${UNITY}
    -C "cmake.define.CMAKE_CXX_FLAGS_RELWITHDEBINFO=${CXX_FLAGS}")
run(${WORK_DIR}/venv/bin/flashlight --version)
file(MAKE_DIRECTORY ${WORK_DIR}/elsewhere)
run(${CMAKE_COMMAND} -E chdir ${WORK_DIR}/elsewhere
    ${WORK_DIR}/venv/bin/flashlight capture -o captured --
    ${WORK_DIR}/venv/bin/python ${CMAKE_CURRENT_LIST_DIR}/program.py)
run(${CMAKE_COMMAND} -E chdir ${WORK_DIR}/elsewhere
    ${WORK_DIR}/venv/bin/flashlight check captured/step_000)
run(${CMAKE_COMMAND} -E chdir ${WORK_DIR}/elsewhere
    ${WORK_DIR}/venv/bin/python ${CMAKE_CURRENT_LIST_DIR}/use_package.py)
