// The packed side of a product: panels of its columns, as tiles read them.
#pragma once

#include <optional>

#include "flashlight/mosaic/kernels/forms.h"
#include "flashlight/mosaic/product.h"

namespace flashlight::mosaic {

struct PackData : KernelData {
  Product product;
  ValueId packed = {};
  int pixels = 0;                      // of Winograd's tiles that they are transformed for; else 0
  std::optional<ValueId> factor = {};  // the value that columns are multiplied with
};

Kernel pack_kernel(const Product& product, ValueId packed, int pixels,
                   std::optional<ValueId> factor);

}  // namespace flashlight::mosaic
