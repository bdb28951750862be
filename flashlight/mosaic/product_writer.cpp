// Products as calls of fl::contract: where rows lie, and what is done with the sums of a tile.
#include <spdlog/fmt/fmt.h>

#include <map>
#include <set>

#include "composit/ir/scope.h"
#include "flashlight/cpp/expression.h"
#include "flashlight/cpp/literal.h"
#include "flashlight/mosaic/kernel_writer.h"

namespace flashlight::mosaic {
namespace {

using composit::Affine;
using composit::Expr;
using composit::ExprKind;
using cpp::Code;
using cpp::statement;

int64_t coefficient(const Affine& at, size_t axis) { return at.coefficients[axis]; }

class ProductWriter {
 public:
  ProductWriter(const Plan& plan, const Kernel& kernel)
      : plan_(plan), kernel_(kernel), product_(*kernel.product) {
    type_ = cpp::type_name(plan.routine.values[product_.right].type.dtype);
  }

  KernelText product() {
    KernelText text;
    text.name = name();
    text.first = "team";
    text.by_pointer = true;
    name_values(text.values);
    Code body = terms();
    Code call = contraction();
    if (!product_.batch.empty()) call = over_batches(std::move(call));
    body += call;
    text.code = comment();
    text.code += cpp::call("void " + std::string(kKernelName), parameters(), " {", 0);
    append(text.code, body);
    return text;
  }

  KernelText pack() {
    KernelText text;
    const std::string batches =
        product_.batch.empty() ? "" : fmt::format("{}x", product_.size(product_.batch));
    text.name = fmt::format("pack_{}{}x{}", batches, product_.column_count(),
                            product_.size(product_.terms));
    text.first = "team";
    text.by_pointer = true;
    text.values = {product_.right, kernel_.packed};
    Code body = statement("static constexpr fl::Packing kPacking = " + packing() + ";");
    const std::string from = product_.right_at.constant == 0
                                 ? "from"
                                 : fmt::format("from + {}", product_.right_at.constant);
    if (product_.batch.empty()) {
      body += statement("fl::pack_panels<" + type_ + ">(team, kPacking, " + from + ", panels);");
    } else {
      Code one = batch_indices();
      one += statement(fmt::format("fl::pack_panels<{}>(fl::Team::solo(), kPacking, {},", type_,
                                   sum(from, place(product_.right_at, product_.batch))));
      one.lines.push_back(
          fmt::format("                         panels + b * fl::packed_size<{}>(kPacking));", type_));
      body += statement(fmt::format("const fl::Part batches = team.part({});",
                                    product_.size(product_.batch)));
      body += cpp::braced("for (int64_t b = batches.begin; b < batches.end; ++b)", one);
    }
    text.code = cpp::call("void " + std::string(kKernelName),
                          {"const fl::Team& team", "const " + type_ + "* from",
                           type_ + "* __restrict panels"},
                          " {", 0);
    append(text.code, body);
    return text;
  }

 private:
  static void append(Code& code, const Code& body) {
    for (const std::string& line : body.lines)
      code.lines.push_back(line.empty() ? line : "  " + line);
    code.lines.push_back("}");
  }

  // "conv", "product" and what is done with the sum.
  std::string name() const {
    std::string name = product_.terms.size() > 1 ? "convolution" : "product";
    std::string operation =
        cpp::identifier(cpp::origin_of(plan_.routine.steps[kernel_.steps[0]]).operation);
    if (const size_t colons = operation.find("aten__"); colons == 0) operation = operation.substr(6);
    return fmt::format("{}_{}_{}x{}x{}", name, operation, product_.size(product_.rows),
                       product_.column_count(), product_.size(product_.terms));
  }

  // What it computes, its extents, and how much that is.
  Code comment() const {
    const int64_t item = plan_.routine.values[product_.right].type.dtype ==
                                 composit::DType::float64 ? 8 : 4;
    const int64_t rows = product_.size(product_.rows), columns = product_.column_count(),
                  terms = product_.size(product_.terms), batch = product_.size(product_.batch);
    const double bytes = static_cast<double>(batch * item * (rows * terms + columns * terms + rows * columns));
    const double work = static_cast<double>(product_.operations());
    return cpp::comment(fmt::format(
        "{}{} rows x {} columns x {} terms: {:.1f} MFLOP, {:.0f} FLOP per byte",
        batch > 1 ? fmt::format("{} times ", batch) : "", rows, columns, terms, work * 1e-6,
        work / bytes));
  }

