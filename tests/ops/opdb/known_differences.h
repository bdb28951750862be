// Where rows and torch differ, and why that is right.
#pragma once

#include "tests/ops/opdb/agreement.h"
#include "tests/ops/opdb/recorded.h"

namespace composit::opdb {

enum class What { type, value, derivative };

// Wider than the dtype's where torch itself computes with less than it has.
Tolerance tolerance(const RecordedCall& call, What what, DType dtype);

// What a difference means: a failure; one that we know of, so that the call is not covered; or that
// torch's answer is one of several right ones.
enum class Verdict { fails, differs, right };
Verdict verdict(const RecordedCall& call, What what, const std::string& wrong);

}  // namespace composit::opdb
