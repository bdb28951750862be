// Products as calls of fl::contract: where rows lie, and what is done with the sums of a tile.
#include <spdlog/fmt/fmt.h>

#include "flashlight/mosaic/flat_writer.h"
#include "flashlight/mosaic/kernel_writer.h"
#include "flashlight/text/literal.h"

namespace flashlight::mosaic {
namespace {

using composit::Expr;
using composit::ExprKind;
using text::Code;
using text::statement;

// Rows below which threads divide columns: weights that each of them reads whole cost more then
// than activations that they exchange.
constexpr int64_t kFewRows = 64, kFewHalvedRows = 112, kManyColumns = 128;

// So few pixels are few of Winograd's tiles: threads share outputs.
constexpr int64_t kFewPixels = 14 * 14;

AxisIds without_last(AxisIds axes) {
  if (!axes.empty()) axes.pop_back();
  return axes;
}

class ProductWriter {
 public:
  ProductWriter(const Plan& plan, const Kernel& kernel)
      : plan_(plan), kernel_(kernel), product_(*kernel.product), flat_(plan) {
    type_ = text::type_name(plan.routine.values[product_.right].type.dtype);
    flat_.reserve({"team", "outer", "inner", "rows", "column", "columns", "sums", "r", "c", "b",
                   "i", "j", "of", "batches", "kTerms", "next"});
  }

  KernelText product() {
    const ValueId result = value_of(product_.statement.stores[0]);
    flat_.add(product_.left, "x");
    flat_.add(kernel_.packed, "panels");
    const auto operand = plan_.in_place.find(result);
    for (const Expr& part : composit::parts_of({product_.statement.stores[0].value}))
      if (part.kind() == ExprKind::load &&
          (operand == plan_.in_place.end() || part.number() != operand->second))
        flat_.add(value_of(part));
    flat_.add(result, "y");
    if (operand != plan_.in_place.end()) flat_.set_same_place(operand->second, result);
    Code body;
    if (kernel_.winograd > 0) {
      body = convolution();
    } else {
      body = offsets();
      body += product_.batch.empty() ? contraction() : over_batches(contraction());
    }
    KernelText text = {name(), {}, flat_.values(), true, "team"};
    std::vector<std::string> parameters = flat_.parameters(result);
    if (product_.batch.empty()) {
      if (has_next()) parameters.push_back("const fl::Upcoming& next");
      text.takes_next = has_next();
      text.panels = {kernel_.packed, split(), product_.column_count(),
                     packed_terms(product_, kernel_.plain_weights ? 0 : kernel_.winograd)};
    }
    text.code += text::call("void " + std::string(kKernelName), parameters, " {", 0);
    append_body(text.code, body);
    return text;
  }

  KernelText pack() {
    flat_.add(product_.right, "x");
    if (kernel_.factor) flat_.add(*kernel_.factor, "factors");
    flat_.add(kernel_.packed, "panels");
    Code body = statement("static constexpr fl::Packing kPacking = " + packing() + ";");
    Code indices = flat_.decoded(product_, product_.batch, "b", "b");
    const std::string from = flat_.address(product_.right, product_.right_at, product_.batch),
                      pack = kernel_.winograd > 0
                                 ? fmt::format("fl::pack_winograd<{}>", kernel_.winograd)
                                 : "fl::pack_panels<" + type_ + ">";
    if (product_.batch.empty()) {
      body += text::call(
          pack, {"team", "kPacking", from, kernel_.factor ? "panels, factors" : "panels"}, ";", 2);
    } else {
      indices += text::call(pack, {"fl::Team::solo()", "kPacking", from, panels()}, ";", 4);
      body += in_batches(indices);
    }
    const int64_t batches = product_.size(product_.batch);
    KernelText text = {fmt::format("pack_{}{}x{}", batches > 1 ? fmt::format("{}x", batches) : "",
                                   product_.column_count(), product_.size(product_.terms)),
                       {},
                       flat_.values(),
                       true,
                       "team"};
    text.code +=
        text::call("void " + std::string(kKernelName), flat_.parameters(kernel_.packed), " {", 0);
    append_body(text.code, body);
    return text;
  }

