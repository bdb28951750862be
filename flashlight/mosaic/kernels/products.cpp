#include "flashlight/mosaic/kernels/products.h"

#include <spdlog/fmt/fmt.h>

#include "flashlight/mosaic/fold.h"
#include "flashlight/mosaic/kernels/compressed.h"
#include "flashlight/mosaic/kernels/loops.h"
#include "flashlight/mosaic/kernels/pack.h"

namespace flashlight::mosaic {
namespace {

// Among algorithms that take the same time, the first one is chosen.
constexpr const ProductForm* kProductForms[] = {&kDirectProduct, &kDepthwiseProduct,
                                                &kLargeTilesOfWinograd, &kSmallTilesOfWinograd,
                                                &kHalvesOfStrassen};

// Two products whose panels are the same have the same key.
std::string packing_key(const Product& product) {
  std::string key = std::to_string(product.right);
  const auto add = [&](AxisId axis) {
    key += "," + std::to_string(product.extent(axis)) + ":" +
           std::to_string(product.right_at.coefficients[axis]);
  };
  for (const AxisId axis : product.batch) add(axis);
  key += "/";
  if (product.columns) add(*product.columns);
  key += "/";
  for (const AxisId axis : product.terms) add(axis);
  return key + "/" + std::to_string(product.right_at.constant);
}

}  // namespace

void Products::add(StepId step, Product product) {
  const bool known = is_frozen_(product.right);
  if (auto weight = known && !product.is_of_bytes() ? compressed(product) : std::nullopt)
    return add_compressed(step, std::move(product), std::move(*weight));
  const bool folds =
      known && product.batch.empty() && (product.has_one_dtype() || product.is_of_bytes());
  const std::optional<ValueId> factor = folds ? fold_factor(product) : std::nullopt;
  if (is_rounded(product, known)) product.operand = product.weight = composit::DType::bfloat16;
  const ProductForm& form = form_of(product, known);
  const bool plain = form.pixels > 0 && has_large_weights(product, form.pixels);
  const int packed_for = plain ? 0 : form.pixels;
  // Transformed weights are of the sums' type.
  if (form.pixels > 0) product.weight = product.accumulator;
  const std::string key = packing_key(product) + (factor ? "*" + std::to_string(*factor) : "") +
                          "w" + std::to_string(packed_for) +
                          std::string(composit::name(product.weight));
  auto packed = packed_.find(key);
  if (packed == packed_.end() || !known) {
    const ValueId value = add_panels(product, packed_for);
    packed = packed_.insert_or_assign(key, value).first;
    (known ? plan_.prepare : plan_.run).push_back(pack_kernel(product, value, packed_for, factor));
    plan_.frozen[value] = known;
  }
  const auto data = std::make_shared<ProductData>();
  data->product = std::move(product);
  data->packed = packed->second;
  data->pixels = form.pixels;
  data->plain_weights = plain;
  data->by_columns = by_columns(form, *data);
  const Split split = split_of(data->product, data->by_columns);
  plan_.run.push_back({.form = form.form, .steps = {step}, .data = data, .split = split});
}

bool Products::by_columns(const ProductForm& form, const ProductData& data) const {
  const ValueId result = value_of(data.product.statement.stores[0]);
  const std::optional<bool> chosen = choice_of(plan_, result).split_columns;
  if (chosen && !data.product.batch.empty())
    refuse_choice(plan_, result,
                  "cannot be split by rows or columns: threads divide the products of its batch");
  if (chosen == true && form.by_columns == nullptr)
    refuse_choice(plan_, result,
                  "cannot be split by columns: these are channels side by side in its tiles");
  return chosen.value_or(form.by_columns != nullptr && form.by_columns(plan_, data));
}

// ---- algorithms ---------------------------------------------------------------------------------

const ProductForm& Products::form_of(const Product& product, bool known) const {
  check_choice(product, known);
  const Choice& choice = choice_of(plan_, value_of(product.statement.stores[0]));
  const ProductForm* best = nullptr;
  for (const ProductForm* form : kProductForms) {
    if (!form->applies(product, known) || !is_allowed(*form, choice)) continue;
    const bool is_chosen = (form->form == &kWinograd && choice.winograd) ||
                           (form->form == &kStrassen && choice.strassen);
    if (is_chosen) return *form;
    if (best == nullptr || time_of(*form, product) < time_of(*best, product)) best = form;
  }
  return *best;
}

// True if it is to be computed of bfloat16. Another algorithm may take less time in float32, whose
// errors are smaller as well.
bool Products::is_rounded(const Product& product, bool known) const {
  const ValueId result = value_of(product.statement.stores[0]);
  const std::optional<composit::DType> choice = choice_of(plan_, result).product;
  const bool can_be = product.has_one_dtype() && !product.depthwise &&
                      product.accumulator == composit::DType::float32;
  if (choice == composit::DType::bfloat16 && !can_be)
    refuse_choice(plan_, result, "cannot be a product of bfloat16: it is none of float32 by tiles");
  if (!can_be || choice.value_or(options_.products) != composit::DType::bfloat16) return false;
  // Rows of windows are copied, or rounded, one by one, each of their pixels again for every
  // window.
  const int64_t least_run = options_.has_matrix_unit ? 16 : 64;
  const bool pays = product.terms.size() < 2 || product.extent(product.terms.back()) >= least_run;
  return choice || (pays && time_of(form_of(product, known), product) > bfloat16_time());
}

// As ProductForm::time, for this processor.
double Products::time_of(const ProductForm& form, const Product& product) const {
  const bool by_pairs = form.form == &kProduct && product.operand == composit::DType::bfloat16;
  return by_pairs ? bfloat16_time() : form.time(product);
}

// The time of register tiles of bfloat16, by pairs of them or by matrices.
double Products::bfloat16_time() const { return options_.has_matrix_unit ? 0.12 : 0.57; }

// A choice decides about its algorithm; the options about all others.
bool Products::is_allowed(const ProductForm& form, const Choice& choice) const {
  if (form.form == &kWinograd)
    return choice.winograd ? *choice.winograd == form.pixels : options_.winograd;
  if (form.form == &kStrassen) return choice.strassen.value_or(options_.strassen);
  return true;
}

void Products::check_choice(const Product& product, bool known) const {
  const ValueId result = value_of(product.statement.stores[0]);
  const Choice& choice = choice_of(plan_, result);
  const int tile = choice.winograd.value_or(0);
  if (tile != 0 && tile != 2 && tile != 4)
    refuse_choice(
        plan_, result,
        fmt::format("by Winograd's algorithm: expected tiles of 2 or 4, received {}", tile));
  if (tile != 0 && !kSmallTilesOfWinograd.applies(product, known))
    refuse_choice(plan_, result,
                  "cannot be computed by Winograd's algorithm: it is no convolution by known "
                  "windows of 3x3 with stride 1");
  if (choice.strassen.value_or(false) && !kHalvesOfStrassen.applies(product, known))
    refuse_choice(plan_, result,
                  "cannot be computed by Strassen's algorithm: it is no product of matrices with "
                  "an even number of terms side by side");
}

// ---- integers with scales -----------------------------------------------------------------------

std::optional<CompressedWeight> Products::compressed(const Product& product) {
  const Choice& choice = choice_of(plan_, value_of(product.statement.stores[0]));
  if (choice.strassen.value_or(false) || choice.winograd.value_or(0) != 0) return std::nullopt;
  const loops::Routine& routine = plan_.routine;
  if (writers_.empty())
    for (const StepId step : routine.steps.ids())
      for (const ValueId value : loops::writes(routine.steps[step])) {
        const auto [found, is_new] = writers_.try_emplace(value, step);
        if (!is_new) found->second.reset();
      }
  const auto writer = writers_.find(product.right);
  if (writer == writers_.end() || !writer->second) return std::nullopt;
  const auto* nest = std::get_if<loops::Nest>(&routine.steps[*writer->second]);
  return nest == nullptr ? std::nullopt : compressed_weight(routine, *nest, product);
}

void Products::add_compressed(StepId step, Product product, CompressedWeight weight) {
  check_choice(product, /*known=*/true);
  if (weight.group % 2 == 0 && is_rounded(product, /*known=*/true))
    product.operand = composit::DType::bfloat16;
  product.weight = composit::DType::int8;
  const std::string key = packing_key(product) + "codes";
  auto packed = packed_.find(key);
  if (packed == packed_.end()) {
    const std::string name = plan_.routine.values[product.right].name;
    CompressedPackData pack;
    pack.product = product;
    pack.weight = weight;
    pack.codes = weight.stored_codes
                     ? *weight.stored_codes
                     : add_prepared(weight.codes, 0, composit::DType::int8, name + ".codes");
    pack.scales = add_prepared(weight.scales, 1, weight.scale_dtype, name + ".scales");
    if (weight.has_offsets)
      pack.offsets = add_prepared(weight.offsets, 1, weight.scale_dtype, name + ".offsets");
    const int64_t panels = (product.column_count() + kMostColumns - 1) / kMostColumns;
    plan_.frozen.push_back(true);
    pack.packed = plan_.routine.values.add(
        {composit::tensor_type(composit::DType::uint8, {panels, compressed_bytes(product, weight)}),
         loops::Role::temporary,
         name + ".panels",
         {}});
    packed = packed_.emplace(key, pack.packed).first;
    plan_.prepare.push_back(compressed_pack_kernel(std::move(pack)));
  }
  const auto data = std::make_shared<CompressedData>();
  data->product = std::move(product);
  data->packed = packed->second;
  data->weight = std::move(weight);
  data->by_columns = by_columns(kCompressedProduct, *data);
  const Split split = split_of(data->product, data->by_columns);
  plan_.run.push_back({.form = &kCompressed, .steps = {step}, .data = data, .split = split});
}

// The value that a statement stores to as number `value`, prepared.
ValueId Products::add_prepared(loops::Statement statement, size_t value, composit::DType dtype,
                               const std::string& name) {
  loops::Routine& routine = plan_.routine;
  const int64_t count = loops::iterations(statement);
  const ValueId added =
      routine.values.add({composit::tensor_type(dtype, {count}), loops::Role::temporary, name, {}});
  for (composit::Store& store : statement.stores)
    if (store.result == value) store.result = added;
  plan_.frozen.push_back(true);
  const StepId step = routine.steps.add({loops::Nest{std::move(statement), {name, "", ""}}});
  plan_.prepare.push_back(loops_kernel(routine, {step}, /*alone=*/false));
  return added;
}

// ---- the packed side ----------------------------------------------------------------------------

// Folds what each column is multiplied with into its packed weights, and what is added to it into
// one number. Returns the value that holds the factors. Weights that are bytes stay: then sums are
// multiplied, and there is no such value.
std::optional<ValueId> Products::fold_factor(Product& product) {
  const auto folded = fold(product, [&](ValueId value) {
    return is_frozen_(value) && plan_.routine.values[value].type.rank() == 1;
  });
  if (!folded) return std::nullopt;
  const ValueId factor = add_column_value(product, folded->factor, "factor"),
                offset = add_column_value(product, folded->offset, "offset");
  composit::Store& store = product.statement.stores[0];
  const composit::DType dtype = folded->scaled.dtype();
  const auto of_column = [&](ValueId value) {
    return composit::Expr::load(value, dtype, {composit::Expr::axis(*product.columns)});
  };
  composit::Expr sum = composit::cast(composit::Expr::accumulator(0, product.accumulator), dtype);
  if (product.is_of_bytes()) sum = sum * of_column(factor);
  sum = sum + of_column(offset);
  store.value = composit::replace(store.value, [&](const composit::Expr& part) {
    return part.same(folded->scaled) ? sum : composit::Expr();
  });
  return product.is_of_bytes() ? std::nullopt : std::optional(factor);
}

// A prepared value with a number per column.
ValueId Products::add_column_value(const Product& product, const composit::Expr& x,
                                   const std::string& name) {
  loops::Routine& routine = plan_.routine;
  loops::Nest nest = {{}, {name, "", ""}};
  nest.statement.axes = {{"", product.statement.axes[*product.columns].extent}};
  const composit::Expr value = composit::replace(x, [&](const composit::Expr& part) {
    return part.kind() == composit::ExprKind::axis ? composit::Expr::axis(0) : composit::Expr();
  });
  const ValueId added =
      routine.values.add({composit::tensor_type(x.dtype(), {product.column_count()}),
                          loops::Role::temporary,
                          name,
                          {}});
  nest.statement.stores.push_back({added, {composit::Expr::axis(0)}, value});
  plan_.frozen.push_back(true);
  const StepId step = routine.steps.add(std::move(nest));
  plan_.prepare.push_back(loops_kernel(routine, {step}, /*alone=*/false));
  return added;
}

ValueId Products::add_panels(const Product& product, int pixels) {
  loops::Routine& routine = plan_.routine;
  const int64_t columns = (product.column_count() + kMostColumns - 1) / kMostColumns;
  const composit::Dims sizes = {product.size(product.batch), columns, packed_terms(product, pixels),
                                kMostColumns};
  plan_.frozen.push_back(false);
  return routine.values.add({composit::tensor_type(panel_dtype(product), sizes),
                             loops::Role::temporary,
                             routine.values[product.right].name + ".panels",
                             {}});
}

bool Products::has_large_weights(const Product& product, int pixels) const {
  const int64_t elements = packed_terms(product, pixels) * product.column_count();
  return elements * static_cast<int64_t>(composit::item_size(product.weight)) >
         options_.winograd_bytes;
}

}  // namespace flashlight::mosaic
