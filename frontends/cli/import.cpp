#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <ostream>
#include <random>

#include "composit/eval/evaluate.h"
#include "composit/interchange/onnx.h"
#include "composit/interchange/pt2.h"
#include "composit/io/file.h"
#include "composit/io/saved_capture.h"
#include "composit/ir/error.h"
#include "composit/ir/literal.h"
#include "composit/ir/parse.h"
#include "composit/ops/native.h"
#include "frontends/cli/commands.h"
#include "frontends/ks/graph.h"
#include "frontends/ks/parse.h"
#include "frontends/ks/run.h"

namespace cli {
namespace {

using composit::Array;
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

// Random, between 0 and 1; 0 for integers, as indices may be.
Array example_of(const composit::Type& type, std::mt19937& generator) {
  std::vector<double> values(static_cast<size_t>(type.numel()));
  std::uniform_real_distribution<double> number(0, 1);
  if (composit::is_floating_point(type.dtype))
    std::generate(values.begin(), values.end(), [&] { return number(generator); });
  return composit::array_of(type, values);
}

ks::Program read_ks(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw UserError("[ks] " + file + " cannot be read");
  return ks::parse(std::string(std::istreambuf_iterator<char>(stream), {}), file);
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
  const ks::Program program = read_ks(arguments.file);
  const std::string function =
      arguments.function.empty() ? last_function(program) : arguments.function;
  std::vector<ks::ArgumentLeaf> leaves;
  for (const std::string& input : arguments.inputs) leaves.push_back(leaf_of(input));
  const bool is_double = std::any_of(leaves.begin(), leaves.end(), is_float64);

  composit::SavedCapture capture;
  capture.graph = ks::graph_of(program, function, leaves,
                               {.floating = is_double ? DType::float64 : DType::float32});
  capture.producer = "flashlight import";
  std::mt19937 generator(0);
  for (const composit::LazyTensor& input : capture.graph.inputs())
    capture.example_inputs.push_back(example_of(input.type(), generator));
  capture.example_outputs = composit::evaluate(capture.graph, capture.example_inputs);
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

// "batch=2"
std::map<std::string, int64_t> sizes_of(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> sizes;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    const auto size =
        equals == std::string::npos ? std::nullopt : composit::parse_int(text.substr(equals + 1));
    if (!size) throw UserError("[import] --size: expected NAME=NUMBER, received '" + text + "'");
    sizes[text.substr(0, equals)] = *size;
  }
  return sizes;
}

// A file that is not there is what its reader says of it.
bool is_onnx_file(const std::string& file) {
  return std::filesystem::is_regular_file(file) &&
         composit::is_onnx(composit::io::MappedFile::open(file)->text());
}

// Example inputs are random; what the model makes of them is the example's result.
int import_onnx(const ImportArguments& arguments, std::ostream& out) {
  composit::SavedCapture capture =
      composit::load_onnx(arguments.file, {.sizes = sizes_of(arguments.sizes)});
  std::mt19937 generator(0);
  std::vector<Array> inputs;  // weights among them
  for (const composit::LazyTensor& input : capture.graph.inputs()) {
    const Array& held = input.node->held();
    inputs.push_back(held.defined() ? held : example_of(input.type(), generator));
    if (composit::input_kind(*input.node) == composit::InputKind::user_input)
      capture.example_inputs.push_back(inputs.back());
  }
  capture.example_outputs = composit::evaluate(capture.graph, inputs);
  composit::save(capture, arguments.target);
  out << "wrote " << arguments.target << ": " << capture.graph.size() << " nodes\n";
  return 0;
}

}  // namespace

int import(const ImportArguments& arguments, std::ostream& out) {
  // TorchScript's modules are archives as well, and may have any name.
  if (arguments.file.ends_with(".pt2") || composit::is_pt2(arguments.file))
    return import_pt2(arguments, out);
  if (is_onnx_file(arguments.file)) return import_onnx(arguments, out);
  return arguments.file.ends_with(".ks") ? import_ks(arguments, out)
                                         : import_torchscript(arguments, out);
}

int run_ks(const std::string& file, std::ostream& out) {
  ks::run(read_ks(file), out);
  return 0;
}

}  // namespace cli
