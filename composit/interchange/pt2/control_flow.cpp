// Branches and loops as torch.export's higher-order operators.
//
// Regions there take values that have names of their own, and give results that are none of their
// inputs. A constant of a region is one more operand.
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "composit/interchange/pt2/arguments.h"
#include "composit/interchange/pt2/graph_writer.h"
#include "composit/ir/error.h"
#include "composit/ops/operations.h"

namespace composit::pt2 {
namespace {

Json operand(Json value) { return positional("", std::move(value)); }

Json tensors_json(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.push_back({{"name", name}});
  return {{"as_tensors", list}};
}

// A region while it is written; its inputs are complete when all regions of a node are.
class RegionWriter {
 public:
  RegionWriter(Program& program, const Graph& region, LiftedConstants& lifted)
      : program_(program), region_(region), lifted_(lifted), writer_(program, &lifted) {
    for (const LazyTensor& input : region.inputs()) {
      inputs_.push_back(program.value_name("arg"));
      writer_.add_input(input, inputs_.back());
    }
    writer_.add_nodes(region);
    for (const LazyTensor& output : region.outputs()) outputs_.push_back(result(output));
  }

  // A number of trips, of this type, as a further first input: in a body, which gives the next
  // one, and in a condition, which holds for no more than `limit`.
  void count_trips(const Type& counter) {
    const std::string trips = add_counter(counter);
    outputs_.insert(outputs_.begin(),
                    writer_.add("torch.ops.aten.add.Tensor",
                                Json::array({positional("self", tensor_json(trips)),
                                             positional("other", {{"as_int", 1}})}),
                                counter));
  }
  void limit_trips(const Type& counter, std::optional<int64_t> limit) {
    const std::string trips = add_counter(counter);
    if (limit) {
      const Type truth = tensor_type(DType::bool_, {});
      const Json number = {{"as_int", *limit}};
      const std::string below = writer_.add(
          "torch.ops.aten.le.Scalar",
          Json::array({positional("self", tensor_json(trips)), positional("other", number)}),
          truth);
      const Type type = tensor_type(DType::bool_, region_.outputs()[0].sizes());
      outputs_[0] = writer_.add("torch.ops.aten.logical_and.default",
                                Json::array({positional("self", tensor_json(outputs_[0])),
                                             positional("other", tensor_json(below))}),
                                type);
    }
  }

  // `single`: one result, which is no tuple.
  Json json(const std::string& hint, bool single = false) {
    for (const Array& constant : lifted_) inputs_.push_back(writer_.name_of(constant));
    Json inputs = Json::array(), outputs = Json::array();
    for (const std::string& name : inputs_) inputs.push_back(tensor_json(name));
    for (const std::string& name : outputs_) outputs.push_back(tensor_json(name));
    return {{"as_graph",
             {{"name", program_.value_name(hint)},
              {"graph", writer_.graph_json(std::move(inputs), std::move(outputs), single)}}}};
  }

 private:
  std::string add_counter(const Type& counter) {
    inputs_.insert(inputs_.begin(), program_.value_name("trips"));
    writer_.declare(inputs_[0], counter);
    return inputs_[0];
  }
  std::string result(const LazyTensor& output) {
    const std::string name = writer_.name_of(output);
    // Row-major as the types of results are, and neither an input nor given twice.
    return writer_.add_clone(name, tensor_type(output.dtype(), output.sizes()));
  }

