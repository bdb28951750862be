#include "composit/eval/loops.h"

#include <algorithm>
#include <string>

#include "composit/eval/statement.h"
#include "composit/ir/error.h"
#include "composit/op/compute_type.h"
#include "composit/op/scalar_value.h"

namespace composit {
namespace {

void check_operands(const Loops& loops, const std::vector<Array>& operands) {
  COMPOSIT_ASSERT(operands.size() == loops.operands.size(), "another number of operands");
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!is_defined(loops.operands[i])) continue;
    const Type &expected = loops.operands[i], &received = operands[i].type();
    COMPOSIT_ASSERT(expected.dtype == received.dtype && expected.sizes == received.sizes,
                    "operand " + std::to_string(i) + " is of another type");
    COMPOSIT_ASSERT(!received.conj && !received.neg, "an operand that is lazily conjugated");
  }
}

eval::Result make_result(const Loops& loops, size_t number) {
  const Type& type = loops.results[number];
  if (!is_defined(type)) return {type, type.dtype, nullptr};
  bool sums = false;
  for (const Statement& statement : loops.statements)
    for (const Store& store : statement.stores) sums |= store.add && store.result == number;
  const DType dtype = sums ? eval::wide_dtype(type.dtype) : type.dtype;
  const Type memory = tensor_type(dtype, type.sizes);
  return {memory, type.dtype, eval::zeros(memory)};
}

Array rounded(const eval::Result& result) {
  if (result.data == nullptr) return {};
  if (result.type.dtype == result.dtype) return Array(result.type, result.data, result.data.get());
  const Type type = tensor_type(result.dtype, result.type.sizes);
  const std::shared_ptr<std::byte> data = eval::zeros(type);
  std::complex<double> wide[eval::kBlock], narrow[eval::kBlock];
  const int64_t count = type.numel();
  constexpr auto kStep = static_cast<int64_t>(eval::kBlock);
  for (int64_t first = 0; first < count; first += kStep) {
    const auto n = static_cast<size_t>(std::min(kStep, count - first));
    const eval::Elements elements = {.first = first, .step = 1};
    eval::read(result.type.dtype, n, result.data.get(), elements, wide);
    apply_cast(result.type.dtype, result.dtype, n, wide, narrow);
    eval::write(result.dtype, n, narrow, data.get(), elements, false);
  }
  return Array(type, data, data.get());
}

}  // namespace

std::vector<Array> evaluate(const Loops& loops, const std::vector<Array>& operands) {
  check_operands(loops, operands);
  std::vector<eval::Result> results;
  for (size_t i = 0; i < loops.results.size(); ++i) results.push_back(make_result(loops, i));
  for (const Statement& statement : loops.statements) {
    const Statement wide = eval::with_wide_accumulators(statement);
    eval::StatementRun(wide, operands, results).run();
  }
  std::vector<Array> arrays;
  for (const eval::Result& result : results) arrays.push_back(rounded(result));
  return arrays;
}

}  // namespace composit
