#include "composit/ops/draws.h"

#include <map>
#include <string>

#include "composit/ir/error.h"
#include "composit/op/promotion.h"
#include "composit/ops/functions.h"
#include "composit/ops/runtime_options.h"

namespace composit {
namespace {

// ---- options of the runtime's functions ---------------------------------------------------------

Attributes pair(const char* first, double a, const char* second, double b) {
  return {option(first, a), option(second, b)};
}

Attributes probability(double p) {
  if (!(p >= 0 && p <= 1))
    throw UserError("expected a probability from 0 to 1, received " + std::to_string(p));
  return {option("p", p)};
}

Attributes range(int64_t from, std::optional<int64_t> to) {
  if (!to) throw UserError("without an end of the range");
  if (from >= *to)
    throw UserError("expected a range of numbers, received {" + std::to_string(from) + ", " +
                    std::to_string(*to) + "}");
  return {option("from", from), option("to", *to)};
}

// Numbers of any mean and deviation, made of those around 0.
template <class Mean, class Deviation>
LazyTensors normal(const Opening& open, const Mean& mean, const Deviation& deviation) {
  const Type& type = open.results[0];
  return {open.draw("aten::normal_functional", {}, tensor_type(type.dtype, type.sizes)) *
              deviation +
          mean};
}

// Exponential numbers race: the places of the largest p / q. Empty with replacement, which is drawn
// otherwise.
LazyTensors places_without_replacement(const Opening& open, const LazyTensor& p, int64_t count,
                                       bool replacement) {
  if (count != 1 && replacement) return {};
  const LazyTensor race =
      p / open.draw("aten::exponential", {}, tensor_type(p.dtype(), p.type().sizes));
  if (count == 1) return {apply_one("aten::argmax", {race, int64_t{-1}, true})};
  return {apply("aten::topk", {race, count})[1]};
}

constexpr auto kUnit = [] { return pair("low", 0, "high", 1); };
constexpr auto kNormal = [](LazyTensor, double mean, double std) {
  return pair("mean", mean, "std", std);
};
constexpr auto kBelow = [](int64_t high) { return range(0, high); };
constexpr auto kBetween = [](int64_t low, int64_t high) { return range(low, high); };
constexpr auto kLikeBelow = [](LazyTensor, int64_t high) { return range(0, high); };
constexpr auto kLikeBetween = [](LazyTensor, int64_t low, int64_t high) {
  return range(low, high);
};
constexpr auto kProbability = [](LazyTensor, double p) { return probability(p); };

// ---- rows ---------------------------------------------------------------------------------------

#define COMPOSIT_FACTORY "Layout? layout=None, Device? device=None, bool? pin_memory=None"
// A draw by the default generator, and the same by another one. Fields of both rows follow.
#define COMPOSIT_DRAW(name, generator_name, arguments, dtype, end, samples_, ...)                  \
  {.schema = "aten::" name "(" arguments ", *, ScalarType? dtype=" dtype ", " COMPOSIT_FACTORY end \
             ") -> Tensor",                                                                        \
   .samples = samples_,                                                                            \
   __VA_ARGS__},                                                                                   \
  {                                                                                                \
    .schema = "aten::" generator_name "(" arguments                                                \
              ", *, Generator? generator, ScalarType? dtype=" dtype ", " COMPOSIT_FACTORY end      \
              ") -> Tensor",                                                                       \
    __VA_ARGS__                                                                                    \
  }
// Numbers of a given size; numbers of the sizes and the dtype of a tensor.
#define COMPOSIT_DRAW_OF_SIZE(name, generator_name, arguments, dtype, ...) \
  COMPOSIT_DRAW(name, generator_name, arguments, dtype, "", "", __VA_ARGS__)
#define COMPOSIT_DRAW_LIKE(name, generator_name, arguments, samples_, ...) \
  COMPOSIT_DRAW(name, generator_name, "Tensor self" arguments, "None",     \
                ", MemoryFormat? memory_format=None", samples_, __VA_ARGS__)
// The name that an in-place draw has in a graph.
#define COMPOSIT_DRAW_OVER(name, arguments, samples_, function, ...)                     \
  {                                                                                      \
    .schema = name "(Tensor self, " arguments "*, Generator? generator=None) -> Tensor", \
    .samples = samples_, .runtime = "random::" function, __VA_ARGS__                     \
  }

constexpr DrawRow kRows[] = {
    COMPOSIT_DRAW_OF_SIZE("rand", "rand.generator", "SymInt[] size", "None",
                          .runtime = "random::draw_uniform", .runtime_options = kUnit),
    COMPOSIT_DRAW_OF_SIZE("randn", "randn.generator", "SymInt[] size", "None",
                          .runtime = "random::draw_normal", .runtime_options = kUnit),
    COMPOSIT_DRAW_OF_SIZE("randint", "randint.generator", "SymInt high, SymInt[] size", "4",
                          .runtime = "random::draw_integers", .runtime_options = kBelow,
                          .integers = true),
    COMPOSIT_DRAW_OF_SIZE(
        "randint.low", "randint.low_generator", "SymInt low, SymInt high, SymInt[] size", "4",
        .runtime = "random::draw_integers", .runtime_options = kBetween, .integers = true),
    COMPOSIT_DRAW_OF_SIZE("randperm", "randperm.generator", "SymInt n", "4",
                          .runtime = "random::draw_permutation", .integers = true),
    {.schema = "aten::normal.float_float(float mean, float std, SymInt[] size, *, Generator? "
               "generator=None, ScalarType? dtype=None, " COMPOSIT_FACTORY ") -> Tensor",
     .runtime = "random::draw_normal",
     .runtime_options = [](double mean, double std) { return pair("mean", mean, "std", std); }},

    COMPOSIT_DRAW_LIKE("rand_like", "rand_like.generator", "", "f32[2,3] | f32[] float64",
                       .runtime = "random::draw_uniform", .runtime_options = kUnit),
    COMPOSIT_DRAW_LIKE("randn_like", "randn_like.generator", "", "f32[2,3] | f32[] float64",
                       .runtime = "random::draw_normal", .runtime_options = kUnit,
                       .not_row_major = "flashlight::normal_singly"),
    COMPOSIT_DRAW_LIKE("randint_like", "randint_like.generator", ", SymInt high", "f32[2,3] 5",
                       .runtime = "random::draw_integers", .runtime_options = kLikeBelow,
                       .integers = true),
    COMPOSIT_DRAW_LIKE("randint_like.Tensor", "randint_like.Tensor_generator", ", Tensor high", ""),
    COMPOSIT_DRAW_LIKE("randint_like.low_dtype", "randint_like.low_generator_dtype",
                       ", SymInt low, SymInt high", "f32[2,3] -2 5",
                       .runtime = "random::draw_integers", .runtime_options = kLikeBetween,
                       .integers = true),

    COMPOSIT_DRAW_OVER(
        "aten::uniform", "float from=0., float to=1., ", "f32[2,3] | f32[4] -1.0 2.0",
        "draw_uniform",
        .runtime_options = [](LazyTensor, double from,
                              double to) { return pair("from", from, "to", to); }),
    COMPOSIT_DRAW_OVER("aten::normal_functional", "float mean=0., float std=1., ", "f32[2,3]",
                       "draw_normal", .runtime_options = kNormal,
                       .not_row_major = "flashlight::normal_singly"),
    COMPOSIT_DRAW_OVER("flashlight::normal_singly", "float mean=0., float std=1., ", "",
                       "draw_normal_singly", .runtime_options = kNormal),
    COMPOSIT_DRAW_OVER("aten::log_normal", "float mean=1., float std=2., ", "f32[2,3]",
                       "draw_log_normal", .runtime_options = kNormal),
    COMPOSIT_DRAW_OVER(
        "aten::cauchy", "float median=0., float sigma=1., ", "f32[2,3]", "draw_cauchy",
        .runtime_options = [](LazyTensor, double median,
                              double sigma) { return pair("median", median, "sigma", sigma); }),
    COMPOSIT_DRAW_OVER(
        "aten::exponential", "float lambd=1., ", "f32[2,3]", "draw_exponential",
        .runtime_options = [](LazyTensor,
                              double rate) { return Attributes{option("lambd", rate)}; }),
    COMPOSIT_DRAW_OVER("aten::geometric", "float p, ", "f32[2,3] 0.5", "draw_geometric",
                       .runtime_options = kProbability, .integers = true),
    COMPOSIT_DRAW_OVER("aten::bernoulli.p", "float p, ", "f32[2,3] 0.5", "draw_bernoulli",
                       .runtime_options = kProbability, .integers = true),
    {.schema = "aten::bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? "
               "generator=None) -> Tensor(a!)",
     .runtime = "random::draw_bernoulli",
     .runtime_options = kProbability,
     .integers = true},
    COMPOSIT_DRAW_OVER("aten::random", "", "f32[2,3]", "draw_integers", .integers = true),
    COMPOSIT_DRAW_OVER(
        "aten::random.from", "int from, int? to, ", "f32[2,3] -2 5", "draw_integers",
        .runtime_options = [](LazyTensor, int64_t from,
                              std::optional<int64_t> to) { return range(from, to); },
        .integers = true),
    COMPOSIT_DRAW_OVER("aten::random.to", "int to, ", "f32[2,3] 5", "draw_integers",
                       .runtime_options = kLikeBelow, .integers = true),

    COMPOSIT_DRAW_OVER("aten::bernoulli", "", "f32[2,3]=0..1", "draw_bernoulli", .values = 1,
                       .integers = true),
    {.schema = "aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> "
               "Tensor",
     .samples = "f32[2,3] f32[2,3]=0..1"},
    {.schema = "aten::poisson(Tensor self, Generator? generator=None) -> Tensor",
     .samples = "f32[2,3]=0..5"},
    COMPOSIT_DRAW_OVER(
        "aten::multinomial", "SymInt num_samples, bool replacement=False, ", "", "draw_multinomial",
        .runtime_options =
            [](LazyTensor weights, int64_t count) {
              if (is_half(weights.dtype()))
                throw UserError("by weights of " + std::string(name(weights.dtype())));
              return Attributes{option("batch", batch(weights.type(), 1)),
                                option("num_samples", count)};
            },
        .values = 1, .integers = true,
        .opened =
            [](const Opening& open, LazyTensor p, int64_t count, bool replacement) {
              return places_without_replacement(open, p, count, replacement);
            }),
    {.schema = "aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? "
               "generator=None) -> Tensor",
     .samples = "f32[2,3] 2.0",
     .opened = [](const Opening& open, LazyTensor mean,
                  double deviation) { return normal(open, mean, deviation); }},
    {.schema = "aten::normal.float_Tensor(float mean, Tensor std, *, Generator? "
               "generator=None) -> Tensor",
     .samples = "1.0 f32[2,3]=0..1",
     .opened = [](const Opening& open, double mean,
                  LazyTensor deviation) { return normal(open, mean, deviation); }},
    {.schema = "aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? "
               "generator=None) -> Tensor",
     .samples = "f32[2,3] f32[2,3]=0..1",
     .opened = [](const Opening& open, LazyTensor mean,
                  LazyTensor deviation) { return normal(open, mean, deviation); }},
};

#undef COMPOSIT_DRAW_OVER
#undef COMPOSIT_DRAW_LIKE
#undef COMPOSIT_DRAW_OF_SIZE
#undef COMPOSIT_DRAW
#undef COMPOSIT_FACTORY

using Draws = std::map<std::string, Draw>;

Draws draws_by_name() {
  Draws draws;
  for (const DrawRow& row : kRows) {
    Schema schema = parse_schema(row.schema);
    row.runtime_options.check(schema);
    row.opened.check(schema);
    const std::string name = schema.name.str();
    const bool added = draws.emplace(name, Draw{row, std::move(schema)}).second;
    COMPOSIT_ASSERT(added, "two draws of one name");
  }
  return draws;
}

const Draws& table() {
  static const auto* all = new Draws(draws_by_name());  // outlives static destructors
  return *all;
}

}  // namespace

const Draw* find_draw(Symbol name) {
  const auto found = table().find(name.str());
  return found == table().end() ? nullptr : &found->second;
}

std::vector<const Draw*> all_draws() {
  std::vector<const Draw*> all;
  for (const auto& [name, draw] : table()) all.push_back(&draw);
  return all;
}

}  // namespace composit
