// Constants of a graph that are others at other sizes: shapes, bounds, counts.
//
//   const SizedConstant sized = sized_constant(arrays, find);      // one array per size
//   LazyTensor value = sized.value(nodes);                         // worked out when the model
//   runs
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "composit/interchange/onnx/size_nodes.h"
#include "composit/ir/array.h"

namespace composit::onnx {

struct SizedConstant {
  enum class Form : uint8_t {
    integers,    // each follows from sizes
    number,      // one number that is an integer, of any dtype
    reciprocal,  // 1 / number
    filled,      // of one value, in sizes that follow
    steps        // first, first + step, … along one axis, in sizes that follow
  };
  Form form = Form::integers;
  Type type = {};                          // at the first sizes
  std::vector<SizeFormula> integers = {};  // of `integers`, `number` and `reciprocal`
  std::vector<SizeFormula> sizes = {};     // of `filled` and `steps`
  Array element = {};                      // of `filled`, without axes
  size_t axis = 0;                         // of `steps`
  int64_t first = 0, step = 1;             // of `steps`

  LazyTensor value(SizeNodes& nodes) const;
  // True if an integer may be zero where no tensor is empty.
  bool may_have_zeros() const;
};

// A formula for integers, one per size; nothing: there is none.
using FindFormula = std::function<std::optional<SizeFormula>(const std::vector<int64_t>&)>;

// Nothing where the arrays follow from sizes in no such way.
std::optional<SizedConstant> sized_constant(const std::vector<Array>& arrays,
                                            const FindFormula& find);

}  // namespace composit::onnx
