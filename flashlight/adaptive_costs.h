// What an adaptive program has paid for its recordings, and what compiled code has saved.
//
//   RunCosts costs;
//   costs.add(RunKind::program, 0.030);
//   costs.add(RunKind::recorded, 0.050);       // 20 ms longer than the program
//   costs.lost();                              // 0.040: as much again for the next one
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace flashlight {

enum class RunKind : uint8_t { program, recorded, compiled };

// Of programs that differ in sizes only. Sizes come in any order, so means are compared.
class RunCosts {
 public:
  void add(RunKind kind, double seconds) {
    Runs& runs = runs_[static_cast<size_t>(kind)];
    runs.seconds += seconds;
    ++runs.count;
  }
  // The seconds of all runs.
  double total() const {
    double all = 0;
    for (const Runs& one : runs_) all += one.seconds;
    return all;
  }
  // The seconds by which recordings took longer than the program, the next one with them, less
  // those that compiled code took shorter.
  double lost() const {
    const Runs recorded = of(RunKind::recorded), compiled = of(RunKind::compiled);
    const double usual = usual_seconds(), longer = recorded.seconds - recorded.count * usual,
                 next = recorded.count > 0 ? longer / recorded.count : 0;
    return longer + next - (compiled.count * usual - compiled.seconds);
  }

 private:
  struct Runs {
    double seconds = 0, count = 0;
  };
  const Runs& of(RunKind kind) const { return runs_[static_cast<size_t>(kind)]; }
  // Of the program. Before it ran by itself, a recording is taken for twice as long.
  double usual_seconds() const {
    const Runs alone = of(RunKind::program), recorded = of(RunKind::recorded);
    if (alone.count > 0) return alone.seconds / alone.count;
    return recorded.count > 0 ? recorded.seconds / recorded.count / 2 : 0;
  }
  std::array<Runs, 3> runs_;
};

// The seconds since it was made.
class RunTimer {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace flashlight
