#include "composit/op/backend.h"

#include <atomic>
#include <cstring>
#include <new>

#include "composit/ir/error.h"
#include "composit/ir/print.h"

namespace composit {
namespace {

using Arrays = std::vector<Array>;

// For row-major elements, aligned as vectors want them.
std::shared_ptr<std::byte> memory_for(const Type& type) {
  constexpr std::align_val_t kAlignment{64};
  const auto bytes = static_cast<size_t>(type.nbytes());
  return {static_cast<std::byte*>(::operator new(bytes, kAlignment)),
          [](std::byte* memory) { ::operator delete(memory, kAlignment); }};
}

class ArrayCode : public Code {
 public:
  ArrayCode(Ports ports, DrawingFunction function, bool draws)
      : Code(std::move(ports)), function_(std::move(function)), draws_(draws) {}

  bool draws() const override { return draws_; }

  Arrays call(const Arrays& inputs, fl::Generator* generator) const override {
    return function_(inputs, generator);
  }

  void run(InputBuffers inputs, Buffers results, fl::Generator* generator) const override {
    COMPOSIT_ASSERT(inputs.size() == ports().inputs.size(), "a buffer per input");
    Arrays arrays;
    for (size_t i = 0; i < ports().inputs.size(); ++i) {
      const Type& type = ports().inputs[i];
      const bool is_given = inputs[i].data != nullptr || type.numel() == 0;
      arrays.push_back(
          is_given ? Array(tensor_type(type.dtype, type.sizes), nullptr, ports().given(i, inputs))
                   : Array());
    }
    const std::vector<void*> places = ports().places(results);
    const Arrays values = function_(arrays, generator);
    if (values.size() != ports().results.size())
      throw UserError("[" + ports().program + "] expected " +
                      std::to_string(ports().results.size()) + " results, received " +
                      std::to_string(values.size()));
    size_t next = 0;
    for (size_t i = 0; i < ports().results.size(); ++i)
      if (is_defined(ports().results[i])) write(i, values[i], places.at(next++));
  }

 private:
  void write(size_t result, const Array& value, void* place) const {
    const Type& expected = ports().results[result];
    const bool is_it = value.defined() && value.type().dtype == expected.dtype &&
                       value.type().sizes == expected.sizes;
    if (!is_it)
      throw UserError("[" + ports().program + "] result " + std::to_string(result) + ": expected " +
                      print(expected) + ", received " +
                      (value.defined() ? print(value.type()) : "none"));
    const Array tight = value.contiguous();
    if (const auto bytes = static_cast<size_t>(expected.nbytes()); bytes > 0)
      std::memcpy(place, tight.data(), bytes);
  }

  DrawingFunction function_;
  bool draws_;
};

// Each size on its own.
class EachSize : public SizedCode {
 public:
  EachSize(const Backend& backend, CompileOptions options)
      : backend_(backend), options_(std::move(options)) {}
  Compiled at(const Graph& graph) override {
    ++count_;
    return backend_.compile(graph, options_);
  }
  size_t compilations() const override { return count_; }

 private:
  const Backend& backend_;
  CompileOptions options_;
  std::atomic<size_t> count_ = 0;
};

// With all options of the backend's table that are for this use.
CompileOptions completed(const Backend& backend, CompileOptions options, Option::Use use) {
  options.options = complete(std::move(options.options), backend.options(), use, backend.name());
  return options;
}

}  // namespace

// ---- code ---------------------------------------------------------------------------------------

namespace {

const std::string kNoSource;

}  // namespace

const std::string& Code::source() const { return kNoSource; }
const std::string& SizedCode::source() const { return kNoSource; }
bool Code::is_frozen(size_t /*input*/) const { return false; }
bool Code::may_update(size_t /*result*/) const { return false; }

std::shared_ptr<const Code> Code::prepare(const Arrays& /*weights*/) const {
  return shared_from_this();
}

std::shared_ptr<const Code> Code::prepare_beside(const Arrays& weights,
                                                 const Codes& /*others*/) const {
  return prepare(weights);
}
std::shared_ptr<const Code> Code::prepare_like(const Codes& /*others*/) const { return nullptr; }

std::optional<Compiled> SizedCode::at_once(const Graph& /*graph*/) { return std::nullopt; }

std::vector<fl::TimedKernel> Code::profile(InputBuffers /*inputs*/, Buffers /*results*/,
                                           fl::Generator* /*generator*/) const {
  throw UserError("[" + ports_.program +
                  "] profile: expected a backend that times its kernels, received one whose code "
                  "has none to time");
}

Arrays Code::call(const Arrays& inputs, fl::Generator* generator) const {
  if (inputs.size() != ports_.inputs.size())
    throw UserError("[" + ports_.program + "] expected " + std::to_string(ports_.inputs.size()) +
                    " inputs, received " + std::to_string(inputs.size()));
  Arrays tight, made;
  std::vector<InputBuffer> from;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_given = inputs[i].defined();
    if (is_given) ports_.check(i, inputs[i]);
    tight.push_back(is_given ? inputs[i].contiguous() : Array());
    from.emplace_back(is_given ? tight.back().data() : nullptr);
  }
  std::vector<Buffer> to;
  for (const Type& type : ports_.results) {
    if (!is_defined(type)) {
      made.emplace_back();
      continue;
    }
    const Type contiguous = tensor_type(type.dtype, type.sizes);
    const std::shared_ptr<std::byte> memory = memory_for(contiguous);
    made.emplace_back(contiguous, memory, memory.get());
    to.emplace_back(memory.get());
  }
  run(from, to, generator);
  return made;
}

