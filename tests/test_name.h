// Names of parametrised tests.
//
//   INSTANTIATE_TEST_SUITE_P(All, Rows, testing::ValuesIn(rows),
//                            [](const auto& one) { return test_name(one.param.name); });
#pragma once

#include <cctype>
#include <string>

namespace composit::test {

// `text` with `_` for whatever GoogleTest takes into no name.
inline std::string test_name(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

}  // namespace composit::test
