#include "flashlight/family_programs.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <set>

#include "composit/family/number_inputs.h"
#include "composit/ir/error.h"
#include "composit/ir/side_by_side.h"
#include "flashlight/bound_inputs.h"
#include "flashlight/family_maker.h"
#include "flashlight/shared_code.h"

namespace flashlight {

using composit::Graph;
using composit::SizeValues;
using composit::UserError;

namespace {

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
std::vector<composit::SizedGraph> shown_of(const FamilyBase& family,
                                           const std::vector<size_t>& numbers) {
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

// What is compiled for these sizes.
CaptureBase capture_at(const FamilyBase& family, const SizeValues& sizes) {
  return composit::has_numbers(family.cases()) ? family.with_number_inputs_at(sizes)
                                               : family.fresh_at(sizes);
}

// What the types of these tensors consist of; empty where there is more to them.
std::vector<int64_t> numbers_of_types(const std::vector<at::Tensor>& tensors) {
  std::vector<int64_t> numbers;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_conj() ||
        tensor.is_neg() || !tensor.device().is_cpu())
      return {};
    numbers.push_back(static_cast<int64_t>(tensor.scalar_type()));
    numbers.push_back(tensor.dim());
    numbers.insert(numbers.end(), tensor.sizes().begin(), tensor.sizes().end());
    numbers.insert(numbers.end(), tensor.strides().begin(), tensor.strides().end());
  }
  return numbers;
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

FamilyPrograms::CaseNumbers FamilyPrograms::cases_at(const SizeValues& sizes) const {
  return composit::shown_cases_at(family_.cases(), sizes);
}

std::shared_ptr<const CompiledCapture> FamilyPrograms::found(const SizeValues& sizes) {
  const std::lock_guard lock(mutex_);
  const auto found = programs_.find(sizes);
  if (found == programs_.end()) return nullptr;
  found->second.last_use = ++uses_;
  return found->second.code;
}

std::shared_ptr<SharedCode> FamilyPrograms::found_shared(const CaseNumbers& cases) const {
  const std::lock_guard lock(mutex_);
  const auto found = shared_.find(cases);
  return found == shared_.end() ? nullptr : found->second.code;
}

std::shared_ptr<SharedCode> FamilyPrograms::shared_for(const CaseNumbers& cases) {
  if (auto known = found_shared(cases)) return known;
  auto code = std::make_shared<SharedCode>(shown_of(family_, cases), settings_);
  const std::lock_guard lock(mutex_);
  shared_[cases].code = code;
  return code;
}

// Programs of other sizes take the same tensors, so they are looked up once.
std::shared_ptr<BoundInputs> FamilyPrograms::inputs_for(const CaseNumbers& cases,
                                                        const CaptureBase& capture) {
  std::vector<std::string> names = composit::ports_of(capture.graph(), "").input_names;
  const std::lock_guard lock(mutex_);
  Shared& shared = shared_[cases];
  if (!shared.inputs) {
    shared.inputs = BoundInputs::of(FamilyMaker::shared(capture));
    shared.names = std::move(names);
    return shared.inputs;
  }
  return names == shared.names ? shared.inputs : nullptr;
}

std::shared_ptr<const CompiledCapture> FamilyPrograms::made(const SizeValues& sizes,
                                                            const CaseNumbers& cases,
                                                            SharedUse shared) {
  const CaptureBase capture = capture_at(family_, sizes);
  shared.inputs = inputs_for(cases, capture);
  shared.graph_again = [family = family_, sizes] { return capture_at(family, sizes).graph(); };
  const auto code = std::make_shared<const CompiledCapture>(capture, settings_, std::move(shared));
  const std::lock_guard lock(mutex_);
  Program& program = programs_.try_emplace(sizes, Program{code}).first->second;
  program.last_use = ++uses_;
  const auto kept = program.code;
  make_room();
  return kept;
}

std::shared_ptr<const CompiledCapture> FamilyPrograms::at(const SizeValues& sizes) {
  family_.expect_not_refuted(sizes);
  if (auto known = found(sizes)) return known;
  const std::lock_guard lock(making_);
  if (auto known = found(sizes)) return known;
  const CaseNumbers cases = cases_at(sizes);
  return made(sizes, cases, {shared_for(cases)});
}

// The types of a model's tensors are looked at once, too: compiled code refuses others.
SizeValues FamilyPrograms::sizes_of(const std::vector<at::Tensor>& arguments) {
  constexpr size_t kMostKnown = 4096;
  std::vector<int64_t> types = numbers_of_types(arguments);
  if (types.empty()) return family_.sizes_of(arguments);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = sizes_.find(types); known != sizes_.end()) return known->second;
  }
  SizeValues sizes = family_.sizes_of(arguments);
  const std::lock_guard lock(mutex_);
  if (sizes_.size() >= kMostKnown) sizes_.clear();
  sizes_.emplace(std::move(types), sizes);
  return sizes;
}

