// The integers among the attributes of a node: what a program wrote, or worked out from sizes.
//
//   integers_of(int_list({2, -1}));                  // 2, -1
//   with_integers(int_list({2, -1}), {3, 4});        // [3, 4]
//
// Integers are dims, integer Scalars, those in lists, and the elements of small arrays of integers.
// Bools, floats, dtypes and regions are no integers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "composit/ir/attribute.h"

namespace composit {

// Arrays of more elements are data, and have no integers here.
inline constexpr int64_t kMaxIntegerArray = 64;

// In the order in which they are printed.
std::vector<int64_t> integers_of(const Attribute& attribute);
// The attribute with these integers instead, as many. UserError where an array cannot hold one.
Attribute with_integers(const Attribute& attribute, const std::vector<int64_t>& integers);
// True if both differ in nothing but integers. Regions are not compared: they only have to be there
// in both.
bool same_form(const Attribute& a, const Attribute& b);

// The one real number that an attribute is: a float, a Scalar, a dim, or an array of float64 or
// int64 without axes. Nothing for others.
std::optional<double> real_number_of(const Attribute& attribute);
// The attribute with this number instead. UserError where it holds integers, and this is none.
Attribute with_real_number(const Attribute& attribute, double number);

}  // namespace composit
