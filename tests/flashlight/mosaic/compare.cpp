#include "tests/flashlight/mosaic/compare.h"

#include <algorithm>
#include <cmath>

#include "composit/eval/evaluate.h"
#include "composit/ir/error.h"
#include "composit/ir/print.h"
#include "composit/ops/native.h"
#include "flashlight/runtime/random.hpp"
#include "tests/agreement.h"
#include "tests/held_graph.h"

namespace flashlight::mosaic::test {
namespace {

using composit::Array;
using composit::Compiled;
using composit::LazyTensor;

// The results where new values are in the memory of their inputs, as far as that may be.
std::vector<Array> results_in_place(const Case& one, const Compiled& compiled) {
  std::vector<Array> inputs = one.values, results = compiled(one.values, fl::Generator(one.seed));
  const std::vector<composit::Mutation>& mutations = one.graph.mutations();
  std::vector<composit::InputBuffer> from;
  std::vector<composit::Buffer> to;
  for (const Array& result : results)
    if (result.defined()) to.emplace_back(const_cast<std::byte*>(result.data()));
  const size_t outputs = to.size() - mutations.size(), first = results.size() - mutations.size();
  for (size_t i = 0; i < mutations.size(); ++i) {
    if (!compiled->may_update(outputs + i)) continue;
    const auto& all = one.graph.inputs();
    const auto input = std::find(all.begin(), all.end(), mutations[i].target) - all.begin();
    Array& value = inputs[static_cast<size_t>(input)];
    value = results[first + i] =
        Array::copy_of(value.contiguous().type(), value.contiguous().data());
    to[outputs + i] = const_cast<std::byte*>(value.data());
  }
  for (Array& input : inputs) {
    if (input.defined()) input = input.contiguous();
    from.emplace_back(input.defined() ? input.data() : nullptr);
  }
  fl::Generator generator(one.seed);
  compiled->run(from, to, &generator);
  return results;
}

std::string difference(const std::vector<Array>& expected, const std::vector<Array>& results,
                       double times) {
  for (size_t i = 0; i < results.size(); ++i) {
    if (!expected[i].defined() && !results[i].defined()) continue;
    const std::string found = composit::test::difference(results[i], expected[i], times);
    if (!found.empty()) return ", result " + std::to_string(i) + ": " + found;
  }
  return "";
}

// Text to paste into a test, and the plan of it.
std::string code_of(const Case& one, const Compiled* compiled) {
  return "\nparse(R\"(" + composit::print(one.graph) + ")\")\n" +
         (compiled == nullptr ? "" : (*compiled)->source()) + "\n";
}

std::vector<Compiled> all_compiled(const std::vector<Case>& cases, int threads,
                                   const CompareOptions& options) {
  std::vector<Plan> plans;
  for (const Case& one : cases)
    plans.push_back(plan_of(one.graph, {.name = "case_" + std::to_string(plans.size()),
                                        .freeze = options.freeze,
                                        .update_inputs = true,
                                        .choices = one.choices}));
  std::vector<std::string> flags = {"-Wall", "-Wextra", "-Wconversion", "-Werror"};
  flags.insert(flags.end(), options.flags.begin(), options.flags.end());
  std::vector<Compiled> all;
  const std::vector<Compiled> code = mosaic::compile(std::move(plans), threads, flags);
  for (size_t i = 0; i < code.size(); ++i) all.push_back(code[i]->prepare(cases[i].values));
  return all;
}

LazyTensor numbers(const std::string& name, const composit::Dims& sizes, double scale,
                   composit::DType dtype, composit::InputKind kind) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(scale *
                      std::sin(1.7 * static_cast<double>(i) + 0.1 * static_cast<double>(name[0])));
  return composit::held_input(
      name, composit::array_of(composit::tensor_type(dtype, sizes), numbers), kind);
}

}  // namespace

Compiled compiled(const composit::Graph& graph, const std::vector<Array>& values,
                  const PlanOptions& planning, int threads, const std::vector<std::string>& flags) {
  return mosaic::compile({plan_of(graph, planning)}, threads, flags)[0]->prepare(values);
}

std::string differences(const std::vector<Case>& cases, const CompareOptions& options) {
  std::vector<std::vector<Array>> expected(cases.size());
  std::string found;
  for (int threads = 1; threads <= 3; ++threads) {
    std::vector<Compiled> programs;
    try {
      programs = all_compiled(cases, threads, options);
    } catch (const std::exception& error) {
      if (cases.size() == 1)
        return cases[0].text + ": " + error.what() + code_of(cases[0], nullptr);
      // Each half, until the first one that does not compile is alone.
      const auto middle = cases.begin() + static_cast<std::ptrdiff_t>(cases.size() / 2);
      const std::string first = differences({cases.begin(), middle}, options);
      return first.empty() ? differences({middle, cases.end()}, options) : first;
    }
    for (size_t i = 0; i < cases.size(); ++i) {
      const std::string head = cases[i].text + ", " + std::to_string(threads) + " threads";
      try {
        if (expected[i].empty()) expected[i] = composit::evaluate(cases[i].graph, cases[i].values);
        const Compiled& program = programs[i];
        std::string differs = difference(
            expected[i], program(cases[i].values, fl::Generator(cases[i].seed)), options.times);
        if (differs.empty() && !plan_of(*program).updates.empty()) {
          differs = difference(expected[i], results_in_place(cases[i], program), options.times);
          if (!differs.empty()) differs = ", in place" + differs;
        }
        if (!differs.empty()) found += head + differs + code_of(cases[i], &programs[i]);
      } catch (const std::exception& error) {
        found += head + ": " + error.what() + code_of(cases[i], &programs[i]);
      }
    }
    if (!found.empty()) return found;
  }
  return found;
}

Case case_of(const std::string& text, const composit::LazyTensors& outputs) {
  auto [graph, values] = composit::test::held_graph(outputs);
  return {.text = text, .graph = std::move(graph), .values = std::move(values)};
}

LazyTensor given(const std::string& name, const composit::Dims& sizes, double scale,
                 composit::DType dtype) {
  return numbers(name, sizes, scale, dtype, composit::InputKind::user_input);
}
LazyTensor weight(const std::string& name, const composit::Dims& sizes, double scale,
                  composit::DType dtype) {
  return numbers(name, sizes, scale, dtype, composit::InputKind::parameter);
}

bool runs_here(const std::string& march) {
#if defined(__x86_64__)
  return march != "x86-64-v3" || (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
#else
  return march == "native";
#endif
}

size_t count(const Plan& plan, const KernelForm& form) {
  return static_cast<size_t>(
      std::count_if(plan.run.begin(), plan.run.end(),
                    [&](const Kernel& kernel) { return kernel.form == &form; }));
}

size_t count_products(const Plan& plan) {
  return static_cast<size_t>(
      std::count_if(plan.run.begin(), plan.run.end(),
                    [](const Kernel& kernel) { return product_data(kernel) != nullptr; }));
}

int winograd_pixels(const Kernel& kernel) {
  if (kernel.form == &kPack) return data_of<PackData>(kernel).pixels;
  const ProductData* const data = product_data(kernel);
  return data == nullptr ? 0 : data->pixels;
}

int64_t divided_trips(const Kernel& kernel) { return kernel.split.parts; }

}  // namespace flashlight::mosaic::test
