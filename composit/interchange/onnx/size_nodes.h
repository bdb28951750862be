// Formulas over sizes as operators of ONNX, worked out when a model runs.
//
//   SizeNodes nodes([](const LazyTensor& value) { return value; });
//   nodes.list({size_of(x, 0), 4});      // Concat(Shape(x, start=0, end=1), [4])
//
// Each formula is worked out once.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "composit/interchange/onnx/ops.h"
#include "composit/ir/size_formula.h"

namespace composit::onnx {

class SizeNodes {
 public:
  // `value_of`: the value whose sizes are read, for one that a formula names.
  explicit SizeNodes(std::function<LazyTensor(const LazyTensor&)> value_of)
      : value_of_(std::move(value_of)) {}

  // An integer, as int64 with one axis of one element.
  LazyTensor one(const SizeFormula& formula);
  // The same without axes.
  LazyTensor number(const SizeFormula& formula);
  // Integers along one axis, int64.
  LazyTensor list(const std::vector<SizeFormula>& formulas);

  // That what has to be divisible is: a bool without axes. Absent, where nothing has to be.
  const LazyTensor& divisible() const { return divisible_; }

 private:
  LazyTensor made(const SizeFormula& formula);
  LazyTensor quotient(const SizeFormula& formula);
  void expect_divisible(const LazyTensor& rest);

  std::function<LazyTensor(const LazyTensor&)> value_of_;
  std::map<std::string, LazyTensor> known_;  // by the hash of the formula
  LazyTensor divisible_;
};

// Both, of bools without axes; one of them, where the other is absent.
LazyTensor both_hold(const LazyTensor& a, const LazyTensor& b);

}  // namespace composit::onnx
