#include "flashlight/family_state.h"

#include <algorithm>
#include <set>

#include "composit/ir/error.h"
#include "flashlight/family_maker.h"
#include "flashlight/holders.h"
#include "flashlight/state_links.h"
#include "tracer/publish.h"

namespace flashlight {

using composit::UserError;
using tracer::Recording;
using tracer::WeakTensor;

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

bool has_geometry_of(const c10::TensorImpl& impl, const at::Tensor& tensor) {
  return impl.sizes() == tensor.sizes() && impl.strides() == tensor.strides() &&
         impl.storage_offset() == tensor.storage_offset() && impl.dtype() == tensor.dtype();
}

// How often operators wrote the memory of these tensors; inference tensors do not count.
uint32_t times_written(const std::vector<WeakTensor>& tensors) {
  for (const WeakTensor& tensor : tensors)
    if (!tensor.expired() && tensor._unsafe_get_target()->version_counter().enabled())
      return tensor._unsafe_get_target()->version_counter().current_version();
  return 0;
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

FamilyState::Held FamilyState::held_of(const std::string& name, const at::Tensor& left,
                                       const Recording& last) {
  const c10::Storage& storage = left.storage();
  Held held{name, c10::weak_intrusive_ptr<c10::StorageImpl>(storage.getWeakStorageImpl()), left};
  for (const tracer::Survivor& survivor : last.survivors) {
    if (survivor.storage._unsafe_get_target() != storage.unsafeGetStorageImpl()) continue;
    std::set<const c10::TensorImpl*> alive;
    for (const WeakTensor& tensor : survivor.tensors) {
      if (tensor.expired() || !alive.insert(tensor._unsafe_get_target()).second) continue;
      if (is_held_by_python(tensor) && has_geometry_of(*tensor._unsafe_get_target(), left))
        held.objects.push_back(tensor);
    }
    // Other tensors, which no operator gave, may be what the program holds.
    if (references_to(storage) != alive.size() + 1) held.objects.clear();
  }
  held.written = times_written(held.objects);
  return held;
}

FamilyState FamilyState::of(std::vector<CaptureBase>& examples) {
  FamilyState state = of_links(examples);
  state.note_written(examples.back());
  return state;
}

void FamilyState::note_written(const CaptureBase& last) {
  for (const NamedTensor& input : FamilyMaker::inside(last).inputs)
    if (input.kind != composit::InputKind::user_input && is_unnamed(input.name) &&
        is_held_by_python(input.tensor))
      written_.emplace_back(input.name, input.tensor);
}

FamilyState FamilyState::of_links(std::vector<CaptureBase>& examples) {
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
    if (references_to(left.storage()) > 1)  // else nobody will read it but the family
      state.held_.push_back(held_of(name, left, last));
    tensors.emplace(name, left);
  }
  for (size_t i = 0; i < examples.size(); ++i)
    if (recordings[i] != nullptr) examples[i] = FamilyMaker::published_again(examples[i], tensors);
  return state;
}

void FamilyState::expect_held() const {
  for (const auto& [name, tensor] : written_)
    if (!is_held_by_python(tensor))
      throw UserError("[family] expected the state '" + name +
                      "' where the program keeps it, and nobody holds it any more: the program has "
                      "put another tensor in its place since; make the family again, or write "
                      "into the tensor (copy_)");
  for (const Held& one : held_) {
    const bool shares =
        one.tensor.storage().unsafeGetStorageImpl() == one.storage._unsafe_get_target();
    const size_t own = shares ? 1 : 0;
    bool is_held = one.storage.use_count() > own;
    if (!one.objects.empty())
      is_held =
          is_held && std::any_of(one.objects.begin(), one.objects.end(),
                                 [](const auto& tensor) { return is_held_by_python(tensor); });
    if (is_held) {
      const uint32_t written = times_written(one.objects);
      if (shares) one.written = written;  // what was written is what the family has
      if (written == one.written) continue;
      throw UserError("[family] expected the state '" + one.name +
                      "' with the content that the program's last run left, and somebody has "
                      "written it since, where the family has gone on from a copy; trace the "
                      "family again, or extend it with an example");
    }
    throw UserError("[family] expected the state '" + one.name +
                    "' where the program's last run left it, and nobody holds it any more: the "
                    "program was reset, or went on by itself; trace the family again, or extend it "
                    "with an example, which the family then goes on from");
  }
}

}  // namespace flashlight
