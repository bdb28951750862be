// The message of a replay whose guard fails: the source line, the recorded value, the value now,
// and advice on writing the program so that it does not depend on the value.
#pragma once

#include <string>

#include "composit/ir/node.h"
#include "tracer/plan.h"

namespace flashlight::tracer {

// Numbers are equal when their bits are: NaN equals NaN.
bool same_number(const c10::IValue& value, const c10::Scalar& expected);
// `step` gives a number, or compares values.
std::string number_differs(const Plan::Impl& plan, const Step& step, const std::string& expected,
                           const std::string& received);
// UserError where a number that follows from finite ones is none: the program divides by zero
// there.
void expect_finite(const Step& step, const ChangingNumber& number, double value);
// The sizes of output `index`.
std::string sizes_differ(const composit::Node& node, size_t index, const std::string& expected,
                         const std::string& received);

}  // namespace flashlight::tracer
