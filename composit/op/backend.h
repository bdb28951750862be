// The interface of a backend: it compiles graphs and runs them. Implement it to add a backend.
//
//   class Mine : public Backend {
//     std::string name() const override { return "mine"; }
//     Compiled make(const Graph& graph, const CompileOptions& options) const override {
//       const auto run = [graph](const std::vector<Array>& x) { return evaluate(graph, x); };
//       return code_of(graph, options.name, run);
//     }
//   };
//   const Compiled f = Mine().compile(graph, {.name = "relu3"});
//   std::vector<Array> y = f(inputs);                            // f->run(...) on memory
//
// A backend that is registered (flashlight/backends/registry.h), or a plugin
// (composit/op/plugin.h), is reached by its name: from flashlight::compile, the command line and
// Python, which read the table of its options. composit has `reference()` (composit/eval), which
// interprets the definitions of operations.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "composit/ir/array.h"
#include "composit/ir/graph.h"
#include "composit/op/options.h"
#include "composit/op/ports.h"
#include "composit/op/size_range.h"

namespace fl {
class Generator;     // flashlight/runtime/random.hpp
struct TimedKernel;  // flashlight/runtime/profile.hpp
}  // namespace fl

namespace composit {

struct Operation;
struct SavedCapture;

// The code of a graph. Calls may run at the same time.
class Code : public std::enable_shared_from_this<Code> {
 public:
  explicit Code(Ports ports) : ports_(std::move(ports)) {}
  virtual ~Code() = default;
  // The inputs and results.
  const Ports& ports() const { return ports_; }

  // The text it was made of; empty where there is none.
  virtual const std::string& source() const;
  // True if calls draw random numbers.
  virtual bool draws() const { return false; }
  // True if `prepare` takes the value of this input, so calls need no value for it. Only with
  // CompileOptions::may_prepare.
  virtual bool is_frozen(size_t input) const;
  // True if this result, by its index among the results of `run`, is the new value of an input and
  // may be written to the input's memory. No other input may overlap that memory. A call that
  // throws does so before it writes there. Only with CompileOptions::may_update.
  virtual bool may_update(size_t result) const;

  // The code with these values of frozen inputs, by input; others are not looked at. With
  // CompileOptions::may_prepare it is called before `run`. UserError where one that is frozen has
  // no value, or one of another type.
  virtual std::shared_ptr<const Code> prepare(const std::vector<Array>& weights) const;

  // Code of one SizedCode at other sizes, prepared with the same weights.
  using Codes = std::vector<std::shared_ptr<const Code>>;
  // The same, with what `others` have prepared where they can share it.
  virtual std::shared_ptr<const Code> prepare_beside(const std::vector<Array>& weights,
                                                     const Codes& others) const;
  // The code with what `others` have prepared, without the weights; nullptr where something is
  // missing.
  virtual std::shared_ptr<const Code> prepare_like(const Codes& others) const;

  // Row-major elements of inputs and of results; an input may be nullptr where it is frozen, or
  // not used. Draws go on from where `generator` is; without one they are those of LibTorch's
  // generator with its default seed. UserError for what the code refuses: memory of another device,
  // an index out of range, a guard.
  virtual void run(InputBuffers inputs, Buffers results, fl::Generator* generator) const = 0;
  // The same, with the time of each kernel. UserError where the backend has none.
  virtual std::vector<fl::TimedKernel> profile(InputBuffers inputs, Buffers results,
                                               fl::Generator* generator) const;
  // The same by arrays: one per input, an undefined one where that may be nullptr; gives one per
  // output, an undefined one where the graph has none, then one per mutation. UserError for arrays
  // of other types.
  virtual std::vector<Array> call(const std::vector<Array>& inputs, fl::Generator* generator) const;

 private:
  Ports ports_;
};

// Code as a function of arrays.
class Compiled {
 public:
  Compiled() = default;
  Compiled(std::shared_ptr<const Code> code) : code_(std::move(code)) {}  // NOLINT

  // As Code::call; draws are those of LibTorch's generator with its default seed, or go on from
  // `generator`.
  std::vector<Array> operator()(const std::vector<Array>& inputs) const {
    return code_->call(inputs, nullptr);
  }
  std::vector<Array> operator()(const std::vector<Array>& inputs, fl::Generator& generator) const {
    return code_->call(inputs, &generator);
  }
  std::vector<Array> operator()(const std::vector<Array>& inputs, fl::Generator&& generator) const {
    return code_->call(inputs, &generator);
  }
  // The code; not where it was default-constructed.
  const Code* operator->() const { return code_.get(); }
  const Code& operator*() const { return *code_; }

