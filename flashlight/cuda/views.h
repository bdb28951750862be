// What LibTorch reads through strides, instead of from a copy that a kernel makes.
//
//   const Views views(routine);  // kernels that only reorder dimensions for LibTorch leave it
//   if (const Strided* view = views.find(step, 0))
//     view->strides_for({768, 768});  // {1, 768}
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "flashlight/loops/program.h"

namespace flashlight::cuda {

using namespace loops;

// The call of LibTorch that a step is; nullptr for others.
const RuntimeCall* aten_call_in(const Step& step);

// The dimensions of a value that is read through strides.
struct Strided {
  std::vector<int64_t> sizes, strides;

  // Strides of the same elements with other dimensions of size 1; nothing for other sizes.
  std::optional<std::vector<int64_t>> strides_for(const std::vector<int64_t>& others) const;
};

class Views {
 public:
  Views() = default;
  // Nests that only reorder or repeat the dimensions of a value, for calls of LibTorch alone, leave
  // the routine; its calls get that value as their argument.
  explicit Views(Routine& routine);

  // How a call reads its argument at a position; nullptr: as it lies in memory.
  const Strided* find(StepId step, size_t position) const;

 private:
  std::map<std::pair<StepId, size_t>, Strided> views_;
};

}  // namespace flashlight::cuda
