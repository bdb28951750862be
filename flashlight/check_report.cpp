#include "flashlight/check_report.h"

#include <algorithm>
#include <cstdio>

namespace flashlight {
namespace {

std::string number(const char* format, double value) {
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string line(const NodeDifference& difference) {
  return difference.place + ", output " + std::to_string(difference.output) + ": absolute " +
         number("%.3g", difference.absolute) + ", relative " + number("%.3g", difference.relative) +
         ", " + std::to_string(difference.ulp) + " ULP";
}

std::string draws(const std::vector<std::string>& generators) {
  if (generators.empty()) return {};
  std::string roles;
  for (const std::string& role : generators) roles += (roles.empty() ? "'" : ", '") + role + "'";
  return "draws random numbers: every run began with the state that the generator " + roles +
         " had at the call, and has again; after other draws a check looks at other numbers\n";
}

}  // namespace

bool GradientReport::ok() const {
  return std::all_of(differences.begin(), differences.end(),
                     [this](const auto& one) { return one.relative <= tolerance; });
}

std::string str(const GradientReport& report) {
  std::vector<GradientDifference> sorted = report.differences;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.relative > b.relative; });
  std::string text = (report.ok() ? "equal: " : "different: ") + std::to_string(sorted.size()) +
                     " gradients compared with " + report.oracle + "\n";
  for (const GradientDifference& one : sorted) {
    if (report.ok() && &one != sorted.data()) break;  // the worst says it all
    text += "  " + one.name + ": absolute " + number("%.3g", one.absolute) + ", relative " +
            number("%.3g", one.relative) + "\n";
  }
  return text + draws(report.generators);
}

std::string str(const CheckReport& report) {
  std::string text;
  if (!report.error.empty()) text += "failed: " + report.error + "\n";
  if (!report.graph_differences.empty())
    text += "the program took another path; what changed is baked into the capture:\n";
  for (const std::string& difference : report.graph_differences) text += "  " + difference + "\n";
  if (!report.differences.empty())
    text += "first difference: " + line(report.differences.front()) + "\n" +
            std::to_string(report.differences.size()) + " values differ:\n";
  for (const NodeDifference& difference : report.differences)
    text += "  " + line(difference) + "\n";
  if (report.ok())
    text += "equal: " + std::to_string(report.compared) +
            " values compared, largest difference of a result " + number("%.3g", report.largest) +
            "\n";
  if (!report.ranking.empty())
    text += "error amplification (relative error against float64, eager / its operands):\n";
  for (const NodeDifference& difference : report.ranking)
    text += "  " + number("%8.1f", difference.amplification) + "x  " + difference.place +
            ": eager " + number("%.3g", difference.float64_eager) + ", replay " +
            number("%.3g", difference.float64_replay) + "\n";
  return text + draws(report.generators);
}

}  // namespace flashlight
