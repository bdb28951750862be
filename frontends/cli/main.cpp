// The command line: `flashlight show|list|diff|check|emit|run|plan|compile FOLDER`,
// `flashlight export|quantize FOLDER`, `flashlight unify|bind`, `flashlight import FILE`,
// `flashlight capture -- COMMAND…`, `flashlight ops|passes|env`. See `flashlight --help`.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "composit/ir/error.h"
#include "flashlight/version.h"
#include "frontends/cli/backend_options.h"
#include "frontends/cli/commands.h"

namespace {

std::string version_text() {
  std::string text = "flashlight " + std::string(flashlight::kVersion);
  if (flashlight::kTorchVersion.empty()) return text + ", without LibTorch";
  return text + ", LibTorch " + std::string(flashlight::kTorchVersion);
}

struct Arguments {
  std::string folder, other;
  std::string svg, passes;
  std::string filter;
  size_t loss = 0;
  bool grad = false;
  bool every_node = false;
  bool weights = false;
};

CLI::App* add_command(CLI::App& app, const char* name, const char* help, std::string& folder) {
  CLI::App* command = app.add_subcommand(name, help);
  command->add_option("FOLDER", folder, "a saved capture")->required();
  return command;
}

CLI::App* add_compile(CLI::App& app, cli::CompileArguments& arguments) {
  CLI::App* command = add_command(
      app, "compile",
      "write the capture, or a family by cpp, as a program to build where a compiler is",
      arguments.folder);
  command->add_option("-o,--output", arguments.target, "the folder to write")->required();
  command->add_option("--name", arguments.name, "of the function; FOLDER's if left out");
  command->add_option("--grad", arguments.gradients,
                      "parameters and inputs to derive the first result by, which is one number");
  command->add_option("--size", arguments.sizes,
                      "numbers of a family's size to write the program for: tokens=8,\n"
                      "tokens=8..64, tokens=64..2048:64 (in steps); all if left out");
  return command;
}

CLI::App* add_plan(CLI::App& app, cli::PlanArguments& arguments) {
  CLI::App* command = add_command(
      app, "plan",
      "print what a backend makes of the capture: mosaic's kernels, with what is fused\n"
      "where; parts on several devices, and what is copied between them",
      arguments.folder);
  command->add_option("--arena", arguments.arena,
                      "draw mosaic's memory over time into this .svg instead");
  command->add_option(
      "--graph", arguments.graph,
      "draw mosaic's kernels in the colours of their memory into this .svg or .dot\n"
      "instead");
  return command;
}

CLI::App* add_import(CLI::App& app, cli::ImportArguments& arguments) {
  CLI::App* command =
      app.add_subcommand("import",
                         "write TorchScript, a file of torch.export, an ONNX model, or a\n"
                         "function of Knossos' language as a capture, with example inputs");
  command
      ->add_option("FILE", arguments.file,
                   "a saved module or program, a model, or functions in a .py or a .ks")
      ->required();
  command->add_option("--function", arguments.function,
                      "forward, or the last of the text; of a .ks also '[rev NAME]', '[fwd NAME]'");
  command->add_option(
      "--input", arguments.inputs,
      "per argument: a type like float32[1,3], a number, True, False or None;\n"
      "of a .ks per Float, Integer and Bool of it: a type, an integer, true or false");
  command->add_option("--size", arguments.sizes,
                      "a size that an ONNX model leaves open, as in batch=2; in a range,\n"
                      "as tokens=8..512 or tokens=64..512:64, the folder is that of a family");
  command->add_option("-o,--output", arguments.target, "the folder to write")->required();
  return command;
}

CLI::App* add_export(CLI::App& app, cli::ExportArguments& arguments) {
  CLI::App* command =
      add_command(app, "export", "write the capture as a file of other tools", arguments.folder);
  command->add_option("-o,--output", arguments.target, "the file to write")->required();
  command->add_option(
      "--to", arguments.format,
      "pt2, for torch.export and AOTInductor, onnx, or stablehlo, for XLA and IREE; by the\n"
      "ending of the file (.pt2, .onnx, .mlir) if left out");
  command->add_flag("--parameters-as-buffers", arguments.parameters_as_buffers,
                    "of pt2: parameters that the program writes become buffers, for AOTInductor");
  command->add_option("--opset", arguments.opset, "of onnx: from 20, which is the default, to 24");
  command->add_flag(
      "--weights-in-place", arguments.weights_in_place,
      "of onnx: without a second copy of the weights; the model, which has to lie beside the\n"
      "folder or in it, refers to the file that is there");
  command->add_flag("--matmul-nbits", arguments.matmul_nbits,
                    "of onnx: products with weights of 4 bits in groups are onnxruntime's\n"
                    "com.microsoft::MatMulNBits");
  command->add_flag("--weights-as-parameters", arguments.weights_as_parameters,
                    "of stablehlo: weights are no arguments, but read by name, as IREE does");
  command->add_flag(
      "--drop-guards", arguments.drop_guards,
      "of onnx and stablehlo: without the Boolean outputs that say whether the model holds");
  return command;
}

CLI::App* add_quantize(CLI::App& app, cli::QuantizeArguments& arguments) {
  CLI::App* command = add_command(
      app, "quantize", "write the capture with weights of few bits, and report their errors",
      arguments.folder);
  command->add_option("-o,--output", arguments.target, "the folder to write")->required();
  command->add_option("--weights", arguments.weights, "int8, which is the default, or int4");
  command->add_option("--group", arguments.group,
                      "inputs of a layer that share a scale: 32, 64, 128; 0, the default: all");
  command->add_flag("--asymmetric", arguments.asymmetric, "with zero points");
  command->add_option(
      "--scales", arguments.scales,
      "what scales are stored as: float32, which is the default, float16 or bfloat16");
  command->add_option("--activations", arguments.activations,
                      "by_token: inputs of layers as int8 with a scale per row; calibrated: with\n"
                      "one scale, from the example; unchanged, which is the default");
  command->add_flag("--all-readers", arguments.all_readers,
                    "of calibrated inputs: all who read what a layer reads, as the sum of a\n"
                    "residual does, read the rounded numbers");
  command->add_option("--method", arguments.method,
                      "nearest, which is the default; gptq, awq or smooth, by the example");
  command->add_option("--layers", arguments.layers, "weights to quantize, as in 'encoder.*'");
  command->add_option("--except", arguments.except, "weights to leave, as in 'lm_head*'");
  command->add_option("--max-error", arguments.max_error,
                      "as many layers as keep results within this part of their spread: 0.01");
  command->add_option(
      "--alone", arguments.alone,
      "measure what each layer alone costs the results, by this backend: aten, which\n"
      "needs no compiler; the report has the worst layer first then");
  command->add_flag("--unmeasured", arguments.unmeasured, "without the errors of outputs");
  return command;
}

CLI::App* add_unify(CLI::App& app, cli::UnifyArguments& arguments) {
  CLI::App* command = app.add_subcommand(
      "unify", "make a family of captures of one program at three sizes or more");
  command->add_option("FOLDERS", arguments.folders, "saved captures")->required();
  command
      ->add_option("--names", arguments.names,
                   "of the sizes that differ, in the order of inputs and axes, as in\n"
                   "batch,tokens")
      ->delimiter(',');
  command->add_option("--predicate", arguments.predicates,
                      "what the program asks of a number that it reads on a line, as in\n"
                      "'model.cpp:12 > 0'");
  command->add_option("-o,--output", arguments.target, "the folder to write")->required();
  return command;
}

CLI::App* add_bind(CLI::App& app, cli::BindArguments& arguments) {
  CLI::App* command = app.add_subcommand("bind", "write the capture that a family has at sizes");
  command->add_option("FOLDER", arguments.folder, "a family")->required();
  command->add_option("SIZES", arguments.sizes,
                      "of each size: tokens=96; of each number that is none: lr=0.05");
  command->add_option("-o,--output", arguments.target, "the folder to write")->required();
  return command;
}

CLI::App* add_capture(CLI::App& app, cli::CaptureArguments& arguments) {
  CLI::App* command = app.add_subcommand(
      "capture", "run a program that nobody touched, and capture what LibTorch does in it");
  command->add_option("-o,--output", arguments.folder,
                      "the folder to write, new or empty; 'captured' if left out");
  command->add_option("--step", arguments.step, "capture this step alone, counted from 0")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--steps", arguments.steps, "capture so many at most, 10 if left out; 0: all")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--cut", arguments.cut,
                      "what a step is: forward, a call of a model; optimizer, between its steps;\n"
                      "run, everything; automatic: optimizer where the first step needs gradients");
  command->add_flag("!--no-lines", arguments.lines, "without the program's source lines: faster");
  return command;
}

