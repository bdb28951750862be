#include "composit/interchange/onnx/rows.h"
#include "composit/interchange/onnx/scalars.h"
#include "composit/interchange/scalar_rows.h"

namespace composit::onnx {
namespace {

LazyTensors converted(const Call& call, const std::vector<Type>& results) {
  const LazyTensor& x = call.tensors().at(0);
  if (is_complex(x.dtype()) || is_complex(results[0].dtype)) return {};
  return {cast_to(x, results[0].dtype)};
}

}  // namespace

void add_elementwise_rows(std::vector<Row>& rows) {
  interchange::add_scalar_rows(rows, apply,
                               {Function::complex, Function::real, Function::imag, Function::conj,
                                Function::nextafter, Function::zeta});
  interchange::add_elementwise_rows(rows, apply,
                                    [](const LazyTensor& x) { return cast_to(x, DType::bool_); });
  rows.insert(rows.end(), {{"aten::_to_copy", converted}, {"aten::to.dtype", converted}});
}

}  // namespace composit::onnx
