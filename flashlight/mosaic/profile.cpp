#include "flashlight/mosaic/profile.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace flashlight::mosaic {

TimedKernel timed_kernel(const Plan& plan, const Kernel& kernel, const KernelText& text) {
  TimedKernel timed = {text.name, ""};
  if (!kernel.steps.empty())
    timed.module = cpp::origin_of(plan.routine.steps[kernel.steps.back()]).module;
  for (const size_t value : text.values) timed.bytes += plan.routine.values[value].type.nbytes();
  if (kernel.form == Kernel::Form::product) timed.operations = kernel.product->operations();
  if (kernel.attention)
    timed.operations =
        kernel.attention->scores.operations() + kernel.attention->results.operations();
  return timed;
}

std::string table(const Profile& profile, double peak) {
  struct Line {
    int64_t calls = 0, time = 0, operations = 0, bytes = 0;
  };
  std::map<std::string, Line> lines;
  int64_t all = 0;
  for (const TimedKernel& kernel : profile) {
    Line& line = lines[kernel.name];
    ++line.calls;
    line.time += kernel.end - kernel.start;
    line.operations += kernel.operations;
    line.bytes += kernel.bytes;
    all += kernel.end - kernel.start;
  }
  std::vector<std::pair<std::string, Line>> sorted(lines.begin(), lines.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
  std::string text = fmt::format("{:<44} {:>5} {:>9} {:>6} {:>8} {:>6} {:>7}\n", "kernel", "calls",
                                 "ms", "share", "GFLOP/s", "peak", "GB/s");
  for (const auto& [name, line] : sorted) {
    const auto time = static_cast<double>(std::max<int64_t>(line.time, 1));
    const double rate = static_cast<double>(line.operations) / time;
    text += fmt::format(
        "{:<44} {:>5} {:>9.3f} {:>5.1f}% {:>8} {:>6} {:>7.1f}\n", name, line.calls, time * 1e-6,
        100 * time / static_cast<double>(std::max<int64_t>(all, 1)),
        line.operations > 0 ? fmt::format("{:.1f}", rate) : "",
        line.operations > 0 && peak > 0 ? fmt::format("{:.0f}%", 100 * rate / peak) : "",
        static_cast<double>(line.bytes) / time);
  }
  return text + fmt::format("{:<44} {:>5} {:>9.3f}\n", "all", profile.size(),
                            static_cast<double>(all) * 1e-6);
}

std::string chrome_trace(const Profile& profile) {
  nlohmann::json events = nlohmann::json::array();
  const int64_t origin = profile.empty() ? 0 : profile[0].start;
  for (const TimedKernel& kernel : profile)
    events.push_back({{"name", kernel.name},
                      {"ph", "X"},
                      {"pid", 0},
                      {"tid", 0},
                      {"ts", static_cast<double>(kernel.start - origin) * 1e-3},
                      {"dur", static_cast<double>(kernel.end - kernel.start) * 1e-3},
                      {"args",
                       {{"module", kernel.module},
                        {"MFLOP", static_cast<double>(kernel.operations) * 1e-6},
                        {"bytes", kernel.bytes}}}});
  return nlohmann::json{{"traceEvents", events}}.dump(1);
}

}  // namespace flashlight::mosaic
