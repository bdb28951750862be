// The message of a UserError, for tests of what users are told.
//
//   EXPECT_EQ(user_error([&] { parse(text); }), "[parse] graph:1:1: …");
#pragma once

#include <optional>
#include <string>

#include "composit/ir/error.h"

namespace composit {

// Nothing where `action` throws none. Other exceptions pass.
template <class Action>
std::optional<std::string> user_error(Action action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return std::nullopt;
}

}  // namespace composit
