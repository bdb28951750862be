# From the capture of a step of decoding to a program in C without LibTorch, which goes on with the
# tokens that LibTorch goes on with; run as a test:
#
#   cmake -D SAVE=.../save_llama -D FLASHLIGHT=.../flashlight -D CC=... -D CXX=... -D WORK=...
#         -P run.cmake
include(${CMAKE_CURRENT_LIST_DIR}/../../tests/run_command.cmake)

set(prompt 1 17 4 8 50)
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
execute_process(COMMAND ${SAVE} ${WORK}/llama 40 ${prompt} OUTPUT_VARIABLE expected
                COMMAND_ERROR_IS_FATAL ANY)
foreach(backend mosaic)
  set(folder ${WORK}/llama_${backend})
  run(${FLASHLIGHT} compile ${WORK}/llama --backend ${backend} -o ${folder} --name llama)
  run(${CMAKE_COMMAND} -S ${folder} -B ${folder}_build -DCMAKE_CXX_COMPILER=${CXX})
  run(${CMAKE_COMMAND} --build ${folder}_build)
  run(${folder}_build/llama_example ${folder})
  run(${CC} -std=c11 -Wall -Wextra -Wpedantic -Werror -I ${folder} ${CMAKE_CURRENT_LIST_DIR}/decode.c
      ${folder}_build/libllama.a -lstdc++ -lm -pthread -o ${WORK}/decode)
  execute_process(COMMAND ${WORK}/decode ${folder}/weights.safetensors 40 ${prompt}
                  OUTPUT_VARIABLE output RESULT_VARIABLE result)
  if(NOT result EQUAL 0 OR NOT output STREQUAL expected)
    message(FATAL_ERROR "by ${backend}, expected\n${expected}received\n${output}")
  endif()
  # A position that the cache does not have is refused, behind 64 that it has.
  execute_process(COMMAND ${WORK}/decode ${folder}/weights.safetensors 70 ${prompt}
                  OUTPUT_VARIABLE output ERROR_VARIABLE error RESULT_VARIABLE result)
  if(result EQUAL 0)
    message(FATAL_ERROR "by ${backend}: a position beyond the cache is not refused")
  endif()
  message("${error}")
endforeach()
