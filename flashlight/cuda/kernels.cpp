#include "flashlight/cuda/kernels.h"

#include <algorithm>
#include <cstring>

#include "composit/ir/error.h"
#include "composit/ir/scope.h"
#include "flashlight/cuda/kernel_writer.h"
#include "flashlight/loops/arena.h"
#include "flashlight/loops/constants.h"
#include "flashlight/loops/missing_code.h"
#include "flashlight/text/literal.h"

namespace flashlight::cuda {

using composit::DType;
using text::Code;
using ScalarFunction = composit::Function;

namespace {

bool has_type(DType dtype) {
  const bool is_wide_unsigned =
      dtype == DType::uint16 || dtype == DType::uint32 || dtype == DType::uint64;
  return composit::is_computable(dtype) && !is_wide_unsigned;
}

// The functions that flashlight_cuda.cuh does not have.
bool has_function(ScalarFunction function) {
  static const std::set<ScalarFunction> missing = {
      ScalarFunction::erfinv,      ScalarFunction::digamma,   ScalarFunction::shift_left,
      ScalarFunction::shift_right, ScalarFunction::polygamma, ScalarFunction::zeta};
  return missing.count(function) == 0;
}

// An element of a constant. Memory of a device begins with constant expressions, as a conversion of
// a float to 16 bits is not.
std::string constant(const Value& value, int64_t number) {
  const DType dtype = value.type.dtype;
  if (!composit::is_half(dtype)) return text::literal(element(value.constant, number), dtype);
  uint16_t bits = 0;
  std::memcpy(&bits, static_cast<const std::byte*>(value.constant.data()) + 2 * number, 2);
  return text::type_name(dtype) + "::of_bits(" + std::to_string(bits) + ")";
}

// The reason why a nest has no kernel; empty if it has one.
std::string fault_of_nest(const Nest& nest, const Routine& routine) {
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

}  // namespace

void check(const Routine& routine, const std::function<std::string(const Step&)>& fault_of) {
  MissingCode missing;
  for (const Step& step : routine.steps) {
    const auto* nest = std::get_if<Nest>(&step);
    const std::string fault = nest == nullptr ? fault_of(step) : fault_of_nest(*nest, routine);
    if (!fault.empty()) missing.add(origin_of(step), fault);
  }
  missing.refuse();
  for (const Value& value : routine.values)
    if (value.type.numel() > INT32_MAX)
      throw composit::UserError("[cuda] '" + value.name + "' has " +
                                std::to_string(value.type.numel()) +
                                " elements; expected at most 2147483647");
}

std::string function_name(std::string_view text) {
  static const std::set<std::string, std::less<>> kOfCuda = {
      "clock64", "cospi",   "erfcinv",    "erfcx",  "erfinv", "exp10",    "llabs",
      "llmin",   "max",     "memcpy",     "memset", "min",    "norm",     "norm3d",
      "norm4d",  "normcdf", "normcdfinv", "rcbrt",  "rhypot", "rnorm",    "rsqrt",
      "sinpi",   "strlen",  "umin",       "umax",   "llmax",  "sincospi", "cyl_bessel_i0"};
  const std::string name = text::identifier(text);
  return text::is_of_c(name) || kOfCuda.contains(name) ? name + "_program" : name;
}

Kernels::Kernels(const Routine& routine, std::set<std::string> words, File& file,
                 const std::function<bool(ValueId)>& in_arena)
    : routine_(routine), taken_(std::move(words)), file_(file) {
  names_.resize(routine_.values.size());
  for (const ValueId value : routine_.values.ids())
    names_[value] = unused(text::identifier(routine_.values[value].name));
  place_temporaries(in_arena);
  add_constants();
}

// Neither in the function nor in the file, whose names it would hide.
std::string Kernels::unused(const std::string& base) {
  std::string name;
  do name = composit::unused_name(base, taken_);
  while (file_.names.count(name) > 0);
  return name;
}

int64_t Kernels::reserve(int64_t bytes) {
  const int64_t offset = arena_bytes_;
  arena_bytes_ += (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  return offset;
}

std::string Kernels::type(ValueId value) const {
  return text::type_name(routine_.values[value].type.dtype);
}

bool Kernels::is_constant(ValueId value) const {
  const Value& one = routine_.values[value];
  return one.role == Role::constant || (one.role == Role::weight && one.constant.defined());
}

void Kernels::place_temporaries(const std::function<bool(ValueId)>& in_arena) {
  std::vector<Lifetime> lifetimes;
  for (const ValueId value : routine_.values.ids()) {
    const Value& one = routine_.values[value];
    if (one.role != Role::temporary || (in_arena && !in_arena(value))) continue;
    std::vector<size_t> used;
    for (const StepId step : routine_.steps.ids()) {
      const ValueIds in = reads(routine_.steps[step]), out = writes(routine_.steps[step]);
      if (std::count(in.begin(), in.end(), value) + std::count(out.begin(), out.end(), value) > 0)
        used.push_back(static_cast<size_t>(step));
    }
    if (used.empty()) continue;
    temporaries_.push_back(value);
    lifetimes.push_back(
        {one.type.numel() * static_cast<int64_t>(composit::item_size(one.type.dtype)), used.front(),
         used.back()});
  }
  offsets_ = place(lifetimes);
  arena_bytes_ = arena_size(lifetimes, offsets_);
}

// Those that stand as literals in every expression are not read.
void Kernels::add_constants() {
  std::set<ValueId> read;
  for (const Step& step : routine_.steps)
    for (const ValueId value : reads(step)) read.insert(value);
  for (const ValueId value : read) {
    const Value& one = routine_.values[value];
    if (!is_constant(value) || one.type.numel() == 0) continue;
    file_.names.insert(names_[value]);
    text::List list{"__device__ const " + type(value) + " " + names_[value] + "[] = ", {}};
    for (int64_t i = 0; i < one.type.numel(); ++i) list.items.push_back(constant(one, i));
    file_.kernels += text::blank();
    file_.kernels += text::code(list);
  }
}

Code Kernels::temporaries() const {
  Code code;
  for (size_t i = 0; i < temporaries_.size(); ++i)
    code += text::assignment(
        "auto* const " + names_[temporaries_[i]],
        "fl::at<" + type(temporaries_[i]) + ">(arena, " + std::to_string(offsets_[i]) + ")");
  return code;
}

std::optional<Launch> Kernels::add(const Nest& nest) {
  const KernelShape shape = shape_of(nest.statement);
  if (shape.points == 0) return std::nullopt;
  const Step step(nest);
  const ValueIds in = reads(step), out = writes(step);
  Launch launch;
  std::vector<std::string> parameters;
  const auto pass = [&](ValueId value, bool is_const) {
    if (is_constant(value)) return;
    parameters.push_back((is_const ? "const " : "") + type(value) + "* __restrict__ " +
                         names_[value]);
    launch.arguments.push_back(names_[value]);
  };
  for (const ValueId value : in)
    if (std::count(out.begin(), out.end(), value) == 0) pass(value, true);
  for (const ValueId value : out) pass(value, false);

  launch.kernel = unused(names_[out.at(0)] + "_kernel");
  file_.names.insert(launch.kernel);
  static const char* const kGrid[] = {"fl::points", "fl::warps", "fl::blocks"};
  launch.grid = std::string(kGrid[static_cast<size_t>(shape.worker)]) + "(" +
                std::to_string(shape.points) + ")";
  KernelContext context;
  context.type = [this](ValueId value) -> const Type& { return routine_.values[value].type; };
  context.name = [this](ValueId value) { return names_[value]; };
  context.range = [](ValueId) { return std::nullopt; };
  file_.kernels += text::blank();
  const Origin& origin = nest.origin;
  if (!origin.module.empty() || !origin.source.empty())
    file_.kernels += text::comment(place_of(origin));
  file_.kernels += KernelWriter(nest.statement, shape, context).write(launch.kernel, parameters);
  return launch;
}

}  // namespace flashlight::cuda
