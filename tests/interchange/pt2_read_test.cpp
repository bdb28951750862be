// Files of torch.export, made by hand or by our own writer: what they say is read, and what is
// wrong in them is told. Programs that torch exports are in
// tests/frontends/python/pt2_read_test.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "composit/eval/evaluate.h"
#include "composit/interchange/pt2.h"
#include "composit/interchange/pt2_read/conditions.h"
#include "composit/interchange/pt2_read/numbers.h"
#include "composit/interchange/pt2_read/sizes.h"
#include "composit/io/zip_read.h"
#include "composit/ir/print.h"
#include "composit/ir/verify.h"
#include "composit/ops/control_flow.h"
#include "composit/ops/functions.h"
#include "composit/ops/native.h"
#include "tests/agreement.h"
#include "tests/interchange/pt2_files.h"
#include "tests/io/command.h"
#include "tests/io/temporary_folder.h"
#include "tests/user_error.h"

namespace composit::test {
namespace {

using pt2_read::evaluate;
using ::testing::HasSubstr;

const PlainJson kRelu = node_of("torch.ops.aten.relu.default", {tensor_of("x")}, "r");
const PlainJson kAdd = node_of("torch.ops.aten.add.Tensor", {tensor_of("r"), tensor_of("w")}, "y");

Array values(const Dims& sizes, const std::vector<double>& numbers) {
  return array_of(tensor_type(DType::float32, sizes), numbers);
}

// Results, then what is written, for these arguments and the weights of the capture.
std::vector<Array> run_capture(const SavedCapture& capture, std::vector<Array> arguments) {
  for (size_t i = arguments.size(); i < capture.graph.inputs().size(); ++i)
    arguments.push_back(capture.weights.at(input_name(*capture.graph.inputs()[i].node)));
  return evaluate(capture.graph, arguments);
}

// A file made by hand, and what reading it gives or says.
class HandMade {
 public:
  HandMade() : program(program_of({kRelu, kAdd})) {}

  PlainJson program;

  SavedCapture load() { return load(entries_of(program)); }
  SavedCapture load(const Entries& entries) {
    write_archive(folder_ / "net.pt2", entries);
    return load_pt2(folder_ / "net.pt2");
  }
  std::string error() { return error(entries_of(program)); }
  std::string error(const Entries& entries) {
    return user_error([&] { load(entries); }).value_or("no error");
  }

