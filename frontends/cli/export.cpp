#include <filesystem>
#include <ostream>

#include "composit/interchange/onnx.h"
#include "composit/interchange/pt2.h"
#include "composit/interchange/stablehlo.h"
#include "composit/ir/error.h"
#include "frontends/cli/commands.h"

namespace cli {
namespace {

using composit::SavedCapture;

// A format by the name that `--to` takes, and by the ending of its files.
struct Format {
  std::string_view name, ending;
  void (*write)(const SavedCapture& capture, const ExportArguments& arguments);
};

constexpr Format kFormats[] = {
    {"onnx", "onnx",
     [](const SavedCapture& capture, const ExportArguments& arguments) {
       composit::save_onnx(capture, arguments.target,
                           {.opset = arguments.opset,
                            .drop_guards = arguments.drop_guards,
                            .matmul_nbits = arguments.matmul_nbits,
                            .weights_in = arguments.weights_in_place ? arguments.folder : ""});
     }},
    {"pt2", "pt2",
     [](const SavedCapture& capture, const ExportArguments& arguments) {
       composit::save_pt2(capture, arguments.target,
                          {.parameters_as_buffers = arguments.parameters_as_buffers});
     }},
    {"stablehlo", "mlir", [](const SavedCapture& capture, const ExportArguments& arguments) {
       composit::save_stablehlo(capture, arguments.target,
                                {.weights_as_parameters = arguments.weights_as_parameters,
                                 .drop_guards = arguments.drop_guards});
     }}};

const Format& format_of(const ExportArguments& arguments) {
  const std::string ending = std::filesystem::path(arguments.target).extension().string();
  const std::string wanted = !arguments.format.empty() ? arguments.format
                             : ending.empty()          ? ""
                                                       : ending.substr(1);
  std::string known;
  for (const Format& format : kFormats) {
    if (format.name == wanted || format.ending == wanted) return format;
    known += (known.empty() ? "" : ", ") + std::string(format.name);
  }
  throw composit::UserError("[export] --to: expected one of " + known + ", received '" + wanted +
                            "'");
}

}  // namespace

int export_to(const ExportArguments& arguments, std::ostream& out) {
  const Format& format = format_of(arguments);
  const SavedCapture capture = composit::load(arguments.folder);
  warn_of_trust(capture, arguments.folder);
  format.write(capture, arguments);
  out << "wrote " << arguments.target << ": " << capture.graph.size() << " nodes\n";
  return 0;
}

}  // namespace cli
