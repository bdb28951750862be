// Causes of documented errors of families whose numbers or state differ from call to call.
#include <ATen/Functions.h>

#include <functional>
#include <vector>

#include "flashlight/compiled_family.h"
#include "flashlight/family.h"
#include "tests/flashlight/family_causes.h"

namespace flashlight::test {
namespace {

using Program = std::function<at::Tensor(const at::Tensor&)>;

at::Tensor rows_of(int64_t rows) { return at::rand({rows, 3}); }

// A family of a program of a tensor and a number.
template <class T>
auto of_numbers(const T& program) {
  return trace_family({.names = {"rows"}}, program, example(rows_of(2), 0.3),
                      example(rows_of(4), 0.17), example(rows_of(5), 0.4));
}
at::Tensor scaled(const at::Tensor& x, double by) { return x * by; }
const auto kScaled = [](const at::Tensor& x, double by) { return scaled(x, by); };

void unused() {
  of_numbers([](const at::Tensor& x, double by) { return by > 1 ? x.sin() : x.cos(); });
}
void equal_numbers() {
  const Program program = [](const at::Tensor& x) { return x * 0.5; };
  trace_family(program, example(rows_of(2)).with("lr", 0.1), example(rows_of(3)).with("lr", 0.1),
               example(rows_of(5)).with("lr", 0.1));
}
void a_number_that_is_lacking() {
  const Program program = [](const at::Tensor& x) { return x * 0.5; };
  trace_family(program, example(rows_of(2)).with("lr", 0.1), example(rows_of(3)),
               example(rows_of(5)).with("lr", 0.2));
}
void nobody_gives_it() { of_numbers(kScaled).at({{"rows", 4}}); }
void another_number() { of_numbers(kScaled).with({{"lr", 0.1}}); }
void not_settable() {
  FamilySettings settings;
  settings.numbers = {{"lr", [] { return 0.5; }}};
  const Program program = [](const at::Tensor& x) { return x * 0.5; };
  trace_family(settings, program, example(rows_of(2)).with("lr", 0.1));
}
void no_predicate() {
  const Program program = [](const at::Tensor& x) { return x * x.sum().item<double>(); };
  trace_family(program, example(rows_of(2)), example(rows_of(3)), example(rows_of(5)));
}
void no_tensor_stands_for_it() {
  const auto family = of_numbers([](const at::Tensor& x, double by) { return at::elu(x, by); });
  compile(family, {.backend = "cpp"})(rows_of(4), 0.2);
}
auto growing(at::Tensor& past) {
  const auto program = [&past](const at::Tensor& x) {
    past = at::cat({past, x});
    return past.sum(0);
  };
  return trace_family({.names = {"past"}}, program,
                      example(rows_of(1)).after([&] { past = rows_of(9); }),
                      example(rows_of(1)).after([&] { past = rows_of(2); }), example(rows_of(1)),
                      example(rows_of(1)));
}
void reset_state() {
  at::Tensor past;
  const auto family = growing(past);
  past = rows_of(2);
  family(rows_of(1));
}
void compiled_state() {
  at::Tensor past;
  compile(growing(past), {.backend = "cpp"});
}

}  // namespace

Causes with_number_causes(Causes others) {
  others.merge(Causes{
      {"[unify] '…' differs between examples, and no number of an operator follows from it: …",
       unused},
      {"[unify] examples … read other numbers at …: write the comparison that decides with "
       "operators, …",
       no_predicate},
      {"[family] expected examples with several numbers '…', received …", equal_numbers},
      {"[family] example … lacks the number '…', which another one has", a_number_that_is_lacking},
      {"[family] expected the number '…': give it, …", nobody_gives_it},
      {"[family] expected one of the numbers …, received '…'", another_number},
      {"[family] an example has …, and the program has …: set it there, or give a function that "
       "does",
       not_settable},
      {"[family] expected the state '…' where the program's last run left it, and nobody holds it "
       "any more: …",
       reset_state},
      {"[compile] …: its '…' differs from call to call, and no tensor can stand for it",
       no_tensor_stands_for_it},
      {"[compile] expected state that keeps its size, received '…', which grows from call to call: "
       "…",
       compiled_state}});
  return others;
}

}  // namespace flashlight::test
