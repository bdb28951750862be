# cmake -DSOURCE_DIR=... -DROW=... -DWORK_DIR=... -P run.cmake
#
# Copies the sources, adds the file ROW to the rows of the copy, builds the test that walks all rows
# there, and runs it for the operation of ROW, scratch::squash: its tests must be there, and pass.

include(${CMAKE_CURRENT_LIST_DIR}/../run_command.cmake)

set(tree ${WORK_DIR}/tree) # made anew; times stay, so that a second run builds what has changed
set(build ${WORK_DIR}/build)
file(REMOVE_RECURSE ${tree})
foreach(part IN ITEMS CMakeLists.txt cmake composit flashlight frontends tests tools)
  file(COPY ${SOURCE_DIR}/${part} DESTINATION ${tree})
endforeach()
file(COPY ${ROW} DESTINATION ${tree}/composit/ops/rows)

run(${CMAKE_COMMAND}
    -S ${tree} -B ${build} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX_COMPILER}
    -DFLASHLIGHT_WITH_TORCH=OFF -DFLASHLIGHT_EXAMPLES=OFF -DFLASHLIGHT_BENCHMARKS=OFF)
run(${CMAKE_COMMAND} --build ${build} --target rows_tests)

execute_process(
  COMMAND ${build}/tests/ops/rows_tests --gtest_filter=*/scratch__squash OUTPUT_VARIABLE output
  ECHO_OUTPUT_VARIABLE ECHO_ERROR_VARIABLE RESULT_VARIABLE result)
if(NOT result EQUAL 0 OR NOT output MATCHES "\\[  PASSED  \\] [1-9]")
  message(FATAL_ERROR "expected tests of scratch::squash, and that they pass")
endif()
