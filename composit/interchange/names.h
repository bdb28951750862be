// Names of values that other tools take as identifiers, each used once.
//
//   UsedNames names;
//   names.identifier("p_", "layer1.0.weight");      // "p_layer1_0_weight"
//   names.identifier("", "lambda");                 // "lambda_": Python's own word
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace composit::interchange {

// True for words that Python keeps for itself.
bool is_python_keyword(std::string_view word);

class UsedNames {
 public:
  // A new name: letters, digits and underscores, no keyword of Python, not `self`.
  std::string identifier(const std::string& prefix, std::string_view text);

 private:
  std::set<std::string> taken_;
};

}  // namespace composit::interchange
