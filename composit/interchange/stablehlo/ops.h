// Operators of StableHLO as nodes of a graph: "stablehlo::dot_general".
//
//   LazyTensor y = binary("add", x, broadcast_to(bias, x.sizes()));
//   LazyTensor z = reshaped(transposed(y, {1, 0}), {6});
//
// Attributes have StableHLO's names where its text has names; text.h knows how each is written.
// Operands are broadcast here, since operators there do not. Types are always given. What StableHLO
// calls chlo (erf, …) is an operator like others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "composit/interchange/checks.h"
#include "composit/interchange/values.h"
#include "composit/ir/node.h"

namespace composit::stablehlo {

// The domain of the operations: "stablehlo".
inline constexpr std::string_view kDomain = "stablehlo";

using interchange::attribute;
using interchange::broadcast;
using interchange::checked;
using interchange::integers;
using interchange::number;

// The results of an operator; or the only one.
LazyTensors calls(std::string_view op, const LazyTensors& operands, Attributes attributes,
                  std::vector<Type> results);
LazyTensor call(std::string_view op, const LazyTensors& operands, Attributes attributes,
                Type result);
NamedAttribute list(std::string_view name, const std::vector<int64_t>& values);

// One value everywhere.
LazyTensor filled(double value, DType dtype, const Dims& sizes);
LazyTensor like(double value, const LazyTensor& x);
// The index along an axis.
LazyTensor iota(DType dtype, const Dims& sizes, int64_t axis);
// The lowest and the highest number of a dtype; infinite where it has that.
LazyTensor lowest(DType dtype);
LazyTensor highest(DType dtype);

// Operators whose types follow from their operands, which broadcast.
LazyTensor unary(std::string_view op, const LazyTensor& x);
LazyTensor binary(std::string_view op, const LazyTensor& x, const LazyTensor& y);  // as x's dtype
// "LT", "LE", "GT", "GE", "EQ", "NE": gives bool.
LazyTensor compare(std::string_view direction, const LazyTensor& x, const LazyTensor& y);
LazyTensor select(const LazyTensor& condition, const LazyTensor& x, const LazyTensor& y);
LazyTensor is_nan(const LazyTensor& x);
LazyTensor truth(const LazyTensor& x);  // what is not 0
LazyTensor cast_to(const LazyTensor& x, DType dtype);
LazyTensor reshaped(const LazyTensor& x, const Dims& sizes);
LazyTensor transposed(const LazyTensor& x, const std::vector<int64_t>& order);
LazyTensor broadcast_to(const LazyTensor& x, const Dims& sizes);
// Axis i of x becomes axis axes[i] of the result.
LazyTensor broadcast_along(const LazyTensor& x, const Dims& sizes,
                           const std::vector<int64_t>& axes);
// From `begin` to before `end` along an axis.
LazyTensor sliced(const LazyTensor& x, int64_t axis, int64_t begin, int64_t end, int64_t step = 1);
LazyTensor concatenated(const LazyTensors& parts, int64_t axis);
// Zeros, or `value`, before and behind; negative numbers cut off.
LazyTensor padded(const LazyTensor& x, const LazyTensor& value, const std::vector<int64_t>& low,
                  const std::vector<int64_t>& high);

// True if all indices are from 0 to before `limit`, which what is computed elsewhere may show.
LazyTensor in_range(const LazyTensor& indices, int64_t limit);

// A region on scalars of these types; `body` gives what it returns.
Region region_of(const std::vector<Type>& scalars, const TensorFunction& body);
// Of two operands of this dtype.
Region combiner(DType dtype, std::string_view op);
// Of a value and its place, twice: the larger (or lesser) value with its place. What is not a
// number comes before all, and of equal ones the first.
Region chooser(DType dtype, bool largest);

// "add", "multiply", "maximum", "minimum", "and", "or" over axes, which are left out, or kept with
// size 1.
LazyTensor reduced(std::string_view op, const LazyTensor& x, const LazyTensor& init,
                   const std::vector<int64_t>& axes, bool keep);
// The same over all axes.
LazyTensor over_all(std::string_view op, const LazyTensor& x, const LazyTensor& init);
// The sizes without these axes, or with size 1 there.
Dims without(const Dims& sizes, const std::vector<int64_t>& axes, bool keep);

}  // namespace composit::stablehlo
