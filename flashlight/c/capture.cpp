// Captures of flashlight/c.h.
#include <algorithm>
#include <memory>
#include <string>

#include "composit/io/saved_capture.h"
#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "flashlight/c.h"
#include "flashlight/c/call.h"
#include "flashlight/c/handles.h"
#include "flashlight/c/objects.h"

namespace flashlight::c {

using composit::LazyTensor;
using composit::UserError;

namespace {

bool is_argument(const LazyTensor& input) {
  return composit::input_kind(*input.node) == composit::InputKind::user_input;
}

flashlight_capture handle_of(CaptureBase capture) {
  return handles().add<flashlight_capture>(
      std::make_shared<Captured>(Captured{std::move(capture)}));
}

CaptureBase capture_of(flashlight_capture handle) {
  return handles().find<Captured>(handle)->capture;
}

}  // namespace

size_t count_inputs(const composit::Graph& graph) {
  return static_cast<size_t>(
      std::count_if(graph.inputs().begin(), graph.inputs().end(), is_argument));
}

size_t count_outputs(const composit::Graph& graph) { return graph.outputs().size(); }

}  // namespace flashlight::c

using namespace flashlight::c;

flashlight_status flashlight_capture_free(flashlight_capture capture) {
  return guarded(__func__, [&] {
    if (capture != nullptr) handles().take<Captured>(capture);
  });
}

flashlight_status flashlight_capture_save(flashlight_capture capture, const char* folder) {
  return guarded(__func__, [&] {
    const auto known = capture_of(capture);
    known.save(text_from(folder, "folder"));
  });
}

flashlight_status flashlight_capture_load(const char* folder, flashlight_capture* capture) {
  return guarded(__func__, [&] {
    expect_place(capture, "capture");
    *capture = handle_of(flashlight::CaptureBase::load(text_from(folder, "folder")));
  });
}

flashlight_status flashlight_capture_counts(flashlight_capture capture, size_t* inputs,
                                            size_t* outputs) {
  return guarded(__func__, [&] {
    expect_place(inputs, "number of inputs");
    expect_place(outputs, "number of outputs");
    const auto known = capture_of(capture);
    *inputs = count_inputs(known.graph());
    *outputs = count_outputs(known.graph());
  });
}

flashlight_status flashlight_capture_input_name(flashlight_capture capture, size_t input,
                                                char** name) {
  return guarded(__func__, [&] {
    expect_place(name, "name");
    const auto known = capture_of(capture);
    size_t number = 0;
    for (const LazyTensor& one : known.graph().inputs())
      if (is_argument(one) && number++ == input)
        return store_text(composit::input_name(*one.node), name);
    throw UserError("expected the number of an input, which are " + std::to_string(number) +
                    ", counted from 0, received " + std::to_string(input));
  });
}

flashlight_status flashlight_capture_graph(flashlight_capture capture, char** text) {
  return guarded(__func__, [&] {
    expect_place(text, "text");
    store_text(composit::print(capture_of(capture).graph()), text);
  });
}

flashlight_status flashlight_capture_assumptions(flashlight_capture capture, char** text) {
  return guarded(__func__, [&] {
    expect_place(text, "text");
    std::string lines;
    for (const std::string& line : capture_of(capture).assumptions())
      lines += (lines.empty() ? "" : "\n") + line;
    store_text(lines, text);
  });
}

flashlight_status flashlight_capture_confirmed(flashlight_capture capture, int32_t* confirmed) {
  return guarded(__func__, [&] {
    expect_place(confirmed, "answer");
    *confirmed = capture_of(capture).trust() == flashlight::Trust::confirmed ? 1 : 0;
  });
}

flashlight_status flashlight_capture_replay(flashlight_capture capture,
                                            const flashlight_tensor* inputs, size_t input_count,
                                            flashlight_tensor* outputs, size_t output_count) {
  return guarded(__func__, [&] {
    const auto known = capture_of(capture);
    const auto tensors = tensors_from(inputs, input_count, count_inputs(known.graph()));
    expect_outputs(outputs, output_count, count_outputs(known.graph()));
    store_tensors(known.replay(tensors), outputs);
  });
}

flashlight_status flashlight_capture_export(flashlight_capture capture, const char* file,
                                            const flashlight_export_options* options) {
  return guarded(__func__, [&] { export_to(capture_of(capture), file, options); });
}

flashlight_status flashlight_capture_compile(flashlight_capture capture, const char* backend,
                                             const flashlight_compile_options* options,
                                             flashlight_compiled* compiled) {
  return guarded(__func__, [&] {
    expect_place(compiled, "compiled code");
    *compiled = compile_as_code(capture_of(capture), backend, options);
  });
}

flashlight_status flashlight_capture_write_program(flashlight_capture capture, const char* backend,
                                                   const flashlight_compile_options* options,
                                                   const char* folder) {
  return guarded(__func__, [&] {
    const auto known = capture_of(capture);
    write_program(known, backend, options, text_from(folder, "folder"));
  });
}
