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

// By example: its recording, if it has the form of the last one's; else nullptr.
std::vector<Recording*> recordings_of(const std::vector<CaptureBase>& examples) {
  std::vector<Recording*> recordings;
  const Recording* last = FamilyMaker::inside(examples.back()).recording.get();
  for (const CaptureBase& example : examples) {
    Recording* one = FamilyMaker::inside(example).recording.get();
    const bool alike = last != nullptr && one != nullptr && same_form(*one, *last);
    recordings.push_back(alike ? one : nullptr);
  }
  return recordings;
}

// What each example left and the next one read.
std::vector<StateLink> links_of(const std::vector<Recording*>& recordings) {
  std::vector<StateLink> links;
  for (size_t i = 1; i < recordings.size(); ++i) {
    if (recordings[i - 1] == nullptr || recordings[i] == nullptr) continue;
    for (const StateLink& link : find_links(*recordings[i - 1], *recordings[i]))
      if (std::find(links.begin(), links.end(), link) == links.end()) links.push_back(link);
  }
  if (links.empty()) return links;
  const auto sources = tracer::publish(*recordings.back(), /*gradients=*/true).sources;
  std::erase_if(links, [&](const StateLink& link) {
    return !std::binary_search(sources.begin(), sources.end(), link.source);
  });
  return links;
}

}  // namespace

FamilyState FamilyState::of(std::vector<CaptureBase>& examples) {
  FamilyState state;
  const std::vector<Recording*> recordings = recordings_of(examples);
  const std::vector<StateLink> links = links_of(recordings);
  if (links.empty()) return state;
  const Recording& last = *recordings.back();
  std::map<std::string, at::Tensor> tensors;
  for (Recording* recording : recordings)
    if (recording != nullptr) apply_links(*recording, links);
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
  for (size_t i = 0; i < examples.size(); ++i)
    if (recordings[i] != nullptr) examples[i] = FamilyMaker::published_again(examples[i], tensors);
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
