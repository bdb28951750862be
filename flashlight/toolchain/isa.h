// The processor this program runs on, as compilers name it.
//
//   options.flags.push_back(host_isa() == "avx512f" ? "-mavx512f" : "-march=x86-64");
#pragma once

#include <string>

namespace flashlight::toolchain {

// The widest vector instructions: "avx512f" (with bw, dq, vl), "avx2" (with fma), "avx", "sse4.2"
// or "sse2" on x86; "neon" on 64-bit ARM; "generic" elsewhere.
std::string host_isa();

// All that the processor can do, as /proc/cpuinfo lists it; what -march=native depends on.
std::string cpu_features();

}  // namespace flashlight::toolchain
