// Which value does a tensor hold now? The recorder's model of memory.
//
// The identity of a value is (storage, version of the storage, geometry), never the tensor object:
// `.data()`, `set_data` and autograd's saved variables make new tensor objects that no dispatcher
// sees.
//
// A storage has a *base*, the value of all its bytes at some version, and the writes since then. A
// write that covers the storage is the new base. Reading a view that no later write touched finds
// its value; another read first puts the pending writes into the base, then takes the view from it.
// If each link from a view to the base is a view operator with an inverse, this is written with
// those operators (`select`, `select_scatter`, …); if not, with the bytes
// (`storage_view`, `storage_scatter`), which is always right. A storage that is never written
// through a view costs nothing.
#pragma once

#include <c10/core/StorageImpl.h>
#include <c10/util/flat_hash_map.h>

#include <deque>
#include <functional>
#include <map>

#include "tracer/recording.h"

namespace flashlight::tracer {

struct Alias {
  GeometryId geometry = kNone;
  ValueId value = kNone;
  uint32_t version = 0;
  // The view operator that made it: output `view_output` of record `view`, from the alias of
  // geometry `parent`.
  GeometryId parent = kNone;
  RecordId view = kNone;
  uint32_t view_output = 0;
};

struct PendingWrite {
  GeometryId geometry = kNone;
  ValueId value = kNone;
  uint32_t version = 0;
};

struct StorageState {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  c10::Device device = c10::kCPU;
  int64_t nbytes = 0;
  uint32_t version = 0;
  bool outside = false;        // existed before the scope
  bool has_gaps = false;       // bytes that no operator wrote
  RecordId unwritten = kNone;  // made the storage, which only the host may have written since
  bool filled = false;         // and has
  c10::SmallVector<ValueId, 1>
      owners;            // outside: the inputs and constants that came in with this storage
  RecordId birth = 0;    // 0 for storages from outside
  ValueId base = kNone;  // kNone: not needed so far
  GeometryId base_geometry = kNone;
  uint32_t base_version = 0;
  c10::SmallVector<Alias, 2> aliases;
  c10::SmallVector<WeakTensor, 1> tensors;  // made inside: those that operators gave
  c10::SmallVector<PendingWrite, 1> pending;
};

class Aliasing {
 public:
  // `from_outside` is asked for the value of a tensor in memory never met before.
  using FromOutside = std::function<ValueId(const at::Tensor&)>;
  Aliasing(Recording& recording, bool chains, FromOutside from_outside);

  // The value `tensor` holds; kNone for an undefined tensor. May add records. `content`: the reader
  // looks at the elements.
  ValueId read(const at::Tensor& tensor, bool content = true);
  // `tensor` was made without content (`empty`) by the newest record: what it holds, the host
  // writes (`at::tensor({1, 2})` does). When it is read before an operator wrote it, its content is
  // a constant.
  void mark_unwritten(const at::Tensor& tensor);
  // The newest operator wrote a number into `tensor`; true: its memory is small and the host's so
  // far, and the number is taken for the host's, too.
  bool fill_on_host(const at::Tensor& tensor);
  // `tensor` is output `value` of the newest record: in fresh memory, or a view of `operand`
  // (kNone: not known).
  void bind(const at::Tensor& tensor, ValueId value, ValueId operand);
  // The newest record left `value` in `tensor`.
  void write(const at::Tensor& tensor, ValueId value);
  // `tensor` is input or constant `value`, in memory from outside. The value that came in with this
  // memory before, or kNone.
  ValueId bind_outside(const at::Tensor& tensor, ValueId value);
  // `tensor` was given memory of its own that no operator made (`x.set_()`).
  void bind_unwritten(const at::Tensor& tensor);
  // `tensor` shares memory and geometry with its origin, but is another value: the result of
  // `detach`.
  void bind_detached(const at::Tensor& tensor, ValueId value);

