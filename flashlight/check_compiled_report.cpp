// The report of check_compiled as text.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "flashlight/check_compiled.h"

namespace flashlight {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2e", value);
  return text;
}

using Cells = std::vector<std::string>;

std::string table(const std::vector<Cells>& lines) {
  std::vector<size_t> widths;
  for (const Cells& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const Cells& line : lines)
    for (size_t i = 0; i < line.size(); ++i)
      text += (i == 0 ? "  " : "") + line[i] +
              (i + 1 < line.size() ? std::string(widths[i] - line[i].size() + 2, ' ') : "\n");
  return text;
}

Cells cells_of(const CheckedValue& value, bool alone) {
  Cells cells{value.name.empty() ? "-" : value.name,
              value.product.empty() ? "" : value.product,
              number(value.compiled.rms),
              number(value.compiled.largest),
              number(value.eager.rms),
              number(value.eager.largest)};
  if (alone) cells.push_back(value.alone ? number(value.alone->rms) : "-");
  cells.push_back(value.place + (value.worse ? ": WORSE than the program" : ""));
  return cells;
}

// The result that is off most.
const CheckedValue* worst_of(const std::vector<CheckedValue>& results) {
  const auto worst = std::max_element(
      results.begin(), results.end(),
      [](const auto& a, const auto& b) { return a.compiled.rms < b.compiled.rms; });
  return worst == results.end() ? nullptr : &*worst;
}

bool is_marked(const CheckedValue& value) { return value.worse; }

}  // namespace

bool CompiledReport::ok() const {
  return error.empty() && std::none_of(values.begin(), values.end(), is_marked) &&
         std::none_of(results.begin(), results.end(), is_marked);
}

std::vector<std::string> choices_of(const CompiledReport& report, size_t most) {
  const CheckedValue* const worst = worst_of(report.results);
  std::vector<std::string> lines;
  if (worst == nullptr) return lines;
  double squares = 0;
  for (const CheckedValue& value : report.values)
    if (value.alone) squares += value.alone->rms * value.alone->rms;
  if (squares == 0) return lines;
  double left = squares;
  for (const CheckedValue& value : report.values) {
    if (!value.alone || lines.size() == most) break;  // they are sorted
    left = std::max(left - value.alone->rms * value.alone->rms, 0.0);
    // What the products were measured to cost together, brought to what the results are off by.
    const double estimate = worst->compiled.rms * std::sqrt(left / squares);
    lines.push_back(value.name + ": float32  # results then off by about " + number(estimate));
  }
  return lines;
}

std::string str(const CompiledReport& report) {
  std::string text = report.backend + ": errors against float64 in units of each value's spread\n";
  if (!report.error.empty()) return text + "failed: " + report.error + "\n";
  const bool alone = report.lowered > 0;
  Cells heading{"value", "product of", "rms", "largest", "eager rms", "largest"};
  if (alone) heading.push_back("costs results");
  heading.push_back("operator");
  std::vector<Cells> lines{heading};
  for (const CheckedValue& value : report.values) lines.push_back(cells_of(value, alone));
  for (const CheckedValue& value : report.results) lines.push_back(cells_of(value, alone));
  text += table(lines) + std::to_string(report.values.size()) + " of " +
          std::to_string(report.nodes) + " values of nodes are compared" +
          (report.values.size() < report.nodes ? "; the others are within kernels" : "") + "\n";
  if (report.products > 0)
    text += std::to_string(report.lowered) + " of " + std::to_string(report.products) +
            " products are in a lower format than the program's\n";
  for (const std::string& note : report.notes) text += note + "\n";
  if (const CheckedValue* const worst = worst_of(report.results))
    text += "results are off by " + number(worst->compiled.rms) + ", eager by " +
            number(worst->eager.rms) + " (" + worst->name + ")\n";
  if (const std::vector<std::string> choices = choices_of(report); !choices.empty()) {
    text += "choices that give back most, each with those above it:\n";
    for (const std::string& line : choices) text += "  " + line + "\n";
  }
  return text;
}

}  // namespace flashlight
