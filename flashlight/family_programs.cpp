#include "flashlight/family_programs.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <set>

#include "composit/family/number_inputs.h"
#include "composit/ir/error.h"
#include "flashlight/shared_code.h"

namespace flashlight {

using composit::Graph;
using composit::SizeValues;
using composit::UserError;

namespace {

using CaseNumbers = std::vector<size_t>;  // of cases

// Graphs by which a backend prepares for all sizes. Each is planned, a tenth of a second for a
// large model.
constexpr size_t kShown = 8;

void expect_no_value_sizes(const composit::Cases& cases) {
  for (const composit::Family& one : cases.cases)
    if (!one.value_sizes.empty())
      throw UserError(
          "[compile] expected a family whose sizes do not depend on values, received one where '" +
          one.value_sizes[0].name + "' does");
}

// Graphs at sizes from the least to the greatest at which these cases are the ones.
std::vector<composit::SizedGraph> shown_of(const FamilyBase& family, const CaseNumbers& numbers) {
  const composit::Cases& cases = family.cases();
  const std::vector<std::string> names = family.number_names();
  std::vector<composit::SizedGraph> graphs;
  for (const SizeValues& sizes : composit::spread_sizes(cases, numbers, kShown)) {
    try {
      const composit::Family& first = cases.cases[numbers.at(0)];
      graphs.push_back(
          {!composit::has_numbers(cases)
               ? composit::graph_at(cases, sizes)
               : composit::with_number_inputs(first, composit::bind_sizes(first, sizes), names),
           {sizes.begin(), sizes.end()}});
    } catch (const UserError&) {  // a call at these sizes will say so
    }
  }
  return graphs;
}

}  // namespace

FamilyPrograms::FamilyPrograms(FamilyBase family, CompileSettings settings, size_t most)
    : family_(std::move(family)), settings_(std::move(settings)), most_(std::max<size_t>(most, 1)) {
  expect_no_value_sizes(family_.cases());
  if (const auto& growing = family_.growing_state(); !growing.empty())
    throw UserError("[compile] expected state that keeps its size, received '" + growing.front() +
                    "', which grows from call to call: pass it as an argument and return it");
}
FamilyPrograms::~FamilyPrograms() = default;

std::shared_ptr<SharedCode> FamilyPrograms::shared_for(const CaseNumbers& cases) {
  std::shared_ptr<SharedCode>& shared = shared_[cases];
  if (!shared) shared = std::make_shared<SharedCode>(shown_of(family_, cases), settings_);
  return shared;
}

std::shared_ptr<const CompiledCapture> FamilyPrograms::made(const SizeValues& sizes,
                                                            SharedUse shared) {
  const CaptureBase capture = !composit::has_numbers(family_.cases())
                                  ? family_.at(sizes)
                                  : family_.with_number_inputs_at(sizes);
  auto code = std::make_shared<const CompiledCapture>(capture, settings_, std::move(shared));
  programs_[sizes] = {code, ++uses_};
  make_room();
  return code;
}

std::shared_ptr<const CompiledCapture> FamilyPrograms::at(const SizeValues& sizes) {
  const std::lock_guard lock(mutex_);
  if (const auto found = programs_.find(sizes); found != programs_.end()) {
    found->second.last_use = ++uses_;
    return found->second.code;
  }
  return made(sizes, {shared_for(composit::shown_cases_at(family_.cases(), sizes))});
}

FlatValues FamilyPrograms::call(const FlatValues& arguments,
                                const composit::NumberValues& numbers) {
  const auto program = at(family_.sizes_of(arguments.tensors));
  return family_.with(numbers).run_call(
      arguments.structure, [&](const std::vector<double>& numbers_now) {
        std::vector<at::Tensor> tensors = arguments.tensors;
        for (const double number : numbers_now)
          tensors.push_back(at::scalar_tensor(number, at::kDouble));
        return FlatValues{.tensors = program->run(tensors),
                          .structure = program->result_structure()};
      });
}

std::shared_ptr<const CompiledCapture> FamilyPrograms::at_once(const SizeValues& sizes) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return nullptr;
  if (const auto found = programs_.find(sizes); found != programs_.end()) {
    found->second.last_use = ++uses_;
    return found->second.code;
  }
  const auto shared = shared_.find(composit::shown_cases_at(family_.cases(), sizes));
  if (shared == shared_.end()) return nullptr;
  try {
    return made(sizes, {shared->second, /*may_compile=*/false});
  } catch (const CompilerWanted&) {
    return nullptr;
  }
}

void FamilyPrograms::prepare() {
  std::set<CaseNumbers> all;
  for (const SizeValues& sizes : composit::grid_of(composit::hull_of(family_.cases())))
    all.insert(composit::shown_cases_at(family_.cases(), sizes));
  for (const CaseNumbers& cases : all) {
    const std::lock_guard lock(mutex_);
    shared_for(cases);
  }
}

void FamilyPrograms::make_room() {
  while (programs_.size() > most_)
    programs_.erase(std::min_element(
        programs_.begin(), programs_.end(),
        [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; }));
}

size_t FamilyPrograms::size() const {
  const std::lock_guard lock(mutex_);
  return programs_.size();
}
std::string FamilyPrograms::source() {
  prepare();
  const std::lock_guard lock(mutex_);
  std::string all;
  for (const auto& [cases, shared] : shared_) all += (all.empty() ? "" : "\n") + shared->source();
  return all;
}
size_t FamilyPrograms::compilations() const {
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const auto& [cases, shared] : shared_) count += shared->compilations();
  return count;
}

}  // namespace flashlight
