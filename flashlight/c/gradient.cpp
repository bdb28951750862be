// Derivatives of flashlight/c.h.
#include "flashlight/gradient.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "composit/ir/error.h"
#include "flashlight/c.h"
#include "flashlight/c/call.h"
#include "flashlight/c/handles.h"
#include "flashlight/c/objects.h"

namespace flashlight::c {
namespace {

std::vector<std::string> names_from(const char* const* names, size_t count, size_t most) {
  if (count > most)
    throw composit::UserError("expected the names of at most " + std::to_string(most) +
                              " parameters and arguments, received " + std::to_string(count));
  if (count > 0 && names == nullptr)
    throw composit::UserError("expected an array of " + std::to_string(count) +
                              " names, received NULL");
  std::vector<std::string> all;
  for (size_t i = 0; i < count; ++i)
    all.push_back(text_from(names[i], "name " + std::to_string(i)));
  return all;
}

}  // namespace

std::vector<at::Tensor> in_order(Gradient::Result result) {
  std::vector<at::Tensor> all = {std::move(result.loss)};
  for (at::Tensor& gradient : result.gradients) all.push_back(std::move(gradient));
  return all;
}

}  // namespace flashlight::c

using namespace flashlight::c;

flashlight_status flashlight_capture_gradient(flashlight_capture capture, size_t loss,
                                              const char* const* names, size_t count,
                                              flashlight_gradient* gradient) {
  return guarded(__func__, [&] {
    expect_place(gradient, "gradient");
    const auto known = handles().find<Captured>(capture);
    const composit::Graph& graph = known->capture.graph();
    const auto wanted = names_from(names, count, graph.inputs().size());
    auto made = std::make_shared<Derivative>(
        Derivative{known->capture.grad(loss, wanted), count_inputs(graph)});
    *gradient = handles().add<flashlight_gradient>(std::move(made));
  });
}

flashlight_status flashlight_gradient_free(flashlight_gradient gradient) {
  return guarded(__func__, [&] {
    if (gradient != nullptr) handles().take<Derivative>(gradient);
  });
}

flashlight_status flashlight_gradient_count(flashlight_gradient gradient, size_t* count) {
  return guarded(__func__, [&] {
    expect_place(count, "number of gradients");
    *count = handles().find<Derivative>(gradient)->gradient.names().size();
  });
}

flashlight_status flashlight_gradient_name(flashlight_gradient gradient, size_t index,
                                           char** name) {
  return guarded(__func__, [&] {
    expect_place(name, "name");
    const auto known = handles().find<Derivative>(gradient);
    const std::vector<std::string>& names = known->gradient.names();
    if (index >= names.size())
      throw composit::UserError("expected the number of a gradient, which are " +
                                std::to_string(names.size()) + ", counted from 0, received " +
                                std::to_string(index));
    store_text(names[index], name);
  });
}

flashlight_status flashlight_gradient_run(flashlight_gradient gradient,
                                          const flashlight_tensor* inputs, size_t input_count,
                                          flashlight_tensor* outputs, size_t output_count) {
  return guarded(__func__, [&] {
    const auto known = handles().find<Derivative>(gradient);
    const auto tensors = tensors_from(inputs, input_count, known->inputs);
    expect_outputs(outputs, output_count, 1 + known->gradient.names().size());
    store_tensors(in_order(known->gradient(tensors)), outputs);
  });
}

flashlight_status flashlight_gradient_export(flashlight_gradient gradient, const char* file,
                                             const flashlight_export_options* options) {
  return guarded(__func__, [&] {
    const auto known = handles().find<Derivative>(gradient);
    export_to(known->gradient, file, options);
  });
}

flashlight_status flashlight_gradient_compile(flashlight_gradient gradient, const char* backend,
                                              const flashlight_compile_options* options,
                                              flashlight_compiled* compiled) {
  return guarded(__func__, [&] {
    expect_place(compiled, "compiled code");
    *compiled = compile_as_code(*handles().find<Derivative>(gradient), backend, options);
  });
}