// The options of the called command, if it compiles.
std::optional<cli::BackendOptions> backend_options(CLI::App& app, int argc, char** argv) {
  using Use = composit::Option::Use;
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const std::string called = words.empty() ? "" : words[0];
  std::optional<cli::BackendOptions> options;
  if (called == "emit" || called == "run" || called == "compile" || called == "plan" ||
      called == "quantize" || called == "check")
    options.emplace(*app.get_subcommand(called), called == "compile" ? Use::programs : Use::calls,
                    words,
                    called == "emit" || called == "run" || called == "compile" ? "cpp" : "mosaic");
  return options;
}

template <class CommandArguments>
const CommandArguments& with_backend(CommandArguments& arguments,
                                     const cli::BackendOptions& options) {
  arguments.backend = &options.backend();
  arguments.options = options.values();
  return arguments;
}

int check_compiled(const Arguments& arguments, const cli::BackendOptions& options) {
  cli::CheckCompiledArguments chosen;
  chosen.folder = arguments.folder;
  chosen.every_node = arguments.every_node;
  return cli::check_compiled(with_backend(chosen, options), std::cout);
}

// Takes the words after `--`, which are the command, unchanged.
std::vector<std::string> take_command(int& argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "capture") return {};
  const auto mark =
      std::find_if(argv, argv + argc, [](const char* a) { return std::string_view(a) == "--"; });
  if (mark == argv + argc) return {};
  std::vector<std::string> command(mark + 1, argv + argc);
  argc = static_cast<int>(mark - argv);
  return command;
}

