// State that a program makes anew in each call: what one run leaves and the next one reads, as a
// cache that grows by `cat`. For the files of families only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "flashlight/family.h"
#include "tracer/recording.h"

namespace flashlight {

// The state of a program's examples, and what shows that the program still has it.
class FamilyState {
 public:
  // What some example left and the next one read becomes an input of all of them that is written,
  // in a tensor of the family: what the last one left. Examples of another form than the last stay
  // as they are.
  static FamilyState of(std::vector<CaptureBase>& examples);

  bool empty() const { return names_.empty(); }
  const std::vector<std::string>& names() const { return names_; }
  // Of the state that has another size after a call.
  const std::vector<std::string>& growing() const { return growing_; }
  // UserError where the program has put other tensors in the place of what its last run left: it
  // was reset, or has gone on by itself.
  void expect_held() const;

 private:
  struct Held {
    std::string name;
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    at::Tensor tensor;  // of the family
    // The tensors in that memory which Python holds, where nobody else does, and how often they
    // were written, as far as the family knows what.
    std::vector<tracer::WeakTensor> objects = {};
    mutable uint32_t written = 0;
  };
  static Held held_of(const std::string& name, const at::Tensor& left,
                      const tracer::Recording& last);
  // Adds state that the program writes in place and Python holds.
  void note_written(const CaptureBase& last);
  // State that the program makes anew, as its last run left it.
  static FamilyState of_links(std::vector<CaptureBase>& examples);

  std::vector<Held> held_;
  std::vector<std::pair<std::string, at::Tensor>> written_;
  std::vector<std::string> names_, growing_;
};

}  // namespace flashlight
