// Numbers of families that are no sizes, on the side of the program. For the files of families
// only.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "composit/family/cases.h"
#include "flashlight/family.h"

namespace flashlight {

// The numbers among arguments of this structure, by their names in a family: "input_2", "lr".
composit::NumberValues numbers_of_arguments(const Structure& structure);

// The same as their texts, which say the types.
std::map<std::string, std::string> number_texts(const Structure& structure);

// The structure with these numbers in it, by the same names.
Structure with_numbers(const Structure& structure, const composit::NumberValues& numbers);

// UserError where numbers of this name among arguments have no type that an example has, or are
// integers that no double is.
void expect_number_types(const std::vector<CaptureBase>& examples, const Structure& arguments,
                         const std::function<bool(const std::string& name)>& may_differ);

// What examples were given: `given` by example, and numbers among their arguments that differ.
// UserError where an example lacks one, or all have the same.
composit::NumbersShown numbers_shown(const std::vector<CaptureBase>& examples,
                                     const std::vector<composit::NumberValues>& given);

// `values`, and what `numbers` are in the program now. UserError where that cannot be read.
composit::NumberValues with_present(const std::vector<FamilyNumber>& numbers,
                                    composit::NumberValues values);

// A line for each number and each formula of it.
void add_number_lines(const composit::Family& family, const std::string& which,
                      std::vector<std::string>& lines);

}  // namespace flashlight
