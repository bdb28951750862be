#include "flashlight/loops/runtime_call.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "composit/ir/error.h"
#include "composit/op/promotion.h"
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

using Options = composit::Attributes;
using Option = composit::NamedAttribute;
using composit::batch;
using composit::option;

// ---- options ------------------------------------------------------------------------------------

// The call's argument `name`, as an option of the same name.
Option same(const Call& call, const char* name) { return option(name, call[name].data()); }

int64_t whole(const Call& call, std::string_view name) { return call[name].data().as_int(); }
double real(const Call& call, std::string_view name) { return call[name].data().as<double>(); }

// ---- draws --------------------------------------------------------------------------------------

struct Draw {
  const char* schema;
  const char* function;
  Options (*options)(const Call& call) = nullptr;
  size_t operands = 0;         // number of first operands whose values matter, not only sizes
  bool whole_numbers = false;  // any dtype, not floating point only
};

Options unit(const Call&) { return {option("low", 0.0), option("high", 1.0)}; }

void expect_probability(double p) {
  if (!(p >= 0 && p <= 1))
    throw UserError("expected a probability from 0 to 1, received " + std::to_string(p));
}

Options range(int64_t from, int64_t to) {
  if (from >= to)
    throw UserError("expected a range of numbers, received {" + std::to_string(from) + ", " +
                    std::to_string(to) + "}");
  return {option("from", from), option("to", to)};
}
int64_t end_of(const Call& call, std::string_view name) {
  if (call[name].is_none()) throw UserError("without an end of the range");
  return whole(call, name);
}

// clang-format off
#define FACTORY "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define LIKE FACTORY ", MemoryFormat? memory_format=None) -> Tensor"
#define SEEDED "*, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define IN_PLACE ", *, Generator? generator=None) -> Tensor"
// clang-format on

