#include "flashlight/text/printer.h"

#include <algorithm>

namespace flashlight::text {
namespace {

using Lines = std::vector<std::string>;
using Cut = ExpressionText::Cut;
using Argument = Call::Argument;

constexpr size_t kContinuation = 4;

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

std::string at(size_t column, const std::string& text) { return std::string(column, ' ') + text; }

bool fits(const std::string& line) { return line.size() <= kColumns; }

void append(Lines& lines, Lines more) {
  lines.insert(lines.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

Lines lines_of(const Code& code, size_t column);
Lines lines_of(const Call& call, size_t column);

std::string header_text(const Header& header) {
  return std::visit(
      Overloaded{[](const std::string& text) { return text; },
                 [](const If& one) { return "if (" + one.condition + ")"; },
                 [](const For& one) {
                   const std::string& name = one.variable;
                   return "for (" + one.type + (one.type.empty() ? "" : " ") + name + " = " +
                          one.low + ";" + (one.high.empty() ? "" : " " + name + " < " + one.high) +
                          "; " + (one.step.empty() ? "++" + name : name + " += " + one.step) + ")";
                 }},
      header);
}

// ---- simple statements --------------------------------------------------------------------------

Lines lines_of(const Comment& comment, size_t column) {
  Lines lines;
  std::string rest = comment.text;
  const size_t most = kColumns - 3 - column;  // after "// "
  for (size_t space; rest.size() > most && (space = rest.rfind(' ', most)) != std::string::npos;) {
    lines.push_back(at(column, "// " + rest.substr(0, space)));
    rest.erase(0, space + 1);
  }
  lines.push_back(at(column, "// " + rest));
  return lines;
}

Lines lines_of(const Declaration& one, size_t column) {
  const std::string line = at(column, one.type + " " + one.name + ";");
  if (fits(line)) return {line};
  return {at(column, one.type), at(column + kContinuation, one.name + ";")};
}

// Breaks `before` and a value that ends with ";" into two lines: after the last + or - of the
// outermost level for which the first line fits, or if there is none after the last * or /. Empty
// if no position fits.
Lines cut_sum(const std::string& before, const ExpressionText& value) {
  if (before.size() > kColumns) return {};
  for (const Cut kind : {Cut::sum, Cut::factor})
    if (const size_t cut = value.last_cut(kind, kColumns - before.size()); cut > 0)
      return {before + value.str().substr(0, cut),
              at(before.size(), value.str().substr(cut + 1) + ";")};
  return {};
}

// x =
//     y;
Lines lines_of(const Assignment& one, size_t column) {
  const std::string left = at(column, one.target + " " + one.sign), value = one.value.str() + ";",
                    below(column + kContinuation, ' ');
  if (fits(left + " " + value)) return {left + " " + value};
  if (fits(below + value)) return {left, below + value};
  if (const Lines lines = cut_sum(left + " ", one.value); !lines.empty()) return lines;
  Lines lines = cut_sum(below, one.value);
  if (lines.empty()) return {left + " " + value};
  lines.insert(lines.begin(), left);
  return lines;
}

// return x[i]
//         [j];
Lines lines_of(const Return& one, size_t column) {
  const std::string before = at(column, "return "), &value = one.value.str(),
                    line = before + value + ";";
  if (fits(line)) return {line};
  const size_t first = one.value.first_cut(Cut::subscript),
               cut = one.value.last_cut(Cut::subscript, kColumns - before.size());
  if (cut <= first) return {line};
  return {before + value.substr(0, cut), at(before.size() + first, value.substr(cut) + ";")};
}

// ---- calls --------------------------------------------------------------------------------------

// Appends pieces to `line`, and continues at `column` of a new line where one is full. A piece of
// several lines shares them with no other piece.
Lines filled(std::string line, const std::vector<Lines>& pieces, size_t column) {
  Lines lines;
  bool is_first = true, is_full = false;
  for (const Lines& piece : pieces) {
    const bool is_flat = piece.size() == 1;
    if (!is_first && (is_full || !is_flat || line.size() + 1 + piece[0].size() > kColumns)) {
      lines.push_back(line);
      line = std::string(column, ' ');
      is_first = true;
    }
    line += (is_first ? "" : " ") + piece[0];
    is_first = false;
    is_full = !is_flat;
    if (is_flat) continue;
    lines.push_back(line);
    lines.insert(lines.end(), piece.begin() + 1, piece.end() - 1);
    line = piece.back();
  }
  lines.push_back(line);
  return lines;
}

// A call without lambdas: further lines start below the first argument, or four columns in.
Lines plain_call(const Call& call, size_t column) {
  const std::string head = at(column, call.function + "(");
  if (call.arguments.empty()) return {head + ")" + call.tail};
  std::vector<Lines> pieces;
  for (const Argument& argument : call.arguments) {
    if (const auto* inner = std::get_if<std::shared_ptr<const Call>>(&argument)) {
      Lines lines = lines_of(**inner, column + kContinuation);
      lines[0].erase(0, column + kContinuation);
      pieces.push_back(std::move(lines));
    } else {
      pieces.push_back({std::get<std::string>(argument)});
    }
    pieces.back().back() += pieces.size() < call.arguments.size() ? "," : ")" + call.tail;
  }
  const Lines aligned = filled(head, pieces, head.size());
  Lines broken = filled(std::string(column + kContinuation, ' '), pieces, column + kContinuation);
  broken.insert(broken.begin(), head);
  const bool is_flat =
      std::all_of(pieces.begin(), pieces.end(), [](const Lines& one) { return one.size() == 1; });
  // Weighs the two as clang-format does.
  const bool is_aligned = is_flat && std::all_of(aligned.begin(), aligned.end(), fits) &&
                          aligned.size() < broken.size() + 3;
  return is_aligned ? aligned : broken;
}

// A body of one statement as text, "return x;"; nothing for other bodies.
std::optional<std::string> one_line(const Code& body) {
  if (body.nodes.size() != 1) return std::nullopt;
  return std::visit(
      Overloaded{[](const Line& one) { return std::optional(one.text); },
                 [](const Return& one) { return std::optional("return " + one.value.str() + ";"); },
                 [](const Assignment& one) {
                   return std::optional(one.target + " " + one.sign + " " + one.value.str() + ";");
                 },
                 [](const auto&) { return std::optional<std::string>(); }},
      body.nodes[0]->kind);
}

std::optional<std::string> one_line(const Lambda& lambda) {
  const auto body = one_line(lambda.body);
  return body ? std::optional(lambda.head + " { " + *body + " }") : std::nullopt;
}

Lines opened(const std::string& before, const Lambda& lambda, const std::string& end,
             size_t column) {
  Lines lines = {at(column, before + lambda.head + " {")};
  append(lines, lines_of(lambda.body, column + kIndent));
  lines.push_back(at(column, "}" + end));
  return lines;
}

// "2, 3".
std::string joined(const std::vector<std::string>& arguments) {
  std::string text;
  for (const std::string& one : arguments) text += (text.empty() ? "" : ", ") + one;
  return text;
}

// The arguments on one line: texts, then lambdas, then texts.
struct Row {
  std::vector<std::string> before = {};
  bool ends_with_call = false;  // the last text of `before` is a call
  std::vector<const Lambda*> lambdas = {};
  std::vector<std::string> behind = {};

  // Nothing if a lambda has more than one statement.
  std::optional<std::string> one_line() const;
};

std::optional<std::string> Row::one_line() const {
  std::vector<std::string> all = before;
  for (const Lambda* lambda : lambdas) {
    const auto line = text::one_line(*lambda);
    if (!line) return std::nullopt;
    all.push_back(*line);
  }
  all.insert(all.end(), behind.begin(), behind.end());
  return joined(all);
}

// As many arguments in a row as fit; the first lambda always joins the texts before it.
std::vector<Row> shared_rows(const Call& call, size_t column) {
  std::vector<Row> rows(1);
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const auto* text = std::get_if<std::string>(&call.arguments[i]);
    const auto* inner = std::get_if<std::shared_ptr<const Call>>(&call.arguments[i]);
    if (text != nullptr || inner != nullptr) {
      rows.back().before.push_back(text != nullptr ? *text : *text_of(**inner));
      rows.back().ends_with_call = inner != nullptr;
      continue;
    }
    const auto& lambda = std::get<Lambda>(call.arguments[i]);
    const auto line = one_line(lambda), row = rows.back().one_line();
    const size_t end = i + 1 < call.arguments.size() ? 1 : 1 + call.tail.size();
    const bool joins = line && (rows.back().lambdas.empty() ||
                                (row && column + row->size() + 2 + line->size() + end <= kColumns));
    if (!joins) rows.emplace_back();
    rows.back().lambdas.push_back(&lambda);
  }
  return rows;
}

// Each lambda begins a row.
std::vector<Row> apart_rows(const Call& call) {
  std::vector<Row> rows(1);
  for (const Argument& argument : call.arguments) {
    const auto* text = std::get_if<std::string>(&argument);
    if (text == nullptr)
      rows.push_back({.lambdas = {&std::get<Lambda>(argument)}});
    else
      (rows.back().lambdas.empty() ? rows.back().before : rows.back().behind).push_back(*text);
  }
  return rows;
}

// Breaks a row that is too long: puts the lambda on the next line, with the last text before it if
// the lambda has a type and both fit; or else opens the lambda.
Lines lines_of(const Row& row, const std::string& end, size_t column) {
  const auto line = row.one_line();
  if (line && fits(at(column, *line + end))) return {at(column, *line + end)};
  if (row.lambdas.empty()) return {at(column, *line + end)};
  const Lambda& lambda = *row.lambdas[0];
  std::vector<std::string> above = row.before;
  const auto first = [&] {
    Lines lines;
    if (!above.empty()) lines.push_back(at(column, joined(above) + ","));
    return lines;
  };
  if (line && !above.empty()) {
    if (const std::string below = at(column, above.back() + ", " + *one_line(lambda) + end);
        lambda.has_type && above.size() > 1 && !row.ends_with_call && fits(below)) {
      above.pop_back();
      Lines lines = first();
      lines.push_back(below);
      return lines;
    }
    if (const std::string below = at(column, *one_line(lambda) + end); fits(below)) {
      Lines lines = first();
      lines.push_back(below);
      return lines;
    }
  }
  Lines lines = first();
  std::string behind;
  for (const std::string& text : row.behind) behind += ", " + text;
  append(lines, opened("", lambda, behind + end, column));
  return lines;
}

std::vector<Row> rows_of(const Call& call, size_t column) {
  std::vector<Row> rows =
      call.lambdas_apart ? apart_rows(call) : shared_rows(call, column + kContinuation);
  std::erase_if(rows, [](const Row& row) { return row.before.empty() && row.lambdas.empty(); });
  return rows;
}

Lines call_with_lambdas(const Call& call, size_t column) {
  Lines lines = {at(column, call.function + "(")};
  const std::vector<Row> rows = rows_of(call, column);
  for (size_t i = 0; i < rows.size(); ++i)
    append(lines,
           lines_of(rows[i], i + 1 < rows.size() ? "," : ")" + call.tail, column + kContinuation));
  return lines;
}

// The arguments of a call: texts, and at most one lambda.
struct Operands {
  std::vector<std::string> texts;
  const Lambda* lambda = nullptr;
};
Operands operands_of(const Call& call) {
  Operands operands;
  for (const Argument& argument : call.arguments)
    if (const auto* text = std::get_if<std::string>(&argument))
      operands.texts.push_back(*text);
    else
      operands.lambda = &std::get<Lambda>(argument);
  return operands;
}

// x = f(2,
//       [&](int i) { return y; });
// or, where that is too long,
// x = f(
//     2, [&](int i) { return y; });
// or the lambda opened.
Lines assigned_call(const Call& call, size_t column) {
  const auto [texts, lambda] = operands_of(call);
  const std::string left = at(column, call.target + " ="), function = call.function + "(",
                    below(column + kContinuation, ' '), end = ")" + call.tail,
                    before = joined(texts) + (lambda != nullptr && !texts.empty() ? "," : "");
  if (const auto whole = text_of(call)) {
    const std::string all = *whole + call.tail, arguments = all.substr(function.size());
    for (const Lines& lines : {Lines{left + " " + all}, Lines{left, below + all}})
      if (fits(lines.back())) return lines;
    if (lambda != nullptr && !texts.empty()) {
      const std::string first = left + " " + function;
      const Lines lines = {first + before, at(first.size(), *one_line(*lambda) + end)};
      if (std::all_of(lines.begin(), lines.end(), fits)) return lines;
    }
    if (lambda == nullptr || (!texts.empty() && fits(below + arguments)))
      return {left + " " + function, below + arguments};
  }
  const std::string first = call.target + " = " + function + before + (before.empty() ? "" : " ");
  return opened(first, *lambda, end, column);
}

bool has_lambda(const Call& call) {
  return std::any_of(call.arguments.begin(), call.arguments.end(),
                     [](const Argument& one) { return std::holds_alternative<Lambda>(one); });
}

Lines lines_of(const Call& call, size_t column) {
  if (!call.target.empty()) return assigned_call(call, column);
  return has_lambda(call) ? call_with_lambdas(call, column) : plain_call(call, column);
}

Lines lines_of(const List& list, size_t column) {
  std::vector<Lines> pieces;
  for (size_t i = 0; i < list.items.size(); ++i)
    pieces.push_back({list.items[i] + (i + 1 < list.items.size() ? "," : "};")});
  return filled(at(column, list.head + "{"), pieces, column + list.head.size() + 1);
}

// ---- blocks -------------------------------------------------------------------------------------

// A header and its only statement, on one line if both fit.
Lines unbraced(const Block& block, size_t column) {
  Lines lines = {at(column, header_text(block.header))};
  Lines body = lines_of(block.body, column + kIndent);
  const Node::Kind& inner = block.body.nodes[0]->kind;
  const bool is_simple = !std::holds_alternative<Block>(inner) &&
                         !std::holds_alternative<Chain>(inner) && body.size() == 1;
  if (const std::string joined = lines[0] + " " + body[0].substr(column + kIndent);
      is_simple && fits(joined))
    return {joined};
  append(lines, std::move(body));
  return lines;
}

Lines lines_of(const Block& block, size_t column) {
  if (!block.braces) return unbraced(block, column);
  const std::string header = header_text(block.header);
  Lines lines = {at(column, header.empty() ? "{" : header + " {")};
  append(lines, lines_of(block.body, column + kIndent));
  lines.push_back(at(column, block.end));
  return lines;
}

Lines lines_of(const Chain& chain, size_t column) {
  Lines lines;
  for (size_t i = 0; i < chain.parts.size(); ++i) {
    const auto& [header, body] = chain.parts[i];
    const bool is_else = i > 0 && std::holds_alternative<If>(header);
    lines.push_back(at(column, std::string(i > 0 ? "} " : "") + (is_else ? "else " : "") +
                                   header_text(header) + " {"));
    append(lines, lines_of(body, column + kIndent));
  }
  lines.push_back(at(column, "}"));
  return lines;
}

Lines lines_of(const Definition& definition, size_t column) {
  Call head = {"", definition.head, {}, " {"};
  head.arguments.assign(definition.parameters.begin(), definition.parameters.end());
  Lines lines = plain_call(head, column);
  append(lines, lines_of(definition.body, column + kIndent));
  lines.push_back(at(column, "}"));
  return lines;
}

Lines lines_of(const Line& line, size_t column) { return {at(column, line.text)}; }
Lines lines_of(const Directive& one, size_t) { return {one.text}; }
Lines lines_of(const Blank&, size_t) { return {""}; }

Lines lines_of(const Code& code, size_t column) {
  Lines lines;
  for (const auto& node : code.nodes)
    append(lines, std::visit([&](const auto& one) { return lines_of(one, column); }, node->kind));
  return lines;
}

// ---- length -------------------------------------------------------------------------------------

size_t length_of(const Call& call, size_t column) {
  if (!has_lambda(call)) return lines_of(call, column).size();
  const auto of_row = [&](const Lambda* lambda) {
    return lambda == nullptr || one_line(*lambda) ? 1 : 2 + length(lambda->body, column + kIndent);
  };
  if (!call.target.empty()) return of_row(operands_of(call).lambda);
  size_t lines = 1;
  for (const Row& row : rows_of(call, column))
    lines += of_row(row.lambdas.empty() ? nullptr : row.lambdas[0]);
  return lines;
}

bool is_return(const Code& code) {
  return code.nodes.size() == 1 && std::holds_alternative<Return>(code.nodes[0]->kind);
}

}  // namespace

size_t length(const Code& code, size_t column) {
  size_t lines = 0;
  for (const auto& node : code.nodes)
    lines += std::visit(
        Overloaded{[&](const Call& one) { return length_of(one, column); },
                   [&](const List& one) { return lines_of(one, column).size(); },
                   [&](const Definition& one) { return 2 + length(one.body, column + kIndent); },
                   [&](const Block& one) -> size_t {
                     if (!one.braces && is_return(one.body)) return 1;  // "if (x) return 0;"
                     return (one.braces ? 2 : 1) + length(one.body, column + kIndent);
                   },
                   [&](const Chain& one) {
                     size_t sum = 1;
                     for (const auto& part : one.parts)
                       sum += 1 + length(part.second, column + kIndent);
                     return sum;
                   },
                   [](const auto&) { return size_t{1}; }},
        node->kind);
  return lines;
}

std::optional<std::string> text_of(const Call& call) {
  std::vector<std::string> arguments;
  for (const Argument& argument : call.arguments) {
    const auto text =
        std::visit(Overloaded{[](const std::string& one) { return std::optional(one); },
                              [](const Lambda& one) { return one_line(one); },
                              [](const std::shared_ptr<const Call>& one) { return text_of(*one); }},
                   argument);
    if (!text) return std::nullopt;
    arguments.push_back(*text);
  }
  return call.function + "(" + joined(arguments) + ")";
}

size_t width(const Assignment& one) {
  return one.target.size() + one.sign.size() + one.value.size() + 3;
}

std::string str(const Code& code, size_t column) {
  std::string text;
  for (const std::string& line : lines_of(code, column)) text += line + "\n";
  return text;
}

size_t line_count(const Code& code, size_t column) { return lines_of(code, column).size(); }

}  // namespace flashlight::text
