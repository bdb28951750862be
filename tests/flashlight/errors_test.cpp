// Every error a user can meet: caused here, and listed with its message in docs/errors.md.
//
// The first column of a table in that file is the message; `…` stands for any text.
#include <ATen/EmptyTensor.h>
#include <gtest/gtest.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "composit/eval/evaluate.h"
#include "composit/io/visualize.h"
#include "composit/ir/error.h"
#include "composit/ir/parse.h"
#include "composit/ops/native.h"
#include "composit/passes/pass.h"
#include "flashlight/backends/registry.h"
#include "flashlight/compile.h"
#include "flashlight/trace.h"
#include "tests/flashlight/backend_causes.h"
#include "tests/flashlight/documented_errors.h"
#include "tests/flashlight/family_causes.h"
#include "tests/flashlight/interchange_causes.h"
#include "tests/flashlight/ks_causes.h"
#include "tests/flashlight/quantize_causes.h"
#include "tests/flashlight/scope_causes.h"
#include "tracer/dispatch_key.h"
#include "tracer/recorder.h"
#include "tracer/replay.h"

namespace {

using flashlight::trace;
namespace fs = std::filesystem;

const at::Tensor& ones() {
  static const at::Tensor tensor = at::ones({3});
  return tensor;
}

fs::path fresh_folder(const std::string& name) {
  const fs::path folder = fs::temp_directory_path() / ("flashlight_errors_test_" + name);
  fs::remove_all(folder);
  return folder;
}

std::string text_of(const fs::path& file) {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

// ---- causes -------------------------------------------------------------------------------------

void unseen_memory() {
  trace(
      [](const at::Tensor& x) {
        at::Tensor made = at::detail::empty_cpu({3}, at::kFloat);  // asks no dispatcher
        std::fill_n(made.mutable_data_ptr<float>(), 3, 2.f);
        return x + made;
      },
      ones());
}

void partial_overlap() {
  float buffer[6] = {};
  const at::Tensor first = at::from_blob(buffer, {4}), second = at::from_blob(buffer + 2, {4});
  trace([&](const at::Tensor& x) { return x.sum() + first.sum() + second.sum(); }, ones());
}

struct GeneratorElsewhere : c10::GeneratorImpl {
  GeneratorElsewhere() : GeneratorImpl(at::kMeta, c10::DispatchKeySet(c10::DispatchKey::CPU)) {}
  void set_current_seed(uint64_t) override {}
  void set_offset(uint64_t) override {}
  uint64_t get_offset() const override { return 0; }
  uint64_t current_seed() const override { return 0; }
  uint64_t seed() override { return 0; }
  void set_state(const c10::TensorImpl&) override {}
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return {}; }
  GeneratorElsewhere* clone_impl() const override { return new GeneratorElsewhere; }
};
void generator_elsewhere() {
  const at::Generator generator = at::make_generator<GeneratorElsewhere>();
  trace([&](const at::Tensor& x) { return x + at::rand({3}, generator); }, ones());
}

void finished_twice() {
  flashlight::TraceScope scope;
  scope.finish({});
  scope.finish({});
}

void raw_read() {
  flashlight::TraceSettings settings;
  settings.strict = true;
  trace(
      settings,
      [](const at::Tensor& x) {
        const at::Tensor y = x.sin();
        return y * y.const_data_ptr<float>()[0];
      },
      ones());
}

void input_changes_its_sizes() {
  trace([](at::Tensor x) { return x.unsqueeze_(0) + 1; }, at::ones({3}));
}

void input_leaves_shared_memory() {
  const at::Tensor x = at::ones({4});
  trace(
      [](at::Tensor a, at::Tensor b) {
        a.set_data(at::zeros({4}));
        return a + b;
      },
      x, x.view({4}));
}

void other_strides() {
  trace([](const at::Tensor& x) { return x * 2; }, at::ones({3, 4}))(at::ones({4, 3}).t());
}
void other_number() {
  trace([](const at::Tensor& x, double factor) { return x * factor; }, ones(), 2.0)(ones(), 3.0);
}
void item_differs() {
  trace([](const at::Tensor& x) { return x * x.sum().item<double>(); }, ones())(ones() * 2);
}
void size_differs() {
  trace([](const at::Tensor& x) { return x.nonzero(); }, ones())(at::zeros({3}));
}
void throws_no_more() {
  const auto captured = trace(
      [](at::Tensor x, const at::Tensor& index) {
        try {
          x.index_fill_(0, index, 0);
        } catch (const c10::Error&) {
        }
        return x + 1;
      },
      at::ones({3}), at::tensor({7}, at::kLong));
  captured(at::ones({3}), at::tensor({1}, at::kLong));
}
void memory_no_longer_shared() {
  const at::Tensor x = at::ones({4});
  trace([](at::Tensor a, at::Tensor b) { return a.add_(1) + b; }, x, x.view({4}))(at::ones({4}),
                                                                                  at::ones({4}));
}
void memory_newly_shared() {
  const at::Tensor x = at::ones({4});
  trace([](at::Tensor a, at::Tensor b) { return a.add_(1) + b; }, at::ones({4}), at::ones({4}))(
      x, x.view({4}));
}
void less_memory() {
  const auto views = [](const at::Tensor& memory) {
    return std::pair(memory.slice(0, 1, 5), memory.slice(0, 4, 7));
  };
  const auto program = [](at::Tensor a, at::Tensor b) {
    a.add_(1);
    b.mul_(2);
    return a + 1;
  };
  const auto [a, b] = views(at::ones({9}));
  const auto [c, d] = views(at::ones({7}));
  trace(program, a, b)(c, d);
}
void no_such_operator() {
  const auto graph = composit::parse(
      "graph(%x: float32[3]) {\n  %y: float32[3] = nowhere::op(%x)\n  return %y\n}");
  flashlight::tracer::Plan plan(graph, {});
}
void no_generator() {
  const auto graph = composit::parse(
      "graph(%x: float32[3]) {\n"
      "  %y: float32[3] = aten::bernoulli(%x, generator=generator(\"mine\")) {effect=0}\n"
      "  return %y\n}");
  flashlight::tracer::Plan plan(graph, {});
}

fs::path saved(const std::string& name) {
  torch::nn::Linear linear(3, 2);
  const fs::path folder = fresh_folder(name);
  trace(linear, at::ones({1, 3})).save(folder);
  return folder;
}
void load_after(const std::string& name, const std::function<void(const fs::path&)>& damage) {
  const fs::path folder = saved(name);
  damage(folder);
  flashlight::load(folder);
}
void edit(const fs::path& folder, const std::string& from, const std::string& to) {
  std::string text = text_of(folder / "graph.txt");
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << text.substr(0, 500);
  std::ofstream(folder / "graph.txt") << text.replace(at, from.size(), to);
}
void other_schema() {
  load_after("schema", [](const fs::path& folder) {
    edit(folder, "aten::addmm(Tensor self", "aten::addmm(Tensor another");
  });
}
void damaged_graph() {
  load_after("graph", [](const fs::path& folder) { edit(folder, "return", "retrun"); });
}
void no_property() {
  load_after("property", [](const fs::path& folder) { edit(folder, "grad", "grat"); });
}
void truncated_weights() {
  load_after("weights", [](const fs::path& folder) {
    fs::resize_file(folder / "weights.safetensors",
                    fs::file_size(folder / "weights.safetensors") - 1);
  });
}
void missing_weight() {
  load_after("missing", [](const fs::path& folder) {
    const fs::path other = fresh_folder("empty");
    trace([](const at::Tensor& x) { return x + 1; }, ones()).save(other);
    fs::copy_file(other / "weights.safetensors", folder / "weights.safetensors",
                  fs::copy_options::overwrite_existing);
  });
}
void save_over_something_else() {
  const fs::path folder = fresh_folder("other");
  fs::create_directories(folder);
  std::ofstream(folder / "thesis.tex") << "42";
  trace([](const at::Tensor& x) { return x + 1; }, ones()).save(folder);
}
void memory_that_nothing_shows() {
  const at::Tensor row = at::ones({8}).slice(0, 2, 6);
  flashlight::TraceSettings settings;
  settings.named = {{"row", row, composit::InputKind::buffer}};
  const auto program = [row](const at::Tensor& x) {
    row.add_(1);
    return x * row.as_strided({3}, {2}, 1);
  };
  trace(settings, program, at::ones({3})).save(fresh_folder("unshown"));
}
void no_graphviz() {
  const auto captured = trace([](const at::Tensor& x) { return x + 1; }, ones());
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  try {
    composit::visualize(captured.graph(), fs::temp_directory_path() / "flashlight_errors_test.svg");
  } catch (...) {
    setenv("PATH", path.c_str(), 1);
    throw;
  }
}
void check_without_program() {
  flashlight::load(saved("check")).check_flat({at::ones({1, 3})}, {});
}

void loss_under_no_grad() {
  const at::Tensor x = at::ones({3}).requires_grad_(true);
  const auto captured = trace(
      [](const at::Tensor& v) {
        const torch::NoGradGuard no_grad;
        return v.sum();
      },
      x);
  captured.check_grad({x}, 0, {"input_0"});
}
void loss_of_several_elements() {
  trace([](const at::Tensor& x) { return x * 2; }, ones()).grad(0, {"input_0"});
}
void unknown_input() {
  trace([](const at::Tensor& x) { return x.sum(); }, ones()).grad(0, {"weight"});
}

struct Twice : torch::autograd::Function<Twice> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return x * 2;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0] * 2};
  }
};
void custom_function() {
  const at::Tensor x = at::ones({3}).requires_grad_(true);
  trace([](const at::Tensor& v) { return Twice::apply(v).sum(); }, x).grad(0, {"input_0"});
}

