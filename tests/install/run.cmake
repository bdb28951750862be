# cmake -DPROJECT_BINARY_DIR=... -DCONSUMER_DIR=... -DWORK_DIR=... -P run.cmake
#
# Installs the built project into WORK_DIR/prefix, then moves that folder, so that nothing can depend
# on where it was; runs the installed command line; builds the consumer project against the package,
# by the compiler launcher LAUNCHER where one is given; runs the consumer's programs.

include(${CMAKE_CURRENT_LIST_DIR}/../run_command.cmake)

file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${WORK_DIR}/installed)
file(RENAME ${WORK_DIR}/installed ${WORK_DIR}/prefix)
run(${WORK_DIR}/prefix/bin/flashlight --version)
if(Torch_DIR) # It finds the libraries that it preloads.
  run(${WORK_DIR}/prefix/bin/flashlight capture -o ${WORK_DIR}/captured -- ${CMAKE_COMMAND} -E true)
endif()

set(ENV{CMAKE_CXX_COMPILER_LAUNCHER} "${LAUNCHER}") # a list, hence not an argument
list(TRANSFORM SANITIZE PREPEND -fsanitize= OUTPUT_VARIABLE flags)
list(JOIN flags " " flags)
run(${CMAKE_COMMAND}
    -S ${CONSUMER_DIR} -B ${WORK_DIR}/build -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix
    -DCMAKE_CXX_COMPILER=${CXX_COMPILER}
    -DCMAKE_EXE_LINKER_FLAGS=${flags}
    -DTorch_DIR=${Torch_DIR})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${CMAKE_CTEST_COMMAND} --test-dir ${WORK_DIR}/build --output-on-failure --no-tests=error)

# The command line with the consumer's backend: by --plugin, and by the environment.
set(flashlight ${WORK_DIR}/prefix/bin/flashlight)
set(plugin --plugin ${WORK_DIR}/build/libstack.so)
run(${WORK_DIR}/build/saved ${WORK_DIR}/saved)
run(${flashlight} run ${WORK_DIR}/saved --backend stack ${plugin})
run(${flashlight} compile ${WORK_DIR}/saved --backend stack ${plugin} --comment "of a plugin"
    --depth 5 -o ${WORK_DIR}/stack_program)
file(READ ${WORK_DIR}/stack_program/program.txt program)
if(NOT program STREQUAL "# of a plugin\nx y mul sin x add\n")
  message(FATAL_ERROR "expected a program for a stack machine, received:\n${program}")
endif()
set(ENV{FLASHLIGHT_PLUGINS} ${WORK_DIR}/build/libstack.so)
run(${flashlight} emit ${WORK_DIR}/saved --backend stack)
execute_process(COMMAND ${flashlight} compile --backend stack --help OUTPUT_VARIABLE help
                COMMAND_ERROR_IS_FATAL ANY)
if(NOT help MATCHES "--depth.*how many values the stack holds .an integer. 64 if left out")
  message(FATAL_ERROR "expected the options of the plugin, received:\n${help}")
endif()
