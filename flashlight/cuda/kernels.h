// The kernels of a program, which functions on the host launch.
//
//   File file;
//   Kernels kernels(routine, {"arena", "stream"}, file);
//   const Launch launch = kernels.add(nest);           // its text is in file.kernels
//
// Values have names of their own. Temporaries lie in one arena, known elements in the text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "flashlight/loops/program.h"
#include "flashlight/text/code.h"

namespace flashlight::cuda {

using namespace loops;

struct Launch {
  std::string kernel, grid;            // "relu_kernel", "fl::points(1000)"
  std::vector<std::string> arguments;  // names of values
};

// The part of a file that its functions share.
struct File {
  std::set<std::string> names = {};    // of functions, kernels and constants
  text::Code kernels = {};             // and constants
  std::set<std::string> headers = {};  // that calls of LibTorch need
};

// The name of a function on the host, which is none of C, nor of CUDA's mathematics.
std::string function_name(std::string_view text);

// The kernels of one function on the host.
class Kernels {
 public:
  // `words`: names that values must not have. `in_arena`: true for a temporary that is placed
  // there; by default all are.
  Kernels(const Routine& routine, std::set<std::string> words, File& file,
          const std::function<bool(ValueId)>& in_arena = {});

  // Adds the kernel of a nest to the file; nothing for one without points.
  std::optional<Launch> add(const Nest& nest);

  const std::string& name(ValueId value) const { return names_[value]; }
  std::string type(ValueId value) const;  // of an element
  // True if the text has the elements.
  bool is_constant(ValueId value) const;
  // Declares the pointers of temporaries in the memory `arena`.
  text::Code temporaries() const;
  int64_t arena_bytes() const { return arena_bytes_; }
  // The offset of more bytes in the arena.
  int64_t reserve(int64_t bytes);
  // A name that nothing in the function has.
  std::string unused(const std::string& base);

 private:
  void place_temporaries(const std::function<bool(ValueId)>& in_arena);
  void add_constants();

  const Routine& routine_;
  std::set<std::string> taken_;
  Table<ValueId, std::string> names_;
  ValueIds temporaries_;
  std::vector<int64_t> offsets_;
  int64_t arena_bytes_ = 0;
  File& file_;
};

// UserError that lists the nests without a kernel ("for the function erfinv"), other steps for
// which `fault_of` gives a reason, and for a value with more elements than kernels count.
void check(const Routine& routine, const std::function<std::string(const Step&)>& fault_of);

}  // namespace flashlight::cuda
