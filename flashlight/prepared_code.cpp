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
  return tensor.defined() ? versions_[place].is_of(tensor) : versions_[place].is_last();
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

void PreparedCode::prepare(const std::vector<at::Tensor>& given,
                           const std::vector<at::Tensor>& row_major) const {
  prepared_.reset();  // before there is another one
  versions_.clear();
  std::vector<composit::Array> weights(given.size());
  for (const size_t input : frozen_) {
    if (!given[input].defined()) continue;  // an error below
    versions_.emplace_back(given[input]);
    // If writes are not counted, only the lack of an owner shows that there are none.
    weights[input] = tracer::to_array(versions_.back().is_counted() ? row_major[input].detach()
                                                                    : row_major[input].clone());
  }
  const composit::Code::Codes others =
      shared_ == nullptr ? composit::Code::Codes() : shared_->of(frozen_, given);
  if (!others.empty()) prepared_ = code_->prepare_like(others);
  if (prepared_ == nullptr) prepared_ = code_->prepare_beside(weights, others);
  if (shared_ != nullptr) shared_->add(prepared_, versions_);
}

composit::Code::Codes SharedPreparations::of(const std::vector<size_t>& frozen,
                                             const std::vector<at::Tensor>& given) {
  const std::lock_guard lock(mutex_);
  composit::Code::Codes codes;
  for (const One& one : all_) {
    std::shared_ptr<const composit::Code> code = one.code.lock();
    bool is_same = code != nullptr && one.versions.size() == frozen.size();
    for (size_t i = 0; is_same && i < frozen.size(); ++i)
      is_same = given[frozen[i]].defined() && one.versions[i].is_of(given[frozen[i]]);
    if (is_same) codes.push_back(std::move(code));
  }
  return codes;
}

void SharedPreparations::add(std::shared_ptr<const composit::Code> code,
                             std::vector<Version> versions) {
  const std::lock_guard lock(mutex_);
  std::erase_if(all_, [](const One& one) { return one.code.expired(); });
  all_.push_back({std::move(code), std::move(versions)});
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