 private:
  TemporaryFolder folder_{TemporaryFolder::Place::memory};
};

PlainJson& graph_of(PlainJson& program) { return program["graph_module"]["graph"]; }

// ---- what is read -------------------------------------------------------------------------------

TEST(pt2_read, a_program_with_its_weights_modules_and_lines) {
  const SavedCapture capture = HandMade().load();
  const LazyTensors& inputs = capture.graph.inputs();
  ASSERT_EQ(inputs.size(), 2U);
  EXPECT_EQ(input_name(*inputs[0].node), "x");  // arguments come first
  EXPECT_EQ(input_name(*inputs[1].node), "fc.w");
  EXPECT_EQ(input_kind(*inputs[1].node), InputKind::parameter);
  EXPECT_EQ(difference(capture.weights.at("fc.w"), values({3}, {1, 2, 3})), "");
  const Node& sum = *capture.graph.outputs()[0].node;
  EXPECT_EQ(sum.op().str(), "aten::add.Tensor");
  EXPECT_EQ(sum.annotation("scope"), "a.b");
  EXPECT_EQ(sum.annotation("source"), "net.py:12 in forward");
  EXPECT_EQ(capture.properties.at("arguments"), R"({"tuple":[{"tuple":["tensor"]},{"map":[]}]})");
  EXPECT_EQ(capture.properties.at("results"), R"({"tuple":["tensor"]})");
  const std::vector<Array> result = run_capture(capture, {values({2, 3}, {-1, 0, 1, 2, -3, 4})});
  EXPECT_EQ(differences(result, {values({2, 3}, {1, 2, 4, 3, 2, 7})}), "");
}

TEST(pt2_read, what_our_writer_wrote) {
  const TemporaryFolder folder;
  const LazyTensor x = input("x", tensor_type(DType::float32, {4, 2}));
  const LazyTensor y = input("y", tensor_type(DType::float32, {2}));
  const LazyTensor table = constant(values({2}, {3, 5}));
  LazyTensors results = cond(
      sum(x) > 0, [&](const LazyTensors&) { return LazyTensors{exp(y) * table}; },
      [&](const LazyTensors&) { return LazyTensors{y - 2}; });
  const ScanStep step = scan(
      [&](const LazyTensors& carried, const LazyTensors& slots) {
        const LazyTensor next = carried[0] * 0.5 + slots[0] * table;
        return ScanStep{{next}, {next, carried[0]}};
      },
      {y}, {x}, {.reverse = true});
  for (const LazyTensors& more :
       {step.carried, step.outputs,
        map([&](const LazyTensors& slots) { return LazyTensors{slots[0] * y}; }, {x}),
        while_loop([&](const LazyTensors& v) { return abs(sum(v[0])) < 50; },
                   [&](const LazyTensors& v) { return LazyTensors{v[0] * 2}; }, {y},
                   {.limit = 20})})
    results.insert(results.end(), more.begin(), more.end());
  results.resize(6);  // how often the loop ran is no result of the file's
  const std::vector<Array> arguments = {values({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
                                        values({2}, {1, 2})};
  const SavedCapture written = {.graph = Graph({.inputs = {x, y}, .outputs = results}),
                                .example_inputs = arguments};
  save_pt2(written, folder / "a.pt2");
  const SavedCapture read = load_pt2(folder / "a.pt2");
  EXPECT_EQ(differences(read.example_inputs, arguments), "");
  EXPECT_EQ(differences(evaluate(read.graph, arguments), evaluate(written.graph, arguments)), "");
  // And again.
  save_pt2(read, folder / "b.pt2");
  const SavedCapture again = load_pt2(folder / "b.pt2");
  EXPECT_EQ(differences(evaluate(again.graph, arguments), evaluate(written.graph, arguments)), "");
}

TEST(pt2_read, writes_ties_and_strides) {
  const TemporaryFolder folder;
  const Array memory = values({2, 2}, {1, 2, 3, 4});
  Type across = memory.type();
  across.strides = {1, 2};
  const Array turned(across, memory.owner(), memory.data());
  const LazyTensor a = input("a", memory.type(), InputKind::parameter);
  const LazyTensor t = input("t", turned.type(), InputKind::parameter);
  const LazyTensor b = input("b", memory.type(), InputKind::buffer);
  const Graph graph(
      {.inputs = {a, t, b}, .outputs = {matmul(a, t) + b}, .mutations = {{b, b + 1}}});
  save_pt2({.graph = graph,
            .weights = {{"a", memory}, {"t", turned}, {"b", values({2, 2}, {0, 0, 0, 0})}},
            .properties = {{"tied further", "a"}}},
           folder / "a.pt2");
  const SavedCapture read = load_pt2(folder / "a.pt2");
  EXPECT_EQ(read.properties.at("tied further"), "a");
  EXPECT_EQ(read.weights.at("t").type().strides, across.strides);
  EXPECT_EQ(read.weights.at("t").data(), read.weights.at("a").data());
  EXPECT_FALSE(read.weights.contains("further"));
  ASSERT_EQ(read.graph.mutations().size(), 1U);
  EXPECT_EQ(input_name(*read.graph.mutations()[0].target.node), "b");
  EXPECT_EQ(differences(run_capture(read, {}),
                        {values({2, 2}, {5, 11, 11, 25}), values({2, 2}, {1, 1, 1, 1})}),
            "");
}

TEST(pt2_read, a_write_in_place_changes_all_names_of_a_value) {
  HandMade file;
  // r = relu(x); s = r.add_(w); t = s.mul_(w); y = r + s
  file.program = program_of(
      {kRelu, node_of("torch.ops.aten.add_.Tensor", {tensor_of("r"), tensor_of("w")}, "s"),
       node_of("torch.ops.aten.mul_.Tensor", {tensor_of("s"), tensor_of("w")}, "t"),
       node_of("torch.ops.aten.add.Tensor", {tensor_of("r"), tensor_of("s")}, "y")});
  const SavedCapture capture = file.load();
  EXPECT_EQ(differences(run_capture(capture, {values({2, 3}, {1, -1, 1, 0, 0, 0})}),
                        {values({2, 3}, {4, 8, 24, 2, 8, 18})}),
            "");
}

TEST(pt2_read, a_write_beside_a_view_is_refused) {
  HandMade file;
  // r = relu(x); v = a view of r; r.add_(w); y = v + w
  file.program = program_of(
      {kRelu, node_of("torch.ops.aten.view.default", {tensor_of("r"), {{"as_ints", {2, 3}}}}, "v"),
       node_of("torch.ops.aten.add_.Tensor", {tensor_of("r"), tensor_of("w")}, "s"),
       node_of("torch.ops.aten.add.Tensor", {tensor_of("v"), tensor_of("w")}, "y")});
  EXPECT_THAT(file.error(), HasSubstr("memory of which 'v' is a view"));
  EXPECT_THAT(file.error(), HasSubstr("run_decompositions({})"));
}

TEST(pt2_read, all_that_is_unknown_is_told_at_once) {
  HandMade file;
  file.program =
      program_of({node_of("torch.ops.mine.one.default", {tensor_of("x")}, "r"),
                  node_of("torch.ops.mine.two.default", {tensor_of("w")}, "s"),
                  node_of("torch.ops.aten.add.Tensor", {tensor_of("r"), tensor_of("s")}, "y")});
  const std::string error = file.error();
  EXPECT_THAT(error, HasSubstr("torch.ops.mine.one.default in a.b at net.py:12 in forward"));
  EXPECT_THAT(error, HasSubstr("torch.ops.mine.two.default"));
  EXPECT_THAT(error, ::testing::Not(HasSubstr("add.Tensor")));  // which only comes of them
}

// ---- what is wrong ------------------------------------------------------------------------------

TEST(pt2_read, results_that_are_not_what_the_operation_gives) {
  HandMade file;
  graph_of(file.program)["tensor_values"]["r"] = meta_of({2, 4});
  EXPECT_THAT(file.error(), HasSubstr("it gives float32[2, 3], the file says float32[2, 4]"));
  graph_of(file.program)["tensor_values"]["r"] = meta_of({2, 3}, 8);
  EXPECT_THAT(file.error(), HasSubstr("the file says float64[2, 3]"));
}

TEST(pt2_read, weights_that_do_not_lie_within_their_entries) {
  HandMade file;
  for (const char* key : {"sizes", "strides"}) {
    Entries entries = entries_of(file.program);
    auto& text = entries["net/data/weights/model_weights_config.json"];
    PlainJson weights = PlainJson::parse(text);
    weights["config"]["fc.w"]["tensor_meta"][key][0]["as_int"] = 4;
    text = weights.dump();
    EXPECT_THAT(file.error(entries), HasSubstr("'fc.w': a tensor that begins at element 0")) << key;
    weights["config"]["fc.w"]["tensor_meta"][key][0]["as_int"] = int64_t{1} << 62;
    text = weights.dump();
    EXPECT_THAT(file.error(entries), HasSubstr("'fc.w': a tensor")) << key;
  }
  Entries entries = entries_of(file.program);
  entries["net/data/weights/weight_0"] = "";  // of which torch makes zeros
  EXPECT_THAT(file.error(entries), HasSubstr("does not lie within 0 bytes"));
}

TEST(pt2_read, other_versions_and_other_archives) {
  HandMade file;
  file.program["schema_version"]["major"] = 9;
  EXPECT_THAT(file.error(), HasSubstr("expected version 8 of torch.export's schema, received 9"));
  Entries entries = entries_of(HandMade().program);
  entries["net/archive_version"] = "1";
  EXPECT_THAT(file.error(entries), HasSubstr("expected version 0 of the archive"));
  entries.erase("net/archive_format");
  EXPECT_THAT(file.error(entries), HasSubstr("none of torch.export"));
  EXPECT_THAT(file.error({{"serialized_exported_program.json", "{}"}}), HasSubstr("older form"));
  EXPECT_THAT(file.error({}), HasSubstr("none of torch.export"));
}

// What a few digits ask for is not made.
TEST(pt2_read, lists_without_end) {
  for (const PlainJson& node :
       {node_of("torch.ops.aten.unbind.int", {tensor_of("x")}, "y"),
        node_of("torch.ops.aten.split.Tensor", {tensor_of("x"), {{"as_int", 1}}}, "y"),
        node_of("torch.ops.aten.chunk.default", {tensor_of("x"), {{"as_int", 1LL << 40}}}, "y"),
        node_of("torch.ops.aten.tensor_split.sections", {tensor_of("x"), {{"as_int", 1LL << 40}}},
                "y")}) {
    HandMade file;
    file.program = program_of(PlainJson::array({node}));
    graph_of(file.program)["tensor_values"]["x"] = meta_of({int64_t{1} << 40});
    EXPECT_THAT(file.error(), HasSubstr("parts")) << node;
  }
}

// Every field of the program left out, and put to something else.
void try_fields(PlainJson& program, PlainJson& at, HandMade& file) {
  const auto keep_trying = [&](PlainJson& child) {
    const PlainJson before = child;
    for (const PlainJson& other :
         {PlainJson(), PlainJson(-1), PlainJson(INT64_MAX), PlainJson(UINT64_MAX), PlainJson("x"),
          PlainJson::array(), PlainJson::object(), PlainJson(true), PlainJson(1e300)}) {
      child = other;
      try {
        verify(file.load(entries_of(program)).graph);
      } catch (const UserError&) {
      }
    }
    child = before;
    if (child.is_structured()) try_fields(program, child, file);
  };
  for (auto& child : at) keep_trying(child);
  if (!at.is_object()) return;
  const PlainJson whole = at;
  for (const auto& [key, value] : whole.items()) {
    at.erase(key);
    try {
      verify(file.load(entries_of(program)).graph);
    } catch (const UserError&) {
    }
    at = whole;
  }
}

TEST(pt2_read, other_fields_are_an_error_or_a_program) {
  HandMade file;
  PlainJson program = file.program;
  try_fields(program, program, file);
  EXPECT_EQ(program, file.program);
}

TEST(pt2_read, text_nested_without_end) {
  HandMade file;
  Entries entries = entries_of(file.program);
  entries["net/models/model.json"] = std::string(1'000'000, '[');
  EXPECT_THAT(file.error(entries), HasSubstr("nested too deeply"));
  file.program["graph_module"]["module_call_graph"][0]["signature"]["in_spec"] =
      "[1," + std::string(1'000'000, '[');
  EXPECT_THAT(file.error(), HasSubstr("nested too deeply"));
}

// Bytes of a whole file, which has an example, another than they were.
TEST(pt2_read, each_byte_changed_is_an_error_or_a_program) {
  const TemporaryFolder folder(TemporaryFolder::Place::memory);
  const LazyTensor x = input("x", tensor_type(DType::float32, {2, 3}));
  const LazyTensor w = input("w", tensor_type(DType::float32, {3}), InputKind::parameter);
  save_pt2({.graph = Graph({.inputs = {x, w}, .outputs = {exp(x) * w}}),
            .weights = {{"w", values({3}, {1, 2, 3})}},
            .example_inputs = {values({2, 3}, {1, 2, 3, 4, 5, 6})}},
           folder / "a.pt2");
  const std::string whole = read_file(folder / "a.pt2");
  size_t programs = 0, errors = 0;
  const auto attempt = [&](const std::string& bytes) {
    write_file(folder / "b.pt2", bytes);
    try {
      verify(load_pt2(folder / "b.pt2").graph);
      ++programs;
    } catch (const UserError&) {
      ++errors;
    }
  };
  // Nightly every bit.
  std::vector<char> masks = {'\x01', '\x10', '\xff'};
  if (std::getenv("FLASHLIGHT_FUZZ_PROGRAMS") != nullptr)
    masks.insert(masks.end(), {'\x02', '\x04', '\x08', '\x20', '\x40', '\x80'});
  for (size_t at = 0; at < whole.size(); ++at)
    for (const char mask : masks) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ mask);
      attempt(bytes);
    }
  for (size_t size = 0; size < whole.size(); size += 7) attempt(whole.substr(0, size));
  // Numbers of the directory, and of headers, at their limits.
  for (const char* mark : {"PK\x01\x02", "PK\x05\x06", "PK\x06\x06", "PK\x06\x07", "PK\x03\x04"})
    for (size_t at = whole.find(std::string_view(mark, 4)); at != std::string::npos;
         at = whole.find(std::string_view(mark, 4), at + 1))
      for (size_t place = at + 4; place + 8 <= whole.size() && place < at + 56; place += 2)
        for (const uint64_t number : {UINT64_MAX, uint64_t{0}, uint64_t{INT64_MAX}, uint64_t{1}})
          for (const size_t width : {2, 4, 8}) {
            std::string bytes = whole;
            std::memcpy(bytes.data() + place, &number, width);
            attempt(bytes);
          }
  EXPECT_GT(programs, 0U);
  EXPECT_GT(errors, 0U);
}

// ---- archives -----------------------------------------------------------------------------------

TEST(zip_read, what_python_packs) {
  const TemporaryFolder folder;
  const std::string script =
      "import sys, zipfile\n"
      "kind = {'stored': zipfile.ZIP_STORED, 'deflated': zipfile.ZIP_DEFLATED}[sys.argv[2]]\n"
      "with zipfile.ZipFile(sys.argv[1], 'w', kind) as z:\n"
      "    z.writestr('a/text', 'hello' * 10)\n"
      "    z.writestr('a/ü', b'')\n"
      "    with z.open('a/large', 'w', force_zip64=True) as f: f.write(b'x' * 1000)\n"
      "    z.comment = b'PK\\x05\\x06 is no end'\n";
  const auto packed = [&](const std::string& kind) {
    const auto path = folder / (kind + ".zip");
    const CommandResult result = run({FLASHLIGHT_SYSTEM_PYTHON, "-c", script, path.string(), kind});
    EXPECT_EQ(result.status, 0) << result.output;
    return read_file(path);
  };
  const std::string stored = packed("stored");
  const io::ZipReader archive(stored);
  EXPECT_EQ(archive.entries().size(), 3U);
  EXPECT_EQ(*archive.find("a/text"), "hellohellohellohellohellohellohellohellohellohello");
  EXPECT_EQ(*archive.find("a/ü"), "");
  EXPECT_EQ(*archive.find("a/large"), std::string(1000, 'x'));
  EXPECT_FALSE(archive.find("b"));
  const std::string deflated = packed("deflated");
  EXPECT_THAT(user_error([&] { io::ZipReader other{deflated}; }).value_or(""),
              HasSubstr("compressed"));
  EXPECT_TRUE(user_error([] { io::ZipReader other{""}; }));
  EXPECT_TRUE(user_error([] { io::ZipReader other{std::string_view("PK\x03\x04 and so on")}; }));
}

TEST(zip_read, as_many_entries_as_zip64_has) {
  std::string bytes;
  io::ZipWriter writer(
      [&](const void* data, size_t size) { bytes.append(static_cast<const char*>(data), size); });
  for (int i = 0; i < 70'000; ++i) writer.add(std::to_string(i), i == 69'999 ? "last" : "");
  writer.finish();
  const io::ZipReader archive(bytes);
  EXPECT_EQ(archive.entries().size(), 70'000U);
  EXPECT_EQ(*archive.find("69999"), "last");
}

// ---- sizes --------------------------------------------------------------------------------------

TEST(pt2_read, expressions_of_sizes_are_sympys) {
  const pt2_read::SymbolValues at = {{"s0", 7}, {"s1", 3}};
  const std::string a = "Symbol('s0', positive=True, integer=True)", b = "Symbol('s1')";
  EXPECT_EQ(evaluate("Add(Mul(Integer(2), " + a + "), Integer(-1))", at), 13);
  EXPECT_EQ(evaluate("FloorDiv(Add(" + a + ", Integer(-9)), " + b + ")", at), -1);  // -2 // 3
  EXPECT_EQ(evaluate("PythonMod(Add(" + a + ", Integer(-9)), " + b + ")", at), 1);  // -2 % 3
  EXPECT_EQ(evaluate("Mul(Rational(1, 2), Add(" + a + ", " + b + "))", at), 5);
  EXPECT_EQ(evaluate("floor(Mul(Rational(-1, 2), " + a + "))", at), -4);
  EXPECT_EQ(evaluate("CeilDiv(" + a + ", " + b + ")", at), 3);
  EXPECT_EQ(evaluate("Pow(" + a + ", Integer(2))", at), 49);
  EXPECT_EQ(evaluate("Max(Integer(5), Min(" + a + ", " + b + "))", at), 5);
  for (const char* wrong :
       {"", "Integer()", "Integer(1", "Integer(99999999999999999999)", "Symbol('u0')",
        "Mul(Rational(1, 2), Integer(3))", "FloorDiv(Integer(1), Integer(0))", "System(Integer(1))",
        "Pow(Integer(10), Integer(60))", "Rational(1, 0)", "Integer(1))"})
    EXPECT_TRUE(user_error([&] { evaluate(wrong, at); })) << wrong;
}

TEST(pt2_read, conditions_are_pythons) {
  const auto at = [](const std::string& condition, int64_t size) {
    return pt2_read::holds(condition, [&](const pt2_read::AxisOf&) { return size; });
  };
  EXPECT_TRUE(at("(L['x'].size()[1] % 3) == 0", 9));
  EXPECT_FALSE(at("(L['x'].size()[1] % 3) == 0", 10));
  EXPECT_TRUE(at("((1 + L['x'].size()[1]) // 2) <= L['x'].size()[1]", 3));
  EXPECT_TRUE(at("2*L['x'].size()[0] - 7 != max(1, -L['x'].size()[0], 3)", 4));
  EXPECT_FALSE(at("min(8, L['d']['k'][0].size()[2]) > 8", 9));
  const auto axes = pt2_read::axes_in("L['d']['k'][0].size()[2] < L['x'].size()[0]");
  ASSERT_EQ(axes.size(), 2U);
  EXPECT_EQ(axes[0].argument, "d");
  EXPECT_EQ(axes[0].keys, (std::vector<std::string>{"k", "0"}));
  EXPECT_EQ(axes[0].axis, 2);
  for (const char* wrong : {"", "1", "1 == ", "1 == 1 == 1", "L['x'] == 1", "f(1) == 1", "1 == 2)",
                            "1 // 0 == 1", "L['x'].size()[0] and 1 == 1", "((((1 == 1"})
    EXPECT_TRUE(user_error([&] { at(wrong, 1); })) << wrong;
  EXPECT_TRUE(user_error([&] { at(std::string(1'000'000, '(') + "1 == 1", 1); }));
  EXPECT_TRUE(user_error([&] { at(std::string(1'000'000, '-') + "1 == 1", 1); }));
}

TEST(pt2_read, numbers_are_pythons) {
  const auto call = [](const char* target, int64_t a, int64_t b) {
    return pt2_read::number_call(target, {Attribute(a), Attribute(b)})->as_int();
  };
  EXPECT_EQ(call("_operator.floordiv", -7, 2), -4);
  EXPECT_EQ(call("_operator.floordiv", 7, -2), -4);
  EXPECT_EQ(call("_operator.mod", -7, 3), 2);
  EXPECT_EQ(call("_operator.mod", 7, -3), -2);
  EXPECT_TRUE(user_error([&] { call("_operator.mod", 1, 0); }));
  EXPECT_TRUE(user_error([&] { call("_operator.mul", INT64_MAX, 2); }));
  EXPECT_FALSE(pt2_read::number_call("builtins.eval", {}));
}

}  // namespace
}  // namespace composit::test
