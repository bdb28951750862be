#include "benchmarks/report.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace benchmarks {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown";
}

}  // namespace

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double minimum(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double median_ratio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(a[i] / b[i]);
  return median(std::move(ratios));
}

void Report::raw(const std::string& subject, const std::string& what,
                 const std::vector<double>& rounds) {
  raw_.push_back({subject, what, rounds});
}

void Report::target(const std::string& what, const std::string& relation, double target,
                    double measured) {
  const bool reached = relation == "<="   ? measured <= target
                       : relation == ">=" ? measured >= target
                                          : measured == target;
  targets_.push_back({what, relation, target, measured, reached});
  std::printf("%-52s target %s %-8.4g measured %-10.4g %s\n", what.c_str(), relation.c_str(),
              target, measured, reached ? "reached" : "MISSED");
  std::fflush(stdout);
}

int Report::finish() const {
  nlohmann::ordered_json json;
  json["benchmark"] = name_;
  json["cpu"] = cpu_model();
  for (const Raw& raw : raw_) json["rounds"][raw.subject][raw.what] = raw.rounds;
  for (const Target& target : targets_)
    json["targets"].push_back({{"what", target.what},
                               {"relation", target.relation},
                               {"target", target.target},
                               {"measured", target.measured},
                               {"reached", target.reached}});
  std::filesystem::create_directories("benchmarks/results");
  const std::string path = "benchmarks/results/" + name_ + ".json";
  std::ofstream(path) << json.dump(1) << '\n';
  std::printf("raw timings: %s\n", path.c_str());
  return std::all_of(targets_.begin(), targets_.end(),
                     [](const Target& target) { return target.reached; })
             ? 0
             : 1;
}

}  // namespace benchmarks
