// Products of matrices and convolutions, as calls of fl::product.
#include <algorithm>

#include "flashlight/cpp/literal.h"
#include "flashlight/cpp/nest_writer.h"

namespace flashlight::cpp {
namespace {

std::string join(const std::vector<std::string>& list, const std::string& between) {
  std::string text;
  for (const std::string& one : list) text += (text.empty() ? "" : between) + one;
  return text;
}

}  // namespace

// [&](int i, int k) { return x[i][k]; }
std::string NestWriter::lambda(const std::string& parameters, const Expr& value,
                               const Expr& domain) {
  ExpressionWriter text = writer();
  Code body;
  if (domain.defined()) {  // 0 where it does not hold
    const Expr outside = !domain;
    text.plan({outside, composit::select(domain, value, composit::cast(Expr(0), value.dtype()))});
    body += text.locals(outside);
    body += statement("if (" + text.text(outside) + ") return " +
                      literal(composit::cast(Expr(0), value.dtype()).value(), value.dtype()) + ";");
  } else {
    text.plan({value});
  }
  body += text.locals(value);
  const std::string result = "return " + text.text(value) + ";";
  if (body.empty()) return "[&](" + parameters + ") { " + result + " }";
  body += statement(result);
  return "[&](" + parameters + ") {\n" + str(body, 2) + "}";
}

Code NestWriter::product(const Contraction& contraction) {
  std::vector<size_t> batch;
  for (size_t axis : rest_)
    if (std::count(contraction.batch.begin(), contraction.batch.end(), axis)) batch.push_back(axis);
  name_axes(batch);
  // Several axes of a side are counted by one index.
  const auto side = [&](const std::vector<size_t>& axes, const std::string& index) {
    int64_t size = 1;
    for (size_t i = axes.size(); i-- > 0;) {
      const int64_t extent = statement_.axes[axes[i]].extent.value();
      std::string text = size == 1 ? index : index + " / " + std::to_string(size);
      if (i > 0) text += " % " + std::to_string(extent);
      leaves_.axes[axes[i]] = text;
      size *= extent;
    }
    return size;
  };
  const auto index_name = [&](const char* letters) {
    for (const char* letter = letters;; ++letter) {
      const std::string name(1, *letter);
      if (!context_.taken->contains(name) && loop_names_.insert(name).second) return name;
    }
  };
  const std::string row = index_name("ijmnpqrs"), column = index_name("jimnpqrs"),
                    term = index_name("klmnpqrs");
  const int64_t rows = side(contraction.rows, row), columns = side(contraction.columns, column),
                terms = side(contraction.terms, term);
  const std::string type = type_name(statement_.body[0].dtype());
  const std::string left = lambda("int " + row + ", int " + term, contraction.left,
                                  contraction.left_domain),
                    right = lambda("int " + term + ", int " + column, contraction.right,
                                   contraction.right_domain);
  const std::string sum = accumulator_name(0);
  leaves_.accumulators = {sum};
  ExpressionWriter after = writer();
  const Code body = stores(after, false);
  std::string store = "[&](int " + row + ", int " + column + ", " + type + " " + sum + ") {";
  store += body.lines.size() == 1 ? " " + body.lines[0] + " }" : "\n" + str(body, 2) + "}";
  const std::vector<std::string> sizes = {std::to_string(rows), std::to_string(columns),
                                          std::to_string(terms)};
  Code code = statement("fl::product<" + type + ">(");
  const auto add = [&](const std::string& text, const std::string& end) {
    size_t begin = 0;
    for (size_t next; (next = text.find('\n', begin)) != std::string::npos; begin = next + 1)
      code.lines.push_back("    " + text.substr(begin, next - begin));
    code.lines.push_back("    " + text.substr(begin) + end);
  };
  // As many on a line as fit.
  const size_t indent = 2 + 2 * (context_.loops.size() + batch.size()) + 4;
  std::string line = join(sizes, ", ");
  const std::vector<std::string> lambdas = {left, right, store};
  for (const std::string& lambda : lambdas) {
    const bool last = &lambda == &lambdas.back(), whole = lambda.find('\n') == std::string::npos;
    const std::string piece = ", " + lambda + (last ? ");" : ",");
    const bool first_line = line.find("[&]") == std::string::npos;
    if ((whole || first_line) && (first_line || indent + line.size() + piece.size() <= kColumns)) {
      line += piece.substr(0, piece.size() - (last ? 2 : 1));
      continue;
    }
    add(line, ",");
    line = lambda;
  }
  add(line, ");");
  return loops(batch, {}, std::move(code));
}

}  // namespace flashlight::cpp
