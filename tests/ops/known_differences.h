// The known differences between rows and torch, each with the reason why it is right.
//
//   verdict("aten::topk", What::value, "result 1: elem 3: …") == Verdict::right
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tests/ops/torch_accuracy.h"

namespace composit::test {

// The meaning of a difference: a failure; one that we know of, so that the call is not covered; or
// that torch's answer is one of several right ones.
enum class Verdict { fails, differs, right };

struct Difference {
  std::optional<What> what;  // none: in every respect
  std::string_view op;       // part of its name
  std::string_view wrong;    // part of what was found
  Verdict verdict;
  std::string_view why;
};

// nullptr: none that we know of.
const Difference* known_difference(std::string_view op, What what, const std::string& wrong);
// `wrong`: what was found; begins with "result 1" for a value, has "tensor 0" for the derivative by
// an argument.
Verdict verdict(std::string_view op, What what, const std::string& wrong);

}  // namespace composit::test
