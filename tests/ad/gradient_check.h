// Compares what `transpose` makes of a loop form with central differences in float64, and again for
// what it makes of the result.
//
//   check_gradients(loops_of(nest, {x, w}), {random(x.type(), 1), random(w.type(), 2)});
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "composit/ad/transpose.h"
#include "composit/ir/array.h"
#include "composit/op/nest.h"

namespace composit::test {

// Operand `number`, float64 of these sizes.
In operand(size_t number, const Ints& sizes, DType dtype = DType::float64);
// The nests, one after the other, with these operands.
Loops loops_of(const std::vector<Nest>& nests, const std::vector<In>& operands);

// float64 or complex128 with parts from -1 to 1, the same for the same seed.
Array random(const Type& type, unsigned seed);
Array random(const In& operand, unsigned seed = 1);
std::vector<Array> random_all(const std::vector<In>& operands);
Array integers(const In& operand, const std::vector<int64_t>& values);
// "2 6 28 | 5 3": extents of parallel axes, and of those that are summed or scanned over.
std::string loops_of_statement(const Statement& statement);
// Elements of float64 and complex128; the latter as pairs.
std::vector<double> numbers(const Array& array);
double dot(const Array& a, const Array& b);  // of all those numbers

// The operands of a transposed loop form.
std::vector<Array> operands_of(const Transposed& transposed, const std::vector<Array>& operands,
                               const std::vector<Array>& cotangents);
Transposed transpose_all(const Loops& loops, size_t operand);  // every result has a cotangent

// Every derivative up to `order`, for every operand that is a float. Operands must stay away from
// kinks by 1e-5.
void check_gradients(const Loops& loops, const std::vector<Array>& operands, int order = 2);
// <cotangent, f(x)> == <f^T(cotangent), x>: f is linear in operand `operand`.
void check_dot_product(const Loops& loops, const std::vector<Array>& operands, size_t operand);
// Both for all operands that f is linear in.
void check_linear(const Loops& loops, const std::vector<Array>& operands,
                  const std::vector<size_t>& linear);

// Checks one nest, with random operands.
void check_random(const Nest& nest, const std::vector<In>& operands,
                  const std::vector<size_t>& linear = {});

}  // namespace composit::test
