// Convolutions with a window of 3x3 and stride 1 by Winograd's algorithm, whose zeros around the
// input are in memory.
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "flashlight/mosaic/kernels/product.h"
#include "flashlight/mosaic/kernels/product_writer.h"
#include "flashlight/text/open_numbers.h"

namespace flashlight::mosaic {
namespace {

using text::open_number;

// So few pixels are few of Winograd's tiles: threads share outputs.
constexpr int64_t kFewPixels = 14 * 14;
// Channels that its transformations pay for.
constexpr int64_t kLeastChannels = 32;

// Lines or pixels, of which there are fewer.
int64_t least_side(const Product& product) {
  const AxisIds& rows = product.rows;  // images, lines, pixels
  return std::min(product.extent(rows[rows.size() - 2]), product.extent(rows.back()));
}
bool has_many_channels(const Product& product) {
  return product.extent(product.terms[2]) >= kLeastChannels &&
         product.column_count() >= kLeastChannels;
}

struct WinogradForm {
  static std::string loops(const Plan&, const Kernel& kernel, const KernelForm::Names&) {
    const auto& data = data_of<ProductData>(kernel);
    return product_extents(data.product) +
           fmt::format(": Winograd's tiles of {0} x {0} pixels", data.pixels);
  }

  static KernelText write(const Plan& plan, const Kernel& kernel) {
    const auto& data = data_of<ProductData>(kernel);
    const Product& product = data.product;
    ProductWriter writer(plan, kernel);
    const auto step = [&](AxisId axis) { return product.left_at.coefficients[axis]; };
    const AxisIds& rows = product.rows;
    const AxisId y = rows[rows.size() - 2], x = rows.back();
    const int64_t height = product.extent(y), width = product.extent(x);
    const std::string images = rows.size() == 3 ? ", " + open_number(product.extent(rows[0])) +
                                                      ", " + open_number(step(rows[0]))
                                                : "";
    text::Code code = text::assignment(
        fmt::format("const fl::Winograd<{}> of", writer.type()),
        fmt::format("{{{}, {}, {}, {}, 0, 0, {}, {}, {}, {}, {}, {}, next{}}}", open_number(height),
                    open_number(width), open_number(height + 2), open_number(width + 2),
                    open_number(step(y) / step(x)), open_number(step(x)),
                    open_number(product.extent(product.terms[2])),
                    open_number(product.column_count()), writer.split(), data.plain_weights,
                    images));
    code += text::call({.function = fmt::format("fl::convolve_winograd<{}>", data.pixels),
                        .arguments = {"team", "of", writer.rows_address(), "panels",
                                      writer.finish("int64_t outer", without_last(rows))},
                        .lambdas_apart = true});
    return writer.text(fmt::format("winograd_{}", data.pixels), code, true);
  }

  static void add_units(const Plan&, const Kernel& kernel, Units& units) {
    add_form(data_of<ProductData>(kernel).product, kWinogradStatements, units);
  }

  static bool applies(const Product& product, bool known) {
    return known && !product.is_of_bytes() && product.element == product.operand && is_3x3(product);
  }
  static bool by_columns(const Plan&, const ProductData& data) {
    return data.product.size(data.product.rows) < kFewPixels;
  }
  // F(4x4) pays where there are many pixels; F(2x2), which reads more weights, as long as there
  // are more than a few.
  static double small_time(const Product& product) {
    return has_many_channels(product) && least_side(product) >= 7 ? 0.55 : 1.1;
  }
  static double large_time(const Product& product) {
    return has_many_channels(product) && least_side(product) >= 28 ? 0.5 : 1.1;
  }
};

}  // namespace

const KernelForm kWinograd =
    product_form("winograd", WinogradForm::loops, WinogradForm::write, WinogradForm::add_units);
const ProductForm kSmallTilesOfWinograd = {.form = &kWinograd,
                                           .pixels = 2,
                                           .applies = WinogradForm::applies,
                                           .time = WinogradForm::small_time,
                                           .by_columns = WinogradForm::by_columns};
const ProductForm kLargeTilesOfWinograd = {.form = &kWinograd,
                                           .pixels = 4,
                                           .applies = WinogradForm::applies,
                                           .time = WinogradForm::large_time,
                                           .by_columns = WinogradForm::by_columns};

}  // namespace flashlight::mosaic