  Program& program_;
  const Graph& region_;
  LiftedConstants& lifted_;
  GraphWriter writer_;
  std::vector<std::string> inputs_, outputs_;
};

const Graph& region_of(const Node& node, std::string_view name) {
  return *node.attribute(name).as<Region>();
}

}  // namespace

bool GraphWriter::add_control_flow(const Node& node, Frame& frame, const Origin& origin) {
  using Add = void (GraphWriter::*)(const Node&, Frame&, const Origin&);
  static const std::map<std::string_view, Add> table = {
      {"composit::cond", &GraphWriter::add_cond},
      {"composit::map", &GraphWriter::add_map},
      {"composit::scan", &GraphWriter::add_scan},
      {"composit::sized_cases", &GraphWriter::add_sized_cases},
      {"composit::while_loop", &GraphWriter::add_while}};
  const auto found = table.find(node.op().str());
  if (found == table.end()) return false;
  (this->*found->second)(node, frame, origin);
  return true;
}

std::vector<std::string> GraphWriter::names_of(const LazyTensors& tensors, const Frame& frame) {
  Names names;
  for (const LazyTensor& tensor : tensors) names.push_back(tensor_name(value_of(tensor, frame)));
  return names;
}

void GraphWriter::add_cond(const Node& node, Frame& frame, const Origin& origin) {
  const Call call = call_of(node, operation_of(node)->schema);
  const std::string predicate = tensor_name(value_of(call["predicate"].tensor(), frame));
  Names operands = names_of(call["operands"].tensors(), frame);
  LiftedConstants lifted;
  RegionWriter yes(program_, region_of(node, "then_body"), lifted);
  RegionWriter no(program_, region_of(node, "else_body"), lifted);
  const Json yes_json = yes.json("true_graph"), no_json = no.json("false_graph");
  for (const Array& constant : lifted) operands.push_back(name_of(constant));
  bind(node,
       emit("torch.ops.higher_order.cond",
            Json::array({operand(tensor_json(predicate)), operand(yes_json), operand(no_json),
                         operand(tensors_json(operands))}),
            node.outputs(), false, origin),
       frame);
}

void GraphWriter::add_map(const Node& node, Frame& frame, const Origin& origin) {
  const Call call = call_of(node, operation_of(node)->schema);
  if (call["sequences"].tensors().empty())
    throw UserError("a map over no sequence has no form in the format");
  Names outside = names_of(call["outside"].tensors(), frame);
  LiftedConstants lifted;
  RegionWriter body(program_, region_of(node, "body"), lifted);
  const Json body_json = body.json("body_graph");
  for (const Array& constant : lifted) outside.push_back(name_of(constant));
  bind(node,
       emit("torch.ops.higher_order.map_impl",
            Json::array({operand(body_json),
                         operand(tensors_json(names_of(call["sequences"].tensors(), frame))),
                         operand(tensors_json(outside))}),
            node.outputs(), false, origin),
       frame);
}

void GraphWriter::add_scan(const Node& node, Frame& frame, const Origin& origin) {
  const Call call = call_of(node, operation_of(node)->schema);
  if (!call["trips"].is_none())
    throw UserError("a scan whose number of trips is a value has no form in the format");
  const LazyTensors &carried = call["carried"].tensors(), &sequences = call["sequences"].tensors();
  if (sequences.empty()) throw UserError("a scan over no sequence has no form in the format");
  const bool reverse = node.attribute("reverse").as<bool>();
  const auto flipped = [&](const std::string& name, const Type& type) {
    const Json inputs = Json::array(
        {positional("self", tensor_json(name)), positional("dims", {{"as_ints", {0}}})});
    const Type plain = tensor_type(type.dtype, type.sizes);
    return reverse ? emit("torch.ops.aten.flip.default", inputs, {plain}, false, origin)[0] : name;
  };
  Names init = names_of(carried, frame), xs = names_of(sequences, frame);
  for (size_t i = 0; i < xs.size(); ++i) xs[i] = flipped(xs[i], sequences[i].type());
  // Carried values have to have the same strides as what the body gives.
  for (size_t i = 0; i < init.size(); ++i)
    init[i] = add_clone(init[i], tensor_type(carried[i].dtype(), carried[i].sizes()));
  Names outside = names_of(call["outside"].tensors(), frame);
  LiftedConstants lifted;
  RegionWriter body(program_, region_of(node, "body"), lifted);
  const Json body_json = body.json("scan_graph");
  for (const Array& constant : lifted) outside.push_back(name_of(constant));
  Names results = emit("torch.ops.higher_order.scan",
                       Json::array({operand(body_json), operand(tensors_json(init)),
                                    operand(tensors_json(xs)), operand(tensors_json(outside))}),
                       node.outputs(), false, origin);
  for (size_t i = carried.size(); i < results.size(); ++i)
    results[i] = flipped(results[i], node.outputs()[i]);
  bind(node, results, frame);
}

// The loop counts its trips in one more carried value.
void GraphWriter::add_while(const Node& node, Frame& frame, const Origin& origin) {
  const Call call = call_of(node, operation_of(node)->schema);
  const LazyTensors& carried = call["carried"].tensors();
  const Graph& body_region = region_of(node, "body");
  if (body_region.outputs().size() != carried.size())
    throw UserError("a loop that stacks results has no form in the format");
  const Type counter = tensor_type(DType::int64, {});
  const std::string zero = name_of(Array::copy_of(counter, std::array<int64_t, 1>{0}.data()));
  Names init = names_of(carried, frame);
  for (size_t i = 0; i < init.size(); ++i)
    init[i] = add_clone(init[i], tensor_type(carried[i].dtype(), carried[i].sizes()));
  init.insert(init.begin(), zero);
  Names outside = names_of(call["outside"].tensors(), frame);
  LiftedConstants lifted;
  RegionWriter condition(program_, region_of(node, "condition"), lifted);
  RegionWriter body(program_, body_region, lifted);
  const Attribute* given = node.find_attribute("limit");
  std::optional<int64_t> limit;
  if (given != nullptr && !given->is_none()) limit = given->as_int();
  condition.limit_trips(counter, limit);
  body.count_trips(counter);
  const Json condition_json = condition.json("cond_graph", true),
             body_json = body.json("body_graph");
  for (const Array& constant : lifted) outside.push_back(name_of(constant));
  std::vector<Type> types = {counter};
  types.insert(types.end(), node.outputs().begin(), node.outputs().begin() + carried.size());
  Names results = emit("torch.ops.higher_order.while_loop",
                       Json::array({operand(condition_json), operand(body_json),
                                    operand(tensors_json(init)), operand(tensors_json(outside))}),
                       types, false, origin);
  if (limit) {
    const Json number = {{"as_int", *limit}};
    const std::string ends =
        add("torch.ops.aten.le.Scalar",
            Json::array({positional("self", tensor_json(results[0])), positional("other", number)}),
            tensor_type(DType::bool_, {}));
    add_assertion(ends, "the loop goes on after " + std::to_string(*limit) + " trips", origin);
  }
  std::rotate(results.begin(), results.begin() + 1, results.end());  // the trips come last
  bind(node, results, frame);
}

}  // namespace composit::pt2
