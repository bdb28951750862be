#include "tracer/generator_watch.h"

#include <bit>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "composit/ir/error.h"
#include "tracer/allocation_watch.h"

namespace flashlight::tracer {
namespace {

using State = GeneratorWatch::State;

at::CPUGeneratorImpl& cpu(const c10::GeneratorImpl* impl) {
  if (!impl->device().is_cpu())
    throw composit::UserError("[trace] expected a CPU generator, received one on " +
                              impl->device().str());
  // The accessors are not const; they do not change the generator.
  return *static_cast<at::CPUGeneratorImpl*>(const_cast<c10::GeneratorImpl*>(impl));
}

State state_of(const c10::GeneratorImpl* impl) {
  at::CPUGeneratorImpl& generator = cpu(impl);
  return {generator.engine().data(), generator.next_float_normal_sample(),
          generator.next_double_normal_sample()};
}

void set_first_word(const c10::GeneratorImpl* impl, State& state, uint32_t word) {
  state.engine.state_[0] = word;
  at::mt19937 engine;
  engine.set_data(state.engine);
  cpu(impl).set_engine(engine);
}

// The marks of all watches of the process: scopes may nest, and share a generator.
class Marks {
 public:
  void enter(const c10::GeneratorImpl* impl) {
    std::lock_guard lock(mutex_);
    ++users_[impl];
  }
  // Was it the last one that watches this generator?
  bool leave(const c10::GeneratorImpl* impl) {
    std::lock_guard lock(mutex_);
    if (--users_[impl] > 0) return false;
    users_.erase(impl);
    return true;
  }
  // When no generator is watched, marks mean nothing.
  void forget() {
    std::lock_guard lock(mutex_);
    if (!users_.empty()) return;
    marked_.clear();
    first_words_.clear();
  }

