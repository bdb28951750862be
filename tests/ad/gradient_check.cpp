#include "tests/ad/gradient_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "composit/eval/loops.h"

namespace composit::test {
namespace {

constexpr double kStep = 1e-5;

size_t count_of_numbers(const Type& type) {
  return static_cast<size_t>(type.numel()) * (is_complex(type.dtype) ? 2 : 1);
}

bool has_gradient(const Type& type) {
  return type.dtype == DType::float64 || type.dtype == DType::complex128;
}

Array array_of(const Type& type, const std::vector<double>& numbers) {
  return Array::copy_of(type, numbers.data());
}

std::vector<Array> random_cotangents(const Loops& loops) {
  std::vector<Array> cotangents;
  for (const Type& type : loops.results)
    cotangents.push_back(has_gradient(type) ? random(type, 77 + cotangents.size()) : Array());
  return cotangents;
}

double weighted_results(const Loops& loops, const std::vector<Array>& operands,
                        const std::vector<Array>& cotangents) {
  double total = 0;
  const std::vector<Array> results = evaluate(loops, operands);
  for (size_t i = 0; i < results.size(); ++i)
    if (cotangents[i].defined()) total += dot(results[i], cotangents[i]);
  return total;
}

double central_difference(const Loops& loops, std::vector<Array> operands, size_t operand,
                          size_t element, const std::vector<Array>& cotangents) {
  const Type type = operands[operand].type();
  const auto moved_by = [&](double step) {
    std::vector<double> values = numbers(operands[operand]);
    values[element] += step;
    std::vector<Array> moved = operands;
    moved[operand] = array_of(type, values);
    return weighted_results(loops, moved, cotangents);
  };
  return (moved_by(kStep) - moved_by(-kStep)) / (2 * kStep);
}

void check_operand(const Loops& loops, const std::vector<Array>& operands, size_t operand,
                   int order) {
  SCOPED_TRACE("with respect to operand " + std::to_string(operand) + " of\n" + print(loops));
  const std::vector<Array> cotangents = random_cotangents(loops);
  const Transposed transposed = transpose_all(loops, operand);
  ASSERT_NO_THROW(verify(transposed.loops));
  const std::vector<Array> inputs = operands_of(transposed, operands, cotangents);
  const std::vector<double> found = numbers(evaluate(transposed.loops, inputs).at(0));
  ASSERT_EQ(found.size(), count_of_numbers(operands[operand].type()));
  for (size_t i = 0; i < found.size(); ++i) {
    const double expected = central_difference(loops, operands, operand, i, cotangents);
    ASSERT_NEAR(found[i], expected, 1e-7 * (1 + std::abs(expected))) << "element " << i << " by\n"
                                                                     << print(transposed.loops);
  }
  if (order > 1) check_gradients(transposed.loops, inputs, order - 1);
}

}  // namespace

In operand(size_t number, const Ints& sizes, DType dtype) {
  return {number, tensor_type(dtype, sizes)};
}

Loops loops_of(const std::vector<Nest>& nests, const std::vector<In>& operands) {
  Loops loops = sequence(nests);
  for (const In& operand : operands) loops.operands.push_back(operand.type());
  verify(loops);
  return loops;
}

Array random(const Type& type, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> between(-1, 1);
  std::vector<double> values(count_of_numbers(type));
  for (double& value : values) value = between(engine);
  return array_of(type, values);
}

Array random(const In& operand, unsigned seed) {
  return random(operand.type(), seed + 10 * static_cast<unsigned>(operand.operand()));
}

std::vector<Array> random_all(const std::vector<In>& operands) {
  std::vector<Array> arrays;
  for (const In& operand : operands) arrays.push_back(random(operand));
  return arrays;
}

Array integers(const In& operand, const std::vector<int64_t>& values) {
  EXPECT_EQ(operand.numel(), static_cast<int64_t>(values.size()));
  return Array::copy_of(operand.type(), values.data());
}

std::string loops_of_statement(const Statement& statement) {
  std::string parallel, others;
  for (const Axis& axis : statement.axes) {
    const std::string text =
        (axis.kind == AxisKind::scan ? "scan " : "") + std::to_string(axis.extent) + " ";
    (axis.kind == AxisKind::parallel ? parallel : others) += text;
  }
  return parallel + "| " + others;
}

std::vector<double> numbers(const Array& array) {
  EXPECT_TRUE(has_gradient(array.type()));
  const Array plain = array.contiguous();
  const auto* first = reinterpret_cast<const double*>(plain.data());
  return {first, first + count_of_numbers(plain.type())};
}

double dot(const Array& a, const Array& b) {
  const std::vector<double> x = numbers(a), y = numbers(b);
  EXPECT_EQ(x.size(), y.size());
  double total = 0;
  for (size_t i = 0; i < x.size(); ++i) total += x[i] * y[i];
  return total;
}

std::vector<Array> operands_of(const Transposed& transposed, const std::vector<Array>& operands,
                               const std::vector<Array>& cotangents) {
  std::vector<Array> chosen;
  for (size_t number : transposed.operands)
    chosen.push_back(number < operands.size() ? operands[number]
                                              : cotangents.at(number - operands.size()));
  return chosen;
}

Transposed transpose_all(const Loops& loops, size_t operand) {
  return transpose(loops, operand, std::vector<bool>(loops.results.size(), true));
}

void check_gradients(const Loops& loops, const std::vector<Array>& operands, int order) {
  for (size_t i = 0; i < operands.size() && !testing::Test::HasFatalFailure(); ++i)
    if (has_gradient(operands[i].type())) check_operand(loops, operands, i, order);
}

void check_dot_product(const Loops& loops, const std::vector<Array>& operands, size_t operand) {
  const std::vector<Array> cotangents = random_cotangents(loops);
  const Transposed transposed = transpose_all(loops, operand);
  const Array back =
      evaluate(transposed.loops, operands_of(transposed, operands, cotangents)).at(0);
  const double forward = weighted_results(loops, operands, cotangents);
  EXPECT_NEAR(dot(back, operands[operand]), forward, 1e-13 * (1 + std::abs(forward)))
      << print(transposed.loops);
}

void check_linear(const Loops& loops, const std::vector<Array>& operands,
                  const std::vector<size_t>& linear) {
  check_gradients(loops, operands);
  for (size_t operand : linear) check_dot_product(loops, operands, operand);
}

void check_random(const Nest& nest, const std::vector<In>& operands,
                  const std::vector<size_t>& linear) {
  check_linear(loops_of({nest}, operands), random_all(operands), linear);
}

}  // namespace composit::test