  void name_values(std::vector<size_t>& values) {
    const auto add = [&](size_t value, const std::string& name) {
      if (names_.contains(value)) return;
      names_[value] = composit::unused_name(name, taken_);
      values.push_back(value);
    };
    for (const char* word : {"team", "outer", "inner", "rows", "column", "columns", "sums", "r",
                             "c", "b", "i", "j", "of", "batches", "kTerms"})
      taken_.insert(word);
    add(product_.left, "x");
    names_[kernel_.packed] = composit::unused_name("panels", taken_);
    values.push_back(kernel_.packed);
    for (const size_t value : cpp::reads(plan_.routine.steps[kernel_.steps[0]])) {
      if (value == product_.right && !reads_in_store(value)) continue;
      add(value, local_name(value));
    }
    add(product_.statement.stores[0].result, "y");
  }
  bool reads_in_store(size_t value) const {
    for (const Expr& part : composit::parts_of({product_.statement.stores[0].value}))
      if (part.kind() == ExprKind::load && part.number() == value) return true;
    return false;
  }
  std::string local_name(size_t value) const {
    const cpp::Value& one = plan_.routine.values[value];
    if (one.role != cpp::Role::weight) return "z";
    const size_t dot = one.name.find_last_of('.');
    return cpp::identifier(dot == std::string::npos ? one.name : one.name.substr(dot + 1));
  }

  std::vector<std::string> parameters() const {
    std::vector<std::string> list = {"const fl::Team& team"};
    const size_t result = product_.statement.stores[0].result;
    std::vector<std::pair<size_t, std::string>> ordered(names_.begin(), names_.end());
    const auto add = [&](size_t value) {
      const std::string type = cpp::type_name(plan_.routine.values[value].type.dtype);
      list.push_back((value == result ? type + "* __restrict " : "const " + type + "* ") +
                     names_.at(value));
    };
    add(product_.left);
    add(kernel_.packed);
    for (const size_t value : cpp::reads(plan_.routine.steps[kernel_.steps[0]]))
      if (names_.contains(value) && value != product_.left) add(value);
    add(result);
    return list;
  }

  // ---- places -----------------------------------------------------------------------------------

  static std::string sum(const std::string& a, const std::string& b) {
    return b.empty() ? a : a + " + " + b;
  }
  // "3 * i + 12 * j" for the axes.
  std::string place(const Affine& at, const std::vector<size_t>& axes) const {
    std::string text;
    for (const size_t axis : axes) {
      const int64_t factor = coefficient(at, axis);
      if (factor == 0) continue;
      if (!text.empty()) text += " + ";
      text += factor == 1 ? axis_names_.at(axis) : fmt::format("{} * {}", factor, axis_names_.at(axis));
    }
    return text;
  }

  // Indices of `axes` out of the number `counter` of their point.
  Code decoded(const std::vector<size_t>& axes, const std::string& counter, const char* letters) {
    Code code;
    int64_t below = 1;
    std::vector<std::string> lines;
    for (size_t i = axes.size(); i-- > 0;) {
      if (axes.size() == 1) {
        axis_names_[axes[i]] = counter;
        break;
      }
      const std::string name = std::string(letters) + std::to_string(i);
      std::string text = below == 1 ? counter : fmt::format("{} / {}", counter, below);
      if (i > 0) text += fmt::format(" % {}", product_.extent(axes[i]));
      lines.push_back("const int64_t " + name + " = " + text + ";");
      axis_names_[axes[i]] = name;
      below *= product_.extent(axes[i]);
    }
    for (size_t i = lines.size(); i-- > 0;) code += statement(lines[i]);
    return code;
  }
  Code batch_indices() { return decoded(product_.batch, "b", "batch"); }

  // ---- parts of the call ------------------------------------------------------------------------

  // Offsets of all terms but the run inside.
  Code terms() const {
    std::vector<size_t> axes = product_.terms;
    if (!axes.empty()) axes.pop_back();
    std::vector<int64_t> offsets = {0};
    for (const size_t axis : axes) {
      std::vector<int64_t> next;
      for (const int64_t offset : offsets)
        for (int64_t i = 0; i < product_.extent(axis); ++i)
          next.push_back(offset + i * coefficient(product_.left_at, axis));
      offsets = std::move(next);
    }
    std::string list;
    for (const int64_t offset : offsets) list += (list.empty() ? "" : ", ") + std::to_string(offset);
    return statement(fmt::format("static constexpr int32_t kTerms[{}] = {{{}}};", offsets.size(), list));
  }

  std::string shape() const {
    std::vector<size_t> outer = product_.rows;
    if (!outer.empty()) outer.pop_back();
    const bool has_rows = !product_.rows.empty(), has_terms = !product_.terms.empty();
    const int64_t run = has_terms ? product_.extent(product_.terms.back()) : 1,
                  step = has_terms ? coefficient(product_.left_at, product_.terms.back()) : 0,
                  inner = has_rows ? product_.extent(product_.rows.back()) : 1,
                  stride = has_rows ? coefficient(product_.left_at, product_.rows.back()) : 0;
    return fmt::format("{{{}, {}, {}, {}, {{kTerms, {}, {}, {}}}, fl::Split::{}}}",
                       product_.size(outer), inner, stride, product_.column_count(),
                       product_.size(product_.terms) / run, run, step,
                       by_columns() ? "columns" : "rows");
  }
  // Weights that every thread reads whole cost more than activations that are exchanged, where there
  // are few rows.
  bool by_columns() const {
    return product_.size(product_.rows) < 64 && product_.column_count() >= 128;
  }

