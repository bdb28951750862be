#include "flashlight/cuda/emit.h"

#include <algorithm>
#include <set>

#include "composit/ir/scope.h"
#include "composit/op/nest.h"
#include "flashlight/cuda/kernel_writer.h"
#include "flashlight/loops/arena.h"
#include "flashlight/loops/constants.h"
#include "flashlight/loops/missing_code.h"
#include "flashlight/loops/sizes.h"
#include "flashlight/text/literal.h"
#include "flashlight/text/printer.h"

namespace flashlight::cuda {

using composit::DType;
using text::Code;
using ScalarFunction = composit::Function;

namespace {

bool has_type(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float64 || dtype == DType::int64 ||
         dtype == DType::int32 || dtype == DType::int16 || dtype == DType::int8 ||
         dtype == DType::uint8 || dtype == DType::bool_;
}

// The functions that flashlight_cuda.cuh does not have.
bool has_function(ScalarFunction function) {
  static const std::set<ScalarFunction> missing = {
      ScalarFunction::erfinv,     ScalarFunction::digamma,     ScalarFunction::real,
      ScalarFunction::imag,       ScalarFunction::conj,        ScalarFunction::complex,
      ScalarFunction::shift_left, ScalarFunction::shift_right, ScalarFunction::polygamma,
      ScalarFunction::zeta};
  return missing.count(function) == 0;
}

// The reason why a nest has no kernel; empty if it has one.
std::string fault_of(const Nest& nest, const Routine& routine) {
  for (const Expr& root : expressions(nest.statement))
    for (const Expr& part : composit::parts_of({root})) {
      if (!has_type(part.dtype()))
        return "for values of " + std::string(composit::name(part.dtype()));
      if (part.kind() == ExprKind::call && !has_function(part.function()))
        return "for the function " + std::string(composit::info_of(part.function()).name);
    }
  for (const ValueId value : writes(Step(nest)))
    if (!has_type(routine.values[value].type.dtype))
      return "for values of " + std::string(composit::name(routine.values[value].type.dtype));
  return "";
}

void check(const Routine& routine) {
  MissingCode missing;
  for (const Step& step : routine.steps) {
    const auto* nest = std::get_if<Nest>(&step);
    const std::string fault = nest == nullptr ? "on a GPU" : fault_of(*nest, routine);
    if (!fault.empty()) missing.add(origin_of(step), fault);
  }
  missing.refuse();
  for (const Value& value : routine.values)
    if (value.type.numel() > INT32_MAX)
      throw composit::UserError("[cuda] '" + value.name + "' has " +
                                std::to_string(value.type.numel()) +
                                " elements; expected at most 2147483647");
}

class Emitter {
 public:
  Emitter(const Program& program)
      : routine_(program.functions.back()), name_(text::identifier(routine_.name)) {
    taken_ = {name_, "arena", "stream", "error"};
    names_.resize(routine_.values.size());
    for (const ValueId value : routine_.values.ids())
      names_[value] = composit::unused_name(text::identifier(routine_.values[value].name), taken_);
    place_temporaries();
  }

  CudaSource source() {
    Code kernels = constants();
    Code body = temporaries();
    for (const StepId step : routine_.steps.ids()) {
      const auto& nest = std::get<Nest>(routine_.steps[step]);
      const KernelShape shape = shape_of(nest.statement);
      if (shape.points == 0) continue;
      kernels += text::blank();
      body += launch(nest, shape, kernels);
    }
    body += text::returned("cudaSuccess");

    CudaSource source;
    source.name = name_;
    source.arena_bytes = arena_bytes_;
    source.text = "#include \"flashlight_cuda.cuh\"\n\nnamespace {\n" + text::str(kernels) +
                  "\n}  // namespace\n\n" +
                  text::str(text::code(
                      text::Definition{"extern \"C\" cudaError_t " + name_, parameters(), body}));
    source.header = header();
    return source;
  }

 private:
  std::string type_of(ValueId value) const {
    return text::type_name(routine_.values[value].type.dtype);
  }

  // Known elements stand in the text, those of the graph's constants as well.
  bool is_constant(ValueId value) const {
    const Value& one = routine_.values[value];
    return one.role == Role::constant || (one.role == Role::weight && one.constant.defined());
  }

  void place_temporaries() {
    std::vector<Lifetime> lifetimes;
    for (const ValueId value : routine_.values.ids()) {
      const Value& one = routine_.values[value];
      if (one.role != Role::temporary) continue;
      std::vector<size_t> used;
      for (const StepId step : routine_.steps.ids()) {
        const ValueIds in = reads(routine_.steps[step]), out = writes(routine_.steps[step]);
        if (std::count(in.begin(), in.end(), value) + std::count(out.begin(), out.end(), value) > 0)
          used.push_back(static_cast<size_t>(step));
      }
      if (used.empty()) continue;
      temporaries_.push_back(value);
      lifetimes.push_back(
          {one.type.numel() * static_cast<int64_t>(composit::item_size(one.type.dtype)),
           used.front(), used.back()});
    }
    offsets_ = place(lifetimes);
    arena_bytes_ = arena_size(lifetimes, offsets_);
  }

