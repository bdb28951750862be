// Products whose packed side is integers times scales: see ../compressed.h.
#pragma once

#include <optional>

#include "flashlight/mosaic/compressed.h"
#include "flashlight/mosaic/kernels/product.h"

namespace flashlight::mosaic {

struct CompressedData : ProductData {
  CompressedWeight weight;
};

// Prepared values as pack_compressed reads them, and the one that it writes.
struct CompressedPackData : KernelData {
  Product product;
  CompressedWeight weight;
  ValueId codes = {}, scales = {}, packed = {};
  std::optional<ValueId> offsets = {};
};

// Not chosen by time: numbers would take several times the memory.
extern const ProductForm kCompressedProduct;

Kernel compressed_pack_kernel(CompressedPackData data);

// Bytes of its panels, on the machine with the widest vectors.
int64_t compressed_bytes(const Product& product, const CompressedWeight& weight);

}  // namespace flashlight::mosaic
