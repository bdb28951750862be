// The cost of layouts: the bytes of values that kernels would read or write across their order in
// memory, or copy into another order.
//
//   const LayoutCost cost(routine, is_frozen);
//   cost.across(layouts);                   // values that nests touch across their order
//   cost.around(value, layouts).bytes;      // of those that touch `value`
//
// A product wants its rows along its terms, or, where channels do not mix, along those, and its
// result along its columns; other loops follow what they write, and want what they read in that
// order. Everything counts once per nest.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "composit/op/affine.h"
#include "flashlight/loops/program.h"
#include "flashlight/mosaic/ids.h"
#include "flashlight/mosaic/layout.h"

namespace flashlight::mosaic {

// The orders in memory that one nest prefers for the values that it reads and writes.
class NestCost {
 public:
  NestCost(const loops::Routine& routine, const loops::Nest& nest,
           const std::function<bool(ValueId value)>& is_frozen);

  // Values that it touches across their order, one that is written included. Values without a
  // layout are row-major; blocks are somebody's choice, and cost nothing.
  ValueIds across(const std::map<ValueId, Layout>& layouts) const;

 private:
  using Axes = AxisIds;
  struct Access {
    ValueId value;
    composit::Dims sizes;
    std::vector<composit::Affine> at;  // by dimension
  };
  // The number of the element in memory.
  static std::optional<composit::Affine> place(const Access& access,
                                               const std::map<ValueId, Layout>& layouts);
  bool goes_across(const composit::Affine& from, const composit::Affine& to) const;

  std::vector<composit::Axis> axes_;
  std::vector<Access> loads_;
  std::optional<Access> store_, rows_;  // nothing where indices are not affine
  Axes terms_, columns_;                // of a product
};

struct Relayouts {
  int64_t count = 0, bytes = 0;
};

class LayoutCost {
 public:
  LayoutCost(const loops::Routine& routine, const std::function<bool(ValueId value)>& is_frozen);

  // By nest, the values that it would touch so: one of several nests stands there several times.
  ValueIds across(const std::map<ValueId, Layout>& layouts) const;
  Relayouts around(ValueId value, const std::map<ValueId, Layout>& layouts) const;

 private:
  void add(const NestCost& nest, const std::map<ValueId, Layout>& layouts, Relayouts& sum) const;

  const loops::Routine& routine_;
  std::vector<NestCost> nests_;
  Table<ValueId, std::vector<size_t>> touching_;  // nests
};

}  // namespace flashlight::mosaic
