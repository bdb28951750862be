// A graph, or a region of one, as torch.export's JSON.
//
// A node is written under its ATen name where it has one. A composite that has none, or that does
// more than its schema says, is opened: the nodes that LibTorch ran for it stand in its place.
// Where there are none, its row's decomposition does. What is left is refused by name.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "composit/family/cases.h"
#include "composit/family/family.h"
#include "composit/interchange/pt2/metadata.h"
#include "composit/interchange/pt2/program.h"
#include "composit/ir/graph.h"
#include "composit/op/call.h"

namespace composit::pt2 {

// Constants that a region, or several regions of one node, take from the graph around them.
using LiftedConstants = std::vector<Array>;

class GraphWriter {
 public:
  // Of the graph, or with `lifted` of a region.
  explicit GraphWriter(Program& program, LiftedConstants* lifted = nullptr)
      : program_(program), lifted_(lifted) {}

  // An input under this name.
  void add_input(const LazyTensor& input, const std::string& name, bool requires_grad = false);
  // A value that no node stands for.
  void declare(const std::string& name, const Type& type, bool requires_grad = false);
  // All nodes that the graph needs. Its inputs have been added.
  void add_nodes(const Graph& graph) { add(graph, frame_, {}); }
  // The name of a value of that graph; a number becomes a constant.
  std::string name_of(const LazyTensor& value) { return shown(value_of(value, frame_)); }
  // The name of a constant in this graph.
  std::string name_of(const Array& constant);
  // A call of an operator with one result, of this type; its name.
  std::string add(const std::string& target, Json inputs, const Type& type,
                  const Origin& origin = {}) {
    return emit(target, std::move(inputs), {type}, false, origin)[0];
  }
  // A row-major copy of a value, for results that must be no inputs.
  std::string add_clone(const std::string& name, const Type& type);
  // Asserts the dtype of an input; sizes are compared by torch itself.
  void expect_dtype(const std::string& name, DType dtype);
  // Asserts what a family holds for; `inputs` are those of the family.
  void expect_range(const FreeSize& size, const LazyTensors& inputs);
  // A number that is no size, read of a value of float64 without axes. What calls give comes before
  // any node, in their order.
  void add_number(const FreeNumber& number, const std::string& value, const Origin& origin = {});
  // UserError where an operator has a number of the family that was not written.
  void expect_all_numbers(const Family& family) const;
  // How many symbols of numbers there are: "zuf0", ….
  size_t open_numbers() const { return open_numbers_; }
  // The graph; inputs and outputs are arguments.
  Json graph_json(Json inputs, Json outputs, bool single = false) const;

 private:
  // A value: its name, or a number that the program wrote beside tensors, which stays one.
  struct Value {
    std::string name = {};
    LazyTensor number = {};
    bool no_grad = false;  // no gradient flows through what made it
  };
  using Frame = std::map<std::pair<const Node*, uint32_t>, Value>;
  using Names = std::vector<std::string>;

  void add(const Graph& graph, Frame& frame, const Origin& around);
  void add_node(const Node& node, Frame& frame, const Origin& origin);
  bool add_guard(const Node& node, Frame& frame, const Origin& origin);
  bool add_control_flow(const Node& node, Frame& frame, const Origin& origin);
  bool add_call(const Node& node, Frame& frame, const Origin& origin);
  bool open_body(const Node& node, Frame& frame, const Origin& origin);
  bool open_definition(const Node& node, Frame& frame, const Origin& origin);
  // Nodes of `graph`, whose inputs are the operands of `node`. `inner` gets its values.
  void add_in_place(const Node& node, const Graph& graph, const Frame& frame, Frame& inner,
                    const Origin& origin);
  void take_outputs(const Node& node, const LazyTensors& outputs, const Frame& inner, Frame& frame);

