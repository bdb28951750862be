#include "composit/ops/draws.h"

#include <map>
#include <string>

#include "composit/ir/error.h"
#include "composit/op/schema.h"

namespace composit {
namespace {

class Draws {
 public:
  Draws();
  void add(const Draw& draw) {
    const std::string name = parse_schema(draw.schema).name.str();
    const bool added = draws_.emplace(name, draw).second;
    COMPOSIT_ASSERT(added, "two draws of one name");
  }
  const std::map<std::string, Draw>& all() const { return draws_; }

 private:
  std::map<std::string, Draw> draws_;
};

// A tensor that gives sizes and dtype.
void add_draws_like_a_tensor(Draws& draws) {
#define COMPOSIT_LIKE                                                                         \
  "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, " \
  "MemoryFormat? memory_format=None) -> Tensor"
#define COMPOSIT_DRAW_LIKE(name, arguments, overload, generator_overload, samples_)             \
  draws.add({"aten::" name overload "(Tensor self, " arguments "*, " COMPOSIT_LIKE, samples_}); \
  draws.add({"aten::" name generator_overload "(Tensor self, " arguments                        \
             "*, Generator? generator, " COMPOSIT_LIKE});
  COMPOSIT_DRAW_LIKE("rand_like", "", "", ".generator", "f32[2,3] | f32[] float64")
  COMPOSIT_DRAW_LIKE("randn_like", "", "", ".generator", "f32[2,3] | f32[] float64")
  COMPOSIT_DRAW_LIKE("randint_like", "SymInt high, ", "", ".generator", "f32[2,3] 5")
  COMPOSIT_DRAW_LIKE("randint_like", "Tensor high, ", ".Tensor", ".Tensor_generator", "")
  COMPOSIT_DRAW_LIKE("randint_like", "SymInt low, SymInt high, ", ".low_dtype",
                     ".low_generator_dtype", "f32[2,3] -2 5")
#undef COMPOSIT_DRAW_LIKE
#undef COMPOSIT_LIKE
}

// Adds the names that in-place draws have in a graph.
void add_draws_over_a_tensor(Draws& draws) {
#define COMPOSIT_DRAW_OVER(name, arguments, samples_)                                            \
  draws.add({"aten::" name "(Tensor self, " arguments "*, Generator? generator=None) -> Tensor", \
             samples_});
  COMPOSIT_DRAW_OVER("uniform", "float from=0., float to=1., ", "f32[2,3] | f32[4] -1.0 2.0")
  COMPOSIT_DRAW_OVER("normal_functional", "float mean=0., float std=1., ", "f32[2,3]")
  COMPOSIT_DRAW_OVER("log_normal", "float mean=1., float std=2., ", "f32[2,3]")
  COMPOSIT_DRAW_OVER("cauchy", "float median=0., float sigma=1., ", "f32[2,3]")
  COMPOSIT_DRAW_OVER("exponential", "float lambd=1., ", "f32[2,3]")
  COMPOSIT_DRAW_OVER("geometric", "float p, ", "f32[2,3] 0.5")
  COMPOSIT_DRAW_OVER("random", "", "f32[2,3]")
  COMPOSIT_DRAW_OVER("random.from", "int from, int? to, ", "f32[2,3] -2 5")
  COMPOSIT_DRAW_OVER("random.to", "int to, ", "f32[2,3] 5")
  COMPOSIT_DRAW_OVER("bernoulli.p", "float p, ", "f32[2,3] 0.5")
#undef COMPOSIT_DRAW_OVER
}

void add_draws_of_distributions(Draws& draws) {
  draws.add(
      {"aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", "f32[2,3]=0..1"});
  draws.add(
      {"aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> "
       "Tensor",
       "f32[2,3] f32[2,3]=0..1"});
  draws.add({"aten::poisson(Tensor self, Generator? generator=None) -> Tensor", "f32[2,3]=0..5"});
  draws.add(
      {"aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? "
       "generator=None) -> Tensor",
       "f32[2,3] 2.0"});
  draws.add(
      {"aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) "
       "-> Tensor",
       "1.0 f32[2,3]=0..1"});
  draws.add(
      {"aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? "
       "generator=None) -> Tensor",
       "f32[2,3] f32[2,3]=0..1"});
}

Draws::Draws() {
  add_draws_like_a_tensor(*this);
  add_draws_over_a_tensor(*this);
  add_draws_of_distributions(*this);
}

const std::map<std::string, Draw>& table() {
  static const auto* all = new Draws;  // outlives what static destructors may still call
  return all->all();
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
