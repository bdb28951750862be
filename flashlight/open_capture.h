// Captures what runs between two calls: for programs that are no function, and for other languages
// (flashlight/c).
//
//   OpenCapture open;
//   open.input(x, "x");
//   open.state(weight, "fc.weight", composit::InputKind::parameter);
//   at::Tensor y = …;
//   open.output(y, "y");
//   CaptureBase captured = open.end();        // or open.check(before): is `before` this program?
//
// All on one thread; scopes nest, and end in the reverse order. Such a capture does not know its
// program, so it never looks: a second run, ended by `check`, is what confirms it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "flashlight/capture.h"
#include "flashlight/look_run.h"

namespace flashlight {

class OpenCapture {
 public:
  // Records from here on, on this thread.
  explicit OpenCapture(TraceOptions options = {});

  // An argument, in the order of the calls; before the first operator reads it. Without a name it
  // is "input_0", "input_1", … UserError if the name is taken, or if an operator has read the
  // tensor.
  void input(const at::Tensor& tensor, const std::string& name = "");
  // A parameter or a buffer, which the capture goes on sharing with the program.
  void state(const at::Tensor& tensor, const std::string& name, composit::InputKind kind);
  // A result; its value is the one at the end. One result without a name is a tensor, several are a
  // tuple; named ones are a map. UserError for a tensor that the program neither got nor made.
  void output(const at::Tensor& tensor, const std::string& name = "");

  // Ends the recording, also where it throws. UserError if what ran cannot be captured.
  CaptureBase end();
  // Ends the recording, also where it throws, and compares: the graphs, then a replay on the inputs
  // as they were, bit for bit. The capture is confirmed if nothing differs, and if each argument
  // had another content than its example, or the program writes. UserError for a program that draws
  // from a generator of its own.
  CheckReport check(const CaptureBase& capture);

 private:
  void expect_unread(const at::Tensor& tensor, const std::string& name);
  void add(const at::Tensor& tensor, const std::string& name, composit::InputKind kind);
  ProgramRun finish();
  Structure result_structure() const;

  const at::Tensor generator_;  // states of generators when the scope began
  const GeneratorStates before_;
  std::set<std::string> names_, output_names_;
  std::vector<at::Tensor> arguments_;  // the program's own
  FlatValues example_;                 // the same as they came in
  std::vector<at::Tensor> outputs_;
  std::vector<std::string> names_of_outputs_;
  ValueSamples samples_;
  WatchedMemory memory_;
  std::optional<TraceScope> scope_;
};

}  // namespace flashlight