  std::string packing() const {
    std::vector<size_t> axes = product_.terms;
    std::string terms;
    for (size_t i = 0; i < 4; ++i) {
      const size_t missing = 4 - axes.size();
      terms += i == 0 ? "" : ", ";
      terms += i < missing ? "{1, 0}"
                           : fmt::format("{{{}, {}}}", product_.extent(axes[i - missing]),
                                         coefficient(product_.right_at, axes[i - missing]));
    }
    const int64_t stride = product_.columns ? coefficient(product_.right_at, *product_.columns) : 0;
    return fmt::format("{{{{{}}}, {{{}, {}}}}}", terms, product_.column_count(), stride);
  }

  Code contraction() {
    std::vector<size_t> outer = product_.rows;
    if (!outer.empty()) outer.pop_back();
    const bool batched = !product_.batch.empty();
    if (batched) batch_indices();  // names
    Code code = statement("const fl::Contraction<" + type_ + "> of = " + shape() + ";");
    Code base = decoded(outer, "outer", "o");
    std::string first = names_.at(product_.left);
    if (product_.left_at.constant != 0) first += fmt::format(" + {}", product_.left_at.constant);
    first = sum(sum(first, place(product_.left_at, product_.batch)), place(product_.left_at, outer));
    base += statement("return " + first + ";");
    const std::string panels =
        names_.at(kernel_.packed) +
        (batched ? fmt::format(" + b * fl::packed_size<{}>(kPacking)", type_) : "");
    std::vector<std::string> lines;
    code += statement(fmt::format("fl::contract<{}>(", type_));
    std::vector<std::string>& out = code.lines;
    out.push_back(std::string("    ") + (batched ? "fl::Team::solo()" : "team") + ", of,");
    lambda(out, "[&]([[maybe_unused]] int64_t outer)", base, ",");
    out.push_back("    " + panels + ",");
    lambda(out,
           "[&]([[maybe_unused]] int64_t outer, int64_t inner, int rows, int64_t column, "
           "[[maybe_unused]] int columns, const auto& sums)",
           finish(outer), ");");
    return code;
  }
  static void lambda(std::vector<std::string>& out, const std::string& head, const Code& body,
                     const std::string& end) {
    out.push_back("    " + head + " {");
    for (const std::string& line : body.lines) out.push_back("      " + line);
    out.push_back("    }" + end);
  }

  Code over_batches(Code call) {
    Code body = decoded(product_.batch, "b", "batch");
    body += call;
    Code code = statement("static constexpr fl::Packing kPacking = " + packing() + ";");
    code += statement(
        fmt::format("const fl::Part batches = team.part({});", product_.size(product_.batch)));
    code += cpp::braced("for (int64_t b = batches.begin; b < batches.end; ++b)", body);
    return code;
  }

  // What becomes of the sums of a tile.
  Code finish(const std::vector<size_t>& outer) {
    Code code = decoded(outer, "outer", "o");
    if (!product_.rows.empty()) axis_names_[product_.rows.back()] = "i";
    if (product_.columns) axis_names_[*product_.columns] = "j";
    cpp::Leaves leaves;
    leaves.axes.resize(product_.statement.axes.size(), "0");
    for (const auto& [axis, name] : axis_names_) leaves.axes[axis] = name;
    leaves.element = [&](size_t value, const std::vector<std::string>& indices) {
      return names_.at(value) + "[" + indices[0] + "]";
    };
    flat_types_.clear();
    for (const cpp::Value& value : plan_.routine.values)
      flat_types_.push_back(composit::tensor_type(value.type.dtype, {value.type.numel()}));
    leaves.type = [&](size_t value) -> const composit::Type& { return flat_types_[value]; };
    leaves.range = [](size_t) { return std::nullopt; };
    leaves.accumulators = {"sums[r][c]"};
    composit::Store store = product_.statement.stores[0];
    store.value = composit::cast(store.value, plan_.routine.values[store.result].type.dtype);
    std::set<std::string> taken = taken_;
    cpp::ExpressionWriter text(leaves, product_.statement.axes, taken);
    text.plan({store.at[0], store.value});
    Code one = statement("const int64_t j = column + c;");
    one += text.locals(store.at[0]);
    one += text.locals(store.value);
    one += text.assign(names_.at(store.result) + "[" + text.text(store.at[0]) + "]", store.value);
    const bool whole = product_.column_count() % 32 == 0;
    Code row;
    if (!product_.rows.empty()) row += statement("const int64_t i = inner + r;");
    row += cpp::braced(whole ? fmt::format("for (int c = 0; c < fl::kPanel<{}>; ++c)", type_)
                             : "for (int c = 0; c < columns; ++c)",
                       one);
    code += cpp::braced("for (int r = 0; r < rows; ++r)", row);
    return code;
  }

  const Plan& plan_;
  const Kernel& kernel_;
  const Product& product_;
  std::string type_;
  std::map<size_t, std::string> names_, axis_names_;
  std::set<std::string> taken_;
  std::vector<composit::Type> flat_types_;
};

}  // namespace

KernelText write_product(const Plan& plan, const Kernel& kernel) {
  return ProductWriter(plan, kernel).product();
}

KernelText write_pack(const Plan& plan, const Kernel& kernel) {
  return ProductWriter(plan, kernel).pack();
}

}  // namespace flashlight::mosaic
