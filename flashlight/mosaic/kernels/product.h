// The common part of all kernels of products, and the row of one algorithm.
#pragma once

#include <optional>
#include <string>

#include "flashlight/mosaic/kernels/forms.h"
#include "flashlight/mosaic/product.h"

namespace flashlight::mosaic {

struct ProductData : KernelData {
  Product product;
  ValueId packed = {};  // the value that holds the panels of its right side
  int pixels = 0;       // of Winograd's tiles; else 0
  // Its panels hold the weights as they are; Winograd's transformation happens in each call.
  bool plain_weights = false;
  // A team that shares the product divides its columns rather than its rows.
  bool by_columns = false;
};

// An algorithm of products. products.cpp takes the one that takes the least time.
struct ProductForm {
  const KernelForm* form;
  int pixels = 0;  // see ProductData
  // True if the algorithm can compute the product. `known`: its right side is known beforehand.
  bool (*applies)(const Product& product, bool known) = nullptr;
  // The time that it takes, in units of the time of register tiles of float32; measured. Those
  // of bfloat16 are known to `Products`.
  double (*time)(const Product& product) = nullptr;
  // True if threads should divide columns rather than rows; none: they cannot.
  bool (*by_columns)(const Plan& plan, const ProductData& data) = nullptr;
};

extern const ProductForm kDirectProduct, kDepthwiseProduct, kSmallTilesOfWinograd,
    kLargeTilesOfWinograd, kHalvesOfStrassen;

// The fields that all rows of products have. An algorithm adds `name`, `loops` and `write`.
KernelForm product_form(const char* name,
                        std::string (*loops)(const Plan&, const Kernel&, const KernelForm::Names&),
                        KernelText (*write)(const Plan&, const Kernel&),
                        void (*add_units)(const Plan&, const Kernel&, Units&));

// True if threads should divide columns: there are fewer rows than `few_rows`, and many columns.
bool shares_columns(const Plan& plan, const ProductData& data, int64_t few_rows);

// A batch of several products is divided itself.
Split split_of(const Product& product, bool by_columns);

// "784 rows x 64 columns x 3 x 3 x 64 terms: strips of rows x panels of columns, in tiles".
std::string tiles_in_strips(const Plan&, const Kernel& kernel, const KernelForm::Names&);
// "784 rows x 64 columns x 3 x 3 x 64 terms"; of several dtypes, also which: " of bfloat16, summed
// in float32".
std::string product_extents(const Product& product);
// "64 columns x 3 x 3 x 64 terms".
std::string panel_extents(const Product& product);
// The type of its sums, as C++.
std::string sum_type(const Product& product);
// Tiles for its types; and what a form builds on tiles of its sums' type:
// "FLASHLIGHT_WINOGRAD(2, {0}, {1});\n", {0} being that type, {1} the one of what it reads by rows,
// {2} the one that this is rounded to.
void add_tiles(const Product& product, Units& units);
void add_form(const Product& product, const char* statements, Units& units);
inline constexpr const char* kWinogradStatements =
    "FLASHLIGHT_WINOGRAD(2, {0}, {1});\nFLASHLIGHT_WINOGRAD(4, {0}, {1});\n";

// The data of a kernel that computes a product, by any algorithm; nullptr for others.
const ProductData* product_data(const Kernel& kernel);

}  // namespace flashlight::mosaic
