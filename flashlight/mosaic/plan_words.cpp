#include "flashlight/mosaic/plan_words.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "composit/ir/error.h"

namespace flashlight::mosaic {
namespace {

using Words = std::vector<int64_t>;

// Plans of as many words of the same steps differ in numbers and places.
struct Form {
  const Words* first = nullptr;
  std::vector<bool> varies = {};
  int64_t place = 0;  // among all words

  void see(const Words& words) {
    varies.resize(words.size());
    for (size_t i = 0; i < words.size(); ++i)
      if (words[i] != (*first)[i]) varies[i] = true;
  }
  void write(Words& all) {
    place = static_cast<int64_t>(all.size());
    all.push_back(static_cast<int64_t>(first->size()));
    all.push_back(std::count(varies.begin(), varies.end(), true));
    for (size_t i = 0; i < varies.size(); ++i)
      if (varies[i]) all.push_back(static_cast<int64_t>(i));
    all.insert(all.end(), first->begin(), first->end());
  }
  void write_plan(const Words& words, Words& all) const {
    all.push_back(place);
    for (size_t i = 0; i < varies.size(); ++i)
      if (varies[i]) all.push_back(words[i]);
  }
};

// What plans of one form have in common: their length, and the entries of their steps.
Words form_of(const Words& words) {
  Words form = {static_cast<int64_t>(words.size())};
  size_t word = 2 + 3 * static_cast<size_t>(words[1]);
  const auto steps = static_cast<size_t>(words[word++]);
  form.insert(form.end(), words.begin() + static_cast<std::ptrdiff_t>(word),
              words.begin() + static_cast<std::ptrdiff_t>(word + 4 * steps));
  return form;
}

}  // namespace

bool PlanWords::empty() const {
  return std::all_of(plans_.begin(), plans_.end(), [](const Words& one) { return one.empty(); });
}

composit::Array PlanWords::words(const std::vector<composit::SizeRange>& ranges) const {
  Words all = {static_cast<int64_t>(ranges.size())};
  int64_t count = 1;
  for (const composit::SizeRange& range : ranges) {
    all.insert(all.end(), {range.least, range.most, range.step});
    count *= (range.most - range.least) / range.step + 1;
  }
  COMPOSIT_ASSERT(count == static_cast<int64_t>(plans_.size()), "a plan for all sizes");
  const size_t places = all.size();
  all.resize(places + plans_.size());

  std::map<Words, Form> forms;
  for (const Words& plan : plans_) {
    if (plan.empty()) continue;
    Form& form = forms.try_emplace(form_of(plan), Form{&plan}).first->second;
    form.see(plan);
  }
  for (auto& [key, form] : forms) form.write(all);
  for (size_t i = 0; i < plans_.size(); ++i) {
    if (plans_[i].empty()) continue;
    all[places + i] = static_cast<int64_t>(all.size());
    forms.at(form_of(plans_[i])).write_plan(plans_[i], all);
  }

  const auto type =
      composit::tensor_type(composit::DType::int64, {static_cast<int64_t>(all.size())});
  const auto memory = std::make_shared<Words>(std::move(all));
  auto* const first = reinterpret_cast<std::byte*>(memory->data());
  return {type, memory, first};
}

}  // namespace flashlight::mosaic