 private:
  std::string name() const {
    const std::string form = product_.depthwise     ? "depthwise"
                             : kernel_.strassen     ? "strassen"
                             : kernel_.winograd > 0 ? fmt::format("winograd_{}", kernel_.winograd)
                             : product_.terms.size() > 1 ? "convolution"
                                                         : "product";
    return fmt::format("{}_{}_{}x{}x{}", form, operation_name(plan_, kernel_.steps[0]),
                       product_.size(product_.rows), product_.column_count(),
                       product_.size(product_.terms));
  }

  // Offsets of all terms but the run inside.
  Code offsets() const {
    std::vector<int64_t> offsets = {0};
    for (const AxisId axis : without_last(product_.terms)) {
      std::vector<int64_t> next;
      for (const int64_t offset : offsets)
        for (int64_t i = 0; i < product_.extent(axis); ++i)
          next.push_back(offset + i * product_.left_at.coefficients[axis]);
      offsets = std::move(next);
    }
    return statement(fmt::format("static constexpr int32_t kTerms[{}] = {{{}}};", offsets.size(),
                                 fmt::join(offsets, ", ")));
  }

  std::string shape() const {
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
    return fmt::format("{{{}, {}, {}, {}, {{kTerms, {}, {}, {}}}, {}{}}}", rows / inner, inner,
                       stride, product_.column_count(), product_.size(product_.terms) / run, run,
                       step, split(), has_next() ? ", next" : "");
  }

  // Whether it fetches what is read after it: weights of channels that do not mix are too few.
  bool has_next() const { return product_.batch.empty() && !product_.depthwise; }

  // What threads share.
  std::string split() const {
    const int64_t rows = product_.size(product_.rows);
    const bool by_columns = kernel_.winograd > 0
                                ? rows < kFewPixels
                                : product_.column_count() >= kManyColumns && !product_.depthwise &&
                                      (rows < least_rows() || are_panels_larger());
    return by_columns ? "fl::Split::columns" : "fl::Split::rows";
  }
  // What is added of panels is added by each thread that uses them.
  int64_t least_rows() const { return kernel_.strassen ? kFewHalvedRows : kFewRows; }
  // Whether panels that are packed in the call, each by the thread that will use it, are more than
  // what is read by rows: what threads exchange costs as much as computing with it.
  bool are_panels_larger() const {
    return !plan_.frozen[kernel_.packed] && plan_.routine.values[kernel_.packed].type.numel() >
                                                plan_.routine.values[product_.left].type.numel();
  }
  std::string packing() const {
    std::string terms;
    const AxisIds& axes = product_.terms;
    for (size_t i = 0; i < 4; ++i) {
      const size_t missing = 4 - axes.size();
      terms += i == 0 ? "" : ", ";
      terms += i < missing ? "{1, 0}"
                           : fmt::format("{{{}, {}}}", product_.extent(axes[i - missing]),
                                         product_.right_at.coefficients[axes[i - missing]]);
    }
    const int64_t stride = product_.columns ? product_.right_at.coefficients[*product_.columns] : 0;
    return fmt::format("{{{{{}}}, {{{}, {}}}}}", terms, product_.column_count(), stride);
  }

  std::string panels() const {
    return "panels" + (product_.batch.empty()
                           ? ""
                           : fmt::format(" + b * fl::packed_size<{}>(kPacking)", type_));
  }
  Code in_batches(const Code& body) const {
    Code code = statement(
        fmt::format("const fl::Part batches = team.part({});", product_.size(product_.batch)));
    code += text::braced("for (int64_t b = batches.begin; b < batches.end; ++b)", body);
    return code;
  }
  Code over_batches(const Code& call) {
    Code code = statement("static constexpr fl::Packing kPacking = " + packing() + ";");
    Code body = flat_.decoded(product_, product_.batch, "b", "b");
    body += call;
    code += in_batches(body);
    return code;
  }

