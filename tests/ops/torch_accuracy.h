// Tolerances for rows beside torch.
//
//   difference(ours, torch, torch_tolerance("aten::polygamma", What::value, DType::float64));
#pragma once

#include <string_view>

#include "tests/agreement.h"

namespace composit::test {

enum class What { type, value, derivative };

// That of the dtype, or a wider one where torch itself computes with less than the dtype has.
// Finite differences (rows_test.cpp) look at our derivatives there.
Tolerance torch_tolerance(std::string_view op, What what, DType dtype);

}  // namespace composit::test
