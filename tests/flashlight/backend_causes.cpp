#include "tests/flashlight/backend_causes.h"

#include <ATen/Functions.h>

#include <fstream>
#include <string>

#include "composit/eval/evaluate.h"
#include "composit/io/saved_capture.h"
#include "composit/op/plugin.h"
#include "composit/ops/functions.h"
#include "flashlight/backends/devices.h"
#include "flashlight/backends/registry.h"
#include "flashlight/check_compiled.h"
#include "flashlight/compile.h"
#include "flashlight/trace.h"
#include "tests/io/temporary_folder.h"

namespace flashlight::test {
namespace {

void compile_by(const composit::BackendChoice& backend) {
  compile(trace([](const at::Tensor& x) { return x.sin(); }, at::ones({2})), {.backend = backend});
}
void unknown_backend() { compile_by("fortran"); }
void unknown_option() { compile_by({"mosaic", {{"thread", 2}}}); }
void option_of_another_type() { compile_by({"mosaic", {{"threads", "two"}}}); }
void no_profile() {
  compile(trace([](const at::Tensor& x) { return x.sin(); }, at::ones({2})))
      .profile({at::ones({2})});
}
void compile_on(const std::string& choices) { compile_by(Devices{.choices = choices}); }
void places_nothing() { compile_on("encoder: on cpp\n*: on cpp"); }
void unknown_device() { compile_on("*: on gpu"); }
void places_too_little() { compile_on(""); }
void device_without_code() {
  const auto values = [](const at::Tensor& x) { return std::get<0>(at::linalg_eig(x)); };
  compile(trace(values, at::eye(2)), {.backend = Devices{.choices = "*: on cpp"}});
}
void device_of_text() { compile_on("*: on cuda"); }
void runs_cuda() { compile_by({"cuda"}); }
void large_for_cuda() {
  const composit::LazyTensor x =
      composit::input("x", composit::tensor_type(composit::DType::float32, {1 << 16, 1 << 15}));
  backend_named("cuda").source(composit::Graph({.inputs = {x}, .outputs = {composit::exp(x)}}));
}
void draws_elsewhere() {
  const auto dropout = [](const at::Tensor& x) {
    return std::get<0>(at::native_dropout(x, .5, true));
  };
  compile(trace(dropout, at::ones({2})), {.backend = Devices{.choices = "*: on aten"}});
}
void checks_draws() {
  check_compiled_flat(trace([](const at::Tensor& x) { return at::rand_like(x); }, at::ones({2})),
                      {.backend = "mosaic"}, {at::ones({2})});
}
// Writes through one argument, reads through the other.
at::Tensor written_and_read(const at::Tensor& x, const at::Tensor& y) { return x.add_(1) + y; }
void compiled_apart() {
  const at::Tensor x = at::ones({2});
  compile(trace(written_and_read, x, x))(at::ones({2}), at::ones({2}));
}
void compiled_overlap() {
  const at::Tensor x = at::ones({3});
  compile(trace(written_and_read, at::ones({2}), at::ones({2})))(x.slice(0, 0, 2), x.slice(0, 1));
}
void quantized_result() {
  const auto quantize = [](const at::Tensor& x) {
    return at::quantize_per_tensor(x, 0.1, 3, at::kQUInt8);
  };
  compile(trace(quantize, at::ones({2})), {.backend = "aten"});
}
void no_programs() { composit::reference().write_program({}, "folder"); }

void memory_elsewhere() {
  const composit::LazyTensor x =
      composit::input("x", composit::tensor_type(composit::DType::float32, {1}));
  const float one = 1;
  const composit::InputBuffer from[] = {{&one, {.type = 1, .index = 0}}};
  const composit::Buffer to[] = {nullptr};
  composit::reference()
      .compile(composit::Graph({.inputs = {x}, .outputs = {x}}), {.name = "wave"})
      ->run(from, to, nullptr);
}

class Named : public composit::Backend {
 public:
  Named(std::string name, composit::OptionTable table)
      : name_(std::move(name)), table_(std::move(table)) {}
  std::string name() const override { return name_; }
  const composit::OptionTable& options() const override { return table_; }

