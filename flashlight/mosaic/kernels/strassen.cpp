// Products of matrices by Strassen's algorithm: seven products of halves for eight.
#include "flashlight/mosaic/kernels/product.h"
#include "flashlight/mosaic/kernels/product_writer.h"

namespace flashlight::mosaic {
namespace {

// As for tiles, but that each thread computes the sums of panels it uses, so columns are shared
// later.
constexpr int64_t kFewHalvedRows = 112;

struct StrassenForm {
  static std::string loops(const Plan&, const Kernel& kernel, const KernelForm::Names&) {
    return product_extents(data_of<ProductData>(kernel).product) +
           ": halves by Strassen's algorithm, in tiles";
  }
  static KernelText write(const Plan& plan, const Kernel& kernel) {
    ProductWriter writer(plan, kernel);
    const text::Code body = writer.contraction("contract_strassen", true);
    return writer.text("strassen", body, true);
  }
  static void add_units(const Plan&, const Kernel& kernel, Units& units) {
    add_form(data_of<ProductData>(kernel).product, "FLASHLIGHT_STRASSEN({});\n", units);
  }
  static bool applies(const Product& product, bool) {
    return product.has_one_dtype() && can_halve(product);
  }
  static double time(const Product& product) { return pays_to_halve(product) ? 0.9 : 1.1; }
  static bool by_columns(const Plan& plan, const ProductData& data) {
    return shares_columns(plan, data, kFewHalvedRows);
  }
};

}  // namespace

const KernelForm kStrassen =
    product_form("strassen", StrassenForm::loops, StrassenForm::write, StrassenForm::add_units);
const ProductForm kHalvesOfStrassen = {.form = &kStrassen,
                                       .applies = StrassenForm::applies,
                                       .time = StrassenForm::time,
                                       .by_columns = StrassenForm::by_columns};

}  // namespace flashlight::mosaic
