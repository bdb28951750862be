# ResNet-18 and BERT-base as programs of their own: captured, written as C++ by each backend, built with
# nothing but a compiler, run on the saved example. Run as a test:
#
#   cmake -D SAVE=.../save_models -D FLASHLIGHT=.../flashlight -D CXX=... -D STRIP=... -D WORK=...
#         -P run.cmake
include(${CMAKE_CURRENT_LIST_DIR}/../../tests/run_command.cmake)

set(most_lines 600)      # of model.cpp, where it is to be read
set(most_bytes 1000000)  # of the program without its symbols; weights are a file of their own

# The libraries that a program may load beyond the loader and the kernel's own.
set(libraries "libc|libm|libstdc\\+\\+|libgcc_s|libpthread")

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(${SAVE} ${WORK})
foreach(case resnet18/cpp bert_base/cpp resnet18/mosaic bert_base/mosaic)
  get_filename_component(model ${case} DIRECTORY)
  get_filename_component(backend ${case} NAME)
  set(folder ${WORK}/${model}_${backend})
  set(program ${folder}_build/${model}_example)
  run(${FLASHLIGHT} compile ${WORK}/${model} --backend ${backend} -o ${folder})
  run(${CMAKE_COMMAND} -S ${folder} -B ${folder}_build -DCMAKE_CXX_COMPILER=${CXX})
  run(${CMAKE_COMMAND} --build ${folder}_build)
  run(${program} ${folder}) # compares with LibTorch's results

  file(READ ${folder}/model.cpp text)
  string(REGEX REPLACE "[^\n]" "" lines "${text}")
  string(LENGTH "${lines}" count)
  run(${STRIP} -o ${program}_stripped ${program})
  file(SIZE ${program}_stripped bytes)
  message("${model} by ${backend}: ${count} lines, ${bytes} bytes")
  if(bytes GREATER most_bytes OR (backend STREQUAL cpp AND count GREATER most_lines))
    message(FATAL_ERROR "expected at most ${most_lines} lines to read and ${most_bytes} bytes")
  endif()
  execute_process(COMMAND ldd ${program} OUTPUT_VARIABLE loaded COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\t\n]+ => [^\n]+" loaded "${loaded}")
  foreach(library IN LISTS loaded)
    if(NOT library MATCHES "^(${libraries})\\.so")
      message(FATAL_ERROR "${model} by ${backend} depends on ${library}")
    endif()
  endforeach()
  file(REMOVE_RECURSE ${folder} ${folder}_build) # half a gigabyte of weights
endforeach()
file(REMOVE_RECURSE ${WORK}) # a gigabyte of weights
