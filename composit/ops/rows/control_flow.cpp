// Branches and loops; composit/ops/control_flow.h says what they mean.
#include <cstring>

#include "composit/ir/print.h"
#include "composit/ops/control_flow_vjp.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"

namespace composit {
namespace {

using Arrays = std::vector<Array>;
using Types = std::vector<Type>;

// ---- types --------------------------------------------------------------------------------------

// The types of operands, or of their values.
template <class T>
Types types_of(const std::vector<T>& tensors) {
  Types types;
  for (const T& tensor : tensors) types.push_back(tensor.type());
  return types;
}

template <class T>
std::vector<T> joined(std::vector<T> front, const std::vector<T>& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

bool same_values(const Type& a, const Type& b) { return a.dtype == b.dtype && a.sizes == b.sizes; }

std::string str(const Types& types) {
  std::string text;
  for (const Type& type : types)
    text += (text.empty() ? "" : ", ") + print(tensor_type(type.dtype, type.sizes));
  return "(" + text + ")";
}

void expect_types(const std::string& what, const Types& expected, const Types& received) {
  bool fit = expected.size() == received.size();
  for (size_t i = 0; fit && i < expected.size(); ++i) fit = same_values(expected[i], received[i]);
  if (!fit)
    throw UserError("expected " + what + " " + str(expected) + ", received " + str(received));
}

void expect_one(const char* what, DType dtype, const Type& type) {
  if (type.dtype != dtype || type.numel() != 1)
    throw UserError("expected " + std::string(what) + " of one " + std::string(name(dtype)) +
                    ", received " + print(type));
}

// The types a region gives for operands of these types.
Types results_of(const std::string& what, const Region& region, const Types& operands) {
  if (!region) throw UserError("expected a graph as " + what + ", received none");
  if (!region->effects().empty() || !region->mutations().empty())
    throw UserError("expected " + what + " to be pure, received one with effects");
  Types inputs, outputs;
  for (const LazyTensor& input : region->inputs()) inputs.push_back(input.type());
  expect_types(what + " of operands", operands, inputs);
  for (const LazyTensor& output : region->outputs()) {
    if (!output) throw UserError("expected tensors as results of " + what + ", received none");
    outputs.push_back(tensor_type(output.dtype(), output.sizes()));
  }
  return outputs;
}

Type stacked(const Type& slot, int64_t length) {
  Dims sizes = slot.sizes;
  sizes.insert(sizes.begin(), length);
  return tensor_type(slot.dtype, std::move(sizes));
}

Types slots_of(const Types& sequences, int64_t length) {
  if (length < 0)
    throw UserError("expected a length of at least 0, received " + std::to_string(length));
  Types slots;
  for (const Type& sequence : sequences) {
    const Dims& sizes = sequence.sizes;
    if (sizes.empty() || sizes[0] != length)
      throw UserError("expected sequences with a first axis of size " + std::to_string(length) +
                      ", received " + print(sequence));
    slots.push_back(tensor_type(sequence.dtype, {sizes.begin() + 1, sizes.end()}));
  }
  return slots;
}

// The results of a loop whose body returns `given`: the carried values at the end, and stacked
// outputs.
Types loop_results(const Types& carried, const Types& given, int64_t length) {
  const size_t count = std::min(carried.size(), given.size());
  expect_types("a body that gives carried values", carried,
               {given.begin(), given.begin() + static_cast<int64_t>(count)});
  Types results(given.begin(), given.begin() + static_cast<int64_t>(count));
  for (size_t i = count; i < given.size(); ++i) results.push_back(stacked(given[i], length));
  return results;
}

Types cond_types(const Type& predicate, const Types& operands, const Region& then_body,
                 const Region& else_body) {
  expect_one("a predicate", DType::bool_, predicate);
  const Types then_types = results_of("then_body", then_body, operands);
  expect_types("else_body to give what then_body does,", then_types,
               results_of("else_body", else_body, operands));
  return then_types;
}

Types scan_types(const Types& carried, const Types& sequences, const Types& outside,
                 const Region& body, int64_t length) {
  const Types operands = joined(joined(carried, slots_of(sequences, length)), outside);
  return loop_results(carried, results_of("body", body, operands), length);
}

Types while_types(const Types& carried, const Types& outside, const Region& condition,
                  const Region& body, std::optional<int64_t> limit) {
  const Types operands = joined(carried, outside);
  const Types truth = results_of("condition", condition, operands);
  if (truth.size() != 1)
    throw UserError("expected a condition with one result, received " + str(truth));
  expect_one("a condition", DType::bool_, truth[0]);
  if (limit && *limit < 0)
    throw UserError("expected a limit of at least 0, received " + std::to_string(*limit));
  const Types given = results_of("body", body, operands);
  if (!limit && given.size() > carried.size())
    throw UserError("expected a `limit` beside outputs of the body, received none");
  Types results = loop_results(carried, given, limit.value_or(0));
  results.push_back(tensor_type(DType::int64, {}));
  return results;
}

// ---- values -------------------------------------------------------------------------------------

Array slot(const Array& sequence, int64_t i) {
  Type type = sequence.type();
  const int64_t offset = i * type.strides[0] * static_cast<int64_t>(item_size(type.dtype));
  type.sizes.erase(type.sizes.begin());
  type.strides.erase(type.strides.begin());
  return Array(std::move(type), sequence.owner(), sequence.data() + offset);
}

// Arrays that are filled slot by slot; zeros where nothing was put.
class Stacks {
 public:
  // For results[first], …
  Stacks(const Types& results, size_t first) : first_(first) {
    types_.assign(results.begin() + static_cast<int64_t>(first), results.end());
    for (const Type& type : types_)
      memory_.push_back(
          std::make_shared<std::vector<std::byte>>(static_cast<size_t>(type.nbytes())));
  }
  // Puts given[first], … at slot `i`.
  void put(int64_t i, const Arrays& given) {
    for (size_t k = 0; k < types_.size(); ++k) {
      const Array dense = given.at(first_ + k).contiguous();
      const auto size = static_cast<size_t>(dense.type().nbytes());
      if (!same_values(stacked(dense.type(), types_[k].sizes[0]), types_[k]))
        throw UserError("expected slots of " + print(types_[k]) + ", received " +
                        print(dense.type()));
      if (size > 0)
        std::memcpy(memory_[k]->data() + static_cast<size_t>(i) * size, dense.data(), size);
    }
  }
  void append_to(Arrays& results) const {
    for (size_t k = 0; k < types_.size(); ++k)
      results.emplace_back(types_[k], memory_[k], memory_[k]->data());
  }

 private:
  size_t first_;
  Types types_;
  std::vector<std::shared_ptr<std::vector<std::byte>>> memory_;
};

int64_t trips_of(const std::optional<Array>& trips, int64_t length) {
  const int64_t count = trips ? elements<int64_t>(*trips).at(0) : length;
  if (count < 0 || count > length)
    throw UserError("expected 0 to " + std::to_string(length) + " trips, received " +
                    std::to_string(count));
  return count;
}

Arrays run_cond(const RunRegion& run, const Array& predicate, const Arrays& operands,
                const Region& then_body, const Region& else_body) {
  cond_types(predicate.type(), types_of(operands), then_body, else_body);
  return run(elements<int64_t>(predicate).at(0) != 0 ? *then_body : *else_body, operands);
}

Arrays run_scan(const RunRegion& run, Arrays carried, const Arrays& sequences,
                const Arrays& outside, const std::optional<Array>& trips, const Region& body,
                int64_t length, bool reverse) {
  const int64_t count = trips_of(trips, length);
  const Types results =
      scan_types(types_of(carried), types_of(sequences), types_of(outside), body, length);
  Stacks stacks(results, carried.size());
  for (int64_t trip = 0; trip < count; ++trip) {
    const int64_t i = reverse ? count - 1 - trip : trip;
    Arrays slots;
    for (const Array& sequence : sequences) slots.push_back(slot(sequence, i));
    const Arrays given = run(*body, joined(joined(carried, slots), outside));
    stacks.put(i, given);
    carried.assign(given.begin(), given.begin() + static_cast<int64_t>(carried.size()));
  }
  stacks.append_to(carried);
  return carried;
}

Arrays run_while(const RunRegion& run, Arrays carried, const Arrays& outside,
                 const Region& condition, const Region& body, std::optional<int64_t> limit) {
  Types results = while_types(types_of(carried), types_of(outside), condition, body, limit);
  results.pop_back();  // trips
  Stacks stacks(results, carried.size());
  int64_t trips = 0;
  while (elements<int64_t>(run(*condition, joined(carried, outside)).at(0)).at(0) != 0) {
    if (limit && trips == *limit)
      throw UserError("expected at most " + std::to_string(*limit) +
                      " trips (`limit`), received a loop that goes on");
    const Arrays given = run(*body, joined(carried, outside));
    stacks.put(trips++, given);
    carried.assign(given.begin(), given.begin() + static_cast<int64_t>(carried.size()));
  }
  stacks.append_to(carried);
  carried.push_back(Array::copy_of(tensor_type(DType::int64, {}), &trips));
  return carried;
}

}  // namespace

void add_control_flow_rows(OperationTable& rows) {
  rows.add(
      {.schema = "composit::cond(Tensor predicate, Tensor[] operands, Graph then_body, "
                 "Graph else_body) -> Tensor[]",
       .kind = OpKind::control,
       .infer =
           [](In predicate, std::vector<In> operands, Region then_body, Region else_body) {
             return cond_types(predicate.type(), types_of(operands), then_body, else_body);
           },
       .native =
           [](RunRegion run, Array predicate, Arrays operands, Region then_body, Region else_body) {
             return run_cond(run, predicate, operands, then_body, else_body);
           },
       .vjp =
           [](Vjp v, LazyTensor predicate, LazyTensors operands, Region then_body,
              Region else_body) {
             return cond_vjp(v, predicate, operands, *then_body, *else_body);
           }});
  rows.add(
      {.schema = "composit::map(Tensor[] sequences, Tensor[] outside, Graph body, "
                 "int length) -> Tensor[]",
       .kind = OpKind::control,
       .infer =
           [](std::vector<In> sequences, std::vector<In> outside, Region body, int64_t length) {
             return scan_types({}, types_of(sequences), types_of(outside), body, length);
           },
       .native =
           [](RunRegion run, Arrays sequences, Arrays outside, Region body, int64_t length) {
             return run_scan(run, {}, sequences, outside, std::nullopt, body, length, false);
           },
       .vjp = [](Vjp v, LazyTensors sequences, LazyTensors outside, Region body,
                 int64_t length) { return map_vjp(v, sequences, outside, *body, length); }});
  rows.add({.schema = "composit::scan(Tensor[] carried, Tensor[] sequences, Tensor[] outside, "
                      "Tensor? trips, Graph body, int length, bool reverse=False) -> Tensor[]",
            .kind = OpKind::control,
            .infer =
                [](std::vector<In> carried, std::vector<In> sequences, std::vector<In> outside,
                   std::optional<In> trips, Region body, int64_t length) {
                  if (trips) expect_one("trips", DType::int64, trips->type());
                  return scan_types(types_of(carried), types_of(sequences), types_of(outside), body,
                                    length);
                },
            .native =
                [](RunRegion run, Arrays carried, Arrays sequences, Arrays outside,
                   std::optional<Array> trips, Region body, int64_t length, bool reverse) {
                  return run_scan(run, carried, sequences, outside, trips, body, length, reverse);
                },
            .vjp =
                [](Vjp v, LazyTensors carried, LazyTensors sequences, LazyTensors outside,
                   std::optional<LazyTensor> trips, Region body, int64_t length, bool reverse) {
                  return scan_vjp(v, carried, sequences, outside, trips.value_or(LazyTensor()),
                                  *body, {length, reverse});
                }});
  rows.add({.schema = "composit::while_loop(Tensor[] carried, Tensor[] outside, Graph condition, "
                      "Graph body, int? limit=None) -> Tensor[]",
            .kind = OpKind::control,
            .infer =
                [](std::vector<In> carried, std::vector<In> outside, Region condition, Region body,
                   std::optional<int64_t> limit) {
                  return while_types(types_of(carried), types_of(outside), condition, body, limit);
                },
            .native =
                [](RunRegion run, Arrays carried, Arrays outside, Region condition, Region body,
                   std::optional<int64_t> limit) {
                  return run_while(run, carried, outside, condition, body, limit);
                },
            .vjp =
                [](Vjp v, LazyTensors carried, LazyTensors outside, Region condition, Region body,
                   std::optional<int64_t> limit) {
                  return while_vjp(v, carried, outside, condition, *body, limit);
                }});
}

}  // namespace composit
