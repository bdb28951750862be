// Parts on backends that this project does not have: one that a user wrote, and one that shows
// which parts run at the same time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stack/stack.h>

#include <atomic>
#include <barrier>
#include <cmath>
#include <mutex>
#include <set>
#include <thread>

#include "composit/eval/evaluate.h"
#include "composit/ir/transform.h"
#include "composit/ops/functions.h"
#include "flashlight/backends/devices.h"
#include "flashlight/backends/registry.h"
#include "flashlight/devices/backend.h"
#include "tests/user_error.h"

namespace flashlight::devices {
namespace {

using composit::Array;
using composit::array_of;
using composit::Compiled;
using composit::CompileOptions;
using composit::DType;
using composit::Graph;
using composit::LazyTensor;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;

using Arrays = std::vector<Array>;

CompileOptions placed(const std::string& choices, bool overlap = true) {
  return {
      .name = "f",
      .options = composit::BackendChoice(Devices{.choices = choices, .overlap = overlap}).options};
}

LazyTensor of_module(const std::string& module, const LazyTensor& value) {
  composit::NodeSpec spec = composit::copy_of(*value.node, value.node->operands());
  spec.annotate("scope", module);
  return std::move(spec).make();
}

// ---- a backend of a user ------------------------------------------------------------------------

const StackBackend kStack;
const BackendRegistration kStackRegistration(kStack);

const composit::Type kThree = composit::tensor_type(DType::float64, {3});
const std::vector<double> kX = {.5, -1, 2};

// exp(x), of "encoder" sin(x e^x), and of "head" the square root of its square.
Graph with_modules() {
  const LazyTensor x = composit::input("x", kThree), e = of_module("embedding", composit::exp(x));
  const LazyTensor product = of_module("encoder", e * x),
                   sine = of_module("encoder", composit::sin(product)),
                   square = of_module("head", sine * sine),
                   y = of_module("head", composit::sqrt(square));
  return Graph({.inputs = {x}, .outputs = {y, sine}});
}
double encoder(double x) { return std::sin(x * std::exp(x)); }

std::vector<double> numbers(const Array& array) { return composit::elements<double>(array); }

TEST(ForeignBackend, ComputesAModule) {
  const Graph graph = with_modules();
  const CompileOptions options = placed("encoder: on stack\n*: on cpp");
  const Arrays results = backend().compile(graph, options)({array_of(kThree, kX)});
  for (size_t i = 0; i < kX.size(); ++i) {
    EXPECT_DOUBLE_EQ(numbers(results[1])[i], encoder(kX[i]));
    EXPECT_DOUBLE_EQ(numbers(results[0])[i], std::abs(encoder(kX[i])));
  }
  EXPECT_THAT(backend().plan(graph, options),
              AllOf(HasSubstr("device stack: stack\n"), HasSubstr("device cpp: cpp\n"),
                    HasSubstr("part 1 on stack, stage 1: 2 operations\n")));
  // Its own text is among the parts' sources.
  EXPECT_THAT(backend().compile(graph, options)->source(), HasSubstr("// ---- part 1 on stack"));
}

// Its options, and a memory of its own.
TEST(ForeignBackend, IsADeviceWithOptions) {
  const Graph graph = with_modules();
  const CompileOptions options =
      placed("device twice: stack, scale 2.0, depth 3, memory far\nencoder: on twice\n*: on cpp");
  const Arrays results = backend().compile(graph, options)({array_of(kThree, kX)});
  for (size_t i = 0; i < kX.size(); ++i)
    EXPECT_DOUBLE_EQ(numbers(results[1])[i], 2 * encoder(kX[i]));
  EXPECT_THAT(backend().plan(graph, options),
              AllOf(HasSubstr("device twice: stack, depth 3, scale 2"), HasSubstr(", memory far\n"),
                    HasSubstr("on twice, stage 1: 2 operations\n")));
}

TEST(ForeignBackend, RefusesByThePartThatItIsGiven) {
  EXPECT_THAT(composit::user_error([] {
                backend().compile(with_modules(), placed("head: on stack\n*: on reference"));
              }),
              Optional(testing::EndsWith("[devices] part 1 on 'stack': [stack] no code for "
                                         "'aten::sqrt'\n"
                                         "  aten::sqrt: cpp, mosaic, reference could run it")));
}

// ---- parts at the same time ---------------------------------------------------------------------

// Negates its inputs. With the option `meet`, calls go on when as many wait as meet.
class MeetingBackend : public composit::Backend {
 public:
  std::string name() const override { return "meeting"; }
  const composit::OptionTable& options() const override { return fields().table(); }

  static std::barrier<>& place() {
    static std::barrier place(2);
    return place;
  }
  static inline std::mutex mutex;
  static inline std::set<std::thread::id> threads;  // of all calls
  static inline std::atomic<int> running = 0, most = 0;

 protected:
  struct Chosen {
    bool meet = false;
  };
  static const composit::OptionFields<Chosen>& fields() {
    static const composit::OptionFields<Chosen> fields(
        {{{.name = "meet", .help = "wait for a call of another device"}, &Chosen::meet}});
    return fields;
  }

  Compiled make(const Graph& graph, const CompileOptions& options) const override {
    const bool meets = fields().typed(options.options).meet;
    return composit::code_of(graph, options.name, [graph, meets](const Arrays& inputs) {
      const int now = ++running;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
      }
      {
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
      }
      if (meets) place().arrive_and_wait();
      Arrays results = composit::evaluate(graph, inputs);
      --running;
      return results;
    });
  }
};
const MeetingBackend kMeeting;
const BackendRegistration kMeetingRegistration(kMeeting);

// Two branches, and their sum.
Graph branches() {
  const LazyTensor x = composit::input("x", kThree);
  const LazyTensor a = of_module("left", composit::exp(x)), b = of_module("right", -x);
  return Graph({.inputs = {x}, .outputs = {of_module("sum", a + b)}});
}

Array run_branches(const std::string& devices, bool overlap) {
  MeetingBackend::threads.clear();
  MeetingBackend::most = 0;
  const CompileOptions options =
      placed(devices + "left: on one\nright: on other\n*: on reference", overlap);
  return backend().compile(branches(), options)({array_of(kThree, kX)})[0];
}

void expect_sums(const Array& sums) {
  for (size_t i = 0; i < kX.size(); ++i)
    EXPECT_DOUBLE_EQ(numbers(sums)[i], std::exp(kX[i]) - kX[i]);
}

// Each part waits until the other one has begun: without two threads this never ends.
TEST(Overlap, IsOfPartsThatWaitForEachOther) {
  for (int round = 0; round < 50; ++round) {
    expect_sums(
        run_branches("device one: meeting, meet true\ndevice other: meeting, meet true\n", true));
    EXPECT_EQ(MeetingBackend::most, 2);
    EXPECT_EQ(MeetingBackend::threads.size(), 2U);
  }
}

TEST(Overlap, IsOfPartsInMemoriesOfTheirOwn) {
  expect_sums(
      run_branches("device one: meeting, meet true, memory far\n"
                   "device other: meeting, meet true, memory farther\n",
                   true));
  EXPECT_EQ(MeetingBackend::most, 2);
}

TEST(Overlap, IsNotWhereNobodyWantsIt) {
  expect_sums(run_branches("device one: meeting\ndevice other: meeting\n", false));
  EXPECT_EQ(MeetingBackend::most, 1);
  EXPECT_THAT(MeetingBackend::threads, ElementsAre(std::this_thread::get_id()));
}

}  // namespace
}  // namespace flashlight::devices
