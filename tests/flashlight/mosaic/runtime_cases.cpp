#include "tests/flashlight/mosaic/runtime_cases.h"

#include "tests/agreement.h"

namespace flashlight::mosaic::test {

Tolerance tolerance_of(size_t bytes) {
  const auto tolerance = composit::test::tolerance_of(bytes == 4 ? composit::DType::float32
                                                                 : composit::DType::float64);
  return {tolerance.relative, tolerance.absolute};
}

}  // namespace flashlight::mosaic::test