void no_definition() {
  trace([](const at::Tensor& x) { return at::linalg_eigvals(x); }, at::eye(2))
      .evaluate({at::eye(2)}, composit::reference());
}
composit::LazyTensor vector(double value) {
  return composit::held_input(
      "x", composit::array_of(composit::tensor_type(composit::DType::float64, {1}),
                              std::vector<double>{value}));
}
void no_value() {
  composit::evaluate({composit::input("x", composit::tensor_type(composit::DType::float32, {1}),
                                      composit::InputKind::parameter)});
}
void two_values() { composit::evaluate({vector(1), vector(2)}); }
void unknown_pass() { composit::find_pass("optimise"); }
void no_code() {
  flashlight::compile(
      flashlight::trace([](const at::Tensor& x) { return at::poisson(x); }, at::ones({2})));
}
void nothing_to_pack() {
  const auto captured = flashlight::trace(torch::nn::Linear(2, 2), at::ones({3, 2}));
  flashlight::backend_named("mosaic").compile(captured.graph(), {.may_prepare = true})->prepare({});
}
void compiled_guard() {
  const auto program = [](const at::Tensor& x) { return x * x.sum().item<float>(); };
  flashlight::compile(flashlight::trace(program, at::ones({2})))(at::zeros({2}));
}
void nested_tensors() {
  flashlight::trace(
      [](const at::Tensor& x) {
        return at::_nested_tensor_from_tensor_list({x, x});
      },
      ones());
}
void compiled_in_capture() {
  const auto compiled = flashlight::compile(trace(torch::nn::Linear(2, 2), at::ones({2})));
  flashlight::trace([&](const at::Tensor& x) { return compiled(x); }, at::ones({2}));
}

