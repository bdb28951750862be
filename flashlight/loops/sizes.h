// Named sizes of a program: those that a call gives, and those computed from them.
//
//   Program open = unify({lower(at_16_tokens), lower(at_24_tokens)});  // unify.h
//   Program program = bind_sizes(open, {{"tokens", 20}});              // all are numbers again
//
// Stages and backends take programs of numbers (expect_bound); the text, the verifier and the
// interpreter take both.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "flashlight/loops/program.h"

namespace flashlight::loops {

// The sizes that a call gives, by name.
using SizeNumbers = std::map<std::string, int64_t, std::less<>>;

// The numbers of all sizes, in order. UserError if one is missing, unknown, outside of the range
// that was shown, or makes a computed size no integer.
Table<SizeId, int64_t> numbers_of(const Program& program, const SizeNumbers& given);
// The sizes that these inputs of the last function determine. UserError if an input has another
// rank, or if two determine different numbers for the same size.
SizeNumbers sizes_given(const Program& program, const std::vector<Type>& inputs);
SizeNumbers sizes_given(const Program& program, const std::vector<Array>& inputs);
// The sizes at which `open` may be this program of numbers: those that are sizes of values or
// extents of axes, as they are there. UserError where a size is neither, or where the programs
// differ in form.
SizeNumbers numbers_in(const Program& open, const Program& program);
// Replaces all names by numbers. UserError as above, and if a size becomes negative.
Program bind_sizes(Program program, const SizeNumbers& given);
// UserError that names `who`, unless all sizes are numbers.
void expect_bound(std::string_view who, const Program& program);
// The formula of a size: "12 * tokens", or "tokens" if the call gives it.
std::string print(const Program& program, const NamedSize& size);
// True if program text reads `name` as a size: [A-Za-z_][A-Za-z0-9_]*, no keyword of loops.
bool is_size_name(std::string_view name);
bool is_size_char(char c);
// Names and examples of all sizes, by SizeId.
std::vector<std::string> size_names(const Program& program);
std::vector<int64_t> size_examples(const Program& program);

}  // namespace flashlight::loops