  bool knows(const at::Tensor& tensor) const;
  bool same_storage(const at::Tensor& a, const at::Tensor& b) const;
  // The tensors that were made in the scope and are still alive.
  std::vector<Survivor> survivors() const;
  // Does input or constant `value`, which came in as `tensor`, hold something else now? Its memory
  // may have been written, or the tensor may lie elsewhere (`set_data`, `resize_`).
  bool was_changed(const at::Tensor& tensor, ValueId value) const;
  // Does it begin in another place than it came with?
  bool was_moved(const at::Tensor& tensor, ValueId value) const;
  // True for memory from outside that was not written so far.
  bool is_untouched(const at::Tensor& tensor) const;
  // Was it made without content, which the host may still fill?
  bool is_unwritten(const at::Tensor& tensor) const;
  // The first content of this memory: a tensor passed in, a parameter or buffer, another tensor
  // from outside; or the result of an operator in the scope.
  enum class Memory { unknown, argument, parameter, constant, inside };
  Memory memory(const c10::StorageImpl* storage) const;
  // Is it in memory that came to be in the scope?
  bool made_inside(const at::Tensor& tensor) const;
  GeometryId geometry(const at::Tensor& tensor);
  // All bytes of the storage `tensor` lies in, up to date; kNone for memory the tracer cannot
  // address.
  ValueId base_of(const at::Tensor& tensor);
  // The geometry of those bytes now that an operator may have let the storage grow. Adds no record.
  GeometryId base_geometry(const at::Tensor& tensor);
  // The newest record left `value` in all bytes of the storage of `tensor`.
  void write_base(const at::Tensor& tensor, ValueId value);

 private:
  struct Place {
    StorageState* state = nullptr;
    int64_t shift = 0;  // bytes from the begin of `state` to the begin of the tensor's own storage
  };
  struct Weak {
    WeakTensor tensor;  // keeps the address from being used again
    ValueId value;
    uint32_t version;
    const StorageState* state = nullptr;
  };

  Place find(const at::Tensor& tensor) const;
  Place place_outside(const at::Tensor& tensor);
  StorageState& add(const at::Tensor& tensor, bool outside);
  void release_some();

  Alias* find_alias(StorageState& state, const at::Tensor& tensor, int64_t shift);
  Alias* find_alias(StorageState& state, GeometryId geometry);
  bool valid(const StorageState& state, const Alias& alias) const;
  bool visible(ValueId value) const;
  void set_alias(StorageState& state, const Alias& alias);

  void make_constant(StorageState& state, const at::Tensor& tensor);
  void resize_if_changed(StorageState& state, const at::Tensor& tensor);
  void ensure_base(StorageState& state);
  void flush(StorageState& state);
  ValueId regenerate(StorageState& state, const at::Tensor& tensor, int64_t shift);
  bool lies_in_alias(const StorageState& state, GeometryId geometry) const;
  ValueId scatter(StorageState& state, const PendingWrite& write);
  ValueId written_as(const PendingWrite& write, ValueId value);
  ValueId repeat_view(const Alias& link, ValueId operand, RecordId birth);
  // The links from `geometry` to the base, leaf first; empty where one of them is not a recorded
  // view operator.
  std::vector<Alias> path_to_base(StorageState& state, GeometryId geometry, bool with_inverse);
  ValueId permute(ValueId value, c10::ArrayRef<int64_t> order, RecordId birth);
  // The base, its axes in the order in which they lie in memory.
  ValueId row_major(ValueId base, RecordId birth);
  // The base after a write that no view operator describes.
  ValueId scatter_by_memory(StorageState& state, const PendingWrite& write);
  ValueId emit(RecordKind kind, uint32_t index, std::initializer_list<ValueId> operands,
               GeometryId geometry, RecordId birth);

  Recording& recording_;
  const bool chains_;
  FromOutside from_outside_;
  std::deque<StorageState> states_;
  std::vector<StorageState*> free_states_;
  std::vector<std::pair<const c10::StorageImpl*, StorageState*>> made_;  // in the scope
  size_t next_made_ = 0;                                                 // to look at
  ska::flat_hash_map<const c10::StorageImpl*, Place> places_;
  std::map<uintptr_t, StorageState*> outside_by_address_;
  ska::flat_hash_map<const c10::TensorImpl*, Weak> detached_;
  ska::flat_hash_map<const c10::TensorImpl*, Weak> without_storage_;
};

}  // namespace flashlight::tracer