 protected:
  composit::Compiled make(const composit::Graph& graph,
                          const composit::CompileOptions& options) const override {
    return composit::reference().compile(graph, options);
  }

 private:
  std::string name_;
  composit::OptionTable table_;
};
void register_as(const std::string& name, const composit::OptionTable& table = {}) {
  const Named backend(name, table);  // refused, hence not kept
  register_backend(backend);
}
void taken_name() { register_as("mosaic"); }
void no_word_for_a_name() { register_as("my backend"); }
void no_word_for_an_option() { register_as("mine", {{.name = "my option"}}); }

void load_file_with(const std::string& text) {
  const composit::test::TemporaryFolder folder;
  const std::string path = folder / "plugin.so";
  std::ofstream(path, std::ios::binary) << text << '\0';
  load_plugin(path);
}
void no_plugin() { load_file_with("no library"); }
void other_interface() { load_file_with(COMPOSIT_PLUGIN_HEAD "0, libstdc++ ABI 1"); }
void damaged_plugin() { load_file_with(COMPOSIT_PLUGIN_HEAD COMPOSIT_PLUGIN_INTERFACE); }
void plugin_with_composit() { load_plugin(FLASHLIGHT_APART_PLUGIN); }

}  // namespace

Causes with_backend_causes(Causes others) {
  others.merge(Causes{
      {"[backend] expected one of …, received '…'", unknown_backend},
      {"[mosaic] expected one of the options …, received '…'", unknown_option},
      {"[mosaic] option '…': expected …, received …", option_of_another_type},
      {"[program] inputs '…' and '…' lay in the same memory when they were captured, … bytes "
       "apart, and do not now; capture again …",
       compiled_apart},
      {"[program] inputs '…' and '…' overlap in memory, one of them is written, and they did not "
       "when they were captured; capture again …",
       compiled_overlap},
      {"[program] …: expected a tensor that is its elements in memory, received one that is …",
       quantized_result},
      {"[program] profile: expected a backend that times its kernels, received one whose code has "
       "none to time",
       no_profile},
      {"[cuda] this backend writes CUDA C++, which is called elsewhere: …", runs_cuda},
      {"[cuda] '…' has … elements; expected at most 2147483647", large_for_cuda},
      {"[devices] choices, line …: expected a value or a module of the program, as in …, received "
       "'…'",
       places_nothing},
      {"[devices] choices, line …: expected a device, one of …, received '…'", unknown_device},
      {"[devices] no choice says where … run: add a line '*: on DEVICE'", places_too_little},
      {"[devices] part … on '…': …", device_without_code},
      {"[devices] expected a device of a backend that runs code, one of …, received '…': …",
       device_of_text},
      {"[devices] part … on '…' draws random numbers (…): expected a device whose draws go on from "
       "those of other parts, as those of cpp and mosaic do",
       draws_elsewhere},
      {"[check] expected a program whose values follow from its arguments, received one that draws "
       "random numbers, of which float64 would draw others: check it in eval mode",
       checks_draws},
      {"[reference] expected a backend that writes programs, received one that only runs graphs",
       no_programs},
      {"[wave] …: expected memory of the CPU, received memory of …", memory_elsewhere},
      {"[backend] expected a name that no backend has, received '…'", taken_name},
      {"[backend] expected an identifier for a name, received '…'", no_word_for_a_name},
      {"[backend] '…': expected options with distinct identifiers for names, received '…'",
       no_word_for_an_option},
      {"[plugin] …: expected a library with COMPOSIT_BACKEND_PLUGIN (composit/op/plugin.h), "
       "received a file without it",
       no_plugin},
      {"[plugin] …: expected a plugin for interface …, received one for interface …",
       other_interface},
      {"[plugin] …: expected a library that this program can load, received one it cannot: …",
       damaged_plugin},
      {"[plugin] …: expected a plugin that uses the composit of the program that loads it, "
       "received one with a copy of its own; …",
       plugin_with_composit}});
  return others;
}

}  // namespace flashlight::test
