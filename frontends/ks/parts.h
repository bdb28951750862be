// The parts of an expression.
//
//   for_each_part(lambda, [&](const Expression& part, const std::vector<std::string>& bound) { …
//   });
#pragma once

#include <string>
#include <vector>

#include "frontends/ks/syntax.h"

namespace flashlight::ks {

// Calls `f` for each part with the variables that the expression binds there.
template <class F>
void for_each_part(const Expression& expression, const F& f) {
  static const std::vector<std::string> none;
  const auto plain = [&](const ExpressionPtr& part) { f(*part, none); };
  if (const auto* one = std::get_if<Call>(&expression.form))
    for (const ExpressionPtr& argument : one->arguments) plain(argument);
  if (const auto* one = std::get_if<TupleOf>(&expression.form))
    for (const ExpressionPtr& item : one->items) plain(item);
  if (const auto* one = std::get_if<If>(&expression.form))
    plain(one->condition), plain(one->then), plain(one->otherwise);
  if (const auto* one = std::get_if<Assert>(&expression.form))
    plain(one->condition), plain(one->body);
  if (const auto* one = std::get_if<Let>(&expression.form))
    plain(one->value), f(*one->body, one->pattern.names);
  if (const auto* one = std::get_if<Lambda>(&expression.form))
    f(*one->body, std::vector<std::string>{one->parameter});
}

}  // namespace flashlight::ks
