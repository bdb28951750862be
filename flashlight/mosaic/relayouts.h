// The kernels of a plan that copy elements from one order in memory to another, and the bytes that
// they copy.
//
//   for (const Relayout& one : relayouts_of(plan)) ...
//   std::cout << print(plan);     // ends with them
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flashlight/mosaic/plan.h"

namespace flashlight::mosaic {

struct Relayout {
  enum class Kind : uint8_t {
    pack,     // panels of one side of a product
    retile,   // loops that only move elements, into another order
    copy,     // the same in the same order: zeros around them, a part of another value
    reorder,  // a kernel that computes reads or writes across the order of memory
  };
  Kind kind = Kind::pack;
  bool once = false;  // in prepare
  size_t kernel = 0;  // of prepare or run
  ValueId from = {}, to = {};
  int64_t bytes = 0;  // that are moved
};

// By kernel, of prepare first.
std::vector<Relayout> relayouts_of(const Plan& plan);

// "pack", "retile", ...
std::string name_of(Relayout::Kind kind);

}  // namespace flashlight::mosaic