Compiled code_of(const Graph& graph, const std::string& name, ArrayFunction function) {
  return {std::make_shared<const ArrayCode>(
      ports_of(graph, name),
      [function = std::move(function)](const Arrays& inputs, fl::Generator* /*generator*/) {
        return function(inputs);
      },
      /*draws=*/false)};
}
Compiled drawing_code_of(const Graph& graph, const std::string& name, DrawingFunction function) {
  return {std::make_shared<const ArrayCode>(ports_of(graph, name), std::move(function),
                                            /*draws=*/true)};
}

// ---- backends -----------------------------------------------------------------------------------

const OptionTable& Backend::options() const {
  static const OptionTable none;
  return none;
}
bool Backend::has_code(const Operation& /*operation*/) const { return false; }

Compiled Backend::compile(const Graph& graph, const CompileOptions& options) const {
  return make(graph, completed(*this, options, Option::Use::calls));
}

std::shared_ptr<SizedCode> Backend::compile_sized(const std::vector<SizedGraph>& shown,
                                                  const CompileOptions& options) const {
  return make_sized(shown, completed(*this, options, Option::Use::calls));
}
std::shared_ptr<SizedCode> Backend::make_sized(const std::vector<SizedGraph>& /*shown*/,
                                               const CompileOptions& options) const {
  return std::make_shared<EachSize>(*this, options);
}

std::string Backend::source(const Graph& graph, const CompileOptions& options) const {
  return write(graph, completed(*this, options, Option::Use::calls));
}

std::string Backend::plan(const Graph& graph, const CompileOptions& options) const {
  return describe_plan(graph, completed(*this, options, Option::Use::calls));
}

std::vector<WrittenValue> Backend::written_values(const Graph& graph,
                                                  const CompileOptions& options) const {
  return list_written(graph, completed(*this, options, Option::Use::calls));
}
std::vector<WrittenValue> Backend::list_written(const Graph& /*graph*/,
                                                const CompileOptions& /*options*/) const {
  return {};
}

Options Backend::for_derivative(Options options) const {
  for (const Option& option : this->options())
    if (option.of_one_graph) options.erase(option.name);
  return options;
}

void Backend::write_program(const SavedCapture& capture, const std::string& folder,
                            const CompileOptions& options) const {
  write_folder(capture, folder, completed(*this, options, Option::Use::programs));
}
void Backend::write_program(const SavedCapture& capture, const SizedGraphs& graphs,
                            const std::string& folder, const CompileOptions& options) const {
  write_sized_folder(capture, graphs, folder, completed(*this, options, Option::Use::programs));
}
void Backend::write_sized_folder(const SavedCapture& /*capture*/, const SizedGraphs& /*graphs*/,
                                 const std::string& /*folder*/,
                                 const CompileOptions& /*options*/) const {
  throw UserError(
      "[" + name() +
      "] expected a capture of one size, received a family: `flashlight bind` gives its "
      "capture at sizes, and the backends cpp and mosaic write programs for all of them");
}

std::string Backend::write(const Graph& graph, const CompileOptions& options) const {
  return make(graph, options)->source();
}

std::string Backend::describe_plan(const Graph& /*graph*/,
                                   const CompileOptions& /*options*/) const {
  throw UserError("[" + name() + "] expected a backend that plans, received one that has no plan");
}

void Backend::write_folder(const SavedCapture& /*capture*/, const std::string& /*folder*/,
                           const CompileOptions& /*options*/) const {
  throw UserError("[" + name() +
                  "] expected a backend that writes programs, received one that only runs graphs");
}

}  // namespace composit
