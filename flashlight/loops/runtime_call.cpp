#include "flashlight/loops/runtime_call.h"

#include <algorithm>
#include <cstring>

#include "composit/ir/error.h"
#include "composit/op/promotion.h"
#include "composit/ops/draws.h"
#include "composit/ops/guards.h"
#include "composit/ops/operations.h"
#include "composit/ops/runtime_options.h"
#include "flashlight/loops/control.h"

namespace flashlight::loops {
namespace {

using composit::Call;
using composit::DType;
using composit::DTypeCategory;
using composit::Node;
using composit::UserError;

using composit::option;

// ---- draws --------------------------------------------------------------------------------------

void expect_default_generator(const Node& node) {
  const auto* attribute = node.find_attribute("generator");
  const auto* generator = attribute ? attribute->get_if<composit::Generator>() : nullptr;
  if (generator != nullptr && generator->role != "default")
    throw UserError("by a generator of the program's own, '" + generator->role +
                    "'; draw by the default one, or let the numbers be an input");
}

// The bounds of a range of whole numbers: a floating point dtype has all up to its precision.
void expect_exact(const Type& type, const composit::Attributes& options) {
  if (composit::category(type.dtype) != DTypeCategory::floating) return;
  const double most = type.dtype == DType::float64    ? 0x1p53
                      : type.dtype == DType::float32  ? 0x1p24
                      : type.dtype == DType::bfloat16 ? 0x1p8
                                                      : 0x1p11;
  for (const composit::NamedAttribute& option : options)
    if (const auto* bound = option.value.get_if<int64_t>();
        bound != nullptr && std::abs(static_cast<double>(*bound)) > most)
      throw UserError("of a range that " + std::string(composit::name(type.dtype)) +
                      " cannot count to");
}

RuntimeCallOf draw_call(const Node& node, const composit::Draw& draw) {
  const Type& type = node.outputs()[0];
  expect_default_generator(node);
  if (!composit::is_contiguous(type)) throw UserError("into memory that is not row-major");
  const DTypeCategory category = composit::category(type.dtype);
  if (category == DTypeCategory::complex ||
      (category != DTypeCategory::floating && !draw.row.integers))
    throw UserError("of " + std::string(composit::name(type.dtype)));
  RuntimeCallOf found;
  found.call.function = composit::Symbol(draw.row.runtime);
  found.call.draws = found.call.effect = true;
  found.operands = draw.row.values;
  if (!draw.row.runtime_options) return found;
  const Call call = composit::call_of(node, draw.schema);
  found.call.options = draw.row.runtime_options({.call = &call});
  expect_exact(type, found.call.options);
  return found;
}

// The seed of a generator that has drawn nothing yet; nothing for any other state. The state is
// LibTorch's CPUGeneratorImplState.
std::optional<uint64_t> seed_of(const composit::Array& state) {
  constexpr size_t kWords = 624;
  struct Legacy {
    uint64_t seed;
    int32_t left, seeded;
    uint64_t next, words[kWords];
    double normal_x, normal_y, normal_rho;
    int32_t normal_is_valid;
  } legacy;
  if (state.type().nbytes() < static_cast<int64_t>(sizeof legacy)) return std::nullopt;
  std::memcpy(&legacy, state.contiguous().data(), sizeof legacy);
  auto word = static_cast<uint32_t>(legacy.seed);
  bool fresh = legacy.left == 1 && legacy.normal_is_valid == 0;
  for (size_t i = 0; i < kWords; ++i) {
    if (i > 0) word = 1812433253u * (word ^ word >> 30) + static_cast<uint32_t>(i);
    fresh = fresh && legacy.words[i] == word;
  }
  return fresh ? std::optional(legacy.seed) : std::nullopt;
}

RuntimeCallOf seed_call(const Node& node) {
  expect_default_generator(node);
  const auto seed = seed_of(node.attribute("state").as<composit::Array>());
  if (!seed) throw UserError("of a generator that has drawn before");
  RuntimeCallOf found;
  found.call.function = composit::Symbol("random::seed");
  found.call.options = {option("seed", static_cast<int64_t>(*seed))};
  found.call.draws = found.call.effect = true;
  return found;
}

// ---- guards -------------------------------------------------------------------------------------

RuntimeCallOf guard_call(const composit::Guard& guard, const Node& node, Origin origin) {
  const std::string_view other = node.annotation("guard");
  origin.operation = other.empty() ? "aten::item" : std::string(other);
  RuntimeCallOf found;
  found.call.function = composit::Symbol("guards::expect");
  found.call.options = {option("expected", composit::expected_of(guard, node)),
                        option("place", place_of(origin))};
  found.call.effect = found.call.on_numbers = true;
  found.operands = 1;
  return found;
}

RuntimeCallOf assert_call(const Node& node, const Origin& origin) {
  const auto* message = node.find_attribute("assert_msg");
  const std::string text = message != nullptr ? message->as<std::string>() : "is false";
  RuntimeCallOf found;
  found.call.function = composit::Symbol("guards::require");
  found.call.options = {option("message", place_of(origin) + ": " + text)};
  found.call.effect = found.call.on_numbers = true;
  found.operands = 1;
  return found;
}

}  // namespace

std::optional<RuntimeCallOf> runtime_call_of(const Node& node, const Origin& origin) {
  if (const auto* guard = composit::guard_of(node); guard != nullptr && !guard->answer) {
    if (guard->expected == composit::Guard::Expected::captured)
      return guard_call(*guard, node, origin);
    if (guard->expected == composit::Guard::Expected::nonzero) return assert_call(node, origin);
  }
  if (node.op().str() == "composit::set_generator_state") return seed_call(node);
  if (const composit::Draw* draw = composit::find_draw(node.op()))
    return draw->row.runtime.empty() ? std::nullopt : std::optional(draw_call(node, *draw));
  const composit::Operation* operation = composit::operation_of(node);
  if (operation == nullptr) return std::nullopt;
  const composit::Row& row = operation->row;
  if (row.runtime.empty()) return std::nullopt;
  RuntimeCallOf found;
  found.operands = node.operands().size();
  found.call.function = composit::Symbol(row.runtime);
  found.broadcasts = found.call.function.domain() == "special";
  const Call call = composit::call_of(node, operation->schema);
  if (row.runtime_options) found.call.options = row.runtime_options({.call = &call});
  return found;
}

bool has_code(const composit::Operation& operation) {
  const auto& arguments = operation.schema.arguments;
  const bool takes_tensors = std::any_of(arguments.begin(), arguments.end(),
                                         [](const auto& one) { return one.is_tensor(); });
  return !operation.row.native || !takes_tensors || is_control(operation.schema.name) ||
         !operation.row.runtime.empty();
}

}  // namespace flashlight::loops