FlatValues FamilyPrograms::call(const FlatValues& arguments,
                                const composit::NumberValues& numbers) {
  const auto program = at(sizes_of(arguments.tensors));
  return family_.with(numbers).run_call(
      arguments.structure, [&](const std::vector<double>& numbers_now) {
        std::vector<at::Tensor> tensors = arguments.tensors;
        for (const double number : numbers_now)
          tensors.push_back(at::scalar_tensor(number, at::kDouble));
        return FlatValues{.tensors = program->run(tensors),
                          .structure = program->result_structure()};
      });
}

Profile FamilyPrograms::profile(const std::vector<at::Tensor>& arguments) {
  if (composit::has_numbers(family_.cases()))
    throw UserError("[profile] expected a family without numbers; bind it, and profile that");
  return at(sizes_of(arguments))->profile(arguments);
}

std::shared_ptr<const CompiledCapture> FamilyPrograms::at_once(const SizeValues& sizes) {
  if (auto known = found(sizes)) return known;
  const std::unique_lock lock(making_, std::try_to_lock);
  if (!lock) return nullptr;
  const CaseNumbers cases = cases_at(sizes);
  const auto shared = found_shared(cases);
  if (shared == nullptr) return nullptr;
  try {
    return made(sizes, cases, {shared, /*may_compile=*/false});
  } catch (const CompilerWanted&) {
    return nullptr;
  }
}

void FamilyPrograms::prepare() {
  std::set<CaseNumbers> all;
  for (const SizeValues& sizes : composit::grid_of(composit::hull_of(family_.cases())))
    all.insert(cases_at(sizes));
  for (const CaseNumbers& cases : all) {
    const std::lock_guard lock(making_);
    shared_for(cases);
  }
}

std::vector<SizeValues> FamilyPrograms::sizes_ahead() const {
  std::vector<SizeValues> all = composit::grid_of(composit::hull_of(family_.cases()));
  if (all.size() <= most_) return all;
  std::vector<SizeValues> some;  // from the least to the greatest
  for (size_t i = 0; i < most_; ++i) some.push_back(std::move(all[i * all.size() / most_]));
  return some;
}

size_t FamilyPrograms::prepare_sizes(const std::vector<SizeValues>& sizes, bool may_compile) {
  std::vector<CaseNumbers> cases(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    try {
      cases[i] = cases_at(sizes[i]);
    } catch (const UserError&) {  // a call at these sizes will say so
      continue;
    }
    if (found_shared(cases[i])) continue;  // without the lock, which others try
    const std::lock_guard lock(making_);
    shared_for(cases[i]);
  }
  std::vector<std::shared_ptr<const CompiledCapture>> all(sizes.size());
  const auto make = [&](size_t i) {
    all[i] = found(sizes[i]);
    if (all[i] == nullptr && !cases[i].empty()) try {
        all[i] = made(sizes[i], cases[i], {found_shared(cases[i]), may_compile});
      } catch (const UserError&) {  // the same
      }
  };
  composit::side_by_side(sizes.size(), make, /*few=*/2);
  std::erase(all, nullptr);
  // One after the other: what one has packed others take.
  for (const auto& one : all) one->pack();
  return all.size();
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
  for (const auto& [cases, shared] : shared_)
    all += (all.empty() ? "" : "\n") + shared.code->source();
  return all;
}
size_t FamilyPrograms::compilations() const {
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const auto& [cases, shared] : shared_) count += shared.code->compilations();
  return count;
}

}  // namespace flashlight
