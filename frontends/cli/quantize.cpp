#include "composit/quantize/quantize.h"

#include <ostream>

#include "composit/ir/error.h"
#include "flashlight/backends/registry.h"
#include "frontends/cli/commands.h"

namespace cli {
namespace {

int bits_of(const std::string& weights) {
  if (weights == "int8") return 8;
  if (weights == "int4") return 4;
  throw composit::UserError("[quantize] --weights: expected int8 or int4, received '" + weights +
                            "'");
}

}  // namespace

int quantize(const QuantizeArguments& arguments, std::ostream& out) {
  const composit::SavedCapture capture = composit::load(arguments.folder);
  warn_of_trust(capture, arguments.folder);
  const composit::Quantized quantized = composit::quantize(
      capture,
      {.weights = {.bits = bits_of(arguments.weights),
                   .group = arguments.group,
                   .symmetric = !arguments.asymmetric,
                   .scales = composit::scales_dtype(arguments.scales)},
       .activations = composit::activations_from_name(arguments.activations),
       .all_readers = arguments.all_readers,
       .method = composit::quantize_method(arguments.method),
       .layers = arguments.layers,
       .except = arguments.except,
       .max_error = arguments.max_error,
       .measure = !arguments.unmeasured,
       .backend = arguments.backend,
       .alone = arguments.alone.empty() ? nullptr : &flashlight::backend_named(arguments.alone)});
  composit::save(quantized.capture, arguments.target);
  replay_example(arguments.target);
  out << str(quantized) << "wrote " << arguments.target << ": " << quantized.capture.graph.size()
      << " nodes\n";
  return 0;
}

}  // namespace cli
