# The way from a saved capture to a program in C; run as a test:
#
#   cmake -D SAVE=.../save_perceptron -D FLASHLIGHT=.../flashlight -D CC=... -D CXX=... -D WORK=...
#         -P run.cmake
include(${CMAKE_CURRENT_LIST_DIR}/../../tests/run_command.cmake)

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(${SAVE} ${WORK}/perceptron)
run(${FLASHLIGHT} compile ${WORK}/perceptron --backend cpp --grad x -o ${WORK}/perceptron_cpp)
run(${CMAKE_COMMAND} -S ${WORK}/perceptron_cpp -B ${WORK}/build -DCMAKE_CXX_COMPILER=${CXX})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/perceptron_example ${WORK}/perceptron_cpp)

# A C compiler links libstdc++ only where it is named.
run(${CC} -std=c11 -Wall -Wextra -Wpedantic -Werror -I ${WORK}/perceptron_cpp
    ${CMAKE_CURRENT_LIST_DIR}/main.c ${WORK}/build/libperceptron.a -lstdc++ -lm -pthread
    -o ${WORK}/call_from_c)
execute_process(COMMAND ${WORK}/call_from_c ${WORK}/perceptron_cpp/weights.safetensors
                OUTPUT_VARIABLE output RESULT_VARIABLE result)
message("${output}")
# By torch.
set(expected "y = 0.4626 0.3037, loss = 0.3810\nd loss / d x = 0.3625 0.3520 -0.3573\n")
if(NOT result EQUAL 0 OR NOT output STREQUAL expected)
  message(FATAL_ERROR "expected\n${expected}")
endif()

# The page shows this program.
file(READ ${CMAKE_CURRENT_LIST_DIR}/main.c program)
file(READ ${CMAKE_CURRENT_LIST_DIR}/../../docs/call-from-c.md page)
string(FIND "${page}" "```c\n${program}```" place)
if(place EQUAL -1)
  message(FATAL_ERROR "docs/call-from-c.md does not show main.c as it is")
endif()
