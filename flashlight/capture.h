// A captured program: its graph, the names of its inputs and the tensors bound to them, and the
// assumptions under which it is right.
//
//   auto captured = flashlight::trace(model, x);     // trace.h
//   at::Tensor y = captured(x2);                     // a look: the program runs, and is compared
//   at::Tensor z = captured(x3);                     // replay: the same bits as model(x3)
//   for (const std::string& line : captured.assumptions()) std::cout << line << '\n';
//   captured.save("resnet50");
//   auto again = flashlight::load("resnet50");       // Capture<>: tensors in, tensors out
//
// A replay computes no autograd graph. It writes what the program writes: buffers, parameters and
// arguments.
//
// A capture is trusted once it was seen twice. Until then its call operator is a *look*: it runs
// and records the program, returns the program's results, and compares: the new graph with the old
// one, and a replay of the old one on copies with the program, bit for bit. If they are equal, the
// capture is confirmed and calls replay from then on; else the next call is refused. See
// docs/promise.md.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "composit/ir/graph.h"
#include "composit/op/backend.h"
#include "flashlight/check_report.h"
#include "flashlight/gradient.h"
#include "flashlight/structure.h"
#include "tracer/trace_scope.h"

namespace composit {
struct SavedCapture;
}  // namespace composit

namespace flashlight {

// Sizes of a capture.
struct Statistics {
  size_t nodes = 0;  // nodes of the graph; a closed composite counts as one
  size_t calls = 0;  // operator calls of a replay, the insides of composites included
  std::map<std::string, size_t> calls_by_op;  // by name of the operator
  size_t parameters = 0;                      // elements of parameters and buffers
  size_t bytes = 0;                           // bytes of parameters, buffers and constants
  size_t guards = 0;  // values and data-dependent sizes that are compared during replay
};

// Tensors of a call, and the structure of the C++ values that have them.
struct FlatValues {
  std::vector<at::Tensor> tensors;  // in the order of the structure
  Structure structure;              // structure of the values
  bool of_look = false;             // the program ran for them, in a look
};

// The eager program on flat arguments.
using Program = std::function<FlatValues(const std::vector<at::Tensor>&)>;

// The trust in a capture: how much of the program it has seen.
enum class Trust : uint8_t {
  seen_once,     // one run
  confirmed,     // a second run, of other inputs, was the same graph with the same bits
  equal_inputs,  // five runs, all of inputs with the same content
  translated     // made from its source, not from a run (TorchScript, .pt2, ONNX)
};
// "seen once", "confirmed", …
std::string_view name(Trust trust);

// The number of times that looks ran programs in this process.
size_t looks_taken();

// Tensors known by name before the program runs.
struct NamedTensor {
  std::string name;   // in the graph: "layer1.0.conv1.weight"
  at::Tensor tensor;  // the program's own
  composit::InputKind kind = composit::InputKind::parameter;  // parameter or buffer
};

// Returns the named tensors as they are now: a program may have replaced some.
using NamesOf = std::function<std::vector<NamedTensor>()>;

// The present state of a program's modules: which of them are in training mode, and the identity of
// modules, parameters and buffers.
struct ModuleView {
  std::vector<bool> training = {};      // per module
  std::vector<const void*> parts = {};  // addresses
};

// The program that a capture records, and may run again.
struct TracedProgram {
  Program run;  // runs it on flat arguments
  // Runs it on arguments of another structure: with other numbers among them. May be absent.
  std::function<Program(const Structure& arguments)> run_as = nullptr;
  NamesOf named;  // tensors that have names
  // It refers to a module that it does not own: it is run only while parameters have another owner
  // than the capture.
  bool borrowed = false;
  // The present state of its modules. None: unknown.
  std::function<ModuleView()> modules = nullptr;
  bool seen_once = false;  // never look
};

class Looks;

// A capture whose types are not known: tensors in, tensors out.
class CaptureBase {
 public:
  // Runs `program` once inside a scope.
  static CaptureBase capture(TracedProgram program, FlatValues arguments,
                             const TraceOptions& options);

