// Where rows and torch differ, and why that is right.
#pragma once

#include "tests/ops/opdb/recorded.h"
#include "tests/ops/torch_accuracy.h"

namespace composit::opdb {

using test::What;

// What a difference means: a failure; one that we know of, so that the call is not covered; or that
// torch's answer is one of several right ones.
enum class Verdict { fails, differs, right };
Verdict verdict(const RecordedCall& call, What what, const std::string& wrong);

}  // namespace composit::opdb
