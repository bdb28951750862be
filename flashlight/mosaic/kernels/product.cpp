#include "flashlight/mosaic/kernels/product.h"

#include <spdlog/fmt/fmt.h>

#include "flashlight/loops/statement.h"
#include "flashlight/mosaic/in_place.h"
#include "flashlight/mosaic/kernels/product_writer.h"
#include "flashlight/text/literal.h"

namespace flashlight::mosaic {
namespace {

// Rows below which threads divide columns: weights that each of them reads whole cost more then
// than activations that they exchange.
constexpr int64_t kFewRows = 64, kManyColumnsToShare = 128;

const Product& product_of(const Kernel& kernel) { return data_of<ProductData>(kernel).product; }

// "56 x 56", from the outside in; "1" for none.
std::string extents(const Product& product, const AxisIds& axes) {
  std::vector<int64_t> list;
  for (const AxisId axis : axes) list.push_back(product.extent(axis));
  return list.empty() ? "1" : fmt::format("{}", fmt::join(list, " x "));
}

// True if the panels that are packed in the call, each by the thread that will use it, take more
// memory than the side that is read by rows. Exchanging elements between threads costs as much as
// computing with them.
bool are_panels_larger(const Plan& plan, const ProductData& data) {
  return !plan.frozen[data.packed] && plan.routine.values[data.packed].type.numel() >
                                          plan.routine.values[data.product.left].type.numel();
}

struct AnyProductForm {
  static ValueIds touched(const Plan&, const Kernel& kernel) {
    const composit::Store& store = product_of(kernel).statement.stores[0];
    ValueIds values = {product_of(kernel).left, value_of(store)};
    for (const composit::Expr& part : composit::parts_of({store.value}))
      if (part.kind() == composit::ExprKind::load) values.push_back(value_of(part));
    values.push_back(data_of<ProductData>(kernel).packed);
    return values;
  }

  static bool may_overwrite(const Plan&, const Kernel& kernel, ValueId result, ValueId operand) {
    const loops::Statement& statement = product_of(kernel).statement;
    return value_of(statement.stores[0]) == result &&
           reads_own_place(statement, statement.stores[0], operand);
  }

  static int64_t flops(const Plan&, const Kernel& kernel) {
    const Product& product = product_of(kernel);
    return product.operations() + flops_of(product.statement) -
           2 * loops::iterations(product.statement);
  }
  static int64_t operations(const Kernel& kernel) { return product_of(kernel).operations(); }

  static void add_units(const Plan&, const Kernel& kernel, Units& units) {
    add_tiles(product_of(kernel), units);
  }
};

struct DirectForm {
  static KernelText write(const Plan& plan, const Kernel& kernel) {
    const Product& product = product_of(kernel);
    const bool fetches = product.batch.empty();
    ProductWriter writer(plan, kernel);
    const text::Code body =
        writer.contraction(product.is_of_bytes() ? "contract_bytes" : "contract", fetches);
    return writer.text(product.terms.size() > 1 ? "convolution" : "product", body, fetches);
  }
  static bool applies(const Product& product, bool) { return !product.depthwise; }
  static double time(const Product&) { return 1; }
  static bool by_columns(const Plan& plan, const ProductData& data) {
    return shares_columns(plan, data, kFewRows);
  }
};

}  // namespace

const KernelForm kProduct =
    product_form("product", tiles_in_strips, DirectForm::write, AnyProductForm::add_units);
const ProductForm kDirectProduct = {.form = &kProduct,
                                    .applies = DirectForm::applies,
                                    .time = DirectForm::time,
                                    .by_columns = DirectForm::by_columns};

KernelForm product_form(const char* name,
                        std::string (*loops)(const Plan&, const Kernel&, const KernelForm::Names&),
                        KernelText (*write)(const Plan&, const Kernel&),
                        void (*add_units)(const Plan&, const Kernel&, Units&)) {
  return {.name = name,
          .touched = AnyProductForm::touched,
          .written = written_by_steps,
          .loops = loops,
          .write = write,
          .may_overwrite = AnyProductForm::may_overwrite,
          .flops = AnyProductForm::flops,
          .product_operations = AnyProductForm::operations,
          .add_units = add_units,
          .follows_steps = true};
}

bool shares_columns(const Plan& plan, const ProductData& data, int64_t few_rows) {
  const Product& product = data.product;
  return product.column_count() >= kManyColumnsToShare &&
         (product.size(product.rows) < few_rows || are_panels_larger(plan, data));
}

Split split_of(const Product& product, bool by_columns) {
  if (!product.batch.empty()) return {Split::Of::products, product.size(product.batch)};
  return by_columns ? Split{Split::Of::columns, product.column_count()}
                    : Split{Split::Of::rows, product.size(product.rows)};
}

std::string tiles_in_strips(const Plan&, const Kernel& kernel, const KernelForm::Names&) {
  const Product& product = product_of(kernel);
  const int64_t batch = product.size(product.batch);
  return (batch > 1 ? fmt::format("{} times (threads) ", batch) : "") + product_extents(product) +
         (batch > 1 ? ": tiles of rows x a panel of columns"
                    : ": strips of rows x panels of columns, in tiles");
}

std::string panel_extents(const Product& product) {
  return fmt::format("{} columns x {} terms", product.column_count(),
                     extents(product, product.terms));
}

std::string product_extents(const Product& product) {
  const std::string dtypes =
      product.has_one_dtype()
          ? ""
          : fmt::format(" of {} x {}, summed in {}", composit::name(product.operand),
                        composit::name(product.weight), composit::name(product.accumulator));
  return extents(product, product.rows) + " rows x " + panel_extents(product) + dtypes;
}

std::string sum_type(const Product& product) { return text::type_name(product.accumulator); }

void add_tiles(const Product& product, Units& units) {
  const std::string type = sum_type(product);
  if (product.is_of_bytes()) {
    units["tiles_bytes"].insert("FLASHLIGHT_BYTES(" + type + ");\n");
    return;
  }
  units["tiles_" + type].insert("FLASHLIGHT_TILES(" + type + ");\n");
  if (product.has_one_dtype()) return;
  auto& unit = units[fmt::format("tiles_{}", composit::name(product.weight))];
  const std::string operand = text::type_name(product.weight);
  unit.insert(fmt::format("FLASHLIGHT_PANELS_OF({}, {});\n", type, operand));
  unit.insert(fmt::format("FLASHLIGHT_TILES_OF({}, {}, {});\n", type,
                          text::type_name(product.element), operand));
}

void add_form(const Product& product, const char* statements, Units& units) {
  const std::string type = sum_type(product);
  units["tiles_" + type].insert("FLASHLIGHT_TILES(" + type + ");\n");
  units["forms_" + type].insert(fmt::format(fmt::runtime(statements), type,
                                            text::type_name(product.element),
                                            text::type_name(product.operand)));
}

const ProductData* product_data(const Kernel& kernel) {
  return dynamic_cast<const ProductData*>(kernel.data.get());
}

}  // namespace flashlight::mosaic
