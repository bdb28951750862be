// Writes one nest of loops as a CUDA kernel.
//
//   const KernelShape shape = shape_of(nest.statement);
//   text::Code kernel = KernelWriter(nest.statement, shape, context).write("relu_3");
//
// Each point of the axes of threads is one thread's (a grid-stride loop), one warp's or one
// block's: the last two divide a long reduction. No atomics: an element that several points may
// store or add to is one thread's, in the order of the loops.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "flashlight/loops/program.h"
#include "flashlight/text/code.h"
#include "flashlight/text/expression.h"

namespace flashlight::cuda {

using namespace loops;

// Who computes a point.
enum class Worker : uint8_t { thread, warp, block };

struct KernelShape {
  AxisIds threads;  // from the outside in: neighbouring threads differ in the last one
  AxisIds serial;   // other parallel axes: loops of a thread
  Worker worker = Worker::thread;
  int64_t points = 1;  // of the axes of threads
};
KernelShape shape_of(const Statement& statement);

struct KernelContext {
  std::function<const Type&(ValueId value)> type;
  // The pointer or array by which the kernel knows a value.
  std::function<std::string(ValueId value)> name;
  std::function<std::optional<std::pair<int64_t, int64_t>>(ValueId value)> range;
};

class KernelWriter {
 public:
  KernelWriter(const Statement& statement, const KernelShape& shape, const KernelContext& context);
  // `parameters`: "const float* x".
  text::Code write(const std::string& name, const std::vector<std::string>& parameters);

 private:
  text::Element element(ValueId value, const std::vector<std::string>& indices) const;
  // Declares the indices of `axes` at `point`, which is an int64_t if `is_wide`, else an int.
  text::Code indices(const AxisIds& axes, const std::string& point, bool is_wide);
  text::Code of_thread();
  text::Code of_several();
  text::Code update(text::Leaves& leaves);
  text::Code stores(text::Leaves& leaves);
  text::Leaves leaves() const;

  Statement statement_;
  const KernelShape& shape_;
  const KernelContext& context_;
  std::set<std::string> taken_;
  std::vector<std::string> axes_;  // by number: the variable
};

}  // namespace flashlight::cuda
