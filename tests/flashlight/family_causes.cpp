#include "tests/flashlight/family_causes.h"

#include <ATen/Functions.h>

#include <cmath>
#include <functional>
#include <vector>

#include "composit/family/saved_family.h"
#include "composit/family/unify.h"
#include "composit/io/saved_capture.h"
#include "flashlight/family.h"
#include "tests/io/temporary_folder.h"

namespace flashlight::test {
namespace {

using Program = std::function<at::Tensor(const at::Tensor&)>;
using Rows = std::vector<int64_t>;
using Names = std::vector<std::string>;

auto family_of(const Program& program, const Rows& rows) {
  const auto x = [&](size_t i) { return example(at::ones({rows.at(i), 3})); };
  return trace_family(FamilySettings{.names = {"rows"}}, program, x(0), x(1), x(2));
}
// At rows from the first to the last number.
void family_from(const Program& program, int64_t first, int64_t last) {
  std::vector<CaptureBase> captures;
  for (int64_t rows = first; rows <= last; ++rows)
    captures.push_back(trace(program, at::ones({rows, 3})));
  FamilyBase(captures, {.names = {"rows"}});
}
at::Tensor sines(const at::Tensor& x) { return x.sin(); }
at::Tensor filled(const at::Tensor& x, int64_t size) { return at::ones({size}) * x.sum(); }

void two_examples() {
  trace_family(FamilySettings{}, Program(sines), example(at::ones({2, 3})),
               example(at::ones({4, 3})));
}
// The family of a program that reads a number, of which this is asked; of its line if of none.
void asks(composit::Predicate predicate) {
  const int line = __LINE__ + 1;
  const auto program = [](const at::Tensor& x) { return x.sum().item<float>() > 0 ? x * 2 : x; };
  if (predicate.place.empty()) predicate.place = "family_causes.cpp:" + std::to_string(line);
  FamilySettings settings;
  settings.predicates = {std::move(predicate)};
  trace_family(settings, program, example(at::ones({2, 3})), example(-at::ones({2, 3})));
}
void predicate_of_no_line() { asks(composit::predicate("model.cpp:12", "> 0")); }
void no_comparison() { asks(composit::predicate("model.cpp:12", "about 0")); }
void no_bool() {
  asks({"", [](const composit::LazyTensor& number) { return number; }});
}
void equal_sizes() { family_of(sines, {2, 2, 5}); }
void one_row() { family_of(sines, {1, 2, 5}); }
void another_path_each_time() {
  const auto program = [](const at::Tensor& x) {
    switch (x.size(0)) {
      case 2:
        return x.sin();
      case 3:
        return x.cos();
      case 4:
        return x.tan();
      case 5:
        return x.exp();
      case 6:
        return x.sqrt();
      default:
        return x.tanh();
    }
  };
  family_from(program, 2, 7);
}
// Of steps that are not alike.
void a_loop() {
  const auto program = [](at::Tensor x) {
    for (int64_t i = 1; i < x.size(0); ++i) x = (x * (1.0 / static_cast<double>(i))).sin();
    return x;
  };
  family_from(program, 2, 7);
}
void two_conditions() {
  family_of([](const at::Tensor& x) { return x.size(0) > 3 ? x.sin() : x.cos(); }, {2, 3, 5});
}
void no_condition() {
  const auto program = [](const at::Tensor& x) {
    const int64_t rows = x.size(0);
    return rows == 3 || rows == 4 || rows == 7 ? x.sin() : x.cos();
  };
  family_from(program, 2, 8);
}
void a_condition_to_be_tried() {
  std::vector<CaptureBase> captures;
  const auto program = [](const at::Tensor& x) { return x.size(0) <= 4 ? x.sin() : x.cos(); };
  const Rows rows = {2, 4, 5, 6, 3, 7}, columns = {3, 5, 9, 4, 7, 8};
  for (size_t i = 0; i < rows.size(); ++i)
    captures.push_back(trace(Program(program), at::ones({rows[i], columns[i]})));
  FamilyBase(captures, {});
}
void few_in_a_case() {
  std::vector<CaptureBase> captures;
  const auto program = [](const at::Tensor& x) { return x.size(0) <= 4 ? x.sin() : x.cos(); };
  for (const int64_t rows : {2, 4, 5, 6, 7})
    captures.push_back(trace(Program(program), at::ones({rows, 3})));
  FamilyBase(captures, {});
}
void another_input() {
  using namespace composit;
  std::vector<Graph> graphs;
  for (const int64_t rows : {2, 4, 5}) {
    const LazyTensor x = input("x", tensor_type(DType::float32, {rows}));
    const LazyTensor y = input(rows == 4 ? "z" : "y", tensor_type(DType::float32, {rows}));
    graphs.push_back(Graph({.inputs = {x, y}, .outputs = {x, y}}));
  }
  unify(graphs);
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
// Both ways of a program on ones and their negative.
at::Tensor positive(int64_t rows) { return at::ones({rows, 3}); }
void arms_of_other_types() {
  const auto program = [](const at::Tensor& x) {
    return (x.sum() > 0).item<bool>() ? x.sin() : x.sum();
  };
  trace_family(Program(program), example(positive(2)), example(-positive(2)));
}
const Program kTwoWays = [](const at::Tensor& x) {
  return (x.sum() > 0).item<bool>() ? x.sin() : x.cos();
};
void two_sizes_of_a_way() {
  trace_family(kTwoWays, example(positive(2)), example(positive(4)), example(positive(5)),
               example(-positive(2)), example(-positive(4)));
}
void another_way() {
  const Program program = [](const at::Tensor& x) {
    return (x.max() > 5).item<bool>() ? x : kTwoWays(x);
  };
  const auto family = trace_family(program, example(positive(2)), example(-positive(2)));
  family.difference_from(trace(program, positive(2) * 9));
}
void another_tensor_of_a_name() {
  std::vector<CaptureBase> captures;
  for (const at::Tensor& x : {positive(2), -positive(2)}) {
    const at::Tensor weight = at::rand({2, 3});
    const auto program = [weight](const at::Tensor& y) {
      return (y.sum() > 0).item<bool>() ? y * weight : weight - y;
    };
    captures.push_back(trace(TraceSettings{{}, {{"weight", weight}}}, Program(program), x));
  }
  FamilyBase(captures, {});
}
void too_many_trips() {
  const Program program = [](at::Tensor x) {
    while ((x.sum() > 1).item<bool>()) x = x * 0.5;
    return x;
  };
  trace_family(program, example(positive(2)), example(positive(2) * 4))(positive(2) * 99);
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
void an_unseen_remainder() {
  family_of([](const at::Tensor& x) { return filled(x, 7 - x.size(0) % 7); }, {5, 12, 23});
}
void refuted_by_a_check() {
  const auto family =
      family_of([](const at::Tensor& x) { return x.size(0) == 7 ? x.cos() : x.sin(); }, {2, 5, 9});
  family.check(at::ones({7, 3}));
  family(at::ones({7, 3}));
}
void loaded_as_a_capture() {
  const composit::test::TemporaryFolder folder;
  family_of(sines, {2, 4, 5}).save(folder.path() / "family");
  load(folder.path() / "family");
}
void a_copy_that_was_a_view() {
  const Program program = [](const at::Tensor& x) {
    at::Tensor y = x.as_strided(x.sizes(), {1, 1}) * 2;
    y.reshape({-1}).add_(1);
    return y;
  };
  const auto x = [](int64_t a, int64_t b) { return at::ones({a, b}); };
  trace_family(FamilySettings{.names = {"a", "b"}}, program, example(x(8, 4)), example(x(12, 6)),
               example(x(15, 9)), example(x(11, 5)))(x(8, 9));
}
// Loads these folders as examples of one program.
void expect_examples(const composit::test::TemporaryFolder& folder, const Names& names) {
  std::vector<composit::SavedCapture> captures;
  Names folders;
  for (const std::string& name : names) {
    folders.push_back((folder.path() / name).string());
    captures.push_back(composit::load(folders.back()));
  }
  composit::expect_one_program(captures, folders);
}
void a_family_as_example() {
  const composit::test::TemporaryFolder folder;
  trace(sines, at::ones({3, 3})).save(folder.path() / "capture");
  family_of(sines, {2, 4, 5}).save(folder.path() / "family");
  expect_examples(folder, {"capture", "family"});
}
void other_weights() {
  const composit::test::TemporaryFolder folder;
  at::Tensor weight = at::ones({3});
  const Program program = [&](const at::Tensor& x) { return x * weight.add_(0); };
  trace(program, at::ones({2, 3})).save(folder.path() / "one");
  trace(program, at::ones({4, 3})).save(folder.path() / "same");
  expect_examples(folder, {"one", "same"});  // throws nothing
  weight.fill_(2);
  trace(program, at::ones({5, 3})).save(folder.path() / "other");
  expect_examples(folder, {"one", "same", "other"});
}
void loaded_as_a_family() {
  const composit::test::TemporaryFolder folder;
  trace(sines, at::ones({3})).save(folder.path() / "capture");
  load_family(folder.path() / "capture");
}

}  // namespace

Causes with_family_causes(Causes others) {
  others.merge(Causes{
      {"[unify] …: expected the capture of one run, received a family; …", a_family_as_example},
      {"[unify] …: expected a capture of the program of …, received one with …", other_weights},
      {"[unify] expected at least 3 examples whose sizes differ, received …", two_examples},
      {"[unify] expected at least 3 different numbers for …, received …: add an example with "
       "another one",
       equal_sizes},
      {"[unify] … = 1 in an example: a program may take another path there; show sizes from 2 on, "
       "and check the family at this one",
       one_row},
      {"[unify] …: examples … and … differ in structure: the second has … here",
       another_path_each_time},
      {"[unify] examples … and … differ in structure: … nodes", a_loop},
      {"[unify] examples … part at …, which … or … may decide: add an example at …",
       two_conditions},
      {"[unify] examples … part at …, which … seems to decide: add an example at …",
       a_condition_to_be_tried},
      {"[unify] examples … part at …; no condition on sizes tells them apart, nor a bool that all "
       "of them read just before: write the comparison that decides with operators, as …",
       no_condition},
      {"[unify] no example reads a number at …; they read numbers at …", predicate_of_no_line},
      {"[unify] the predicate at …: expected a comparison with a number, as '> 0', or 'any', "
       "received '…'",
       no_comparison},
      {"[unify] the predicate at …: expected one bool of the number", no_bool},
      {"[unify] expected at least 3 different numbers for … where …: add an example at …",
       few_in_a_case},
      {"[unify] expected an input '…' in all examples", another_input},
      {"[unify] …: expected an expression of sizes for …, received … for …", no_expression},
      {"[unify] …: … may be … or …, which differ …: add an example there", several_expressions},
      {"[unify] …: expected '…' to differ in integers only, received … in example … and … in "
       "example …",
       float_of_a_size},
      {"[unify] expected a name for each of the … sizes that differ (…), received …",
       too_few_names},
      {"[unify] the ways behind … cannot be one program: …", arms_of_other_types},
      {"[unify] expected one number or at least 3 different ones for … where …, received …: add an "
       "example that goes this way with another one",
       two_sizes_of_a_way},
      {"[family] at … the program goes a way that no example shows: extend the family with it",
       another_way},
      {"[family] '…' is another tensor on another way that the program takes: …",
       another_tensor_of_a_name},
      {"[replay] … goes on after … trips, its limit", too_many_trips},
      {"[bind] … = …: shown from … to …; add an example there", outside},
      {"[bind] … = …: all examples are … and a multiple of …; add an example between", between},
      {"[bind] … gives a … in the examples and a … at these sizes (…), and the program writes into "
       "it: add an example there",
       a_copy_that_was_a_view},
      {"[bind] expected a number for the size '…'", no_number},
      {"[bind] expected one of the sizes …, received '…'", another_name},
      {"[bind] input '…': expected …, received …", other_columns},
      {"[bind] expected a family, received the capture of one run; …", loaded_as_a_family},
      {"[family] the range that was declared does not hold at …", a_range_that_does_not_hold},
      {"[family] at … a check found another program: …", refuted_by_a_check},
      {"[unify] …: … is 0 in no example, and would be at …, where the program may go another way: "
       "add an example there",
       an_unseen_remainder},
      {"[family] expected at least 3 sizes from 2 on in the range of '…', received … to …",
       a_range_of_two},
      {"[load] …: expected a capture, received a family, which load_family reads",
       loaded_as_a_capture}});
  return with_number_causes(std::move(others));
}

}  // namespace flashlight::test