  // By Winograd's algorithm. Zeros around the input are in memory.
  Code convolution() {
    const auto step = [&](AxisId axis) { return product_.left_at.coefficients[axis]; };
    const AxisIds& rows = product_.rows;  // images, lines, pixels
    const AxisId y = rows[rows.size() - 2], x = rows.back();
    const int64_t height = product_.extent(y), width = product_.extent(x);
    const std::string images =
        rows.size() == 3 ? fmt::format(", {}, {}", product_.extent(rows[0]), step(rows[0])) : "";
    Code code = statement(fmt::format(
        "const fl::Winograd<{}> of = {{{}, {}, {}, {}, 0, 0, {}, {}, {}, {}, {}, {}, next{}}};",
        type_, height, width, height + 2, width + 2, step(y) / step(x), step(x),
        product_.extent(product_.terms[2]), product_.column_count(), split(), kernel_.plain_weights,
        images));
    code += statement(fmt::format("fl::convolve_winograd<{}>(", kernel_.winograd));
    code.lines.push_back("    team, of, " + flat_.address(product_.left, product_.left_at, {}) +
                         ", panels,");
    append_lambda(code, finish_head("int64_t outer"), finish(without_last(rows)), ");");
    return code;
  }
  std::string finish_head(const std::string& outer) const {
    return "[&](" + outer + ", int64_t inner, int rows, int64_t column, " +
           (has_whole_panels() ? "int" : "int columns") + ", const auto* sums)";
  }

  Code contraction() {
    const AxisIds outer = without_last(product_.rows);
    flat_.decoded(product_, product_.batch, "b", "b");  // names
    Code code = statement("const fl::Contraction<" + type_ + "> of = " + shape() + ";");
    Code base = flat_.decoded(product_, outer, "outer", "o");
    AxisIds around = product_.batch;
    around.insert(around.end(), outer.begin(), outer.end());
    base += statement("return " + flat_.address(product_.left, product_.left_at, around) + ";");
    const std::string function = product_.depthwise ? "contract_depthwise"
                                 : kernel_.strassen ? "contract_strassen"
                                                    : "contract";
    code += statement("fl::" + function + "<" + type_ + ">(");
    const std::string unused = outer.empty() ? "int64_t" : "int64_t outer";
    code.lines.push_back(product_.batch.empty() ? "    team, of," : "    fl::Team::solo(), of,");
    append_lambda(code, "[&](" + unused + ")", base, ", " + panels() + ",");
    append_lambda(code, finish_head(unused), finish(outer), ");");
    return code;
  }

  bool has_whole_panels() const { return product_.column_count() % 32 == 0; }

  // What becomes of the sums of a tile.
  Code finish(const AxisIds& outer) {
    Code code = flat_.decoded(product_, outer, "outer", "o");
    if (!product_.rows.empty()) flat_.axes[product_.rows.back()] = "i";
    if (product_.columns) flat_.axes[*product_.columns] = "j";
    text::Leaves leaves = flat_.leaves(product_.statement);
    leaves.accumulators = {"sums[r][c]"};
    const composit::Store& store = product_.statement.stores[0];
    const Expr value =
        composit::cast(store.value, plan_.routine.values[value_of(store)].type.dtype);
    text::ExpressionWriter text(leaves, product_.statement.axes, flat_.taken());
    text.plan({store.at[0], value});
    Code one = statement("const int64_t j = column + c;");
    one += text.locals(store.at[0]);
    one += text.locals(value);
    one += text.assign(flat_.name(value_of(store)) + "[" + text.text(store.at[0]) + "]", value);
    Code row;
    if (!product_.rows.empty()) row += statement("const int64_t i = inner + r;");
    const std::string columns = has_whole_panels() ? "fl::kPanel<" + type_ + ">" : "columns";
    // No other columns are read where one is written.
    row.lines.push_back("FLASHLIGHT_INDEPENDENT_ROUNDS");
    row += text::braced("for (int c = 0; c < " + columns + "; ++c)", one);
    code += text::braced("for (int r = 0; r < rows; ++r)", row);
    return code;
  }

  const Plan& plan_;
  const Kernel& kernel_;
  const Product& product_;
  FlatWriter flat_;
  std::string type_;
};

}  // namespace

KernelText write_product(const Plan& plan, const Kernel& kernel) {
  return ProductWriter(plan, kernel).product();
}

KernelText write_pack(const Plan& plan, const Kernel& kernel) {
  return ProductWriter(plan, kernel).pack();
}

}  // namespace flashlight::mosaic
