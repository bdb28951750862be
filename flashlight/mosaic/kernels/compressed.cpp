#include "flashlight/mosaic/kernels/compressed.h"

#include <spdlog/fmt/fmt.h>

#include <limits>

#include "flashlight/mosaic/kernels/product_writer.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/open_numbers.h"

namespace flashlight::mosaic {
namespace {

using text::open_number;

// "4, fl::float16, false": template arguments that say what panels have.
std::string panel_types(const CompressedWeight& weight) {
  return fmt::format("{}, {}, {}", weight.bits, text::type_name(weight.scale_dtype),
                     weight.has_offsets);
}

// "int4 in groups of 32".
std::string format_of(const Product& product, const CompressedWeight& weight) {
  std::string text = fmt::format("int{}", weight.bits);
  if (weight.group < product.size(product.terms))
    text += fmt::format(" in groups of {}", weight.group);
  return text + (weight.has_offsets ? " with offsets" : "");
}

void add_panels(const CompressedWeight& weight, Units& units) {
  const std::string types = panel_types(weight);
  units[fmt::format("panels_int{}", weight.bits)].insert("FLASHLIGHT_COMPRESSED_PANELS(" + types +
                                                         ");\n");
}

struct CompressedForm {
  static std::string loops(const Plan& plan, const Kernel& kernel, const KernelForm::Names& names) {
    const auto& data = data_of<CompressedData>(kernel);
    return tiles_in_strips(plan, kernel, names) + "; weights are " +
           format_of(data.product, data.weight);
  }

  static KernelText write(const Plan& plan, const Kernel& kernel) {
    const auto& data = data_of<CompressedData>(kernel);
    const Product& product = data.product;
    ProductWriter writer(plan, kernel);
    const std::string types =
        fmt::format("{}, {}, {}", writer.type(), text::type_name(product.element),
                    text::type_name(product.operand));
    const std::string panels =
        fmt::format("{{panels, {}, fl::code_format<{}>()}}", open_number(data.weight.group),
                    panel_types(data.weight));
    const text::Code body =
        writer.contraction("fl::contract_compressed<" + types + ">", panels, /*fetches=*/true);
    KernelText text = writer.text("compressed", body, /*fetches=*/true);
    text.panels.reset();
    return text;
  }

  static void add_units(const Plan&, const Kernel& kernel, Units& units) {
    const auto& data = data_of<CompressedData>(kernel);
    const Product& product = data.product;
    units["tiles_float"].insert("FLASHLIGHT_TILES(float);\n");
    if (product.operand == composit::DType::bfloat16)
      units["tiles_bfloat16"].insert("FLASHLIGHT_PANELS_OF(float, fl::bfloat16);\n");
    add_panels(data.weight, units);
    units["tiles_compressed"].insert(fmt::format("FLASHLIGHT_COMPRESSED_TILES({}, {});\n",
                                                 text::type_name(product.element),
                                                 text::type_name(product.operand)));
  }
};

struct PackCodesForm {
  static ValueIds touched(const Plan&, const Kernel& kernel) {
    const auto& data = data_of<CompressedPackData>(kernel);
    ValueIds values = {data.codes, data.scales};
    if (data.offsets) values.push_back(*data.offsets);
    values.push_back(data.packed);
    return values;
  }
  static ValueIds written(const Plan&, const Kernel& kernel) {
    return {data_of<CompressedPackData>(kernel).packed};
  }

  static std::string loops(const Plan&, const Kernel& kernel, const KernelForm::Names&) {
    const auto& data = data_of<CompressedPackData>(kernel);
    return panel_extents(data.product) + " in panels of " + format_of(data.product, data.weight);
  }

  static KernelText write(const Plan& plan, const Kernel& kernel) {
    const auto& data = data_of<CompressedPackData>(kernel);
    const Product& product = data.product;
    FlatWriter flat(plan);
    flat.reserve(kProductWords);
    flat.add(data.codes, "codes");
    flat.add(data.scales, "scales");
    if (data.offsets) flat.add(*data.offsets, "offsets");
    flat.add(data.packed, "panels");
    text::Code body = text::assignment(
        text::constant_head("fl::CompressedPacking kPacking"),
        fmt::format("{{{}, {}, {}, {}, {}}}", open_number(product.size(product.terms)),
                    open_number(product.column_count()), open_number(data.weight.group),
                    open_number(data.weight.term_stride), open_number(data.weight.column_stride)));
    body += text::call(
        "fl::pack_compressed<" + panel_types(data.weight) + ">",
        {"team", "kPacking", "codes", "scales", data.offsets ? "offsets" : "nullptr", "panels"});
    KernelText text;
    text.name = fmt::format("pack_int{}_{}x{}", data.weight.bits, product.column_count(),
                            product.size(product.terms));
    text.values = flat.values();
    text.by_pointer = true;
    text.first = "team";
    text.function = text::Function{.parameters = flat.parameters(data.packed), .body = body};
    return text;
  }

  static void add_units(const Plan&, const Kernel& kernel, Units& units) {
    add_panels(data_of<CompressedPackData>(kernel).weight, units);
  }
};

}  // namespace

const KernelForm kCompressed = product_form("compressed", CompressedForm::loops,
                                            CompressedForm::write, CompressedForm::add_units);
const KernelForm kCompressedPack = {.name = "pack_compressed",
                                    .touched = PackCodesForm::touched,
                                    .written = PackCodesForm::written,
                                    .loops = PackCodesForm::loops,
                                    .write = PackCodesForm::write,
                                    .add_units = PackCodesForm::add_units};

// Threads divide columns: each of them makes numbers of panels of its own.
const ProductForm kCompressedProduct = {
    .form = &kCompressed, .by_columns = [](const Plan& plan, const ProductData& data) {
      return shares_columns(plan, data, std::numeric_limits<int64_t>::max());
    }};

Kernel compressed_pack_kernel(CompressedPackData data) {
  const Split split = split_of(data.product, /*by_columns=*/true);
  return {.form = &kCompressedPack,
          .data = std::make_shared<CompressedPackData>(std::move(data)),
          .split = split};
}

int64_t compressed_bytes(const Product& product, const CompressedWeight& weight) {
  const int64_t terms = product.size(product.terms), groups = terms / weight.group;
  const int64_t head =
      static_cast<int64_t>(composit::item_size(weight.scale_dtype)) * (weight.has_offsets ? 2 : 1);
  return kMostColumns * (groups * head + terms * weight.bits / 8);
}

}  // namespace flashlight::mosaic
