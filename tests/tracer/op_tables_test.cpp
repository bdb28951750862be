// The tracer's tables of LibTorch's operators beside what opdb/op_tables.py has seen them do.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/tracer/capture_helpers.h"
#include "tracer/op_info.h"

namespace flashlight::testing {
namespace {

using tracer::ArgumentKind;
using tracer::find_op;
using tracer::op_info;
using tracer::OpInfo;

// Operator -> what its lines say after its name.
using Table = std::map<std::string, std::set<std::string>>;

Table read_table(const std::string& name) {
  std::ifstream file(FLASHLIGHT_OP_TABLES "/" + name);
  EXPECT_TRUE(file) << "cannot read " << FLASHLIGHT_OP_TABLES "/" << name;
  Table table;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string op, what;
    if (!(words >> op)) continue;
    if (find_op(op) == nullptr)
      ADD_FAILURE() << name << ": LibTorch has no " << op;
    else
      table[op].insert(words >> what ? what : "");
  }
  EXPECT_FALSE(table.empty()) << name;
  return table;
}

// All operators of the namespace aten, of which the tables tell.
std::vector<const OpInfo*> all_ops() {
  std::vector<const OpInfo*> ops;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (op && name.name.starts_with("aten::")) ops.push_back(&op_info(*op));
  }
  EXPECT_GT(ops.size(), 3000u);
  return ops;
}

// The operators of which they tell different things; empty: none.
Table difference(const Table& a, const Table& b) {
  Table differ;
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(),
                                std::inserter(differ, differ.end()));
  return differ;
}

bool is_declared_as_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

bool takes_tensor(const OpInfo& info) {
  return std::any_of(info.arguments.begin(), info.arguments.end(),
                     [](ArgumentKind kind) { return kind != ArgumentKind::other; });
}

bool returns_tensor(const OpInfo& info) {
  return std::any_of(info.schema->returns().begin(), info.schema->returns().end(),
                     [](const c10::Argument& result) {
                       return result.type()->str().find("Tensor") != std::string::npos;
                     });
}

// And no other one for the CPU.
bool has_composite_kernel(const OpInfo& info) {
  const auto has = [&](c10::DispatchKey key) { return info.handle.hasKernelForDispatchKey(key); };
  return has(c10::DispatchKey::CompositeImplicitAutograd) && !has(c10::DispatchKey::CPU) &&
         !has(c10::DispatchKey::AutogradCPU);
}

bool runs_on_cpu(const OpInfo& info) {
  return info.handle.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU);
}

TEST(OpTables, undeclared_writes) {
  Table believed;
  for (const OpInfo* info : all_ops())
    for (size_t i = 0; i < info->number_of_arguments(); ++i)
      if (info->writes[i] && !is_declared_as_written(info->schema->arguments()[i]))
        believed[info->name.str()].insert(info->argument_names[i].str());
  EXPECT_EQ(difference(believed, read_table("undeclared_writes.txt")), Table());
}

// Each operator that a composite calls is guarded by itself. Beside tensors, a number that is
// always the same may be guarded.
TEST(OpTables, value_queries) {
  const Table table = read_table("value_queries.txt");
  for (const auto& [op, what] : table) {
    const OpInfo* info = find_op(op);
    if (!runs_on_cpu(*info)) continue;
    const bool guarded = info->value_query || info->composite;
    const bool unguarded = !info->value_query || returns_tensor(*info);
    EXPECT_TRUE(what.count("value") > 0 ? guarded : unguarded) << op;
  }
  for (const OpInfo* info : all_ops()) {
    if (!info->value_query || !takes_tensor(*info)) continue;
    EXPECT_TRUE(table.count(info->name.str()) > 0) << info->name.str();
  }
}

// Operators that a composite calls have entries of their own.
TEST(OpTables, dynamic_shapes) {
  const Table table = read_table("dynamic_shapes.txt"), host_reads = read_table("host_reads.txt");
  const auto listed = [&](const OpInfo& info) {
    return table.count(info.name.str()) + host_reads.count(info.name.str()) > 0;
  };
  for (const auto& [op, tagged] : table) {
    const OpInfo* info = find_op(op);
    EXPECT_TRUE(info->dynamic_shape || info->composite) << op;
  }
  for (const OpInfo* info : all_ops()) {
    if (!info->dynamic_shape) continue;
    EXPECT_TRUE(listed(*info) || (info->twin != nullptr && listed(*info->twin)))
        << info->name.str();
  }
}

// Those that are recorded in one piece although the CPU runs a composite kernel.
TEST(OpTables, host_reads) {
  Table believed;
  for (const OpInfo* info : all_ops()) {
    if (info->composite || info->metadata || !has_composite_kernel(*info)) continue;
    believed[info->name.str()].insert("");
  }
  EXPECT_EQ(difference(believed, read_table("host_reads.txt")), Table());
}

// ---- what the tables are for --------------------------------------------------------------------

TEST(OpTables, an_undeclared_write_replays) {
  expect_replays(
      [](Tensors& in) -> Tensors {
        at::Tensor out = at::empty_like(in[0]), mean = at::empty({3}), rstd = at::empty({3});
        at::native_batch_norm_out(out, mean, rstd, in[0], {}, {}, in[1], in[2], true, 0.1, 1e-5);
        return {in[1] + in[2]};
      },
      {at::randn({4, 3}), at::zeros({3}), at::ones({3})});
}

// Without a gradient its kernel calls no operator.
TEST(OpTables, a_composite_that_computes_itself_replays) {
  for (const bool grad : {false, true})
    expect_replays([](Tensors& in) -> Tensors { return {at::max_pool1d(in[0], {2})}; },
                   {at::randn({2, 6}).requires_grad_(grad)}, {at::randn({2, 6})});
}

TEST(OpTables, lengths_read_on_the_host_replay) {
  const at::NoGradGuard no_grad;
  const Tensors weights = {at::randn({16, 3}), at::randn({16, 4}), at::randn({16}),
                           at::randn({16})};
  const at::Tensor x = at::randn({5, 3, 3}), state = at::zeros({1, 3, 4});
  expect_replays(
      [&](Tensors& in) -> Tensors {
        const auto [data, sizes] = at::_pack_padded_sequence(in[0], in[1], false);
        const auto [y, h, c] =
            at::lstm(data, sizes, {state, state}, weights, true, 1, 0., false, false);
        const auto [padded, lengths] = at::_pad_packed_sequence(y, sizes, false, 0., 5);
        return {padded, lengths, h, c};
      },
      {x, at::tensor({5, 3, 1}, at::kLong)}, {x, at::tensor({5, 2, 2}, at::kLong)});
  const at::Tensor targets = at::tensor({1, 2, 3, 1, 4, 2}, at::kLong).view({2, 3});
  const at::Tensor steps = at::tensor({6, 6}, at::kLong);
  expect_replays(
      [&](Tensors& in) -> Tensors { return {at::ctc_loss(in[0], targets, steps, in[1])}; },
      {at::randn({6, 2, 5}).log_softmax(2), at::tensor({3, 2}, at::kLong)},
      {at::randn({6, 2, 5}).log_softmax(2), at::tensor({2, 3}, at::kLong)});
}

}  // namespace
}  // namespace flashlight::testing
