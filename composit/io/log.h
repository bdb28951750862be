// The messages of this library: they go to one spdlog logger named "flashlight".
//
//   composit::log_warning("no space left in " + folder.string());
//
// A host silences it with `log().set_level(spdlog::level::off)`, or registers a logger of its own
// named "flashlight" with spdlog before the first message; otherwise messages go to standard error.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace spdlog {
class logger;
}

namespace composit {

// The logger; with <spdlog/spdlog.h>, of its own version.
spdlog::logger& log();
// For code that cannot include spdlog: LibTorch brings another version of fmt.
void log_debug(const std::string& message);
void log_warning(const std::string& message);
void log_nothing();  // messages are dropped from now on

// Reports on long work once a second, and not at all on work shorter than FLASHLIGHT_PROGRESS (two
// seconds): a library is silent.
//
//   Progress progress("saving resnet50", total_bytes);
//   while (has_more()) progress.advance(chunk);
//   if (progress.is_long()) log_debug(std::to_string(progress.seconds()) + " s");
class Progress {
 public:
  // UserError where the knob is no number of seconds.
  Progress(std::string what, uint64_t total);
  void advance(uint64_t amount);  // adds to the progress, up to `total`
  double seconds() const;         // since construction
  bool is_long() const;           // long enough to be reported

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  uint64_t total_;
  uint64_t done_ = 0;
  double silent_;  // seconds
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_report_ = start_;
};

// "12 bytes", "97.8 MB"; a megabyte is a million bytes.
std::string format_bytes(uint64_t bytes);

}  // namespace composit