// `first` is the weight of its first layer.
auto compiled_without_its_model(at::Tensor& first) {
  torch::nn::Sequential model(torch::nn::Linear(2, 2), torch::nn::Linear(2, 2));
  first = model[0]->named_parameters()["weight"];
  const auto compiled = flashlight::compile(trace(model, at::ones({3, 2})),
                                            {.backend = flashlight::Mosaic{.threads = 1}});
  compiled(at::ones({3, 2}));
  return compiled;
}
void written_without_the_model() {
  at::Tensor first;
  const auto compiled = compiled_without_its_model(first);
  const at::NoGradGuard no_grad;
  first.mul_(2);
  compiled(at::ones({3, 2}));
}
void derivative_without_the_model() {
  at::Tensor first;
  const auto compiled = compiled_without_its_model(first);
  compiled(at::ones({3, 2}).requires_grad_()).sum().backward();
}

const std::map<std::string, void (*)()>& causes() {
  static const std::map<std::string, void (*)()> table = {
      {"[trace] …: an argument of sizes … was made inside the scope by code that no dispatcher "
       "sees; it would be a false constant",
       unseen_memory},
      {"[trace] nested tensors are not captured: …", nested_tensors},
      {"[trace] two tensors were made over memory that overlaps in part; pass views of one tensor "
       "instead",
       partial_overlap},
      {"[trace] expected a CPU generator, received one on …", generator_elsewhere},
      {"[trace] this scope was finished before", finished_twice},
      {"[trace] strict mode: the memory of … was accessed without an operator (data_ptr, an "
       "accessor, memcpy, printing); such a read is baked into the capture, such a write is "
       "missing "
       "in it: use an operator (item, index, copy_), or turn strict mode off; the last operator "
       "was "
       "…",
       raw_read},
      {"[trace] input '…' was … and is … at the end of the scope; a captured program cannot change "
       "what its inputs are: return the new tensor instead",
       input_changes_its_sizes},
      {"[trace] input '…' was given other memory (set_data, as_strided_), while '…' lies in its "
       "old one; a captured program cannot change what its inputs share",
       input_leaves_shared_memory},
      {"[replay] input '…': expected …, received …; capture again for these inputs: "
       "trace(model, inputs…)",
       other_strides},
      {"[capture] expected arguments …, received …; numbers and the number of tensors are part of "
       "a capture: capture again for these with trace(model, inputs…)",
       other_number},
      {"[replay] guard: … gave … when it was captured and gives … now…; a number that the program "
       "reads is part of the capture: …",
       item_differs},
      {"[replay] guard: output … of … was … when it was captured and is … now; sizes are part of "
       "the capture: …",
       size_differs},
      {"[replay] guard: … threw when it was captured and does not now", throws_no_more},
      {"[replay] inputs '…' and '…' lay in the same memory when they were captured, … bytes apart, "
       "and do not now; capture again …",
       memory_no_longer_shared},
      {"[replay] inputs '…' and '…' overlap in memory, one of them is written, and they did not "
       "when they were captured; capture again …",
       memory_newly_shared},
      {"[replay] input '…': when it was captured, its storage had … bytes before its first element "
       "and … from there on, of which the program uses some; it lies in less memory now; …",
       less_memory},
      {"[replay] this LibTorch has no operator '…'; load the library that defines it before the "
       "capture",
       no_such_operator},
      {"[replay] no generator is given for '…'", no_generator},
      {"[load] … was captured with torch …, this is torch …; operators it uses have other schemas, "
       "so capture again:…",
       other_schema},
      {"[parse] …graph.txt:…: …", damaged_graph},
      {"[load] …graph.txt lacks the property '…'; it was not saved by flashlight::Capture",
       no_property},
      {"[read] …weights.safetensors: …", truncated_weights},
      {"[load] …: there is no array '…'", missing_weight},
      {"[save] …: …", save_over_something_else},
      {"[save] the program uses memory around '…' that no parameter or buffer shows; …",
       memory_that_nothing_shows},
      {"[visualize] cannot run graphviz's 'dot': …", no_graphviz},
      {"[check] a loaded capture does not know its program: trace the program and check that",
       check_without_program},
      {"[check] autograd has no gradient of the loss: the program computes it under no_grad, or by "
       "nothing that requires one",
       loss_under_no_grad},
      {"[grad] the capture has no input '…'; it has …", unknown_input},
      {"[grad] expected a loss of one element, received …", loss_of_several_elements},
      {"[grad] the gradient goes through '…', a custom autograd function around '…': its backward "
       "is host code …",
       custom_function},
      {"[evaluate] composit has no definition of '…", no_definition},
      {"[evaluate] input '…' has no value", no_value},
      {"[evaluate] two inputs named '…' hold different values; an input is its name and type",
       two_values},
      {"[passes] expected one of …, received '…'", unknown_pass},
      {"[compile] no code for …", no_code},
      {"[program] '…' has no value to be compiled with", nothing_to_pack},
      {"[program] runs inside a program that is captured, where no operator shows what "
       "compiled code does to weights and other state; …",
       compiled_in_capture},
      {"[program] '…' was written since it was packed, and to pack anew takes '…', which is gone: "
       "…",
       written_without_the_model},
      {"[program] the derivative takes '…', which is packed, and gone: …",
       derivative_without_the_model},
      {"[program] guard: … gave …, captured with …", compiled_guard}};
  using namespace flashlight::test;
  static const auto all = with_scope_causes(with_interchange_causes(with_family_causes(
      with_backend_causes(with_foreign_causes(with_ks_causes(with_quantize_causes(table)))))));
  return all;
}