  Code constants() const {
    Code code;
    for (const ValueId value : routine_.values.ids()) {
      const Value& one = routine_.values[value];
      if (!is_constant(value) || one.type.numel() == 0) continue;
      text::List list{"__device__ const " + type_of(value) + " " + names_[value] + "[] = ", {}};
      for (int64_t i = 0; i < one.type.numel(); ++i)
        list.items.push_back(text::literal(element(one.constant, i), one.type.dtype));
      code += text::blank();
      code += text::code(list);
    }
    return code;
  }

  Code temporaries() const {
    Code code;
    for (size_t i = 0; i < temporaries_.size(); ++i)
      code += text::assignment(
          "auto* const " + names_[temporaries_[i]],
          "fl::at<" + type_of(temporaries_[i]) + ">(arena, " + std::to_string(offsets_[i]) + ")");
    return code;
  }

  std::vector<std::string> parameters() const {
    std::vector<std::string> list;
    for (const ValueId value : routine_.inputs)
      if (!is_constant(value)) list.push_back("const " + type_of(value) + "* " + names_[value]);
    for (const ValueId value : routine_.results)
      list.push_back(type_of(value) + "* " + names_[value]);
    list.push_back(arena_bytes_ > 0 ? "void* arena" : "void* /*arena*/");
    list.push_back("cudaStream_t stream");
    return list;
  }

  // Adds the kernel of a nest; gives its launch.
  Code launch(const Nest& nest, const KernelShape& shape, Code& kernels) {
    const Step step(nest);
    const ValueIds in = reads(step), out = writes(step);
    std::vector<std::string> parameters, arguments;
    const auto add = [&](ValueId value, bool is_const) {
      if (is_constant(value)) return;
      parameters.push_back((is_const ? "const " : "") + type_of(value) + "* __restrict__ " +
                           names_[value]);
      arguments.push_back(names_[value]);
    };
    for (const ValueId value : in)
      if (std::count(out.begin(), out.end(), value) == 0) add(value, true);
    for (const ValueId value : out) add(value, false);

    const std::string kernel = composit::unused_name(names_[out.at(0)] + "_kernel", taken_);
    KernelContext context;
    context.type = [this](ValueId value) -> const Type& { return routine_.values[value].type; };
    context.name = [this](ValueId value) { return names_[value]; };
    context.range = [](ValueId) { return std::nullopt; };
    const Origin& origin = nest.origin;
    if (!origin.module.empty() || !origin.source.empty())
      kernels += text::comment(place_of(origin));
    kernels += KernelWriter(nest.statement, shape, context).write(kernel, parameters);

    static const char* const kGrid[] = {"fl::points", "fl::warps", "fl::blocks"};
    std::vector<std::string> words = {kernel,
                                      std::string(kGrid[static_cast<size_t>(shape.worker)]) + "(" +
                                          std::to_string(shape.points) + ")",
                                      "stream"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    Code code = text::call({.target = "cudaError_t error_" + kernel,
                            .function = "fl::launch",
                            .arguments = {words.begin(), words.end()}});
    code += text::block(text::If{"error_" + kernel + " != cudaSuccess"},
                        text::returned("error_" + kernel));
    return code;
  }

  std::string header() const {
    std::string text = "// Sizes: ";
    const char* separator = "";
    for (const ValueIds& list : {routine_.inputs, routine_.results})
      for (const ValueId value : list) {
        if (is_constant(value)) continue;
        text += separator + names_[value] + composit::str(routine_.values[value].type.sizes);
        separator = ", ";
      }
    std::string arguments;
    for (const std::string& one : parameters()) arguments += (arguments.empty() ? "" : ", ") + one;
    return text + ".\n// All memory is the device's, row-major; `arena` has " + name_ +
           "_arena_bytes.\n#pragma once\n\n#include <cuda_runtime_api.h>\n\nenum { " + name_ +
           "_arena_bytes = " + std::to_string(arena_bytes_) +
           " };\n\n#ifdef __cplusplus\nextern \"C\"\n#endif\ncudaError_t " + name_ + "(" +
           arguments + ");\n";
  }

  const Routine& routine_;
  std::string name_;
  std::set<std::string> taken_;
  Table<ValueId, std::string> names_;
  ValueIds temporaries_;
  std::vector<int64_t> offsets_;
  int64_t arena_bytes_ = 0;
};

}  // namespace

CudaSource emit(Program program) {
  expect_bound("cuda", program);
  check(program.functions.back());
  return Emitter(program).source();
}

}  // namespace flashlight::cuda