  // Numbers a state that has no number yet.
  void mark(const c10::GeneratorImpl* impl, State& state, composit::Hash& hash) {
    constexpr uint32_t kBits = 0x7fffffffu;
    std::lock_guard lock(mutex_);
    // A first word that is still to be drawn counts in full: after set_state with bytes of one's
    // own.
    const bool drawn = state.engine.left_ == 1 || state.engine.next_ > 0;
    if (!drawn || marked_.contains(hash)) return;
    // After a draw that did not make new words, the last mark is still there.
    const auto known = first_words_.find(state.words());
    const uint32_t word = known == first_words_.end() ? state.engine.state_[0] : known->second;
    last_ = last_ % kBits + 1;
    set_first_word(impl, state, word ^ last_);
    const composit::Hash words = state.words();
    hash = state.hash(words);
    first_words_.emplace(words, word);
    marked_.insert(hash);
  }
  void unmark(const c10::GeneratorImpl* impl) {
    State state = state_of(impl);
    std::lock_guard lock(mutex_);
    const auto word = first_words_.find(state.words());
    if (word != first_words_.end()) set_first_word(impl, state, word->second);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const c10::GeneratorImpl*, int> users_;
  uint32_t last_ = 0;
  std::unordered_set<composit::Hash> marked_;                 // states
  std::unordered_map<composit::Hash, uint32_t> first_words_;  // without mark, by the words with it
};

Marks& marks() {
  static auto* all = new Marks;
  return *all;
}

at::Generator generator_of(const at::Tensor& bytes) {
  if (bytes.scalar_type() != c10::kByte || bytes.layout() != c10::kStrided ||
      !bytes.device().is_cpu() || bytes.dim() != 1 || bytes.numel() != generator_state_size() ||
      !bytes.is_contiguous())
    return {};
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>();
  try {
    generator.set_state(bytes);
  } catch (const c10::Error&) {
    return {};
  }
  return generator;
}

}  // namespace

bool State::operator==(const State& other) const {
  return engine.left_ == other.engine.left_ && engine.next_ == other.engine.next_ &&
         engine.seed_ == other.engine.seed_ && float_normal == other.float_normal &&
         double_normal == other.double_normal && engine.state_ == other.engine.state_;
}

// The words in four lanes, each step as in xxHash64 (Collet): one after the other they would take
// ten times as long.
composit::Hash State::words() const {
  constexpr size_t kLanes = 4;
  static_assert(sizeof engine.state_ % (kLanes * sizeof(uint64_t)) == 0);
  uint64_t lanes[kLanes] = {1, 2, 3, 4};
  uint64_t words[kLanes];
  const auto* bytes = reinterpret_cast<const std::byte*>(engine.state_.data());
  for (size_t at = 0; at < sizeof engine.state_; at += sizeof words) {
    std::memcpy(words, bytes + at, sizeof words);
    for (size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] =
          std::rotl(lanes[lane] + words[lane] * 0xc2b2ae3d27d4eb4fULL, 31) * 0x9e3779b185ebca87ULL;
  }
  composit::Hasher hasher;
  for (uint64_t lane : lanes) hasher.add(lane);
  return hasher.finish();
}

composit::Hash State::hash(const composit::Hash& words) const {
  composit::Hasher hasher;
  hasher.add(words);
  hasher.add(engine.seed_);
  hasher.add(static_cast<uint64_t>(engine.left_) << 32 | engine.next_);
  hasher.add(float_normal ? uint64_t{1} << 32 | std::bit_cast<uint32_t>(*float_normal) : 0);
  hasher.add(uint64_t{double_normal.has_value()});
  hasher.add(std::bit_cast<uint64_t>(double_normal.value_or(0)));
  return hasher.finish();
}

GeneratorWatch::GeneratorWatch(const at::Generator& generator, uint32_t index)
    : impl_(generator.getIntrusivePtr()), index_(index) {
  first_ = state_of(generator.unsafeGetGeneratorImpl()).hash();
  marks().enter(generator.unsafeGetGeneratorImpl());
  follow();
}

// The last one that watches takes the mark away.
GeneratorWatch::~GeneratorWatch() {
  const auto impl = impl_.lock();
  if (marks().leave(impl_._unsafe_get_target()) && impl) {
    std::lock_guard lock(impl->mutex_);
    marks().unmark(impl.get());
  }
  marks().forget();
}

at::Generator GeneratorWatch::generator() const {
  auto impl = impl_.lock();
  return impl ? at::Generator(std::move(impl)) : at::Generator();
}

bool GeneratorWatch::moved() const {
  const auto impl = impl_.lock();
  return impl && !(state_of(impl.get()) == state_);
}

composit::Hash GeneratorWatch::now() const {
  const auto impl = impl_.lock();
  return impl ? state_of(impl.get()).hash() : place_;
}

bool GeneratorWatch::goes_on() const {
  const auto impl = impl_.lock();
  if (!impl) return false;
  const at::mt19937_data_pod engine = state_of(impl.get()).engine;
  const bool seeded = engine.left_ == 1 && engine.next_ == 0;
  return engine.seed_ == state_.engine.seed_ && !seeded;
}

void GeneratorWatch::follow() {
  const auto impl = impl_.lock();
  if (!impl) return;
  std::lock_guard lock(impl->mutex_);  // others may draw meanwhile
  state_ = state_of(impl.get());
  place_ = state_.hash();
  marks().mark(impl.get(), state_, place_);
}

at::Tensor get_state(at::Generator generator) {
  std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_state(at::Generator generator, const at::Tensor& state) {
  std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

std::optional<composit::Hash> state_in(const at::Tensor& bytes) {
  const at::Generator generator = generator_of(bytes);
  if (!generator.defined()) return std::nullopt;
  return state_of(generator.unsafeGetGeneratorImpl()).hash();
}

at::Tensor unmarked_state(const at::Generator& generator) {
  const InsideOperator ours;  // no state that the program reads
  const at::Tensor bytes = generator.get_state();
  unmark(bytes);
  return bytes;
}

void unmark(const at::Tensor& bytes) {
  const InsideOperator ours;
  const at::Generator generator = generator_of(bytes);
  if (!generator.defined()) return;
  marks().unmark(generator.unsafeGetGeneratorImpl());
  const at::Tensor state = generator.get_state();
  std::memcpy(bytes.mutable_data_ptr(), state.const_data_ptr(), state.nbytes());
}

int64_t generator_state_size() {
  static const int64_t size = [] {
    const InsideOperator ours;
    return at::make_generator<at::CPUGeneratorImpl>().get_state().numel();
  }();
  return size;
}

}  // namespace flashlight::tracer
