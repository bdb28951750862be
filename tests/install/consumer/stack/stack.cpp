#include <composit/io/saved_capture.h>
#include <composit/ir/error.h>
#include <composit/op/operation.h>
#include <stack/stack.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <flashlight/runtime/profile.hpp>
#include <fstream>
#include <map>

using namespace composit;

namespace {

// Its options; what they are unless somebody chooses is said here.
struct Stack {
  bool finite = false;
  int64_t depth = 64;
  double scale = 1;
  std::string comment = "a program for a stack machine";
};

const OptionFields<Stack>& fields() {
  static const OptionFields<Stack> fields(
      {{{.name = "finite", .help = "refuse results that are infinite or no numbers"},
        &Stack::finite},
       {{.name = "depth", .help = "how many values the stack holds"}, &Stack::depth},
       {{.name = "scale", .help = "what all results are multiplied with"}, &Stack::scale},
       {{.name = "comment", .help = "the first line of the program"}, &Stack::comment}});
  return fields;
}

using Numbers = std::vector<double>;
struct Function {
  std::string name;
  size_t arguments;
  double (*of)(const double* x);
};
const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> table = {
      {"aten::add.Tensor", {"add", 2, [](const double* x) { return x[0] + x[1]; }}},
      {"aten::mul.Tensor", {"mul", 2, [](const double* x) { return x[0] * x[1]; }}},
      {"aten::neg", {"neg", 1, [](const double* x) { return -x[0]; }}},
      {"aten::sin", {"sin", 1, [](const double* x) { return std::sin(x[0]); }}},
      {"aten::cos", {"cos", 1, [](const double* x) { return std::cos(x[0]); }}},
      {"aten::exp", {"exp", 1, [](const double* x) { return std::exp(x[0]); }}}};
  return table;
}

// Pushes an input, or puts a value in the place of its arguments.
struct Step {
  size_t input = 0;
  const Function* function = nullptr;
};
using Program = std::vector<Step>;

bool is_plain(const Node& node) {
  const Attribute* alpha = node.find_attribute("alpha");
  const auto* factor =
      alpha == nullptr ? nullptr : std::get_if<int64_t>(&alpha->as<Scalar>().value);
  return alpha == nullptr || (factor != nullptr && *factor == 1);
}

class Writer {
 public:
  explicit Writer(const Graph& graph) : graph_(graph) {
    if (!graph.mutations().empty()) missing_ = "writes to inputs";
    for (const LazyTensor& output : graph.outputs()) {
      if (output && output.dtype() != DType::float64) missing_ = "results that are not float64";
      if (output) write(output, programs_.emplace_back());
    }
    if (!missing_.empty()) throw UserError("[stack] no code for " + missing_);
  }
  const std::vector<Program>& programs() const { return programs_; }

 private:
  void write(const LazyTensor& value, Program& program) {
    const Node& node = *value.node;
    if (is_input(node)) {
      size_t number = 0;
      while (!(graph_.inputs()[number] == value)) ++number;
      program.push_back({.input = number});
      return;
    }
    const auto found = functions().find(node.op().str());
    bool is_known = found != functions().end() && is_plain(node);
    for (const LazyTensor& operand : node.operands())
      is_known = is_known && operand.type() == value.type();
    if (!is_known) {
      missing_ = "'" + node.op().str() + "'";
      return;
    }
    for (const LazyTensor& operand : node.operands()) write(operand, program);
    program.push_back({.function = &found->second});
  }

  const Graph& graph_;
  std::vector<Program> programs_;
  std::string missing_;
};

class StackCode : public Code {
 public:
  StackCode(const Graph& graph, const CompileOptions& options)
      : Code(ports_of(graph, options.name)),
        chosen_(fields().typed(options.options)),
        programs_(Writer(graph).programs()),
        source_("# " + chosen_.comment + "\n") {
    for (const Program& program : programs_) {
      for (const Step& step : program)
        source_ +=
            (step.function != nullptr ? step.function->name : ports().input_names[step.input]) +
            " ";
      source_.back() = '\n';
    }
  }

  const std::string& source() const override { return source_; }

  void run(InputBuffers inputs, Buffers results, fl::Generator*) const override {
    const std::vector<void*> places = ports().places(results);
    for (size_t i = 0; i < programs_.size(); ++i)
      for (int64_t k = 0; k < ports().results[i].numel(); ++k)
        static_cast<double*>(places[i])[k] = value(programs_[i], inputs, k);
  }

  std::vector<fl::TimedKernel> profile(InputBuffers inputs, Buffers results,
                                       fl::Generator* generator) const override {
    const auto now = [] {
      return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    };
    fl::TimedKernel all = {.name = "stack", .module = "", .start = now()};
    run(inputs, results, generator);
    all.end = now();
    return {all};
  }

 private:
  double value(const Program& program, InputBuffers inputs, int64_t element) const {
    Numbers stack;
    for (const Step& step : program) {
      if (step.function == nullptr) {
        stack.push_back(static_cast<const double*>(ports().given(step.input, inputs))[element]);
      } else {
        const size_t rest = stack.size() - step.function->arguments;
        stack[rest] = step.function->of(&stack[rest]);
        stack.resize(rest + 1);
      }
      if (static_cast<int64_t>(stack.size()) > chosen_.depth)
        throw UserError("[" + ports().program + "] expected a program with at most " +
                        std::to_string(chosen_.depth) + " values on the stack, received more");
    }
    const double result = chosen_.scale * stack.at(0);
    if (chosen_.finite && !std::isfinite(result))
      throw UserError("[" + ports().program + "] expected finite results, received " +
                      std::to_string(result));
    return result;
  }

  Stack chosen_;
  std::vector<Program> programs_;  // by result
  std::string source_;
};

}  // namespace

const OptionTable& StackBackend::options() const { return fields().table(); }

bool StackBackend::has_code(const Operation& operation) const {
  return functions().count(operation.schema.name.str()) > 0;
}

Compiled StackBackend::make(const Graph& graph, const CompileOptions& options) const {
  return {std::make_shared<const StackCode>(graph, options)};
}

void StackBackend::write_folder(const SavedCapture& capture, const std::string& folder,
                                const CompileOptions& options) const {
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/program.txt") << make(capture.graph, options)->source();
}
