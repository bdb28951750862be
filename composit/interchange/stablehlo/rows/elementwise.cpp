#include "composit/interchange/scalar_rows.h"
#include "composit/interchange/stablehlo/rows.h"
#include "composit/interchange/stablehlo/scalars.h"

namespace composit::stablehlo {
namespace {

LazyTensors converted(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = call.tensors().at(0);
  if (results[0].dtype == DType::bool_) return {truth(x)};
  return {cast_to(x, results[0].dtype)};
}

}  // namespace

void add_elementwise_rows(std::vector<Row>& rows) {
  interchange::add_scalar_rows(rows, apply, {Function::zeta});
  interchange::add_elementwise_rows(rows, apply, truth);
  rows.insert(rows.end(), {{"aten::_to_copy", converted}, {"aten::to.dtype", converted}});
}

}  // namespace composit::stablehlo
