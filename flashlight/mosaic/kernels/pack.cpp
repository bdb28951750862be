#include "flashlight/mosaic/kernels/pack.h"

#include <spdlog/fmt/fmt.h>

#include "flashlight/mosaic/kernels/product_writer.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/open_numbers.h"

namespace flashlight::mosaic {
namespace {

struct PackForm {
  static ValueIds touched(const Plan&, const Kernel& kernel) {
    const auto& data = data_of<PackData>(kernel);
    ValueIds values = {data.product.right};
    if (data.factor) values.push_back(*data.factor);
    values.push_back(data.packed);
    return values;
  }
  static ValueIds written(const Plan&, const Kernel& kernel) {
    return {data_of<PackData>(kernel).packed};
  }

  static std::string loops(const Plan&, const Kernel& kernel, const KernelForm::Names&) {
    return panel_extents(data_of<PackData>(kernel).product) + " in panels";
  }
  static std::string note(const Kernel& kernel, const KernelForm::Names& names) {
    const auto& factor = data_of<PackData>(kernel).factor;
    return factor ? "columns are multiplied by " + names[*factor] : "";
  }

  // Panels of columns, behind the batch of the products B; of a transformed convolution a panel has
  // points P outside of channels.
  static std::optional<TileSchema> packed_schema(const Plan&, const Kernel& kernel, ValueId value) {
    const auto& data = data_of<PackData>(kernel);
    if (data.packed != value) return std::nullopt;
    const bool batch = !data.product.batch.empty(), points = data.pixels > 0;
    const auto item = static_cast<int64_t>(composit::item_size(data.product.accumulator));
    return parse_tile_schema(fmt::format("{0}N{1}K -> {2}N/{3} {4}K | {3}n", batch ? "B" : "",
                                         points ? "P" : "", batch ? "B " : "",
                                         kMostColumns * 4 / item, points ? "P " : ""));
  }

  static KernelText write(const Plan& plan, const Kernel& kernel) {
    const auto& data = data_of<PackData>(kernel);
    const Product& product = data.product;
    const std::string type = text::type_name(panel_dtype(product));
    FlatWriter flat(plan);
    flat.reserve(kProductWords);
    flat.add(product.right, "x");
    if (data.factor) flat.add(*data.factor, "factors");
    flat.add(data.packed, "panels");
    text::Code body =
        text::assignment(text::constant_head("fl::Packing kPacking"), packing_of(product));
    text::Code indices = flat.decoded(product, product.batch, "b", "b");
    const std::string from = flat.address(product.right, product.right_at, product.batch),
                      pack = data.pixels > 0 ? fmt::format("fl::pack_winograd<{}>", data.pixels)
                             : product.is_of_bytes() ? "fl::pack_bytes<" + type + ">"
                                                     : "fl::pack_panels<" + type + ">";
    if (product.batch.empty()) {
      body +=
          text::call(pack, {"team", "kPacking", from, data.factor ? "panels, factors" : "panels"});
    } else {
      const std::string panels = "panels + b * " + panel_size_of(product);
      indices += text::call(pack, {"fl::Team::solo()", "kPacking", from, panels});
      body += in_batches(product, indices);
    }
    const int64_t batches = product.size(product.batch);
    KernelText text;
    text.name = fmt::format("pack_{}{}x{}", batches > 1 ? fmt::format("{}x", batches) : "",
                            product.column_count(), product.size(product.terms));
    text.values = flat.values();
    text.by_pointer = true;
    text.first = "team";
    text.function = text::Function{.parameters = flat.parameters(data.packed), .body = body};
    return text;
  }

  static void add_units(const Plan&, const Kernel& kernel, Units& units) {
    const auto& data = data_of<PackData>(kernel);
    if (data.pixels > 0)
      add_form(data.product, kWinogradStatements, units);
    else
      add_tiles(data.product, units);
  }
};

}  // namespace

const KernelForm kPack = {.name = "pack",
                          .touched = PackForm::touched,
                          .written = PackForm::written,
                          .loops = PackForm::loops,
                          .write = PackForm::write,
                          .note = PackForm::note,
                          .add_units = PackForm::add_units,
                          .packed_schema = PackForm::packed_schema};

Kernel pack_kernel(const Product& product, ValueId packed, int pixels,
                   std::optional<ValueId> factor) {
  const auto data = std::make_shared<PackData>();
  data->product = product;
  data->packed = packed;
  data->pixels = pixels;
  data->factor = factor;
  return {.form = &kPack, .data = data, .split = split_of(product, /*by_columns=*/true)};
}

}  // namespace flashlight::mosaic
