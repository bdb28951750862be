// The times of a call's kernels, as a table and for viewers of traces.
//
//   const fl::Profile profile = profile_of_a_call();   // a compiled graph's, a written program's
//   std::cout << fl::table(profile, 236.0);            // GFLOP/s that the machine can do
//   std::ofstream("trace.json") << fl::chrome_trace(profile);
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fl {

// One kernel of one call.
struct TimedKernel {
  std::string name, module;         // "conv2d_3"; where in the model it stands
  std::int64_t start = 0, end = 0;  // nanoseconds of a steady clock
  std::int64_t operations = 0;      // multiplications and additions of products
  std::int64_t bytes = 0;           // of the values that it touches, each once
};
// The kernels of one call.
using Profile = std::vector<TimedKernel>;

namespace detail {

template <class... Values>
std::string printed(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

// As a string of JSON.
inline std::string json_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) quoted += c;
  }
  return quoted + "\"";
}

}  // namespace detail

// A line per name of a kernel, the longest time first: calls, milliseconds, share of all, GFLOP/s,
// share of `peak` (GFLOP/s; 0: unknown), GB/s.
inline std::string table(const Profile& profile, double peak = 0) {
  struct Line {
    int calls = 0;
    std::int64_t time = 0, operations = 0, bytes = 0;
  };
  std::map<std::string, Line> lines;
  std::int64_t all = 0;
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
  std::string text = detail::printed("%-44s %5s %9s %6s %8s %6s %7s\n", "kernel", "calls", "ms",
                                     "share", "GFLOP/s", "peak", "GB/s");
  for (const auto& [name, line] : sorted) {
    const auto time = static_cast<double>(std::max<std::int64_t>(line.time, 1));
    const double rate = static_cast<double>(line.operations) / time;
    const bool computes = line.operations > 0;
    text += detail::printed(
        "%-44.120s %5d %9.3f %5.1f%% %8s %6s %7.1f\n", name.c_str(), line.calls, time * 1e-6,
        100 * time / static_cast<double>(std::max<std::int64_t>(all, 1)),
        (computes ? detail::printed("%.1f", rate) : "").c_str(),
        (computes && peak > 0 ? detail::printed("%.0f%%", 100 * rate / peak) : "").c_str(),
        static_cast<double>(line.bytes) / time);
  }
  return text + detail::printed("%-44s %5d %9.3f\n", "all", static_cast<int>(profile.size()),
                                static_cast<double>(all) * 1e-6);
}

// For chrome://tracing and Perfetto.
inline std::string chrome_trace(const Profile& profile) {
  const std::int64_t origin = profile.empty() ? 0 : profile[0].start;
  const auto microseconds = [](std::int64_t time) {
    return detail::printed("%.3f", static_cast<double>(time) * 1e-3);
  };
  std::string events;
  for (const TimedKernel& kernel : profile)
    events += (events.empty() ? "\n" : ",\n") + std::string(R"( {"name": )") +
              detail::json_string(kernel.name) + R"(, "ph": "X", "pid": 0, "tid": 0, "ts": )" +
              microseconds(kernel.start - origin) + R"(, "dur": )" +
              microseconds(kernel.end - kernel.start) + R"(, "args": {"module": )" +
              detail::json_string(kernel.module) + R"(, "MFLOP": )" +
              detail::printed("%.6f", static_cast<double>(kernel.operations) * 1e-6) +
              R"(, "bytes": )" + std::to_string(kernel.bytes) + "}}";
  return "{\"traceEvents\": [" + events + "\n]}\n";
}

// The one that took less time; one without kernels is none.
inline Profile faster(Profile x, Profile y) {
  const auto time = [](const Profile& one) { return one.back().end - one.front().start; };
  return x.empty() || (!y.empty() && time(y) < time(x)) ? y : x;
}

// Prints the table, and writes the trace to `file`.
inline void report(const Profile& profile, double peak, const std::string& file) {
  std::printf("%s", table(profile, peak).c_str());
  std::FILE* const out = std::fopen(file.c_str(), "w");
  const std::string trace = chrome_trace(profile);
  const bool good = out != nullptr && std::fputs(trace.c_str(), out) >= 0;
  if ((out != nullptr && std::fclose(out) != 0) || !good)
    throw std::runtime_error("cannot write " + file);
  std::printf("%s: for chrome://tracing\n", file.c_str());
}

}  // namespace fl
