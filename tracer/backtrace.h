// From raw addresses to the user's source line, once at the end of a recording.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "tracer/recording.h"

namespace flashlight::tracer {

class SourceLines {
 public:
  explicit SourceLines(const std::vector<Backtrace>& backtraces) : backtraces_(backtraces) {}

  // The innermost frame that is neither LibTorch's nor ours: "model.cpp:42 in
  // Net::forward(at::Tensor)", or the function alone where there is no debug information. Empty
  // when every frame is inside the libraries.
  std::string user_line(uint32_t backtrace);

 private:
  const std::string& symbolize(void* address);

  const std::vector<Backtrace>& backtraces_;
  std::unordered_map<void*, std::string> lines_;
};

}  // namespace flashlight::tracer
