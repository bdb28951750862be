#include "flashlight/mosaic/retilize.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "composit/ir/error.h"

namespace flashlight::mosaic {
namespace {

using composit::Array;
using composit::UserError;
using Loop = RetilizeSteps::Loop;
using Places = RetilizeSteps::Places;

// Steps at which both sides begin anew, so that the offset of an index is the sum of what its
// counts of these steps give; each divides the next one. Of 16 and 24 that is 8 and 48, and a round
// of 48 has six uneven places.
std::vector<int64_t> common_steps(const Tiling& from, const Tiling& to, size_t dimension) {
  std::vector<int64_t> steps = {1};
  for (const Tiling* tiling : {&from, &to})
    for (const Tiling::Loop& loop : tiling->loops())
      if (loop.dimension == dimension) steps.push_back(loop.step);
  std::vector<int64_t> candidates = steps, common;
  for (const int64_t a : steps)
    for (const int64_t b : steps) {
      candidates.push_back(std::gcd(a, b));
      if (a / std::gcd(a, b) < from.sizes()[dimension] / b) candidates.push_back(std::lcm(a, b));
    }
  std::sort(candidates.begin(), candidates.end());
  for (const int64_t candidate : candidates) {
    const bool fits = std::all_of(steps.begin(), steps.end(), [&](int64_t step) {
      return step % candidate == 0 || candidate % step == 0;
    });
    const bool next =
        common.empty() || (candidate > common.back() && candidate % common.back() == 0);
    if (fits && next) common.push_back(candidate);
  }
  return common;
}

Places places_of(const Tiling& tiling, size_t dimension, int64_t step, int64_t extent) {
  Places places = {tiling.offset(dimension, step), {}};
  bool even = true;
  for (int64_t round = 0; round < extent; ++round) {
    places.uneven.push_back(tiling.offset(dimension, round * step));
    even &= places.uneven.back() == round * places.stride;
  }
  if (even) places.uneven.clear();
  return places;
}

void add_loops(const Tiling& from, const Tiling& to, size_t dimension, std::vector<Loop>& loops) {
  const std::vector<int64_t> steps = common_steps(from, to, dimension);
  const int64_t size = from.sizes()[dimension];
  const std::string name(1, to.schema().dimensions[dimension]);
  for (size_t i = steps.size(); i-- > 0;) {
    const int64_t step = steps[i], needed = (size + step - 1) / step;
    const int64_t extent = i + 1 == steps.size() ? needed : std::min(needed, steps[i + 1] / step);
    if (extent <= 1) continue;
    loops.push_back({step == 1 ? name : fmt::format("{}/{}", name, step), dimension, extent, step,
                     places_of(from, dimension, step, extent),
                     places_of(to, dimension, step, extent)});
  }
}

bool goes_on(const Places& outer, const Places& inner, int64_t extent) {
  return outer.uneven.empty() && inner.uneven.empty() && outer.stride == inner.stride * extent;
}

// True if the tensor never ends before the rounds of a loop do.
bool is_whole(const RetilizeSteps& steps, const Loop& loop) {
  return loop.step == 0 || steps.sizes[loop.dimension] % (loop.extent * loop.step) == 0;
}

// Two loops are one where on both sides the rounds of the outer one go on where the inner one ends.
void join_loops(RetilizeSteps& steps) {
  std::vector<Loop>& loops = steps.loops;
  for (size_t i = loops.size(); i-- > 1;) {
    Loop &outer = loops[i - 1], &inner = loops[i];
    const bool same = outer.dimension == inner.dimension && outer.step == inner.step * inner.extent;
    if (!goes_on(outer.from, inner.from, inner.extent) ||
        !goes_on(outer.to, inner.to, inner.extent) ||
        (!same && (!is_whole(steps, inner) || !is_whole(steps, outer))))
      continue;
    outer = {same ? inner.name : outer.name + " " + inner.name,
             inner.dimension,
             outer.extent * inner.extent,
             same ? inner.step : 0,
             inner.from,
             inner.to};
    loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

template <int kBytes>
void copy_rounds(const Loop& loop, int64_t rounds, const std::byte* from, std::byte* to) {
  for (int64_t round = 0; round < rounds; ++round)
    std::memcpy(to + loop.to.at(round) * kBytes, from + loop.from.at(round) * kBytes, kBytes);
}

class Mover {
 public:
  Mover(const RetilizeSteps& steps, int64_t item) : steps_(steps), item_(item) {
    index_.assign(steps.sizes.size(), 0);
  }

  void move(size_t depth, const std::byte* from, std::byte* to) {
    if (depth == steps_.loops.size()) {
      std::memcpy(to, from, static_cast<size_t>(item_));
      return;
    }
    const Loop& loop = steps_.loops[depth];
    int64_t& index = index_[loop.dimension];
    int64_t rounds = loop.extent;
    if (loop.step > 0)
      rounds = std::min(rounds, (steps_.sizes[loop.dimension] - index + loop.step - 1) / loop.step);
    if (depth + 1 == steps_.loops.size()) return innermost(loop, rounds, from, to);
    const int64_t before = index;
    for (int64_t round = 0; round < rounds; ++round) {
      move(depth + 1, from + loop.from.at(round) * item_, to + loop.to.at(round) * item_);
      index += loop.step;
    }
    index = before;
  }

 private:
  void innermost(const Loop& loop, int64_t rounds, const std::byte* from, std::byte* to) const {
    if (rounds <= 0) return;
    if (steps_.has_run)
      std::memcpy(to, from, static_cast<size_t>(rounds * item_));
    else if (item_ == 1)
      copy_rounds<1>(loop, rounds, from, to);
    else if (item_ == 2)
      copy_rounds<2>(loop, rounds, from, to);
    else if (item_ == 4)
      copy_rounds<4>(loop, rounds, from, to);
    else if (item_ == 8)
      copy_rounds<8>(loop, rounds, from, to);
    else
      copy_rounds<16>(loop, rounds, from, to);
  }

  const RetilizeSteps& steps_;
  int64_t item_;
  std::vector<int64_t> index_;  // by dimension, of the first element of the round
};

Array moved(const Array& memory, const Tiling& from, const Tiling& to,
            const std::vector<int64_t>& shape) {
  const composit::DType dtype = memory.type().dtype;
  const composit::Type type = composit::tensor_type(dtype, {shape.begin(), shape.end()});
  const auto bytes = static_cast<size_t>(type.nbytes());
  const std::shared_ptr<std::byte[]> storage(new std::byte[std::max<size_t>(bytes, 1)]);
  const RetilizeSteps steps = retilize_steps(from, to);
  if (steps.has_padding) std::memset(storage.get(), 0, bytes);
  if (from.element_count() > 0)
    Mover(steps, composit::item_size(dtype)).move(0, memory.data(), storage.get());
  return Array(type, storage, storage.get());
}

Tiling in_one_level(const std::vector<int64_t>& sizes) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  return {schema_of_order(order), sizes};
}

void check_memory(const Array& memory, const Tiling& tiling, const char* function) {
  const std::vector<int64_t> sizes = memory.type().sizes;
  if (sizes != std::vector<int64_t>{tiling.memory_size()})
    throw UserError(fmt::format("[{}] expected one dimension of {} elements ('{}'), received [{}]",
                                function, tiling.memory_size(), print(tiling.schema()),
                                fmt::join(sizes, ", ")));
}

}  // namespace

RetilizeSteps retilize_steps(const Tiling& from, const Tiling& to) {
  if (from.sizes() != to.sizes())
    throw UserError(fmt::format("[retilize] tensors of different sizes: [{}] and [{}]",
                                fmt::join(from.sizes(), ", "), fmt::join(to.sizes(), ", ")));
  RetilizeSteps steps;
  steps.sizes = from.sizes();
  for (size_t i = 0; i < steps.sizes.size(); ++i) add_loops(from, to, i, steps.loops);
  std::stable_sort(steps.loops.begin(), steps.loops.end(), [](const Loop& a, const Loop& b) {
    return a.dimension == b.dimension ? a.step > b.step : a.to.stride > b.to.stride;
  });
  join_loops(steps);
  steps.has_padding = to.memory_size() != to.element_count();
  steps.has_run = !steps.loops.empty() && steps.loops.back().from.uneven.empty() &&
                  steps.loops.back().to.uneven.empty() && steps.loops.back().from.stride == 1 &&
                  steps.loops.back().to.stride == 1;
  return steps;
}

// for C/16: 3 rounds, from 50176 to 50176 apart
std::string print(const RetilizeSteps& steps) {
  const auto apart = [](const Places& places) {
    return places.uneven.empty() ? std::to_string(places.stride) : "unevenly";
  };
  std::string text = steps.has_padding ? "zero all, for the padding\n" : "", indent;
  for (size_t i = 0; i < steps.loops.size(); ++i) {
    const Loop& loop = steps.loops[i];
    const bool whole = is_whole(steps, loop);
    if (i + 1 == steps.loops.size() && steps.has_run) {
      text += fmt::format("{}copy {}{} neighbours over {}\n", indent, whole ? "" : "up to ",
                          loop.extent, loop.name);
      return text;
    }
    text += fmt::format("{}for {}: {}{} rounds, {} apart -> {} apart\n", indent, loop.name,
                        whole ? "" : "up to ", loop.extent, apart(loop.from), apart(loop.to));
    indent += "  ";
  }
  return text + indent + "copy 1 element\n";
}

Array retilize(const Array& memory, const Tiling& from, const Tiling& to) {
  check_memory(memory, from, "retilize");
  return moved(memory.contiguous(), from, to, {to.memory_size()});
}

Array tilize(const Array& array, const TileSchema& schema) {
  const Tiling to(schema, array.type().sizes);
  return moved(array.contiguous(), in_one_level(to.sizes()), to, {to.memory_size()});
}

Array untilize(const Array& memory, const Tiling& tiling) {
  check_memory(memory, tiling, "untilize");
  return moved(memory.contiguous(), tiling, in_one_level(tiling.sizes()), tiling.sizes());
}

}  // namespace flashlight::mosaic
