#include "tests/flashlight/family_causes.h"

#include <ATen/Functions.h>

#include <cmath>
#include <functional>
#include <vector>

#include "composit/io/saved_capture.h"
#include "flashlight/family.h"
#include "tests/io/temporary_folder.h"

namespace flashlight::test {
namespace {

using Program = std::function<at::Tensor(const at::Tensor&)>;
using Rows = std::vector<int64_t>;

auto family_of(const Program& program, const Rows& rows) {
  const auto x = [&](size_t i) { return example(at::ones({rows.at(i), 3})); };
  return trace_family(FamilySettings{.names = {"rows"}}, program, x(0), x(1), x(2));
}
at::Tensor sines(const at::Tensor& x) { return x.sin(); }
at::Tensor filled(const at::Tensor& x, int64_t size) { return at::ones({size}) * x.sum(); }

void two_examples() {
  trace_family(FamilySettings{}, Program(sines), example(at::ones({2, 3})),
               example(at::ones({4, 3})));
}
void equal_sizes() { family_of(sines, {2, 2, 5}); }
void one_row() { family_of(sines, {1, 2, 5}); }
void another_path() {
  family_of([](const at::Tensor& x) { return x.size(0) > 3 ? x.sin() : x.cos(); }, {2, 3, 5});
}
void fewer_nodes() {
  family_of([](const at::Tensor& x) { return x.size(0) > 3 ? x.sin().sin() : x.sin(); }, {2, 3, 5});
}
void no_expression() {
  family_of([](const at::Tensor& x) { return filled(x, x.size(0) > 3 ? x.size(0) : 3); },
            {2, 4, 5});
}
void several_expressions() {
  family_of([](const at::Tensor& x) { return filled(x, x.size(0) / 4); }, {12, 16, 23});
}
void float_of_a_size() {
  family_of([](const at::Tensor& x) { return x / std::sqrt(double(x.size(0))); }, {2, 3, 5});
}
void outside() { family_of(sines, {2, 4, 5}).at({{"rows", 9}}); }
void between() { family_of(sines, {2, 4, 8}).at({{"rows", 5}}); }
void no_number() { family_of(sines, {2, 4, 5}).at({}); }
void another_name() { family_of(sines, {2, 4, 5}).at({{"rows", 4}, {"columns", 3}}); }
void other_columns() { family_of(sines, {2, 4, 5})(at::ones({4, 2})); }
void too_few_names() {
  trace_family(FamilySettings{.names = {"rows", "columns"}}, Program(sines),
               example(at::ones({2, 3})), example(at::ones({4, 3})), example(at::ones({5, 3})));
}
void a_range_that_does_not_hold() {
  trace_family(FamilySettings{.ranges = {{"rows", 2, 60}}}, Program([](const at::Tensor& x) {
                 return filled(x, std::max<int64_t>(x.size(0), 5));
               }),
               [](const composit::SizeValues& sizes) {
                 return std::tuple(at::ones({sizes.at("rows"), 3}));
               });
}
void a_range_of_two() {
  trace_family(FamilySettings{.ranges = {{"rows", 2, 3}}}, Program(sines),
               [](const composit::SizeValues& sizes) {
                 return std::tuple(at::ones({sizes.at("rows"), 3}));
               });
}
void loaded_as_a_capture() {
  const composit::test::TemporaryFolder folder;
  family_of(sines, {2, 4, 5}).save(folder.path() / "family");
  load(folder.path() / "family");
}
void loaded_as_a_family() {
  const composit::test::TemporaryFolder folder;
  trace(sines, at::ones({3})).save(folder.path() / "capture");
  load_family(folder.path() / "capture");
}

}  // namespace

Causes with_family_causes(Causes others) {
  others.merge(Causes{
      {"[unify] expected at least 3 examples whose sizes differ, received …", two_examples},
      {"[unify] expected at least 3 different numbers for …, received …: add an example with "
       "another one",
       equal_sizes},
      {"[unify] … = 1 in an example: a program may take another path there; show sizes from 2 on, "
       "and check the family at this one",
       one_row},
      {"[unify] …: examples … and … differ in structure: the second has … here", another_path},
      {"[unify] examples … and … differ in structure: … nodes", fewer_nodes},
      {"[unify] …: expected an expression of sizes for …, received … for …", no_expression},
      {"[unify] …: … may be … or …, which differ …: add an example there", several_expressions},
      {"[unify] …: expected '…' to differ in integers only, received … in example … and … in "
       "example …",
       float_of_a_size},
      {"[unify] expected a name for each of the … sizes that differ (…), received …",
       too_few_names},
      {"[bind] … = …: shown from … to …; add an example there", outside},
      {"[bind] … = …: all examples are … and a multiple of …; add an example between", between},
      {"[bind] expected a number for the size '…'", no_number},
      {"[bind] expected one of the sizes …, received '…'", another_name},
      {"[bind] input '…': expected …, received …", other_columns},
      {"[bind] expected a family, received the capture of one run; …", loaded_as_a_family},
      {"[family] the range that was declared does not hold at …", a_range_that_does_not_hold},
      {"[family] expected at least 3 sizes from 2 on in the range of '…', received … to …",
       a_range_of_two},
      {"[load] …: expected a capture, received a family, which load_family reads",
       loaded_as_a_capture}});
  return others;
}

}  // namespace flashlight::test
