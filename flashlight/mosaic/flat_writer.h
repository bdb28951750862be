// The part that all writers of tiled kernels share: arguments are pointers, elements have one
// index.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "flashlight/mosaic/ids.h"
#include "flashlight/mosaic/plan.h"
#include "flashlight/mosaic/product.h"
#include "flashlight/text/code.h"
#include "flashlight/text/expression.h"

namespace flashlight::mosaic {

class FlatWriter {
 public:
  explicit FlatWriter(const Plan& plan);

  // Makes `value` the next argument, called `name` or, with none, after the value; once.
  void add(ValueId value, const std::string& name = "");
  // `value` lies where `other` does, and is the same argument.
  void set_same_place(ValueId value, ValueId other) { names_[value] = name(other); }
  void reserve(const std::vector<std::string>& words);
  const ValueIds& values() const { return values_; }
  const std::string& name(ValueId value) const { return names_.at(value); }
  // "const float* x"; what is written is `result`.
  std::vector<std::string> parameters(ValueId result) const;

  // Names of axes.
  std::map<AxisId, std::string> axes;
  // "3 * i + 12 * j" for some axes; empty for none.
  std::string place(const composit::Affine& at, const AxisIds& over) const;
  // "x + 5 + 3 * i".
  std::string address(ValueId value, const composit::Affine& at, const AxisIds& over) const;
  // Declares indices of `over` out of `counter`, which counts their points.
  text::Code decoded(const Product& product, const AxisIds& over, const std::string& counter,
                     const std::string& letter);

  // To write expressions of a flat statement with.
  text::Leaves leaves(const loops::Statement& statement) const;
  std::set<std::string>& taken() { return taken_; }

 private:
  const Plan& plan_;
  std::map<ValueId, std::string> names_;
  ValueIds values_;
  std::set<std::string> taken_;
  mutable std::map<ValueId, composit::Type> types_;  // with one dimension
};

}  // namespace flashlight::mosaic
