// What writers of tiled kernels share: arguments are pointers, elements have one index.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "flashlight/mosaic/plan.h"
#include "flashlight/text/code.h"
#include "flashlight/text/expression.h"

namespace flashlight::mosaic {

class FlatWriter {
 public:
  explicit FlatWriter(const Plan& plan);

  // Makes `value` the next argument, called `name` or, with none, after the value; once.
  void add(size_t value, const std::string& name = "");
  // `value` lies where `other` does, and is the same argument.
  void set_same_place(size_t value, size_t other) { names_[value] = name(other); }
  void reserve(const std::vector<std::string>& words);
  const std::vector<size_t>& values() const { return values_; }
  const std::string& name(size_t value) const { return names_.at(value); }
  // "const float* x"; what is written is `result`.
  std::vector<std::string> parameters(size_t result) const;

  // Names of axes.
  std::map<size_t, std::string> axes;
  // "3 * i + 12 * j" for some axes; empty for none.
  std::string place(const composit::Affine& at, const std::vector<size_t>& over) const;
  // "x + 5 + 3 * i".
  std::string address(size_t value, const composit::Affine& at,
                      const std::vector<size_t>& over) const;
  // Declares indices of `over` out of `counter`, which counts their points.
  text::Code decoded(const Product& product, const std::vector<size_t>& over,
                     const std::string& counter, const std::string& letter);

  // To write expressions of a flat statement with.
  text::Leaves leaves(const loops::Statement& statement) const;
  std::set<std::string>& taken() { return taken_; }

 private:
  const Plan& plan_;
  std::map<size_t, std::string> names_;
  std::vector<size_t> values_;
  std::set<std::string> taken_;
  std::vector<composit::Type> types_;  // with one dimension
};

// `code` in the braces of a function.
void append_body(text::Code& function, const text::Code& body);
// "    head {", body, "    }end" as lines of a call.
void append_lambda(text::Code& call, const std::string& head, const text::Code& body,
                   const std::string& end);

}  // namespace flashlight::mosaic
