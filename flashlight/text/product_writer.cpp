// Writes matrix products and convolutions as calls of fl::product.
#include <algorithm>

#include "composit/ir/scope.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/nest_writer.h"
#include "flashlight/text/open_numbers.h"

namespace flashlight::text {
// True if a side of a product can be read in place: it is one element of a value, never out of
// range, with an index that is a sum of what the row adds and what the term adds.
bool NestWriter::is_place(const Expr& side) const {
  if (side.kind() != ExprKind::load) return false;
  const Type& type = context_.type(value_of(side));
  if (type.dtype != statement_.body[0].dtype()) return false;
  composit::IndexAnalysis analysis(statement_.axes);
  for (size_t i = 0; i < side.arguments().size(); ++i) {
    const Expr& index = side.arguments()[i];
    const bool inside = analysis.range(index).inside(0, type.sizes[i] - 1);
    if (!inside || !analysis.affine(index)) return false;
  }
  return true;
}

// [&](int i, int k) -> auto& { return x[i][k]; }
Lambda NestWriter::lambda(const std::string& parameters, const Expr& value, const Expr& domain) {
  ExpressionWriter text = writer();
  Code body;
  if (domain.defined()) {  // 0 outside of the domain
    const Expr outside = composit::negation(domain);
    text.plan({outside, composit::select(domain, value, composit::cast(Expr(0), value.dtype()))});
    body += text.locals(outside);
    body += block(If{text.text(outside)},
                  returned(literal(composit::cast(Expr(0), value.dtype()).value(), value.dtype())));
  } else {
    text.plan({value});
  }
  body += text.locals(value);
  body += returned(text.expression(value));
  const bool has_type = !domain.defined() && is_place(value);
  return {"[&](" + parameters + ")" + (has_type ? " -> auto&" : ""), has_type, std::move(body)};
}

// The size, or if there are limits the name of a variable that `code` declares as "fl::within(64,
// [&](int i) { return fl::Range{0, i + 1}; })".
std::string NestWriter::limited(int64_t size, const AxisIds& axes, const std::vector<Expr>& limits,
                                const std::string& row, const std::string& base, Code& code) {
  const std::string all = bare_number(size);
  if (limits.empty()) return all;
  const auto [low, high] = bounds_of(axes, limits).limits.at(axes[0]);
  const bool is_wide = has_open_numbers() || has_wide_indices();
  const std::string type = is_wide ? "<int64_t>(" : "(",
                    as_int = is_wide ? "static_cast<int>(" : "", end = is_wide ? ")" : "";
  const auto strictest = [&type](const std::vector<std::string>& list, const char* function,
                                 const std::string& otherwise) {
    std::string text = list.empty() ? otherwise : list[0];
    for (size_t i = 1; i < list.size(); ++i) text = function + type + text + ", " + list[i] + ")";
    return text;
  };
  const std::string name = composit::unused_name(base, *context_.taken);
  const Code range = returned("fl::Range{" + as_int + strictest(low, "std::max", "0") + end + ", " +
                              as_int + strictest(high, "std::min", all) + end + "}");
  code += call({.target = "const auto " + name,
                .function = "fl::within",
                .arguments = {all, Lambda{.head = "[&](int " + row + ")", .body = range}}});
  return name;
}

// Names one index that counts the points of all `axes`.
NestWriter::Side NestWriter::side(const AxisIds& axes, const char* letters) {
  Side side;
  for (const char* letter = letters; side.index.empty(); ++letter) {
    const std::string name(1, *letter);
    if (!context_.taken->contains(name) && loop_names_.insert(name).second) side.index = name;
  }
  for (size_t i = axes.size(); i-- > 0;) {
    const int64_t extent = statement_.axes[axes[i]].extent;
    std::string text = side.size == 1 ? side.index : side.index + " / " + open_number(side.size);
    if (i > 0) text += " % " + open_number(extent);
    if (i > 0 || side.size > 1) leaves_.parts.insert(axes[i]);
    leaves_.axes[axes[i]] = text;
    side.size *= extent;
  }
  return side;
}

Code NestWriter::product(Contraction contraction) {
  const auto is_around = [&](AxisId axis) { return !contains(rest_, axis); };
  for (auto* axes : {&contraction.batch, &contraction.rows, &contraction.columns})
    std::erase_if(*axes, is_around);
  name_axes(contraction.batch);
  const Side rows = side(contraction.rows, "ijmnpqrs"),
             columns = side(contraction.columns, "jimnpqrs"),
             terms = side(contraction.terms, "klmnpqrs");
  const std::string type = type_name(statement_.body[0].dtype()), i = "int " + rows.index,
                    j = "int " + columns.index, k = "int " + terms.index;
  Code code;
  std::vector<Call::Argument> arguments = {
      bare_number(rows.size),
      limited(columns.size, contraction.columns, contraction.column_limits, rows.index, "columns",
              code),
      limited(terms.size, contraction.terms, contraction.term_limits, rows.index, "terms", code),
      lambda(i + ", " + k, contraction.left, contraction.left_domain),
      lambda(k + ", " + j, contraction.right, contraction.right_domain)};
  const std::string sum = accumulator_name(0);
  leaves_.accumulators = {{sum}};
  ExpressionWriter after = writer();
  arguments.push_back(Lambda{.head = "[&](" + i + ", " + j + ", " + type + " " + sum + ")",
                             .body = stores(after, false)});
  code += call({"", "fl::product<" + type + ">", std::move(arguments)});
  return loops(contraction.batch, {}, std::move(code));
}

}  // namespace flashlight::text
