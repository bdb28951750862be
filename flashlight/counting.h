// Numbers of a program that follow its calls: an optimizer's step count, its bias corrections.
//
//   // Values of calls 0, 1 and 2:
//   const auto form = fit({0.316, 0.446, 0.544}, {.bases = {0.9, 0.99}});
//   form->at(3);  form->text();                            // "sqrt(1 - 0.9^(n + 1))"
//
// A form is evaluated as the program does it, in double precision and in the same order, so its
// values have the program's bits. It is accepted only if it gives all values that were seen, bit
// for bit, with constants of few digits, or with the only constants that do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flashlight {

// With t = b^(n + k), of call number n:
enum class FormKind : uint8_t {
  count,          // n * b + k: whole numbers
  rest,           // 1 - t
  root_of_rest,   // sqrt(1 - t)
  power_of_rest,  // (1 - t)^0.5, as Python writes the root
  per_rest,       // c / (1 - t)
  per_root,       // c / sqrt(1 - t)
  times_rest,     // c * (1 - t)
  times_root,     // c * sqrt(1 - t)
  decayed         // c / (1 + (n + k) * b)
};

struct Form {
  FormKind kind = FormKind::count;
  bool negated = false;
  double b = 0, c = 1;
  int64_t k = 0;

  double at(int64_t n) const;
  std::string text() const;
  // Reads what `encode` wrote; nothing for other text.
  static std::optional<Form> decode(std::string_view text);
  std::string encode() const;
  bool operator==(const Form&) const = default;
};

struct FitOptions {
  std::vector<double> bases;    // candidates for the base b
  std::vector<int64_t> counts;  // values of n + k at call 0 that other numbers have
  bool python = false;          // roots are written as powers
};

// The simplest form that gives values 0, 1, … of a number; nothing if none fits. Two values prove
// nothing: it takes a third one to confirm a form.
std::optional<Form> fit(const std::vector<double>& values, const FitOptions& options);

}  // namespace flashlight
