#include "flashlight/prepared_code.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "tracer/convert.h"

namespace flashlight {

PreparedCode::Version::Version(const at::Tensor& tensor)
    : storage_(tensor.storage().getWeakStorageImpl()),
      data_(tensor.const_data_ptr()),
      strides_(tensor.strides().vec()),
      counter_(tensor.unsafeGetTensorImpl()->version_counter()),
      writes_(is_counted() ? counter_.current_version() : 0) {}

bool PreparedCode::Version::is_of(const at::Tensor& tensor) const {
  const Version now(tensor);
  return is_counted() && now.is_counted() && storage_ == now.storage_ && data_ == now.data_ &&
         strides_ == now.strides_ && writes_ == now.writes_;
}

bool PreparedCode::Version::is_last() const {
  return is_counted() ? counter_.current_version() == writes_ : storage_.expired();
}

PreparedCode::PreparedCode(composit::Compiled code, std::shared_ptr<SharedPreparations> shared)
    : code_(std::move(code)), shared_(std::move(shared)) {
  const size_t inputs = code_->ports().inputs.size();
  for (size_t i = 0; i < inputs; ++i) {
    is_frozen_.push_back(code_->is_frozen(i));
    if (is_frozen_.back()) frozen_.push_back(i);
  }
  if (frozen_.empty()) prepared_ = code_->prepare(std::vector<composit::Array>(inputs));
}

bool PreparedCode::is_known(const std::vector<at::Tensor>& given, size_t place) const {
  const at::Tensor& tensor = given[frozen_[place]];
  const Version& version = versions_->at(place);
  return tensor.defined() ? version.is_of(tensor) : version.is_last();
}

// All packed weights are packed in one call.
void PreparedCode::expect_all(const std::vector<at::Tensor>& given, size_t changed) const {
  const auto gone = std::find_if(frozen_.begin(), frozen_.end(),
                                 [&](size_t input) { return !given[input].defined(); });
  if (gone == frozen_.end()) return;
  const composit::Ports& ports = code_->ports();
  throw composit::UserError("[" + ports.program + "] '" + ports.input_names[changed] +
                            "' was written since it was packed, and to pack anew takes '" +
                            ports.input_names[*gone] +
                            "', which is gone: keep the model or its capture while weights "
                            "change");
}

PreparedCode::Versions PreparedCode::versions_of(const std::vector<at::Tensor>& given) const {
  Versions versions;
  for (const size_t input : frozen_)
    if (given[input].defined()) versions.emplace_back(given[input]);  // else an error follows
  return versions;
}

void PreparedCode::prepare(const std::vector<at::Tensor>& given,
                           const std::vector<at::Tensor>& row_major) const {
  prepared_.reset();  // before there is another one
  versions_.reset();
  SharedPreparations::Known others;
  if (shared_ != nullptr) others = shared_->of(frozen_, given);
  versions_ =
      others.versions ? others.versions : std::make_shared<const Versions>(versions_of(given));
  if (!others.codes.empty()) prepared_ = code_->prepare_like(others.codes);
  if (prepared_ == nullptr) {
    std::vector<composit::Array> weights(given.size());
    for (const size_t input : frozen_) {
      if (!given[input].defined()) continue;
      // If writes are not counted, only the lack of an owner shows that there are none.
      const bool is_counted = Version(given[input]).is_counted();
      weights[input] =
          tracer::to_array(is_counted ? row_major[input].detach() : row_major[input].clone());
    }
    prepared_ = code_->prepare_beside(weights, others.codes);
  }
  if (shared_ != nullptr) shared_->add(prepared_, versions_);
}

SharedPreparations::Known SharedPreparations::of(const std::vector<size_t>& frozen,
                                                 const std::vector<at::Tensor>& given) {
  const std::lock_guard lock(mutex_);
  for (const Group& group : groups_) {
    bool is_same = group.versions->size() == frozen.size();
    for (size_t i = 0; is_same && i < frozen.size(); ++i)
      is_same = given[frozen[i]].defined() && group.versions->at(i).is_of(given[frozen[i]]);
    if (!is_same) continue;
    Known known = {group.versions, {}};
    for (const auto& one : group.codes)
      if (std::shared_ptr<const composit::Code> code = one.lock())
        known.codes.push_back(std::move(code));
    return known;
  }
  return {};
}

void SharedPreparations::add(std::shared_ptr<const composit::Code> code, const Versions& versions) {
  const std::lock_guard lock(mutex_);
  for (Group& group : groups_)
    std::erase_if(group.codes, [](const auto& one) { return one.expired(); });
  std::erase_if(groups_, [&](const Group& group) {
    return group.codes.empty() && group.versions != versions;
  });
  auto group = std::find_if(groups_.begin(), groups_.end(),
                            [&](const Group& one) { return one.versions == versions; });
  if (group == groups_.end()) group = groups_.insert(groups_.end(), {versions, {}});
  group->codes.push_back(std::move(code));
}

std::shared_ptr<const composit::Code> PreparedCode::with(
    const std::vector<at::Tensor>& given, const std::vector<at::Tensor>& row_major) const {
  if (frozen_.empty()) return prepared_;
  const std::lock_guard lock(mutex_);
  size_t place = 0;
  while (prepared_ != nullptr && place < frozen_.size() && is_known(given, place)) ++place;
  if (place == frozen_.size()) return prepared_;
  if (prepared_ != nullptr) expect_all(given, frozen_[place]);
  prepare(given, row_major);
  return prepared_;
}

}  // namespace flashlight