  void add_cond(const Node& node, Frame& frame, const Origin& origin);
  // Cases that sizes choose between (sized_cases.h); the results of each way, by name.
  void add_sized_cases(const Node& node, Frame& frame, const Origin& origin);
  Names add_way(const Way& way, const Node& node, const Origin& origin);
  Names add_choice(size_t number, const Node& node, const Origin& origin);
  Names add_leaf(size_t leaf, const Node& node);
  void expect_in_case(const FreeSize& size, const LazyTensors& inputs);
  Json condition_of(const SizeCondition& condition, const Origin& origin);
  Json joined_meta(const Json& a, const Json& b) const;
  void add_map(const Node& node, Frame& frame, const Origin& origin);
  void add_scan(const Node& node, Frame& frame, const Origin& origin);
  void add_while(const Node& node, Frame& frame, const Origin& origin);

  // A number that nodes compute, as an argument; what it is in sympy's words.
  struct Number {
    Json argument;
    std::string text;
  };
  const Number& number_argument(const NumberFormula& formula, const Origin& origin);
  Number read_number(const std::string& tensor, const Origin& origin);
  // A number of a family that the program reads here; false: the node reads none.
  bool add_read(const Node& node, const Frame& frame, const Origin& origin);
  std::string add_float(const std::string& target, Json inputs, const std::string& text,
                        const Origin& origin);
  // A number as a tensor without axes; its name.
  std::string rounded_tensor(const Json& number, DType dtype, const Origin& origin);
  // The formula of a number of a node; nullptr: it has none.
  const NumberFormula* number_use(const Node& node, std::string_view key);
  bool follows(const Node& node, const SchemaArgument& argument) const;

  // An integer of a family as an argument: a number, or the name of a node.
  Json integer_of(const SizeFormula& formula, const Frame& frame, const Origin& origin);
  Json size_of(const LazyTensor& tensor, size_t axis, const Frame& frame, const Origin& origin);
  Json integer_node(const std::string& target, Json inputs, Json value, const std::string& hint,
                    const Origin& origin);
  Json argument_with_formulas(const Node& node, const SchemaArgument& argument,
                              const Attribute& value, const Frame& frame, const Origin& origin);
  // Asserts a comparison of two integers.
  void expect(const std::string& comparison, const Json& a, const Json& b,
              const std::string& message, const Origin& origin);

  // Sizes that follow from values are what they were, or the graph holds for others.
  void expect_sizes(const Node& node, const Names& names, const Origin& origin);
  void add_assertion(const std::string& condition, const std::string& message,
                     const Origin& origin);

  const NodeFormulas* formulas_of(const Node& node) const;
  Value value_of(const LazyTensor& tensor, const Frame& frame) const;
  std::string tensor_name(const Value& value);
  // The same where gradients are recorded: nothing flows back from there to what ran without.
  std::string shown(const Value& value);
  Names names_of(const LazyTensors& tensors, const Frame& frame);
  // The arguments of a call, without those at the end that are what the schema says otherwise.
  Json arguments(const Node& node, const Schema& schema, const Frame& frame, const Origin& origin);
  Json tensor_argument(const Schema& schema, const Call& call, const LazyTensor& tensor,
                       const Frame& frame, bool no_grad, const Origin& origin);
  Json list_argument(const SchemaArgument& argument, const LazyTensors& tensors, const Frame& frame,
                     bool no_grad);
  // A node of this target; the names of its outputs, of undefined ones empty.
  Names emit(const std::string& target, Json inputs, const std::vector<Type>& outputs, bool as_list,
             const Origin& origin);
  void bind(const Node& node, const Names& names, Frame& frame) const;
  void keep_from_writes(Json& inputs, const Origin& origin);
  // A value of the same type by an operator of one tensor; its name.
  std::string add_same(const std::string& target, const std::string& name,
                       const std::string& new_name, Json metadata);

  Program& program_;
  LiftedConstants* lifted_;
  Metadata metadata_;
  std::map<std::string, std::string> local_;  // constants by the names of the graph's inputs
  std::map<std::string, std::string> detached_;
  Frame frame_;
  Json nodes_ = Json::array();
  Json tensors_ = Json::object();
  Json integers_ = Json::object(), bools_ = Json::object(), floats_ = Json::object();
  std::map<std::string, Number> numbers_;  // by the text of their formulas
  std::set<const NumberUse*> written_uses_;
  size_t open_numbers_ = 0;
  std::map<std::pair<std::string, size_t>, Json> sizes_;  // nodes by value and axis
  std::string reason_;                                    // why the last call was not written
};

}  // namespace composit::pt2
