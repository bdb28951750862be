// What `./dev bench llm` asks about the machine.
//
//   bench_llm --limits THREADS    an answer for each line: a line of JSON, what limits.h measures
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "benchmarks/llm/limits.h"
#include "flashlight/runtime/arena.hpp"

namespace {

constexpr size_t kMemory = size_t{1} << 30;  // bytes

void serve_limits(int threads) {
  // Large pages, as prepared weights have.
  const fl::Memory allocated = fl::allocate(kMemory);
  const std::span<uint32_t> memory(reinterpret_cast<uint32_t*>(allocated.get()),
                                   kMemory / sizeof(uint32_t));
  std::fill(memory.begin(), memory.end(), 3u);
  for (std::string line; std::getline(std::cin, line);) {
    const benchmarks::Limits limits = benchmarks::look_at_limits(threads, memory);
    const nlohmann::json answer = {{"read", limits.read}, {"dot4", limits.dot4}};
    std::cout << answer.dump() << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--limits" && std::atoi(argv[2]) > 0)
    return serve_limits(std::atoi(argv[2])), 0;
  std::fputs("usage: bench_llm --limits THREADS\n", stderr);
  return 2;
}
