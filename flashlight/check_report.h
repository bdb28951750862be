// The results of checks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flashlight {

// Options of comparison.
struct CheckOptions {
  bool strict = true;    // an access to a tensor's memory that no operator makes is an error
  bool float64 = false;  // compare every value with a run in float64 too
  double tolerance = 0;  // largest relative difference that passes; 0: bit for bit
  size_t ranked = 10;    // length of the ranking by error amplification
  int64_t memory =
      int64_t{2} << 30;  // bytes of intermediate values held at once while differences are measured
};

// The difference between the replay's value and the eager value of one output of a node.
struct NodeDifference {
  std::string place;          // operator, scope and source line
  size_t node = 0;            // position among the replay's operator calls
  size_t output = 0;          // which output of the node
  double absolute = 0;        // largest difference
  double relative = 0;        // largest difference over the largest magnitude
  uint64_t ulp = 0;           // largest distance in units in the last place
  double float64_replay = 0;  // relative error of the replay against float64, when asked for
  double float64_eager = 0;   // the same of the eager program
  double amplification = 0;   // float64_eager over the largest one among the node's operands
};

struct CheckReport {
  // The program took another path on these arguments: attributes, constants or operators that
  // changed. Each is a host value or a branch the capture has baked in.
  std::vector<std::string> graph_differences;
  std::vector<NodeDifference> differences;  // differences of values, in the order of execution
  std::vector<NodeDifference> ranking;      // by error amplification, worst first
  std::string error;    // a guard that failed, an access strict mode caught; empty otherwise
  size_t compared = 0;  // values compared
  double largest = 0;   // largest absolute difference of a result of the program
  // Generators whose state decided which numbers were drawn. Each run of the check began with the
  // state they had when it was called, and they are left in that state: the same check gives the
  // same report; after other draws it looks at other numbers.
  std::vector<std::string> generators;

  // Nothing differs, and nothing failed.
  bool ok() const { return error.empty() && graph_differences.empty() && differences.empty(); }
  explicit operator bool() const { return ok(); }  // the same
  int exit_code() const { return ok() ? 0 : 1; }   // 0, or 1
};

// The difference between our gradient by one input and autograd's.
struct GradientDifference {
  std::string name;     // name of the input
  double absolute = 0;  // largest difference of an element
  double relative = 0;  // over the largest element of all gradients
};

// The result of check_grad.
struct GradientReport {
  std::string oracle;  // names the source of the gradients that ours were compared with
  std::vector<GradientDifference> differences;  // one per input differentiated by
  double tolerance = 0;                         // largest relative difference that passes
  std::vector<std::string> generators;          // as in CheckReport

  // True if all differences are as small as float arithmetic allows.
  bool ok() const;
  explicit operator bool() const { return ok(); }  // the same
  int exit_code() const { return ok() ? 0 : 1; }   // 0, or 1
};

// A text for people: the first difference with its scope and line, then the rest.
std::string str(const CheckReport& report);
std::string str(const GradientReport& report);

}  // namespace flashlight
