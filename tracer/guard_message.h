// What a replay says when a guard fails: where, what it was, what it is, and how to write the
// program so that nothing depends on it.
#pragma once

#include <string>

#include "composit/ir/node.h"
#include "tracer/plan.h"

namespace flashlight::tracer {

// `step` gives a number, or compares values.
std::string number_differs(const Plan::Impl& plan, const Step& step, const std::string& expected,
                           const std::string& received);
// The sizes of output `index`.
std::string sizes_differ(const composit::Node& node, size_t index, const std::string& expected,
                         const std::string& received);

}  // namespace flashlight::tracer
