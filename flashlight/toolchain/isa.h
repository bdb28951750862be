// The processor that this program runs on, as compilers name it.
//
//   options.flags.push_back(host_isa() == "avx512f" ? "-mavx512f" : "-march=x86-64");
#pragma once

#include <string>

namespace flashlight::toolchain {

// The widest vector instructions: "avx512f" (with bw, dq, vl), "avx2" (with fma), "avx", "sse4.2"
// or "sse2" on x86; "neon" on 64-bit ARM; "generic" elsewhere.
std::string host_isa();

// True if it multiplies matrices of bfloat16 and of bytes by a unit of its own: Intel's AMX.
bool host_has_matrix_unit();

// All features of the processor, as /proc/cpuinfo lists them: -march=native depends on them.
std::string cpu_features();

}  // namespace flashlight::toolchain
