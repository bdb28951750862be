// The commands. Each returns the exit code: 0, or 1 if a comparison found a difference.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "composit/io/saved_capture.h"
#include "composit/ir/graph.h"
#include "composit/op/backend.h"

namespace cli {

// A saved capture to make code of; says on the error stream that it was seen once. UserError where
// its numbers follow its calls, and for a family unless it may be one.
composit::SavedCapture load_to_compile(const std::string& folder, bool may_be_family = false);

// Says on the error stream that a capture was seen once.
void warn_of_trust(const composit::SavedCapture& capture, const std::string& folder);

// The graph after `passes` ("canonicalize,drop_no_ops", or nothing), as text or drawn into `svg`.
int show(const std::string& folder, const std::string& passes, const std::string& svg,
         std::ostream& out);
int list(const std::string& folder, bool weights, std::ostream& out);
int diff(const std::string& folder, const std::string& other, std::ostream& out);
// A capture and who compiles it.
struct BackendArguments {
  std::string folder;
  const composit::Backend* backend = nullptr;
  composit::Options options;  // of the backend
};
// The options for a capture that a command compiles.
composit::CompileOptions compile_options(const composit::SavedCapture& capture,
                                         const composit::Options& options, const std::string& name);
// The C++ that the capture becomes.
int emit(const BackendArguments& arguments, std::ostream& out);
struct PlanArguments : BackendArguments {
  std::string arena;  // draws mosaic's arena over time into this .svg
  std::string graph;  // draws mosaic's kernels, coloured by place, into this .svg, .dot or .gv
};
// Prints what the backend would make of the capture, or draws mosaic's kernels.
int plan(const PlanArguments& arguments, std::ostream& out);
// Compiles it, runs the saved example and compares with the saved results.
int run(const BackendArguments& arguments, std::ostream& out);
struct CompileArguments : BackendArguments {
  std::string target;  // the folder to write
  std::string name;    // of the program; empty: that of `folder`
  std::vector<std::string> gradients;
  std::vector<std::string> sizes;  // of a family, those to write it for: "tokens=64..2048:64"
};
// Writes a program to build elsewhere. With `gradients`, it also gives the derivatives of its first
// result, which is one number, by these inputs, as "grad_NAME".
int compile(const CompileArguments& arguments, std::ostream& out);
struct UnifyArguments {
  std::vector<std::string> folders;  // captures of one program at several sizes
  std::vector<std::string> names;    // of the sizes; empty: by input and axis
  // What the program asks of numbers that it reads: "model.cpp:12 > 0".
  std::vector<std::string> predicates;
  std::string target;  // the folder to write
};
// Makes a family of captures.
int unify(const UnifyArguments& arguments, std::ostream& out);
struct BindArguments {
  std::string folder;              // a family
  std::vector<std::string> sizes;  // "tokens=96"
  std::string target;              // the folder to write
};
// Prints the further cases of a family, sizes and conditions.
void show_family(const composit::SavedCapture& saved, std::ostream& out);
// Writes the capture that a family has at these sizes.
int bind(const BindArguments& arguments, std::ostream& out);
struct QuantizeArguments : BackendArguments {  // who runs the example
  std::string target;                          // the folder to write
  std::string weights = "int8";                // or int4
  int64_t group = 0;                           // composit::WeightFormat
  bool asymmetric = false;
  std::string scales = "float32";
  std::string activations = "unchanged", method = "nearest";  // composit::QuantizeOptions
  bool all_readers = false;
  std::vector<std::string> layers, except;
  std::optional<double> max_error;
  bool unmeasured = false;
  std::string alone;  // the backend of QuantizeOptions::alone; empty: none
};
// Writes the capture with weights of few bits, and reports what that does to them.
int quantize(const QuantizeArguments& arguments, std::ostream& out);
// Gives a saved capture the results that a replay of its example has, where there is LibTorch.
void replay_example(const std::string& folder);
struct ImportArguments {
  // A module saved by TorchScript, a program by torch.export, an ONNX model, the text of Python's
  // functions (.py), or of Knossos' (.ks).
  std::string file;
  std::string function;             // empty: `forward`, of a text the last one
  std::vector<std::string> inputs;  // a type like float32[1,3] for a tensor, else a literal
  std::vector<std::string> sizes;   // of an ONNX model, that it leaves open: "batch=2"
  std::string target;               // the folder to write
};
// Writes a program as a capture with random example inputs. UserError for TorchScript in a build
// without LibTorch.
int import(const ImportArguments& arguments, std::ostream& out);
struct ExportArguments {
  std::string folder;  // a saved capture
  std::string target;  // the file to write
  std::string format;  // "pt2", "onnx", "stablehlo"; empty: by the ending of `target`
  bool parameters_as_buffers = false;  // of pt2: Pt2Options
  int opset = 20;                      // of onnx: OnnxOptions
  bool weights_as_parameters = false;  // of stablehlo: StableHloOptions
  bool drop_guards = false;            // of onnx and stablehlo
  bool matmul_nbits = false;           // of onnx: OnnxOptions
  bool weights_in_place = false;       // of onnx: the folder's file of weights is the model's
};
// Writes a capture in a format of other tools.
int export_to(const ExportArguments& arguments, std::ostream& out);
// Runs `main` of a program of Knossos' language.
int run_ks(const std::string& file, std::ostream& out);
int import_torchscript(const ImportArguments& arguments, std::ostream& out);
// The table of operations whose names contain `filter`: how each is defined and differentiated,
// and which backends have code for it.
int ops(const std::string& filter, std::ostream& out);
// The passes there are, what they assume and do.
int passes(std::ostream& out);
// The environment variables that are looked at, with their values.
int env(std::ostream& out);
// UserError in a build without LibTorch.
int check(const std::string& folder, std::ostream& out);
struct CheckCompiledArguments : BackendArguments {
  bool every_node = false;  // flashlight::CheckCompiledOptions
};
// The errors of compiled code on the saved example, against float64.
int check_compiled(const CheckCompiledArguments& arguments, std::ostream& out);
// Gradients by all parameters against autograd's.
int check_grad(const std::string& folder, size_t loss, std::ostream& out);

struct CaptureArguments {
  std::vector<std::string> command;  // the program and its arguments
  std::string folder = "captured";   // must be empty, or not be there
  std::string cut = "automatic";     // or forward, optimizer, run (frontends/preload/settings.h)
  std::optional<int64_t> step;       // only this one
  int64_t steps = 10;                // at most; 0: all
  bool lines = true;
};
// Runs the command and captures what LibTorch does in it, a folder per step; tells `log` which.
// The command's exit code; where a signal killed it, that kills this process, too. UserError before
// it has begun, and in a build without LibTorch.
int capture(const CaptureArguments& arguments, std::ostream& log);

// The regions that `graph` calls, once each.
void print_called(const composit::Graph& graph, std::ostream& out);

}  // namespace cli
