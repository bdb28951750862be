#include "flashlight/mosaic/kernels/product_writer.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <unordered_map>

#include "composit/op/affine.h"
#include "flashlight/mosaic/byte_products.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/open_numbers.h"

namespace flashlight::mosaic {

using composit::Expr;
using composit::ExprKind;
using text::Code;
using text::open_number;

const std::vector<std::string> kProductWords = {
    "team", "outer", "inner", "rows",    "column", "columns", "sums",    "r",     "c",      "b",
    "i",    "j",     "of",    "batches", "kTerms", "next",    "numbers", "bytes", "bytes_2"};

AxisIds without_last(AxisIds axes) {
  if (!axes.empty()) axes.pop_back();
  return axes;
}

// "{3, 64}".
std::string pair(int64_t first, int64_t second) {
  return "{" + open_number(first) + ", " + open_number(second) + "}";
}

std::string packing_of(const Product& product) {
  std::string terms;
  const AxisIds& axes = product.terms;
  for (size_t i = 0; i < 4; ++i) {
    const size_t missing = 4 - axes.size();
    terms += i == 0 ? "" : ", ";
    terms += i < missing ? "{1, 0}"
                         : pair(product.extent(axes[i - missing]),
                                product.right_at.coefficients[axes[i - missing]]);
  }
  const int64_t stride = product.columns ? product.right_at.coefficients[*product.columns] : 0;
  return "{{" + terms + "}, " + pair(product.column_count(), stride) + "}";
}

std::string panel_size_of(const Product& product) {
  if (product.is_of_bytes()) return "fl::packed_words(kPacking)";
  return fmt::format("fl::packed_size<{}>(kPacking)", text::type_name(product.weight));
}

Code in_batches(const Product& product, const Code& body) {
  Code code = text::assignment("const fl::Part batches",
                               "team.part(" + open_number(product.size(product.batch)) + ")");
  code += text::braced(text::For{"int64_t", "b", "batches.begin", "batches.end"}, body);
  return code;
}

ProductWriter::ProductWriter(const Plan& plan, const Kernel& kernel)
    : plan_(plan),
      kernel_(kernel),
      data_(data_of<ProductData>(kernel)),
      product_(data_.product),
      flat_(plan),
      type_(sum_type(product_)) {
  flat_.reserve(kProductWords);
  const ValueId result = value_of(product_.statement.stores[0]);
  flat_.add(product_.left, "x");
  flat_.add(data_.packed, "panels");
  const auto operand = plan_.in_place.find(result);
  for (const Expr& part : composit::parts_of({product_.statement.stores[0].value}))
    if (part.kind() == ExprKind::load &&
        (operand == plan_.in_place.end() || part.number() != operand->second))
      flat_.add(value_of(part));
  flat_.add(result, "y");
  if (operand != plan_.in_place.end()) flat_.set_same_place(operand->second, result);
}

KernelText ProductWriter::text(const std::string& form, const Code& body, bool fetches) {
  const ValueId result = value_of(product_.statement.stores[0]);
  KernelText text;
  text.name = fmt::format("{}_{}_{}x{}x{}", form, operation_name(plan_, kernel_.steps[0]),
                          product_.size(product_.rows), product_.column_count(),
                          product_.size(product_.terms));
  text.values = flat_.values();
  text.by_pointer = true;
  text.first = "team";
  std::vector<std::string> parameters = flat_.parameters(result);
  if (product_.batch.empty()) {
    if (fetches) parameters.push_back("const fl::Upcoming& next");
    text.takes_next = fetches;
    text.panels = {data_.packed, data_.by_columns, product_.column_count(),
                   packed_terms(product_, data_.plain_weights ? 0 : data_.pixels)};
  }
  text.function = text::Function{.parameters = std::move(parameters), .body = body};
  return text;
}

// Offsets of all terms but the run inside.
Code ProductWriter::offsets() const {
  std::vector<int64_t> offsets = {0};
  for (const AxisId axis : without_last(product_.terms)) {
    std::vector<int64_t> next;
    for (const int64_t offset : offsets)
      for (int64_t i = 0; i < product_.extent(axis); ++i)
        next.push_back(offset + i * product_.left_at.coefficients[axis]);
    offsets = std::move(next);
  }
  std::string list;
  for (const int64_t offset : offsets) list += (list.empty() ? "" : ", ") + text::open_int(offset);
  return text::assignment(text::constant_head(fmt::format("int32_t kTerms[{}]", offsets.size())),
                          "{" + list + "}");
}

std::string ProductWriter::shape(bool fetches) const {
  int64_t run = 1, step = 0, inner = 1, stride = 0;
  if (!product_.terms.empty()) {
    run = product_.extent(product_.terms.back());
    step = product_.left_at.coefficients[product_.terms.back()];
  }
  if (!product_.rows.empty()) {
    inner = product_.extent(product_.rows.back());
    stride = product_.left_at.coefficients[product_.rows.back()];
  }
  const int64_t rows = product_.size(product_.rows);
  return fmt::format("{{{}, {}, {}, {}, {{kTerms, {}, {}, {}}}, {}{}}}", open_number(rows / inner),
                     open_number(inner), open_number(stride), open_number(product_.column_count()),
                     open_number(product_.size(product_.terms) / run), open_number(run),
                     open_number(step), split(), fetches ? ", next" : "");
}

std::string ProductWriter::panels() const {
  return "panels" + (product_.batch.empty() ? "" : " + b * " + panel_size_of(product_));
}

Code ProductWriter::over_batches(const Code& call) {
  Code code = text::assignment(text::constant_head("fl::Packing kPacking"), packing_of(product_));
  Code body = flat_.decoded(product_, product_.batch, "b", "b");
  body += call;
  code += in_batches(product_, body);
  return code;
}

text::Lambda ProductWriter::finish(const std::string& outer, const AxisIds& outer_axes) {
  const std::string inner = product_.rows.empty() ? "int64_t" : "int64_t inner";
  return {.head = "[&](" + outer + ", " + inner + ", int rows, int64_t column, " +
                  (has_whole_panels() ? "int" : "int columns") + ", const auto* sums)",
          .body = finish_body(outer_axes)};
}

Code ProductWriter::contraction(const std::string& function, bool fetches) {
  std::string types = type_;
  const bool names_element = !product_.has_one_dtype() && !product_.is_of_bytes();
  if (names_element) types += ", " + text::type_name(product_.element);
  if (product_.operand != product_.element) types += ", " + text::type_name(product_.operand);
  return contraction("fl::" + function + "<" + types + ">", panels(), fetches);
}

Code ProductWriter::contraction(const std::string& callee, const std::string& panels,
                                bool fetches) {
  const AxisIds outer = without_last(product_.rows);
  flat_.decoded(product_, product_.batch, "b", "b");  // names
  Code code = text::assignment("const fl::Contraction<" + type_ + "> of", shape(fetches));
  Code base = flat_.decoded(product_, outer, "outer", "o");
  AxisIds around = product_.batch;
  around.insert(around.end(), outer.begin(), outer.end());
  base += text::returned(flat_.address(product_.left, product_.left_at, around));
  const std::string unused = outer.empty() ? "int64_t" : "int64_t outer";
  text::Call call = {.function = callee,
                     .arguments = {product_.batch.empty() ? "team" : "fl::Team::solo()", "of"},
                     .lambdas_apart = true};
  if (product_.is_of_bytes()) call.arguments.emplace_back(text::open_int(product_.zero));
  call.arguments.emplace_back(text::Lambda{.head = "[&](" + unused + ")", .body = base});
  call.arguments.emplace_back(panels);
  call.arguments.emplace_back(finish(unused, outer));
  code += text::call(call);
  Code body = offsets();
  body += product_.batch.empty() ? code : over_batches(code);
  return body;
}

// True if elements at this place, column by column, lie side by side.
bool ProductWriter::follows_columns(const Expr& place) const {
  if (!product_.columns) return false;
  composit::IndexAnalysis analysis(product_.statement.axes);
  const auto at = analysis.affine(place);
  return at && at->coefficients[*product_.columns] == 1;
}
// True if the result's columns are bytes that lie side by side.
bool ProductWriter::stores_bytes() const {
  const composit::Store& store = product_.statement.stores[0];
  const composit::DType dtype = plan_.routine.values[value_of(store)].type.dtype;
  return is_byte(dtype) && follows_columns(store.at[0]);
}

// The address of the first element that a panel's row has of `value`.
std::string ProductWriter::first_of_row(text::Leaves leaves, ValueId value, const Expr& place) {
  leaves.axes[*product_.columns] = "column";
  text::ExpressionWriter index(leaves, product_.statement.axes, flat_.taken());
  return flat_.name(value) + " + " + index.text(place);
}

// Bytes of a row that are read and cast, first as int32, for the same reason as in bytes_of_row:
// `value` with those in their place, which `leaves` has as accumulators.
Expr ProductWriter::with_loaded_bytes(const Expr& value, const std::string& columns,
                                      text::Leaves& leaves, Code& code) {
  static const std::vector<std::string> kNames = {"bytes", "bytes_2"};  // of kProductWords
  std::unordered_map<composit::Hash, Expr> loaded;
  return composit::replace(value, [&](const Expr& part) {
    if (!part.is(composit::Function::cast) || part[0].kind() != ExprKind::load ||
        !is_byte(part[0].dtype()) || is_byte(part.dtype()) || !follows_columns(part[0][0]))
      return Expr();
    Expr& numbers = loaded[part[0].hash()];
    if (!numbers.defined()) {  // for the first time
      const size_t place = leaves.accumulators.size();
      if (place > kNames.size()) return Expr();
      const std::string& name = kNames[place - 1];
      numbers = Expr::accumulator(place, composit::DType::int32);
      leaves.accumulators.push_back({name, {"c"}});
      code += text::statement("int32_t " + name + "[fl::kPanel<" + type_ + ">];");
      code += text::call("fl::load_bytes",
                         {first_of_row(leaves, value_of(part[0]), part[0][0]), columns, name});
    }
    return composit::cast(numbers, part.dtype());
  });
}

namespace {

// What a cast to int32 cuts to a whole number; absent for what is no such cast of a float32.
Expr cut_float(const Expr& x) {
  const bool is_cut = x.is(composit::Function::cast) && x.dtype() == composit::DType::int32 &&
                      x[0].dtype() == composit::DType::float32;
  return is_cut ? x[0] : Expr();
}

// x between two numbers; infinite ones where x is not clamped.
struct Clamped {
  Expr x;
  float low = -INFINITY, high = INFINITY;
};
// `low` and `high` are those of `y < low ? low : y` or `y > high ? high : y`.
Clamped clamped_by(const Expr& x) {
  Clamped result = {x};
  const auto take = [&](composit::Function compares, float& bound) {
    const Expr& y = result.x;
    if (!y.is(composit::Function::select) || !y[0].is(compares) || !y[0][0].same(y[2]) ||
        !y[0][1].same(y[1]) || y[1].kind() != ExprKind::literal)
      return;
    const auto* number = std::get_if<double>(&y[1].value());
    if (number == nullptr) return;
    bound = static_cast<float>(*number);
    result.x = Expr(y[2]);
  };
  take(composit::Function::gt, result.high);
  take(composit::Function::lt, result.low);
  return result;
}

}  // namespace

// Bytes of a row, first as int32: a loop in which types differ in length takes shorter vectors.
Code ProductWriter::bytes_of_row(const text::Leaves& leaves, const Expr& stored,
                                 const std::string& columns) {
  const composit::Store& store = product_.statement.stores[0];
  Expr value = with_low_byte(stored);
  // Floats are cut, and flip their highest bit, where they are stored: g++ would join what clamps
  // them with what a cast does to those that are too large.
  int64_t flips = 0;
  if (value.is(composit::Function::bitwise_xor) && value[1].kind() == ExprKind::literal &&
      cut_float(value[0]).defined()) {
    flips = std::get<int64_t>(value[1].value());
    value = value[0];
  }
  const Expr cut = cut_float(value);
  const Clamped clamped = cut.defined() ? clamped_by(cut) : Clamped();
  if (cut.defined()) value = clamped.x;
  text::ExpressionWriter text(leaves, product_.statement.axes, flat_.taken());
  text.plan({value});
  Code one = text::assignment("const int64_t j", "column + c");
  one += text.locals(value);
  one += text::assignment("numbers[c]", text.text(value));
  Code code = text::statement((cut.defined() ? "float" : "int32_t") +
                              (" numbers[fl::kPanel<" + type_ + ">];"));
  code += text::statement("FLASHLIGHT_INDEPENDENT_ROUNDS");
  code += text::braced(text::For{"int", "c", "0", columns}, one);
  std::vector<std::string> arguments = {"numbers"};
  if (clamped.x.defined())
    for (const float bound : {clamped.low, clamped.high})
      arguments.push_back(text::literal(double{bound}, composit::DType::float32));
  arguments.push_back(columns);
  arguments.push_back(first_of_row(leaves, value_of(store), store.at[0]));
  code += text::call(cut.defined() ? fmt::format("fl::store_bytes<{}>", flips) : "fl::store_bytes",
                     arguments);
  return code;
}

// `value` of each column, computed in a loop of floats and rounded behind it, for the same reason.
Code ProductWriter::rounded_row(const text::Leaves& leaves, const Expr& value,
                                const std::string& columns) {
  const composit::Store& store = product_.statement.stores[0];
  text::ExpressionWriter text(leaves, product_.statement.axes, flat_.taken());
  text.plan({value});
  Code one;
  if (loops::contains(loops::axes_in(value), *product_.columns))
    one += text::assignment("const int64_t j", "column + c");
  one += text.locals(value);
  one += text::assignment("numbers[c]", text.text(value));
  Code code = text::statement("float numbers[fl::kPanel<" + type_ + ">];");
  code += text::statement("FLASHLIGHT_INDEPENDENT_ROUNDS");
  code += text::braced(text::For{"int", "c", "0", columns}, one);
  code += text::call("fl::store_rounded",
                     {"numbers", columns, first_of_row(leaves, value_of(store), store.at[0])});
  return code;
}

// The body that stores the sums of a tile.
Code ProductWriter::finish_body(const AxisIds& outer) {
  Code code = flat_.decoded(product_, outer, "outer", "o");
  if (!product_.rows.empty()) flat_.axes[product_.rows.back()] = "i";
  if (product_.columns) flat_.axes[*product_.columns] = "j";
  text::Leaves leaves = flat_.leaves(product_.statement);
  leaves.accumulators = {{"sums", {"r", "c"}}};
  const composit::Store& store = product_.statement.stores[0];
  Expr value = composit::cast(store.value, plan_.routine.values[value_of(store)].type.dtype);
  const std::string columns = has_whole_panels() ? "fl::kPanel<" + type_ + ">" : "columns";
  Code row;
  if (!product_.rows.empty()) row += text::assignment("const int64_t i", "inner + r");
  value = with_loaded_bytes(value, columns, leaves, row);
  if (stores_bytes()) {
    row += bytes_of_row(leaves, value, columns);
    code += text::braced(text::For{"int", "r", "0", "rows"}, row);
    return code;
  }
  if (value.dtype() == composit::DType::bfloat16 && value.is(composit::Function::cast) &&
      value[0].dtype() == composit::DType::float32 && follows_columns(store.at[0])) {
    row += rounded_row(leaves, value[0], columns);
    code += text::braced(text::For{"int", "r", "0", "rows"}, row);
    return code;
  }
  text::ExpressionWriter text(leaves, product_.statement.axes, flat_.taken());
  text.plan({store.at[0], value});
  Code one = text::assignment("const int64_t j", "column + c");
  one += text.locals(store.at[0]);
  one += text.locals(value);
  one += text.assign({flat_.name(value_of(store)), {text.text(store.at[0])}}, value);
  // No other columns are read where one is written.
  row += text::statement("FLASHLIGHT_INDEPENDENT_ROUNDS");
  row += text::braced(text::For{"int", "c", "0", columns}, one);
  code += text::braced(text::For{"int", "r", "0", "rows"}, row);
  return code;
}

}  // namespace flashlight::mosaic
