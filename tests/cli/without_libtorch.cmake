# The command line that is built without LibTorch, where LibTorch cannot be loaded:
#
#   cmake -D FLASHLIGHT=.../flashlight -D WORK=... -P without_libtorch.cmake
#
# Libraries by LibTorch's names that are none stand before all others, so that a program that loads
# one, linked or by dlopen, fails; one built with LibTorch does.
include(${CMAKE_CURRENT_LIST_DIR}/../run_command.cmake)

file(REMOVE_RECURSE ${WORK})
foreach(library torch torch_cpu torch_global_deps torch_python c10 shm)
  file(WRITE ${WORK}/lib${library}.so "no library\n")
endforeach()

execute_process(COMMAND ldd ${FLASHLIGHT} OUTPUT_VARIABLE libraries COMMAND_ERROR_IS_FATAL ANY)
message("${libraries}")
if(libraries MATCHES "lib(torch|c10|shm)[^ ]*\\.so" OR NOT libraries MATCHES "libc\\.so")
  message(FATAL_ERROR "expected a program that is linked without LibTorch")
endif()

set(ENV{LD_LIBRARY_PATH} ${WORK})
foreach(command --version ops passes env)
  run(${FLASHLIGHT} ${command})
endforeach()

# Commands that need LibTorch say so.
foreach(command "check nothing" "import nothing.pt -o ${WORK}/out")
  separate_arguments(words UNIX_COMMAND ${command})
  execute_process(COMMAND ${FLASHLIGHT} ${words} ERROR_VARIABLE message RESULT_VARIABLE result)
  if(result EQUAL 0 OR NOT message MATCHES "LibTorch, and this build has none; all else works")
    message(FATAL_ERROR "flashlight ${command}: ${result}, ${message}")
  endif()
endforeach()
