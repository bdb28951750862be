// The output of every benchmark: raw per-round timings as JSON, one line per target.
//
//   Report report("capture");
//   report.raw("resnet50", "eager", seconds);              // one vector per measured thing
//   report.target("7.2 capture ÷ eager, resnet50", "<=", 1.05, ratio);
//   return report.finish();                                // 1 when a target is missed
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace benchmarks {

// The time that `work` takes, by the clock on the wall.
double seconds(const std::function<void()>& work);
// The smallest and the middle value; the input is copied.
double minimum(const std::vector<double>& values);
double median(std::vector<double> values);
// Median of the ratios round by round: holds when the machine's speed drifts.
double median_ratio(const std::vector<double>& a, const std::vector<double>& b);

class Report {
 public:
  explicit Report(std::string name) : name_(std::move(name)) {}

  void raw(const std::string& subject, const std::string& what, const std::vector<double>& rounds);
  // `relation` is "<=", ">=" or "==".
  void target(const std::string& what, const std::string& relation, double target, double measured);
  // Writes benchmarks/results/NAME.json. The exit code.
  int finish() const;

 private:
  struct Raw {
    std::string subject, what;
    std::vector<double> rounds;
  };
  struct Target {
    std::string what, relation;
    double target, measured;
    bool reached;
  };
  std::string name_;
  std::vector<Raw> raw_;
  std::vector<Target> targets_;
};

}  // namespace benchmarks
