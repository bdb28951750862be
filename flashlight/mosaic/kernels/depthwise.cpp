// Convolutions whose channels do not mix: columns are channels, which both sides have.
#include "flashlight/mosaic/kernels/product.h"
#include "flashlight/mosaic/kernels/product_writer.h"

namespace flashlight::mosaic {
namespace {

struct DepthwiseForm {
  // Its weights are too few to be fetched by the kernel before it.
  static KernelText write(const Plan& plan, const Kernel& kernel) {
    ProductWriter writer(plan, kernel);
    const text::Code body = writer.contraction("contract_depthwise", false);
    return writer.text("depthwise", body, false);
  }
  static void add_units(const Plan&, const Kernel& kernel, Units& units) {
    add_form(data_of<ProductData>(kernel).product, "FLASHLIGHT_DEPTHWISE({});\n", units);
  }
  static bool applies(const Product& product, bool) { return product.depthwise; }
  static double time(const Product&) { return 1; }
};

}  // namespace

const KernelForm kDepthwise =
    product_form("depthwise", tiles_in_strips, DepthwiseForm::write, DepthwiseForm::add_units);
const ProductForm kDepthwiseProduct = {
    .form = &kDepthwise, .applies = DepthwiseForm::applies, .time = DepthwiseForm::time};

}  // namespace flashlight::mosaic