std::set<std::string> documented() {
  std::istringstream lines(text_of(FLASHLIGHT_SOURCE_DIR "/docs/errors.md"));
  std::set<std::string> messages;
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("| `[", 0) == 0) messages.insert(line.substr(3, line.find("` |") - 3));
  return messages;
}

TEST(Errors, SayWhatTheDocumentsSay) {
  const std::set<std::string> messages = documented();
  for (const auto& [message, cause] : causes()) {
    EXPECT_TRUE(messages.count(message)) << "not in docs/errors.md: " << message;
    try {
      cause();
      ADD_FAILURE() << "no error: " << message;
    } catch (const composit::UserError& error) {
      EXPECT_TRUE(flashlight::test::matches(message, error.what())) << message << "\n"
                                                                    << error.what();
    }
  }
}

// In a process of its own: the key is taken for good.
const char* const kKeyTaken =
    "[trace] another library has registered a fallback on the dispatch key …";
TEST(Errors, TakenDispatchKeyDeathTest) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        torch::Library other(torch::Library::IMPL, "_", flashlight::tracer::kTraceKey, __FILE__,
                             __LINE__);
        other.fallback(torch::CppFunction::makeFallthrough());
        try {
          flashlight::TraceScope scope;
        } catch (const composit::UserError& error) {
          std::_Exit(flashlight::test::matches(kKeyTaken, error.what()) ? 0 : 1);
        }
        std::_Exit(2);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Errors, DocumentsListNoOther) {
  for (const std::string& message : documented())
    EXPECT_TRUE(causes().count(message) || message == kKeyTaken)
        << "in docs/errors.md, but nothing here causes it: " << message;
}

}  // namespace
