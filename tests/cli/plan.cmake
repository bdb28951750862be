# What `flashlight plan`, `emit` and `run` say of a step of an optimizer: what compiled code does.
#   cmake -D FLASHLIGHT=… -D CAPTURE=… -D WORK=… -P plan.cmake
include(${CMAKE_CURRENT_LIST_DIR}/flashlight.cmake)

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(plan ${CAPTURE})
expect_success()
expect_text("the new value of conv_weight, in its memory")
# A drawing is of the same plan, by the same options.
run(plan ${CAPTURE} --arena ${WORK}/arena.svg)
expect_success()
run(plan ${CAPTURE} --no-freeze --arena ${WORK}/read_anew.svg)
expect_success()
run(plan ${CAPTURE} --products nobody --arena ${WORK}/none.svg)
expect_text("expected float32 or bfloat16, received 'nobody'")
if(EXISTS ${WORK}/none.svg)
  message(FATAL_ERROR "what is refused is not drawn")
endif()
