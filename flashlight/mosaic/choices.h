// Decisions that a user makes instead of the planner, by the names that print(plan) gives to
// values.
//
//   const Choices choices = parse_choices("conv2d_3: winograd 0\n"
//                                         "relu: keep, apart 16\n"
//                                         "add: layout NCHW -> N C/16 H W | 16c\n"
//                                         "gelu: fuse   # whatever it costs\n"
//                                         "linear_3: split columns, bfloat16\n"
//                                         "softmax: one thread, own place, at 4096\n");
//
// A value stands for the kernel that writes it, too. Names do not change with what is chosen.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "composit/ir/dtype.h"
#include "flashlight/mosaic/tile_schema.h"

namespace flashlight::mosaic {

// The decisions about one value. The planner decides what is absent.
struct Choice {
  std::optional<bool> fuse = {};  // computed where it is read (fuse), or memory (keep)
  // The order of the value's dimensions in memory. An argument is copied into it, a result out of
  // it.
  std::optional<TileSchema> layout = {};
  std::optional<int64_t> apart = {};  // elements behind each row that are nobody's
  std::optional<int> winograd = {};   // its convolution: pixels of a tile, 2 or 4; 0: directly
  std::optional<bool> strassen = {};  // its product: by Strassen's algorithm (1), or not (0)
  // Its product of float32: of float32, or rounded to bfloat16.
  std::optional<composit::DType> product = {};
  // A value of float32 that a kernel leaves for others: what it is stored as.
  std::optional<composit::DType> stored = {};
  // Threads divide columns of its product ("split columns"), or rows of that or of its loops.
  std::optional<bool> split_columns = {};
  bool new_loops = false;              // its kernel does not go on with the loops before it
  bool one_thread = false;             // runs its kernel of loops
  bool own_place = false;              // it is not written over another value
  std::optional<int64_t> offset = {};  // "at": bytes in the arena, a multiple of 64
  bool operator==(const Choice&) const = default;
};

// By the value's name. As text, which parse_choices reads back, they are an option of the backend.
struct Choices : std::map<std::string, Choice> {
  // The text that is parsed to them.
  operator std::string() const;  // NOLINT
};

// A line per value, "name: choice, choice"; what stands behind a # is a comment. UserError with the
// line's number and the choices there are.
Choices parse_choices(std::string_view text);

}  // namespace flashlight::mosaic