int run_command(int argc, char** argv) {
  CLI::App app("Graphs captured from LibTorch models");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  Arguments arguments;
  cli::CaptureArguments capture_arguments;
  capture_arguments.command = take_command(argc, argv);
  CLI::App* capture = add_capture(app, capture_arguments);
  CLI::App* show = add_command(app, "show", "print the graph", arguments.folder);
  show->add_option("--svg", arguments.svg, "draw it into this file instead");
  show->add_option("--passes", arguments.passes,
                   "first rewritten by these, as in canonicalize,drop_no_ops");
  CLI::App* list = add_command(app, "list", "what the capture holds: inputs, weights, operators",
                               arguments.folder);
  list->add_flag("--weights", arguments.weights, "every parameter and buffer");
  CLI::App* diff = add_command(app, "diff", "compare two captures: nodes added, removed, changed",
                               arguments.folder);
  diff->add_option("OTHER", arguments.other, "the capture to compare with")->required();
  CLI::App* check =
      add_command(app, "check",
                  "replay the saved example and compare with the saved results; with a backend or\n"
                  "an option of it, as --products bfloat16: the errors of its code against float64",
                  arguments.folder);
  check->add_flag("--grad", arguments.grad,
                  "compare the gradients by all parameters with autograd's instead");
  check->add_option("--loss", arguments.loss, "with --grad: the number of the result to derive");
  check->add_flag("--every-node", arguments.every_node,
                  "with a backend: compare all values, so that nothing is fused");
  cli::BackendArguments emit_arguments;
  CLI::App* emit = add_command(app, "emit", "print the capture as C++", emit_arguments.folder);
  cli::BackendArguments run_arguments;
  CLI::App* run =
      add_command(app, "run",
                  "compile the capture, run the saved example, compare with the saved results;\n"
                  "of a .ks: run its main",
                  run_arguments.folder);
  cli::PlanArguments plan_arguments;
  CLI::App* plan = add_plan(app, plan_arguments);
  cli::CompileArguments compile_arguments;
  CLI::App* compile = add_compile(app, compile_arguments);
  cli::ImportArguments import_arguments;
  CLI::App* import = add_import(app, import_arguments);
  cli::ExportArguments export_arguments;
  CLI::App* export_to = add_export(app, export_arguments);
  cli::QuantizeArguments quantize_arguments;
  CLI::App* quantize = add_quantize(app, quantize_arguments);
  cli::UnifyArguments unify_arguments;
  CLI::App* unify = add_unify(app, unify_arguments);
  cli::BindArguments bind_arguments;
  CLI::App* bind = add_bind(app, bind_arguments);
  CLI::App* ops =
      app.add_subcommand("ops", "the operations composit defines, and how it differentiates them");
  ops->add_option("FILTER", arguments.filter, "only those whose names contain this");
  CLI::App* passes = app.add_subcommand("passes", "the passes that rewrite graphs");
  CLI::App* env = app.add_subcommand("env", "environment variables that show what goes on inside");
  const std::optional<cli::BackendOptions> options = backend_options(app, argc, argv);
  CLI11_PARSE(app, argc, argv);
  if (*capture) return cli::capture(capture_arguments, std::cerr);
  if (*show) return cli::show(arguments.folder, arguments.passes, arguments.svg, std::cout);
  if (*list) return cli::list(arguments.folder, arguments.weights, std::cout);
  if (*diff) return cli::diff(arguments.folder, arguments.other, std::cout);
  if (*emit) return cli::emit(with_backend(emit_arguments, options.value()), std::cout);
  if (*plan) return cli::plan(with_backend(plan_arguments, options.value()), std::cout);
  if (*compile) return cli::compile(with_backend(compile_arguments, options.value()), std::cout);
  if (*import) return cli::import(import_arguments, std::cout);
  if (*export_to) return cli::export_to(export_arguments, std::cout);
  if (*quantize) return cli::quantize(with_backend(quantize_arguments, options.value()), std::cout);
  if (*unify) return cli::unify(unify_arguments, std::cout);
  if (*bind) return cli::bind(bind_arguments, std::cout);
  if (*run && run_arguments.folder.ends_with(".ks"))
    return cli::run_ks(run_arguments.folder, std::cout);
  if (*run) return cli::run(with_backend(run_arguments, options.value()), std::cout);
  if (*ops) return cli::ops(arguments.filter, std::cout);
  if (*passes) return cli::passes(std::cout);
  if (*env) return cli::env(std::cout);
  if (*check && arguments.grad) return cli::check_grad(arguments.folder, arguments.loss, std::cout);
  if (*check && (options->are_given() || arguments.every_node))
    return check_compiled(arguments, options.value());
  if (*check) return cli::check(arguments.folder, std::cout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_command(argc, argv);
  } catch (const composit::UserError& error) {
    std::cerr << "flashlight: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "flashlight: " << error.what() << '\n';
    return 3;
  }
}
