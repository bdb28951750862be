#include "flashlight/toolchain/isa.h"

#include <fstream>

namespace flashlight::toolchain {

std::string host_isa() {
#if defined(__x86_64__) || defined(__i386__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return "avx512f";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "avx2";
  if (__builtin_cpu_supports("avx")) return "avx";
  if (__builtin_cpu_supports("sse4.2")) return "sse4.2";
  if (__builtin_cpu_supports("sse2")) return "sse2";
#elif defined(__aarch64__)
  return "neon";
#endif
  return "generic";
}

std::string cpu_features() {
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; std::getline(cpus, line);)
    if (line.starts_with("flags") || line.starts_with("Features")) return line;  // x86, ARM
  return host_isa();
}

bool host_has_matrix_unit() {
  const std::string features = cpu_features() + " ";
  const auto has = [&](const char* name) { return features.find(name) != std::string::npos; };
  return has(" amx_tile ") && has(" amx_bf16 ") && has(" amx_int8 ");
}

}  // namespace flashlight::toolchain
