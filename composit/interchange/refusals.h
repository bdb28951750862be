// What a target cannot take, gathered, so that an error lists all of it.
//
//   Refusals refusals;
//   refusals.add(node, origin, "it has no operator");
//   refusals.expect_none();
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "composit/ir/node.h"

namespace composit::interchange {

// The module and the line that a node belongs to.
struct Origin {
  std::string_view scope = {}, source = {};
};
// Of a node; where it does not say, those of what it is a part of.
Origin origin_of(const Node& node, const Origin& around);

class Refusals {
 public:
  // `title`: the first line of the error.
  explicit Refusals(std::string title = "these cannot be exported:") : title_(std::move(title)) {}

  // Notes that `node` cannot be written, and why. `around`: what it is a part of.
  void add(const Node& node, const Origin& around, const std::string& why);
  // The same of an operator that is no node.
  void add(const std::string& op, const Origin& origin, const std::string& why);
  // UserError that lists all of them, where there are any.
  void expect_none() const;

 private:
  std::string title_;
  std::map<std::string, size_t> lines_;  // and how often
};

}  // namespace composit::interchange
