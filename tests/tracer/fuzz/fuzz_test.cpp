// Random programs, captured on one input and replayed on another one (the count:
// FLASHLIGHT_FUZZ_PROGRAMS).
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>

#include "tests/tracer/fuzz/generator.h"
#include "tests/tracer/fuzz/judge.h"

namespace flashlight::fuzz {
namespace {

int number(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : otherwise;
}

Options options_of(int i) {
  static const int lengths[] = {8, 16, 40};
  return {lengths[i % 3], (i / 3) % 2 == 1, (i / 6) % 2 == 0};
}

// The programs do what LibTorch warns of, again and again.
class NoWarnings : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

TEST(Fuzz, random_programs_replay_like_eager_mode) {
  const int count = number("FLASHLIGHT_FUZZ_PROGRAMS", 10000),
            first = number("FLASHLIGHT_FUZZ_FIRST", 0);
  constexpr int kShown = 5;
  at::set_num_threads(1);  // operators that write elements lying on each other are a race otherwise
  NoWarnings no_warnings;
  const c10::WarningUtils::WarningHandlerGuard silent(&no_warnings);
  int equal = 0, wrong = 0;
  std::map<std::string, int> set_aside;
  for (int i = first; i < first + count && wrong < number("FLASHLIGHT_FUZZ_WRONG", kShown); ++i) {
    const Program program = generate(static_cast<uint64_t>(i), options_of(i));
    SCOPED_TRACE("program " + std::to_string(i));
    const Verdict verdict = judge(program);
    if (verdict.kind == Verdict::Kind::equal) ++equal;
    if (verdict.kind == Verdict::Kind::set_aside) ++set_aside[verdict.text];
    if (verdict.kind != Verdict::Kind::wrong) continue;
    ++wrong;
    const Program small = minimised(program);
    ADD_FAILURE() << judge(small).text << "\n" << to_cpp(small);
  }
  const int judged = equal + wrong;
  std::cout << judged << " of " << count << " programs judged, " << wrong << " wrong\n";
  for (const auto& [reason, times] : set_aside)
    std::cout << "  " << times << " set aside: " << reason << "\n";
  if (wrong < kShown) {
    EXPECT_GT(judged, count * 9 / 10);
  }
}

}  // namespace
}  // namespace flashlight::fuzz
