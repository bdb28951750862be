#include <algorithm>
#include <map>
#include <optional>
#include <ostream>

#include "composit/eval/evaluate.h"
#include "composit/family/saved_family.h"
#include "composit/interchange/imports.h"
#include "composit/interchange/onnx.h"
#include "composit/interchange/pt2.h"
#include "composit/io/saved_capture.h"
#include "composit/ir/error.h"
#include "composit/ir/literal.h"
#include "composit/ir/parse.h"
#include "frontends/cli/commands.h"
#include "frontends/cli/sizes.h"
#include "frontends/ks/graph.h"
#include "frontends/ks/parse.h"
#include "frontends/ks/run.h"

namespace cli {
namespace {

using composit::DType;
using composit::UserError;
namespace ks = flashlight::ks;

// "float32[1, 3]": a tensor of this type; "3": an Integer; "true": a Bool.
ks::ArgumentLeaf leaf_of(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (const auto integer = composit::parse_int(text)) return *integer;
  try {
    const composit::Graph graph = composit::parse("graph(%x: " + text + ") { return %x }");
    return graph.inputs().at(0).type();
  } catch (const UserError&) {
    throw UserError(
        "[import] --input: expected a type like float32[3], an integer, true or false, received '" +
        text + "'");
  }
}

bool is_float64(const ks::ArgumentLeaf& leaf) {
  const auto* type = std::get_if<composit::Type>(&leaf);
  return type != nullptr && type->dtype == DType::float64;
}

std::string last_function(const ks::Program& program) {
  std::string name;
  for (const ks::Declaration& one : program.declarations)
    if (const auto* def = std::get_if<ks::Def>(&one.form); def && def->name.function != "main")
      name = ks::print(def->name);
  if (name.empty()) throw UserError("[import] " + program.file + " defines no function");
  return name;
}

int import_ks(const ImportArguments& arguments, std::ostream& out) {
  const ks::Program program = ks::load(arguments.file);
  const std::string function =
      arguments.function.empty() ? last_function(program) : arguments.function;
  std::vector<ks::ArgumentLeaf> leaves;
  for (const std::string& input : arguments.inputs) leaves.push_back(leaf_of(input));
  const bool is_double = std::any_of(leaves.begin(), leaves.end(), is_float64);

  composit::SavedCapture capture;
  capture.graph = ks::graph_of(program, function, leaves,
                               {.floating = is_double ? DType::float64 : DType::float32});
  capture.producer = "flashlight import";
  capture.example_outputs =
      composit::evaluate(capture.graph, composit::add_example_inputs(capture));
  composit::save(capture, arguments.target);
  out << "wrote " << arguments.target << ": " << function << ", " << capture.graph.size()
      << " nodes\n";
  return 0;
}

// A file of torch.export has its inputs, and one program.
int import_pt2(const ImportArguments& arguments, std::ostream& out) {
  if (!arguments.function.empty() || !arguments.inputs.empty())
    throw UserError(
        "[import] --function and --input are not for files of torch.export: a file has "
        "one program, with its inputs");
  const composit::SavedCapture capture = composit::load_pt2(arguments.file);
  composit::save(capture, arguments.target);
  out << "wrote " << arguments.target << ": " << capture.graph.size() << " nodes, "
      << capture.weights.size() << " weights\n";
  return 0;
}

// "batch=2", "tokens=8..512"
composit::OnnxReadOptions options_of(const std::vector<std::string>& texts) {
  composit::OnnxReadOptions options;
  for (const std::string& text : texts) {
    const std::optional<composit::SizeRange> range = parse_range(text);
    if (!range)
      throw UserError("[import] --size: expected NAME=NUMBER or NAME=NUMBER..NUMBER, received '" +
                      text + "'");
    if (range->least == range->most)
      options.sizes[range->name] = range->least;
    else
      options.ranges.push_back(*range);
  }
  return options;
}

// Example inputs are random; what the model makes of them is the example's result.
void add_example(composit::SavedCapture& capture) {
  capture.example_outputs =
      composit::evaluate(capture.graph, composit::add_example_inputs(capture));
}

int import_onnx(const ImportArguments& arguments, std::ostream& out) {
  composit::SavedCapture capture = composit::load_onnx(arguments.file, options_of(arguments.sizes));
  add_example(capture);
  for (composit::SavedCapture& further : capture.cases) add_example(further);
  composit::save(capture, arguments.target);
  out << "wrote " << arguments.target << ": " << capture.graph.size() << " nodes"
      << (composit::is_family(capture) ? ", a family" : "") << "\n";
  return 0;
}

}  // namespace

int import(const ImportArguments& arguments, std::ostream& out) {
  switch (composit::tool_of(arguments.file)) {
    case composit::Tool::pt2:
      return import_pt2(arguments, out);
    case composit::Tool::onnx:
      return import_onnx(arguments, out);
    case composit::Tool::other:
      break;
  }
  return arguments.file.ends_with(".ks") ? import_ks(arguments, out)
                                         : import_torchscript(arguments, out);
}

int run_ks(const std::string& file, std::ostream& out) {
  ks::run(ks::load(file), out);
  return 0;
}

}  // namespace cli