 private:
  std::shared_ptr<const Code> code_;
};

// A program at some sizes, by its names for them; without names, a text calls them after inputs.
struct SizedGraph {
  Graph graph;                                // with types of these sizes
  std::map<std::string, int64_t> sizes = {};  // their numbers, by name
};

// A program for all sizes in ranges.
struct SizedGraphs {
  std::vector<SizedGraph> shown;  // at some sizes, by size, ascending
  std::vector<SizeRange> ranges;  // by size: the numbers that calls may give
  // The graph at any sizes in the ranges. UserError where the program refuses them.
  std::function<Graph(const std::map<std::string, int64_t>&)> at;
};

// Code of one program at many sizes, which share what they can: their text, what they prepare.
class SizedCode {
 public:
  virtual ~SizedCode() = default;
  // The code at the sizes of `graph`. Several threads may call. UserError as of Backend::compile.
  virtual Compiled at(const Graph& graph) = 0;
  // The same where no compiler has to run for it; nothing elsewhere. By default it has to.
  virtual std::optional<Compiled> at_once(const Graph& graph);
  // The number of texts that were compiled so far.
  virtual size_t compilations() const = 0;
  // The text that serves all sizes; empty where the backend has none, or the program.
  virtual const std::string& source() const;
};

// Code that computes with arrays. The function gives what Code::call does.
using ArrayFunction = std::function<std::vector<Array>(const std::vector<Array>&)>;
Compiled code_of(const Graph& graph, const std::string& name, ArrayFunction function);
// The same for code whose draws go on from where the generator is; nullptr: its default seed.
using DrawingFunction =
    std::function<std::vector<Array>(const std::vector<Array>&, fl::Generator* generator)>;
Compiled drawing_code_of(const Graph& graph, const std::string& name, DrawingFunction function);

struct CompileOptions {
  std::string name = "program";           // name of the function in the source
  std::vector<std::string> results = {};  // names of results; default: names of operations
  std::vector<std::string> flags = {};    // flags for a compiler, after the backend's own
  Options options = {};                   // options from the backend's table
  // Set by a caller that calls `prepare` before `run`, or that asks `may_update`.
  bool may_prepare = false, may_update = false;
  // Set by a program that has LibTorch, for code that may call it: the schemas of a graph's
  // operations as text, and the folder of the headers.
  std::function<std::vector<std::string>(const Graph&)> schemas = {};
  std::vector<std::string> torch_folders = {};
};

// A value that compiled code writes to memory.
struct WrittenValue {
  std::string name;  // by which the backend's options name it
  size_t node = 0;   // whose value it is, or which it is a part of: its place among Graph::nodes()
  // Of a product: the dtype that both sides are rounded to before they are multiplied.
  std::optional<DType> product = {};
  std::vector<size_t> nodes = {};  // all that its kernel computes; of a product those fused into it
};

class Backend {
 public:
  virtual ~Backend() = default;
  // "reference", "cpp", …: for messages.
  virtual std::string name() const = 0;
  virtual std::string help() const { return {}; }  // one line
  // The table of its options; empty where it has none.
  virtual const OptionTable& options() const;

  // UserError that lists all operations of `graph` the backend has no code for, for an option that
  // it does not have, and for what its compiler refuses.
  Compiled compile(const Graph& graph, const CompileOptions& options = {}) const;
  // Code for all sizes of one program. `shown`: its graphs at some of them, by which a backend can
  // prepare for others. By default each size is compiled alone. The backend must outlive it.
  std::shared_ptr<SizedCode> compile_sized(const std::vector<SizedGraph>& shown,
                                           const CompileOptions& options = {}) const;
  // The text that `compile` makes code of, without that; empty where there is none.
  std::string source(const Graph& graph, const CompileOptions& options = {}) const;
  // Text for people about what `compile` would make of the graph: its kernels, its parts. UserError
  // where the backend has none.
  std::string plan(const Graph& graph, const CompileOptions& options = {}) const;
  // The values that code of the graph writes to memory, in the order in which it does; empty where
  // the backend does not tell.
  std::vector<WrittenValue> written_values(const Graph& graph,
                                           const CompileOptions& options = {}) const;
  // A folder to build and ship. UserError where the backend writes none.
  void write_program(const SavedCapture& capture, const std::string& folder,
                     const CompileOptions& options = {}) const;
  // The same for all sizes in ranges. `capture` is the program at an example's sizes, with its
  // weights. UserError where the backend writes none, or has no text for one of the graphs.
  void write_program(const SavedCapture& capture, const SizedGraphs& graphs,
                     const std::string& folder, const CompileOptions& options = {}) const;
  // True if the backend has code for an operation, for at least some types. False by default.
  virtual bool has_code(const Operation& operation) const;
  // True if the backend runs operators that no row describes. False by default.
  virtual bool runs_operators_without_rows() const { return false; }
  // False if it writes text alone, and `compile` refuses.
  virtual bool compiles() const { return true; }
  // The options for code of a derivative of the graph that these are for. By default without those
  // that name values of one graph.
  virtual Options for_derivative(Options options) const;

 protected:
  // The same, with all options of the table that are for this use.
  virtual Compiled make(const Graph& graph, const CompileOptions& options) const = 0;
  virtual std::shared_ptr<SizedCode> make_sized(const std::vector<SizedGraph>& shown,
                                                const CompileOptions& options) const;
  virtual std::string write(const Graph& graph, const CompileOptions& options) const;
  virtual std::string describe_plan(const Graph& graph, const CompileOptions& options) const;
  virtual std::vector<WrittenValue> list_written(const Graph& graph,
                                                 const CompileOptions& options) const;
  virtual void write_folder(const SavedCapture& capture, const std::string& folder,
                            const CompileOptions& options) const;
  virtual void write_sized_folder(const SavedCapture& capture, const SizedGraphs& graphs,
                                  const std::string& folder, const CompileOptions& options) const;
};

}  // namespace composit
