// Functions of Knossos' language as graphs.
//
//   const Program program = parse(text, "square.ks");
//   composit::Graph graph = graph_of(program, "square", {tensor_type(DType::float32, {100})});
//
// Sizes are known: those of arguments are given. What depends on values or on an index is the
// length of a ragged tensor, whose largest size is known. Functions are inlined.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "composit/ir/graph.h"
#include "frontends/ks/syntax.h"

namespace flashlight::ks {

// Parameters and result of a function, or of its derivative.
struct Signature {
  std::vector<Parameter> parameters;  // in their order
  Type result;                        // type of the result
};
// UserError where there is no such function.
Signature signature_of(const Program& program, const std::string& function);

// Choices for the numbers of a graph.
struct GraphOptions {
  composit::DType floating = composit::DType::float32;  // of Float; or float64
};

// One number of an argument, at all indices of the tensors that it is in: an input of that type; or
// an integer or bool that is known. Before the elements of a ragged tensor stand its lengths, an
// int64 for each tensor that it is: float64[3, 5] is a Vec of Vecs of 5, after int64[3] one of Vecs
// of up to 5. Tangents have none: their lengths are those of what they are tangents of.
using ArgumentLeaf = std::variant<composit::Type, int64_t, bool>;

// `function`: "gmm", "[rev gmm]", "[gmm (Vec Float)]". `leaves`: of its argument, in order. Inputs
// have the names of parameters; results are the numbers of the result, with lengths as above.
// UserError with file, line and column for what has no graph: a recursion that does not end, a size
// without a bound.
composit::Graph graph_of(const Program& program, const std::string& function,
                         const std::vector<ArgumentLeaf>& leaves, const GraphOptions& options = {});

}  // namespace flashlight::ks
