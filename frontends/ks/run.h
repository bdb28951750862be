// Runs a program's `main`, as Knossos' own compiler builds it to be run.
//
//   run(parse(text, "hello.ks"), std::cout);      // what `print` gets, without anything between
#pragma once

#include <ostream>

#include "frontends/ks/graph.h"

namespace flashlight::ks {

// Writes what main prints: numbers with six digits, Bools as 0 and 1, items of tuples separated by
// commas, tensors in brackets. All of it is evaluated by the reference interpreter. UserError where
// there is no `(def main Integer () …)`, or where `print` stands in a function that is called for
// each index.
void run(const Program& program, std::ostream& out,
         const GraphOptions& options = {.floating = composit::DType::float64});

}  // namespace flashlight::ks
