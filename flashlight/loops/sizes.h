// Named sizes of a program: what a call gives, and what follows from it.
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

// What the sizes that the call gives are, by name.
using SizeNumbers = std::map<std::string, int64_t, std::less<>>;

// All sizes of the program, in order. UserError where one is missing, unknown, was not shown, or
// gives no integer for a size that follows from it.
Table<SizeId, int64_t> numbers_of(const Program& program, const SizeNumbers& given);
// What these inputs of the last function give. UserError where one has another rank, or where two
// give different numbers for the same size.
SizeNumbers sizes_given(const Program& program, const std::vector<Array>& inputs);
// Numbers in place of all names. UserError as above, and where a size becomes negative.
Program bind_sizes(Program program, const SizeNumbers& given);
// UserError that names `who`, unless all sizes are numbers.
void expect_bound(std::string_view who, const Program& program);
// "12 * tokens", "tokens" where the call gives it.
std::string print(const Program& program, const NamedSize& size);
// Whether the text of programs reads it as a size: [A-Za-z_][A-Za-z0-9_]*, no word of loops.
bool is_size_name(std::string_view name);
bool is_size_char(char c);
// By number.
std::vector<std::string> size_names(const Program& program);
std::vector<int64_t> size_examples(const Program& program);

}  // namespace flashlight::loops