  // A capture of an excerpt of a program that goes on (TraceOptions::excerpt). Its inputs are those
  // of the recording with the values they had; its arguments are the tensors without a name.
  // `generator`: the state of the default generator when the excerpt began.
  static CaptureBase excerpt(tracer::Recording& recording, FlatValues results,
                             at::Tensor generator);

  // Confirms an excerpt by the piece `before`, which ran before it. Returns true, and the capture
  // is confirmed, if both have the same graph, their inputs differ, and a replay gives the same
  // bits as this run, also in the memory that it wrote.
  bool confirm_by(const CaptureBase& before, const tracer::Recording& recording) const;

  // The graph of the program. It stays valid and unchanged when a later look replaces the capture's
  // graph.
  const composit::Graph& graph() const;
  // The structure of arguments and results: how they are made of tensors.
  const Structure& argument_structure() const;
  const Structure& result_structure() const;

  // A tensor per input of the graph: the arguments' tensors, parameters and buffers. UserError for
  // another number of arguments.
  std::vector<at::Tensor> bind(const std::vector<at::Tensor>& arguments) const;

  // A look until the capture is confirmed, `replay` from then on. UserError as of `replay`, and if
  // the last look found a difference, with the operator, its line and both values; nothing runs and
  // nothing is written then. Exceptions of the program pass through a look. Looks run one at a
  // time: other threads wait. If the program calls its capture in a look, that call runs the
  // program.
  FlatValues call(const std::vector<at::Tensor>& arguments) const;

  // The trust in the capture; the difference that makes it refuse calls, empty if there is none.
  Trust trust() const;
  std::string refusal() const;
  // The capture as it is now: it never looks, and no later version replaces it.
  CaptureBase frozen() const;
  // UserError if a look has found a difference. Warns once if `what` ("a replay") is made of a
  // capture that was seen once.
  void expect_trust(const char* what) const;
  // UserError if numbers of the capture follow the calls: only a replay counts them.
  void expect_fixed_numbers(const char* what) const;

  // Results of the program for these tensors; the program does not run. UserError if one has
  // another type than its example, if a guard fails, or if a number among the arguments differs;
  // nothing is written then.
  std::vector<at::Tensor> replay(const std::vector<at::Tensor>& arguments) const;

  // The same results by another backend, for instance by composit::reference(), the definitions of
  // the operations. Nothing is written. UserError if the backend lacks an operation.
  std::vector<at::Tensor> evaluate(const std::vector<at::Tensor>& arguments,
                                   const composit::Backend& backend) const;

  // The assumptions of the capture, one line each: how often it was seen, pinned types, guards,
  // constants, random draws, writes.
  std::vector<std::string> assumptions() const;
  // The sizes of the capture. Takes time linear in the size of the graph.
  Statistics statistics() const;

  // Parameters and buffers by name, sharing memory with the model's.
  std::vector<NamedTensor> state() const;
  // The tensors that the program used without getting them as arguments, with their names in the
  // graph.
  std::vector<std::pair<std::string, at::Tensor>> constants() const;
  // The tensors that the capture was made with, and the program's results for them.
  const std::vector<at::Tensor>& example_arguments() const;
  const std::vector<at::Tensor>& example_results() const;
  // The state of the default generator when the program began; undefined if it drew nothing.
  const at::Tensor& example_generator() const;

  // The derivative of result `loss`, one number, by the inputs named (parameters and arguments; all
  // trainable parameters, if none is). UserError for an unknown name, an operation without a
  // derivative, a result that is no single number.
  Gradient grad(size_t loss = 0, const std::vector<std::string>& wrt = {}) const;

  // Writes a folder (see composit/io/saved_capture.h), replacing a capture that is there
  // atomically.
  void save(const std::filesystem::path& folder) const;
  // What `save` writes. Its arrays share memory with the tensors.
  composit::SavedCapture saved() const;
  // Loads a capture that does not know its program, so it never looks. UserError for other folders.
  static CaptureBase load(const std::filesystem::path& folder);

