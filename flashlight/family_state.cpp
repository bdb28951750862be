#include "flashlight/family_state.h"

#include <algorithm>

#include "composit/ir/error.h"
#include "flashlight/family_maker.h"
#include "flashlight/state_links.h"
#include "tracer/publish.h"

namespace flashlight {

using composit::UserError;
using tracer::Recording;

namespace {

Recording* recording_of(const CaptureBase& example) {
  return FamilyMaker::inside(example).recording.get();
}

// What each example left and the next one read.
std::vector<StateLink> links_of(const std::vector<CaptureBase>& examples) {
  std::vector<StateLink> links;
  Recording* last = recording_of(examples.back());
  for (size_t i = 1; i < examples.size() && last != nullptr; ++i) {
    const Recording *before = recording_of(examples[i - 1]), *after = recording_of(examples[i]);
    if (before == nullptr || after == nullptr || !same_form(*before, *after)) continue;
    if (!same_form(*after, *last)) continue;
    for (const StateLink& link : find_links(*before, *after))
      if (std::find(links.begin(), links.end(), link) == links.end()) links.push_back(link);
  }
  if (links.empty()) return links;
  const auto sources = tracer::publish(*last, /*gradients=*/true).sources;
  std::erase_if(links, [&](const StateLink& link) {
    return !std::binary_search(sources.begin(), sources.end(), link.source);
  });
  return links;
}

}  // namespace

FamilyState FamilyState::of(std::vector<CaptureBase>& examples) {
  FamilyState state;
  const std::vector<StateLink> links = links_of(examples);
  if (links.empty()) return state;
  Recording& last = *recording_of(examples.back());
  std::map<std::string, at::Tensor> tensors;
  for (CaptureBase& example : examples) {
    Recording* recording = recording_of(example);
    if (recording != nullptr && same_form(*recording, last)) apply_links(*recording, links);
  }
  for (const StateLink& link : links) {
    const std::string& name = last.inputs[last.records[link.source].index].name;
    const at::Tensor left = tensor_left(last, link.next);
    if (!left.defined())
      throw UserError("[family] the program holds '" + name + "', which " +
                      maker_of(last, link.next) + " made, no longer than its next call");
    state.names_.push_back(name);
    if (grows(last, link)) state.growing_.push_back(name);
    const c10::Storage& storage = left.storage();
    if (storage.use_count() > 1)  // else nobody will read it but the family
      state.held_.push_back(
          {name, c10::weak_intrusive_ptr<c10::StorageImpl>(storage.getWeakStorageImpl()), left});
    tensors.emplace(name, left);
  }
  for (CaptureBase& example : examples) {
    Recording* recording = recording_of(example);
    if (recording != nullptr && same_form(*recording, last))
      example = FamilyMaker::published_again(example, tensors);
  }
  return state;
}

void FamilyState::expect_held() const {
  for (const Held& one : held_) {
    const bool shares =
        one.tensor.storage().unsafeGetStorageImpl() == one.storage._unsafe_get_target();
    const size_t own = shares ? 1 : 0;
    if (one.storage.use_count() > own) continue;
    throw UserError("[family] expected the state '" + one.name +
                    "' where the program's last run left it, and nobody holds it any more: the "
                    "program was reset, or went on by itself; trace the family again, or extend it "
                    "with an example, which the family then goes on from");
  }
}

}  // namespace flashlight
