// The two kinds of error this library throws.
//
//   throw UserError("[load] graph.txt:12: expected ')', received '%'");
//
// A UserError says what its reader did and can mend: the operation, what was expected, what was
// received, and where. An InternalError says what we did wrong and where in our sources.
#pragma once

#include <stdexcept>
#include <string>

namespace composit {

// A mistake of the caller, who can correct it.
class UserError : public std::runtime_error {
 public:
  // The text: "[operation] expected …, received …".
  using std::runtime_error::runtime_error;
};

// A fault of this project; please report it.
class InternalError : public std::logic_error {
 public:
  // The text, and the place in our sources.
  InternalError(const std::string& what, const char* file, int line)
      : std::logic_error("internal error at " + std::string(file) + ":" + std::to_string(line) +
                         ": " + what) {}
};

}  // namespace composit

// Checks what we promise ourselves. Never for what a user may get wrong.
#define COMPOSIT_ASSERT(condition, message)                                           \
  do {                                                                                \
    if (!(condition)) throw ::composit::InternalError((message), __FILE__, __LINE__); \
  } while (false)
