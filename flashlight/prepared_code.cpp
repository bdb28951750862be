#include "flashlight/prepared_code.h"

#include "tracer/convert.h"

namespace flashlight {

PreparedCode::Version::Version(const at::Tensor& tensor)
    : storage_(tensor.storage().getWeakStorageImpl()),
      data_(tensor.const_data_ptr()),
      strides_(tensor.strides().vec()),
      is_counted_(!tensor.is_inference()),
      writes_(is_counted_ ? static_cast<int64_t>(tensor._version()) : 0) {}

bool PreparedCode::Version::is_of(const at::Tensor& tensor) const {
  const Version now(tensor);
  return is_counted_ && now.is_counted_ && storage_ == now.storage_ && data_ == now.data_ &&
         strides_ == now.strides_ && writes_ == now.writes_;
}

PreparedCode::PreparedCode(composit::Compiled code) : code_(std::move(code)) {
  const size_t inputs = code_->ports().inputs.size();
  for (size_t i = 0; i < inputs; ++i)
    if (code_->is_frozen(i)) frozen_.push_back(i);
  if (frozen_.empty()) prepared_ = code_->prepare(std::vector<composit::Array>(inputs));
}

bool PreparedCode::is_known(const std::vector<at::Tensor>& given) const {
  bool known = prepared_ != nullptr;
  for (size_t i = 0; i < frozen_.size() && known; ++i)
    known = given[frozen_[i]].defined() && versions_[i].is_of(given[frozen_[i]]);
  return known;
}

std::shared_ptr<const composit::Code> PreparedCode::with(
    const std::vector<at::Tensor>& given, const std::vector<at::Tensor>& row_major) const {
  if (frozen_.empty()) return prepared_;
  const std::lock_guard lock(mutex_);
  if (is_known(given)) return prepared_;
  prepared_.reset();  // frees it before the next one is made
  versions_.clear();
  std::vector<composit::Array> weights(given.size());
  for (const size_t input : frozen_) {
    if (!given[input].defined()) continue;  // an error below
    versions_.emplace_back(given[input]);
    weights[input] = tracer::to_array(row_major[input].detach());
  }
  prepared_ = code_->prepare(weights);
  return prepared_;
}

}  // namespace flashlight
