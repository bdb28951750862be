// A device of its own whose memory is the host's, for tests of programs that run elsewhere than on
// the CPU: LibTorch sees another device type, operators run by CPU kernels on copies.
//
//   const at::Tensor x = at::randn({2, 3}).to(test::other_device());
#pragma once

#include <c10/core/Device.h>

namespace flashlight::test {

// Registers the device at first use.
c10::Device other_device();

}  // namespace flashlight::test
