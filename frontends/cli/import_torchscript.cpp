#include <ATen/Functions.h>
#include <ATen/Tensor.h>

#include <fstream>
#include <iterator>
#include <ostream>

#include "composit/io/saved_capture.h"
#include "composit/ir/error.h"
#include "composit/ir/literal.h"
#include "composit/ir/parse.h"
#include "frontends/cli/commands.h"
#include "frontends/torchscript/script.h"
#include "tracer/convert.h"

namespace cli {
namespace {

using composit::UserError;
using flashlight::torchscript::Script;

std::string text_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw UserError("[import] " + file + " cannot be read");
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Random, between 0 and 1; 0 or 1 for integers, as indices may be.
at::Tensor example_of(const composit::Type& type) {
  const c10::ScalarType dtype = flashlight::tracer::to_c10(type.dtype);
  if (composit::is_floating_point(type.dtype) || composit::is_complex(type.dtype))
    return at::rand(type.sizes, dtype);
  return at::randint(2, type.sizes, dtype);
}

// "float32[1, 3]": a tensor of this type; else a number, a bool, None or a string.
c10::IValue argument_of(const std::string& text) {
  if (text == "None") return {};
  if (text == "True" || text == "False") return text == "True";
  if (const auto integer = composit::parse_int(text)) return *integer;
  if (const auto number = composit::parse_float(text)) return *number;
  if (text.find('[') == std::string::npos) return text;
  try {
    const composit::Graph graph = composit::parse("graph(%x: " + text + ") { return %x }");
    return example_of(graph.inputs().at(0).type());
  } catch (const UserError&) {
    throw UserError(
        "[import] --input: expected a type like float32[1,3], a number, True, False, "
        "None or a string, received '" +
        text + "'");
  }
}

}  // namespace

int import_torchscript(const ImportArguments& arguments, std::ostream& out) {
  const bool is_text = arguments.file.ends_with(".py");
  const Script script =
      is_text ? flashlight::torchscript::compile(text_of(arguments.file), arguments.file)
              : flashlight::torchscript::load(arguments.file);
  std::string function = arguments.function;
  if (function.empty()) function = is_text ? script.functions().back() : "forward";
  std::vector<c10::IValue> inputs;
  for (const std::string& input : arguments.inputs) inputs.push_back(argument_of(input));
  const composit::SavedCapture capture = script.capture(function, inputs);
  composit::save(capture, arguments.target);
  out << "wrote " << arguments.target << ": " << function << ", " << capture.graph.size()
      << " nodes, " << capture.weights.size() << " weights\n";
  return 0;
}

}  // namespace cli
