// A family on disk: the saved capture of its first example, with formulas and sizes; and those of
// the first examples of further cases, with the conditions.
//
//   save(with_family({load("at_2x16")}, cases), "bert");
//   const SavedCapture saved = load("bert");
//   save(bound_capture(saved, family_of(saved), {{"batch", 4}, {"tokens", 21}}), "bert_4x21");
#pragma once

#include <string>
#include <vector>

#include "composit/family/cases.h"
#include "composit/io/saved_capture.h"

namespace composit {

// The property of captures that a family gave: their composites have no recorded inside.
inline constexpr const char* kOfFamily = "of_family";

// UserError where these, loaded from `folders`, cannot be examples of one family: a family is among
// them, they take or give other values, or a weight of one has another value in another.
void expect_one_program(const std::vector<SavedCapture>& captures,
                        const std::vector<std::string>& folders);
// The captures of the first examples of cases, as that of the family.
SavedCapture with_family(std::vector<SavedCapture> examples, const Cases& family);
// UserError for a capture that is no family.
Cases family_of(const SavedCapture& saved);
bool is_family(const SavedCapture& saved);
// The family at these sizes as a capture. Its example inputs are those of the first example of its
// case, repeated or cut; it has no example outputs. UserError as of `bind`.
SavedCapture bound_capture(const SavedCapture& saved, const Cases& family, const SizeValues& sizes,
                           const NumberValues& numbers = {});
// The array with each axis repeated or cut to these sizes, as many.
Array resized(const Array& array, const Dims& sizes);

}  // namespace composit
