#include "composit/io/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdlib>
#include <memory>

#include "composit/ir/error.h"
#include "composit/ir/knobs.h"

namespace composit {
namespace {

double seconds_of_silence() {
  const std::string text = knob(Knob::progress);
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(seconds >= 0))
    throw UserError("[FLASHLIGHT_PROGRESS] expected a number of seconds, received '" + text + "'");
  return seconds;
}

}  // namespace

spdlog::logger& log() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto existing = spdlog::get("flashlight");
    return existing ? existing : spdlog::stderr_color_mt("flashlight");
  }();
  return *logger;
}

void log_debug(const std::string& message) { log().debug("{}", message); }
void log_warning(const std::string& message) { log().warn("{}", message); }
void log_nothing() { log().set_level(spdlog::level::off); }

Progress::Progress(std::string what, uint64_t total)
    : what_(std::move(what)), total_(total), silent_(seconds_of_silence()) {}

void Progress::advance(uint64_t amount) {
  done_ += amount;
  const auto now = Clock::now();
  if (!is_long() || now - last_report_ < std::chrono::seconds(1)) return;
  last_report_ = now;
  log().info("{}: {:.0f} %", what_,
             100.0 * static_cast<double>(done_) / static_cast<double>(total_));
}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

bool Progress::is_long() const { return seconds() >= silent_; }

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  constexpr std::array<const char*, 4> kUnits = {"kB", "MB", "GB", "TB"};
  auto amount = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  for (; amount >= 1000 && unit + 1 < kUnits.size(); ++unit) amount /= 1000;
  return fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

}  // namespace composit