const std::vector<Draw>& draws() {
  constexpr auto kBetween = [](const Call& call) {
    return Options{same(call, "from"), same(call, "to")};
  };
  constexpr auto kNormal = [](const Call& call) {
    return Options{same(call, "mean"), same(call, "std")};
  };
  constexpr auto kBernoulli = [](const Call& call) {
    expect_probability(real(call, "p"));
    return Options{same(call, "p")};
  };
  constexpr auto kRate = [](const Call& call) { return Options{same(call, "lambd")}; };
  constexpr auto kBelow = [](const Call& call) { return range(0, whole(call, "high")); };
  constexpr auto kFromLow = [](const Call& call) {
    return range(whole(call, "low"), whole(call, "high"));
  };
  constexpr auto kFromTo = [](const Call& call) {
    return range(whole(call, "from"), end_of(call, "to"));
  };
  constexpr auto kTo = [](const Call& call) { return range(0, whole(call, "to")); };
  static const std::vector<Draw> kDraws = {
      {"aten::rand(SymInt[] size, " FACTORY ") -> Tensor", "random::draw_uniform", unit},
      {"aten::rand.generator(SymInt[] size, " SEEDED ") -> Tensor", "random::draw_uniform", unit},
      {"aten::rand_like(Tensor self, " LIKE, "random::draw_uniform", unit},
      {"aten::uniform(Tensor self, float from=0, float to=1" IN_PLACE, "random::draw_uniform",
       kBetween},
      {"aten::randn(SymInt[] size, " FACTORY ") -> Tensor", "random::draw_normal", unit},
      {"aten::randn.generator(SymInt[] size, " SEEDED ") -> Tensor", "random::draw_normal", unit},
      {"aten::randn_like(Tensor self, " LIKE, "random::draw_normal", unit},
      {"aten::normal_functional(Tensor self, float mean=0, float std=1" IN_PLACE,
       "random::draw_normal", kNormal},
      {"flashlight::normal_singly(Tensor self, float mean=0, float std=1" IN_PLACE,
       "random::draw_normal_singly", kNormal},
      {"aten::normal.float_float(float mean, float std, SymInt[] size, *, Generator? "
       "generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       "random::draw_normal", kNormal},
      {"aten::exponential(Tensor self, float lambd=1" IN_PLACE, "random::draw_exponential", kRate},
      {"aten::cauchy(Tensor self, float median=0, float sigma=1" IN_PLACE, "random::draw_cauchy",
       [](const Call& call) {
         return Options{same(call, "median"), same(call, "sigma")};
       }},
      {"aten::log_normal(Tensor self, float mean=1, float std=2" IN_PLACE,
       "random::draw_log_normal", kNormal},
      {"aten::geometric(Tensor self, float p" IN_PLACE, "random::draw_geometric", kBernoulli, 0,
       true},
      {"aten::bernoulli(Tensor self" IN_PLACE, "random::draw_bernoulli", nullptr, 1, true},
      {"aten::bernoulli.p(Tensor self, float p=0.5" IN_PLACE, "random::draw_bernoulli", kBernoulli,
       0, true},
      {"aten::bernoulli_.float(Tensor self, float p=0.5" IN_PLACE, "random::draw_bernoulli",
       kBernoulli, 0, true},
      {"aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False" IN_PLACE,
       "random::draw_multinomial",
       [](const Call& call) {
         const Type& weights = call["self"].tensor().type();
         if (is_half(weights.dtype))
           throw UserError("by weights of " + std::string(composit::name(weights.dtype)));
         return Options{option("batch", batch(weights, 1)), same(call, "num_samples")};
       },
       1, true},
      {"aten::random(Tensor self" IN_PLACE, "random::draw_integers", nullptr, 0, true},
      {"aten::random.from(Tensor self, int from, int? to" IN_PLACE, "random::draw_integers",
       kFromTo, 0, true},
      {"aten::random.to(Tensor self, int to" IN_PLACE, "random::draw_integers", kTo, 0, true},
      {"aten::randint(SymInt high, SymInt[] size, " FACTORY ") -> Tensor", "random::draw_integers",
       kBelow, 0, true},
      {"aten::randint.generator(SymInt high, SymInt[] size, " SEEDED ") -> Tensor",
       "random::draw_integers", kBelow, 0, true},
      {"aten::randint.low(SymInt low, SymInt high, SymInt[] size, " FACTORY ") -> Tensor",
       "random::draw_integers", kFromLow, 0, true},
      {"aten::randint.low_generator(SymInt low, SymInt high, SymInt[] size, " SEEDED ") -> Tensor",
       "random::draw_integers", kFromLow, 0, true},
      {"aten::randint_like(Tensor self, SymInt high, " LIKE, "random::draw_integers", kBelow, 0,
       true},
      {"aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, " LIKE,
       "random::draw_integers", kFromLow, 0, true},
      {"aten::randperm(SymInt n, " FACTORY ") -> Tensor", "random::draw_permutation", nullptr, 0,
       true},
      {"aten::randperm.generator(SymInt n, " SEEDED ") -> Tensor", "random::draw_permutation",
       nullptr, 0, true}};
  return kDraws;
}

#undef FACTORY
#undef LIKE
#undef SEEDED
#undef IN_PLACE

struct DrawRow {
  composit::Schema schema;
  Draw draw;
};
const DrawRow* draw_of(const Node& node) {
  static const std::map<std::string, DrawRow> kRows = [] {
    std::map<std::string, DrawRow> rows;
    for (const Draw& draw : draws()) {
      composit::Schema schema = composit::parse_schema(draw.schema);
      const std::string name = schema.name.str();
      rows.emplace(name, DrawRow{std::move(schema), draw});
    }
    return rows;
  }();
  const auto found = kRows.find(node.op().str());
  return found == kRows.end() ? nullptr : &found->second;
}

void expect_default_generator(const Node& node) {
  const auto* attribute = node.find_attribute("generator");
  const auto* generator = attribute ? attribute->get_if<composit::Generator>() : nullptr;
  if (generator != nullptr && generator->role != "default")
    throw UserError("by a generator of the program's own, '" + generator->role +
                    "'; draw by the default one, or let the numbers be an input");
}

// UserError if a floating point dtype cannot hold all integers up to the bounds.
void expect_exact(const Type& type, const Options& options) {
  if (composit::category(type.dtype) != DTypeCategory::floating || options.size() != 2) return;
  const double most = type.dtype == DType::float64    ? 0x1p53
                      : type.dtype == DType::float32  ? 0x1p24
                      : type.dtype == DType::bfloat16 ? 0x1p8
                                                      : 0x1p11;
  for (const Option& bound : options)
    if (std::abs(static_cast<double>(bound.value.as_int())) > most)
      throw UserError("of a range that " + std::string(composit::name(type.dtype)) +
                      " cannot count to");
}

RuntimeCallOf draw_call(const Node& node, const DrawRow& row) {
  const Type& type = node.outputs()[0];
  expect_default_generator(node);
  if (!composit::is_contiguous(type)) throw UserError("into memory that is not row-major");
  const DTypeCategory category = composit::category(type.dtype);
  if (category == DTypeCategory::complex ||
      (category != DTypeCategory::floating && !row.draw.whole_numbers))
    throw UserError("of " + std::string(composit::name(type.dtype)));
  RuntimeCallOf found;
  found.call.function = composit::Symbol(row.draw.function);
  found.call.draws = found.call.effect = true;
  if (row.draw.options != nullptr)
    found.call.options = row.draw.options(composit::call_of(node, row.schema));
  if (found.call.function.str() == "random::draw_integers") expect_exact(type, found.call.options);
  found.operands = row.draw.operands;
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

RuntimeCallOf guard_call(const Node& node, Origin origin) {
  const std::string_view other = node.annotation("guard");
  origin.operation = other.empty() ? "aten::item" : std::string(other);
  const auto& expected = node.find_run("expected")->as<composit::List>().items;
  RuntimeCallOf found;
  found.call.function = composit::Symbol("guards::expect");
  found.call.options = {option("expected", expected.at(0).as<composit::Scalar>()),
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

bool is_draw(const Node& node) { return draw_of(node) != nullptr; }

std::optional<RuntimeCallOf> runtime_call_of(const Node& node, const Origin& origin) {
  const std::string& op = node.op().str();
  if (op == "aten::_local_scalar_dense" && node.find_run("expected") != nullptr)
    return guard_call(node, origin);
  if (op == "aten::_assert_async" || op == "aten::_assert_async.msg")
    return assert_call(node, origin);
  if (op == "composit::set_generator_state") return seed_call(node);
  if (const DrawRow* row = draw_of(node)) return draw_call(node, *row);
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
