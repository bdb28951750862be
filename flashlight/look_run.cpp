#include "flashlight/look_run.h"

#include <algorithm>
#include <unordered_set>

#include "composit/ir/error.h"
#include "flashlight/state_links.h"
#include "tracer/convert.h"
#include "tracer/memory_view.h"

namespace flashlight {
namespace {

using tracer::RecordedInput;
using tracer::Recording;
using Tensors = std::vector<at::Tensor>;

const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl()
                                                  : nullptr;
}

// An input as it was before the run; if the graph writes it, in memory that a replay may write.
at::Tensor before_run(const RecordedInput& input, bool written) {
  const bool copied =
      input.original.defined() && storage_of(input.original) != storage_of(input.came_in);
  if (!copied && !written) return input.tensor;
  const at::Tensor& original = input.original.defined() ? input.original : input.tensor;
  at::Tensor tensor = copied ? original : tracer::copy_keeping_strides(original.detach());
  // Some operators check this, and choose another kernel.
  if (input.requires_grad && tensor.is_leaf()) tensor.set_requires_grad(true);
  return tensor;
}

// Finds the first value of a replay that differs from the program's in an element that was kept.
class FirstDifference {
 public:
  explicit FirstDifference(const LookRun& run) : run_(run) {}

  void operator()(size_t step, const composit::Node& node, const Tensors& values) {
    if (!found_.empty() || step >= run_.records.size()) return;
    const tracer::Record& record = run_.program.recording->records[run_.records[step]];
    if (record.joint != tracer::kNone || (record.info != nullptr && record.info->unwritten)) return;
    if (const auto difference = run_.samples.difference(run_.records[step], values))
      found_ = tracer::place_of(node) + ", " + *difference;
  }
  const std::string& found() const { return found_; }

 private:
  const LookRun& run_;
  std::string found_;
};

class Verifier {
 public:
  Verifier(const LookRun& run, const Tensors& arguments, int64_t call)
      : run_(run), recording_(*run.program.recording), first_(run), call_(call) {
    size_t argument = 0;
    for (const NamedTensor& input : run.state->replayed.inputs) {
      const RecordedInput& recorded = find(input.name);
      const bool user = input.kind == composit::InputKind::user_input;
      at::Tensor tensor = before_run(recorded, is_written(input.name));
      inputs_.push_back(user && tensor.is_same(recorded.tensor) ? arguments.at(argument) : tensor);
      argument += user ? 1 : 0;
    }
  }

  Verification operator()() {
    Verification verification;
    run_.before.restore();
    try {
      verification.results = run_.state->plan().run(
          inputs_,
          [this](size_t step, const composit::Node& node, const Tensors& values) {
            first_(step, node, values);
          },
          [this](const std::string&) { return static_cast<double>(call_); });
    } catch (const std::exception& error) {
      verification.difference =
          first_.found().empty() ? std::string("a replay fails: ") + error.what() : first_.found();
    }
    const bool drew_alike = run_.after.are_now();
    run_.after.restore();
    if (verification.difference.empty()) verification.difference = compare(verification.results);
    verification.results.resize(run_.program.results.tensors.size());
    if (verification.difference.empty() && !drew_alike)
      verification.difference = "the program leaves its random generators in another state";
    return verification;
  }

 private:
  const RecordedInput& find(const std::string& name) const {
    const auto found = std::find_if(recording_.inputs.begin(), recording_.inputs.end(),
                                    [&](const RecordedInput& input) { return input.name == name; });
    COMPOSIT_ASSERT(found != recording_.inputs.end(), "an input that was not recorded: " + name);
    return *found;
  }
  bool is_written(const std::string& name) const {
    const auto& mutations = run_.state->graph.mutations();
    return std::any_of(mutations.begin(), mutations.end(), [&](const composit::Mutation& mutation) {
      return input_name(*mutation.target.node) == name;
    });
  }

  std::string compare(const Tensors& results) const {
    Tensors expected = run_.program.results.tensors;
    for (const auto& left : recording_.gradients)
      expected.push_back(recording_.inputs[left.input].tensor.grad());
    for (size_t i = 0; i < results.size(); ++i)
      if (!same_bits(expected.at(i), results[i]))
        return first_.found().empty() ? "result " + std::to_string(i) + ": " +
                                            first_difference(expected[i], results[i])
                                      : first_.found();
    for (const auto& mutation : recording_.mutations) {
      const RecordedInput& input = recording_.inputs[mutation.input];
      const at::Tensor left = left_by_program(input, mutation.value);
      const at::Tensor* replayed = replayed_input(input.name);
      if (replayed == nullptr || !left.defined() || same_bits(left, *replayed)) continue;
      return first_.found().empty()
                 ? "what is left in '" + input.name + "': " + first_difference(left, *replayed)
                 : first_.found();
    }
    return {};
  }
  const at::Tensor* replayed_input(const std::string& name) const {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (run_.state->replayed.inputs[i].name == name) return &inputs_[i];
    return nullptr;
  }
  // If the program replaces the tensor of a state, the new value is in memory of its own.
  at::Tensor left_by_program(const RecordedInput& input, tracer::ValueId value) const {
    const at::Tensor left = tensor_left(recording_, value);
    return left.defined() ? left : input.tensor;
  }

  const LookRun& run_;
  const Recording& recording_;
  FirstDifference first_;
  const int64_t call_;
  Tensors inputs_;
};

}  // namespace

// ---- memory -------------------------------------------------------------------------------------

void WatchedMemory::add(const at::Tensor& tensor, const std::string& name, int64_t whole) {
  if (!tensor.defined() || !tracer::is_readable(tensor)) return;
  watched_.push_back({tensor, storage_of(tensor), name, whole, digest_of_memory(tensor, whole)});
}

std::string WatchedMemory::written_unseen(const Recording& recording) const {
  std::unordered_set<const c10::StorageImpl*> written;
  for (const auto& mutation : recording.mutations) {
    const RecordedInput& input = recording.inputs[mutation.input];
    written.insert(storage_of(input.came_in));
    written.insert(storage_of(input.tensor));
  }
  for (const Watched& watched : watched_)
    if (storage_of(watched.tensor) == watched.storage && written.count(watched.storage) == 0 &&
        digest_of_memory(watched.tensor, watched.whole) != watched.digest)
      return watched.name;
  return {};
}

// ---- comparing ----------------------------------------------------------------------------------

Verification verify(const LookRun& run, const Tensors& arguments, int64_t call) {
  return Verifier(run, arguments, call)();
}

std::vector<std::string> living_values(const Recording& recording, const Tensors& results) {
  constexpr size_t kLines = 8;
  std::unordered_set<const c10::StorageImpl*> known;
  for (const at::Tensor& result : results) known.insert(storage_of(result));
  for (const RecordedInput& input : recording.inputs) {
    known.insert(storage_of(input.tensor));
    if (input.tensor.is_leaf()) known.insert(storage_of(input.tensor.grad()));
  }
  for (const auto& mutation : recording.mutations)
    known.insert(storage_of(tensor_left(recording, mutation.value)));
  std::vector<std::string> lines;
  for (const tracer::Survivor& survivor : recording.survivors) {
    if (survivor.storage.expired() || survivor.views.empty() ||
        known.count(survivor.storage._unsafe_get_target()) > 0)
      continue;
    if (lines.size() == kLines) {
      lines.emplace_back("further values live on");
      break;
    }
    lines.push_back("a value of " + maker_of(recording, survivor.views.front().value) +
                    " lives on after the run, and is no result: a replay does not renew it");
  }
  return lines;
}

}  // namespace flashlight
