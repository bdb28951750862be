#include "tests/flashlight/mosaic/runtime_cases.h"

#include "tests/agreement.h"

namespace flashlight::mosaic::test {

Tolerance tolerance_of(size_t bytes) {
  using composit::DType;
  const DType dtype = bytes == 2 ? DType::bfloat16 : bytes == 4 ? DType::float32 : DType::float64;
  const auto tolerance = composit::test::tolerance_of(dtype);
  return {tolerance.relative, tolerance.absolute};
}

}  // namespace flashlight::mosaic::test
