// A graph of torch.export, node by node, as composit's.
//
//   Program program(sizes);
//   GraphReader reader(program, json["graph"]);
//   reader.add_input("x", x);
//   reader.read();
//   LazyTensor y = reader.tensor("linear");
//
// A node becomes a call of the operation of the same name: its row says what types its results
// have, which have to be those of the file. What composit does not know is noted, and its results
// are left out, as is all that comes of them: at the end everything is refused at once.
//
// The training dialect, which torch.export.save writes by default, has operators that write in
// place. Such a call becomes what it computes, and all names of that value name the new one from
// there on. Where a view of the same memory is used later, it is refused.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "composit/interchange/pt2_read/aliases.h"
#include "composit/interchange/pt2_read/json.h"
#include "composit/interchange/pt2_read/origin.h"
#include "composit/interchange/pt2_read/sizes.h"
#include "composit/interchange/refusals.h"
#include "composit/ir/graph.h"
#include "composit/op/call.h"
#include "composit/op/operation.h"

namespace composit::pt2_read {

// What the graph of a file and its regions share while they are read.
struct Program {
  explicit Program(Sizes symbols) : sizes(std::move(symbols)) {}

  Sizes sizes;
  interchange::Refusals refusals{"these cannot be imported:"};
};

class GraphReader {
 public:
  struct Known;  // what is known of an operator: known.h
  // What inputs may be written to by nodes of the graph.
  enum class Written { allowed, refused };

  GraphReader(Program& program, const Json& graph);

  void add_input(const std::string& name, ArgumentValue value, Written written = Written::refused);
  // A further name of an input, or an input in the same memory.
  void tie_input(const std::string& name, const std::string& to, bool same);
  void read();

  // The type of a value as the file has it. UserError: it does not say.
  Type type_of(const std::string& name) const;
  // Nothing for a value that comes of what was refused. UserError: there is no such tensor.
  std::optional<LazyTensor> tensor(const std::string& name) const;
  // Of an argument of the graph, as its outputs are.
  ArgumentValue value_of(const Json& argument) const;
  // Inputs whose value was changed, by name.
  const std::set<std::string>& written() const { return written_; }
  const std::vector<NodePtr>& effects() const { return effects_; }

 private:
  using Names = std::vector<std::string>;  // of results; empty for one that is not there

  void read_node(const Json& node);
  void refuse(const Json& node, const std::string& why);
  const ArgumentValue& named(const std::string& name) const;

  // Each takes a node if it is of its kind.
  bool read_number(const Json& node);
  bool read_assertion(const Json& node);
  bool read_control_flow(const Json& node);
  bool read_special(const Json& node, Symbol op);
  bool read_in_place(const Json& node, Symbol op);
  bool read_composite(const Json& node, Symbol op);
  void read_call(const Json& node, Symbol op);

  void read_cond(const Json& node);
  void read_map(const Json& node);
  void read_scan(const Json& node);
  void read_while(const Json& node);
  void read_grad_mode(const Json& node);
  void read_autocast(const Json& node);
  void inline_region(const Json& node, size_t place, std::optional<bool> grad);
  void read_batch_norm(const Json& node, std::vector<ArgumentValue> values);
  void read_dropout(const Json& node, const std::vector<ArgumentValue>& values);
  // A region whose inputs have these types.
  Region region_of(const Json& argument, const std::vector<Type>& types, size_t least_results);
  void finish_control(const Json& node, std::string_view op, std::vector<ArgumentValue> values);

  static std::optional<Known> known(Symbol op);
  std::vector<ArgumentValue> arguments(const Json& node, const Schema& schema) const;
  ArgumentValue operand(const Json& node, size_t index) const;
  LazyTensors operands(const Json& node, size_t index) const;
  struct Results {
    std::vector<Type> types;
    bool sizes_follow_values = false;
  };
  Results results_of(const Known& known, const Call& call, const Names& names) const;
  // UserError where the file says that a value has another dtype or other sizes.
  void expect_said(const std::string& name, const Type& type) const;
  // A node of the call, with its module and line.
  NodePtr make(const Call& call, std::vector<Type> types, bool effect);
  LazyTensors make(std::string_view op, std::vector<ArgumentValue> values);
  void bind(const Names& names, const LazyTensors& results);
  void note_memory(const Schema& schema, const Json& node, const Names& names);
  void write(const std::string& name, const LazyTensor& value);
  bool is_used_later(const std::string& name) const;
  void note_uses();

  Program& program_;
  const Json& graph_;
  std::map<std::string, ArgumentValue> values_;
  std::set<std::string> left_out_;  // values that come of what was refused
  std::map<std::string, Written> inputs_;
  std::set<std::string> written_;
  Aliases aliases_;
  std::map<std::string, size_t> last_uses_;  // by name, the number of a node
  size_t now_ = 0;                           // the number of the node that is read
  std::vector<NodePtr> effects_;
  size_t first_effect_ = 0, depth_ = 0;
  std::optional<bool> grad_;  // the mode that nodes run in, where the program says so
  NodeOrigin origin_, around_;
};

// The names of the results of a node; those that are not there empty.
std::vector<std::string> result_names(const Json& node);

}  // namespace composit::pt2_read