  // Runs the program again on `arguments` and compares with this capture, graph first, then every
  // value. See check.h.
  CheckReport check_flat(const std::vector<at::Tensor>& arguments,
                         const CheckOptions& options) const;

  // Compares `grad(loss, wrt)` on these arguments with autograd: with the `.grad` that backward()
  // inside the program left, with autograd on the program's result, or, for a capture that does not
  // know its program, with autograd on a replay. Parameters, buffers, arguments and random
  // generators are left as they were; each run begins with the state the generators have at the
  // call.
  GradientReport check_grad(const std::vector<at::Tensor>& arguments, size_t loss = 0,
                            const std::vector<std::string>& wrt = {}) const;

  struct State;  // capture_state.h

 private:
  explicit CaptureBase(std::shared_ptr<State> state);
  friend class Checker;
  friend class CompiledCapture;
  friend class CompiledChecker;
  friend class FamilyMaker;
  friend class OpenCapture;
  const State& now() const { return *shared(); }
  static CaptureBase of_saved(const composit::SavedCapture& saved,
                              const std::filesystem::path& folder);
  const std::shared_ptr<State>& shared() const;

  std::shared_ptr<State> state_;
  std::shared_ptr<Looks> looks_;  // set for a capture that knows its program
};

namespace detail {

// UserError where `received` is another structure of arguments.
void expect_structure(const Structure& expected, const Structure& received);

// The tensors of values, as a `Tuple` of the types that a program takes.
template <class Tuple, class... Values>
FlatValues flatten_as(const Structure& expected, Values&&... values) {
  FlatValues flat;
  const Tuple tuple(std::forward<Values>(values)...);
  flat.structure = flatten(tuple, flat.tensors);
  expect_structure(expected, flat.structure);
  return flat;
}

}  // namespace detail

template <class Signature = void>
class Capture;

// A capture whose types are known: called and checked like the program.
template <class Result, class... Arguments>
class Capture<Result(Arguments...)> : public CaptureBase {
 public:
  // `base` must have these types.
  explicit Capture(CaptureBase base) : CaptureBase(std::move(base)) {}

  // The program's result: see CaptureBase::call.
  template <class... Values>
  Result operator()(Values&&... values) const {
    const FlatValues flat = flatten_arguments(std::forward<Values>(values)...);
    const FlatValues results = call(flat.tensors);
    if constexpr (!std::is_void_v<Result>)
      return unflatten<Result>(results.structure, results.tensors);
  }

  // Checks that the capture is still the program. See check.h.
  template <class... Values>
  requires(sizeof...(Values) == sizeof...(Arguments)) CheckReport check(Values&&... values)
  const { return check_flat(flatten_arguments(std::forward<Values>(values)...).tensors, {}); }
  template <class... Values>
  requires(sizeof...(Values) == sizeof...(Arguments)) CheckReport
      check(const CheckOptions& options, Values&&... values)
  const { return check_flat(flatten_arguments(std::forward<Values>(values)...).tensors, options); }

  // Takes the arguments apart. UserError if they have another structure than the example's.
  template <class... Values>
  FlatValues flatten_arguments(Values&&... values) const {
    return detail::flatten_as<std::tuple<std::decay_t<Arguments>...>>(
        argument_structure(), std::forward<Values>(values)...);
  }
};

// Tensors in, tensors out, in the order of the structure.
template <>
class Capture<void> : public CaptureBase {
 public:
  // A typed view of any capture.
  explicit Capture(CaptureBase base) : CaptureBase(std::move(base)) {}

  // The tensors of the result: see CaptureBase::call.
  template <class... Tensors>
  std::vector<at::Tensor> operator()(const Tensors&... tensors) const {
    return call(std::vector<at::Tensor>{tensors...}).tensors;
  }
};

// `load<Result(Arguments...)>` gives back the types the capture was made with; UserError when they
// do not fit.
template <class Signature = void>
Capture<Signature> load(const std::filesystem::path& folder) {
  return Capture<Signature>(CaptureBase::load(folder));
}

}  // namespace flashlight
