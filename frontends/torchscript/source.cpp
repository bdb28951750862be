#include "frontends/torchscript/source.h"

#include <torch/csrc/jit/frontend/error_report.h>
#include <torch/csrc/jit/frontend/lexer.h>
#include <torch/csrc/jit/frontend/parser.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/script_type_parser.h>
#include <torch/csrc/jit/runtime/custom_operator.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "composit/ir/dtype.h"
#include "frontends/torchscript/place.h"

namespace flashlight::torchscript {
namespace {

using torch::jit::Def;
using torch::jit::SugaredValuePtr;
namespace jit = torch::jit;

// ---- names of modules ---------------------------------------------------------------------------

SugaredValuePtr constant(jit::GraphFunction& m, const c10::IValue& value) {
  return std::make_shared<jit::SimpleValue>(m.graph()->insertConstant(value));
}

std::optional<double> number_named(const std::string& name) {
  static const std::map<std::string, double> kNumbers = {
      {"pi", M_PI},
      {"e", M_E},
      {"tau", 2 * M_PI},
      {"inf", std::numeric_limits<double>::infinity()},
      {"nan", std::nan("")}};
  const auto found = kNumbers.find(name);
  return found == kNumbers.end() ? std::nullopt : std::optional(found->second);
}

// torch's further names for dtypes.
std::optional<composit::DType> dtype_named(const std::string& name) {
  using composit::DType;
  static const std::map<std::string, DType> kOthers = {
      {"float", DType::float32}, {"double", DType::float64}, {"half", DType::float16},
      {"int", DType::int32},     {"long", DType::int64},     {"short", DType::int16}};
  const auto found = kOthers.find(name);
  return found == kOthers.end() ? composit::dtype_from_name(name) : found->second;
}

// `torch`, `torch.nn.functional`, `math`: operators, dtypes and numbers by name.
struct Module : jit::BuiltinModule {
  Module() : jit::BuiltinModule("aten") {}
  SugaredValuePtr attr(const jit::SourceRange& range, jit::GraphFunction& m,
                       const std::string& field) override {
    if (field == "nn" || field == "functional" || field == "special")
      return std::make_shared<Module>();
    if (const auto number = number_named(field)) return constant(m, *number);
    if (const auto dtype = dtype_named(field)) return constant(m, static_cast<int64_t>(*dtype));
    return jit::BuiltinModule::attr(range, m, field);
  }
};

// ---- recursion ----------------------------------------------------------------------------------

// Refers to a function that is not compiled yet.
struct RecursiveFunction : jit::SugaredValue {
  RecursiveFunction(std::string name, c10::FunctionSchema schema)
      : name_(std::move(name)), schema_(std::move(schema)) {}
  std::string kind() const override { return "function"; }
  SugaredValuePtr call(const jit::SourceRange& range, jit::GraphFunction& m,
                       at::ArrayRef<jit::NamedValue> args, at::ArrayRef<jit::NamedValue> kwargs,
                       size_t /*n_binders*/) override {
    const jit::MatchedSchema matched = matchSchema(schema_, range, *m.graph(), args, kwargs);
    jit::Node* node =
        m.graph()->create(c10::Symbol::fromQualString(kRecursiveCall), matched.inputs, 1);
    node->s_(c10::attr::name, name_)->setSourceRange(range);
    node->output()->setType(schema_.returns()[0].type());
    m.graph()->insertNode(node);
    return std::make_shared<jit::SimpleValue>(node->output());
  }

 private:
  std::string name_;
  c10::FunctionSchema schema_;
};

// The compiler wants to know every operator; this one has effects as far as it knows, so that its
// nodes are left where they are.
void register_call() {
  static const jit::RegisterOperators registered({jit::Operator(
      std::string(kRecursiveCall) + "(...) -> ...",
      [](jit::Stack&) { TORCH_CHECK(false, "a recursive call runs in a graph of composit only"); },
      c10::AliasAnalysisKind::CONSERVATIVE)});
}

using Names = std::set<std::string>;

void add_called(const jit::TreeRef& tree, const Names& among, Names& called) {
  if (tree->kind() == jit::TK_APPLY && jit::Apply(tree).callee().kind() == jit::TK_VAR) {
    const std::string& name = jit::Var(jit::Apply(tree).callee()).name().name();
    if (among.contains(name)) called.insert(name);
  }
  for (const jit::TreeRef& part : tree->trees()) add_called(part, among, called);
}

// Functions that call themselves, maybe through others.
Names recursive_among(const std::vector<Def>& definitions) {
  Names all, recursive;
  for (const Def& definition : definitions) all.insert(definition.name().name());
  std::map<std::string, Names> called;
  for (const Def& definition : definitions)
    add_called(definition.statements().tree(), all, called[definition.name().name()]);
  for (const std::string& name : all) {
    Names reached;
    std::vector<std::string> open = {name};
    while (!open.empty()) {
      const std::string caller = open.back();
      open.pop_back();
      for (const std::string& callee : called[caller])
        if (reached.insert(callee).second) open.push_back(callee);
    }
    if (reached.contains(name)) recursive.insert(name);
  }
  return recursive;
}

// ---- compiling ----------------------------------------------------------------------------------

bool is_exception(const std::string& name) {
  return name == "Exception" || (name.size() > 5 && name.ends_with("Error"));
}

struct Resolver : jit::Resolver {
  std::map<std::string, SugaredValuePtr> names;

  SugaredValuePtr resolveValue(const std::string& name, jit::GraphFunction& /*m*/,
                               const jit::SourceRange& /*range*/) override {
    if (name == "torch" || name == "math" || name == "F") return std::make_shared<Module>();
    if (is_exception(name)) return std::make_shared<jit::ExceptionValue>(name);
    const auto found = names.find(name);
    return found == names.end() ? nullptr : found->second;
  }
};

// The place where the parser stopped; the end of a line is after its last character.
jit::SourceRange stopped_at(jit::Parser& parser) {
  const jit::SourceRange range = parser.lexer().cur().range;
  size_t begin = range.start();
  if (parser.lexer().cur().kind == jit::TK_NEWLINE)
    while (begin > 0 && std::isspace(range.source()->char_at(begin - 1)) != 0) --begin;
  return {range.source(), begin, std::max(range.end(), begin + 1)};
}

std::vector<Def> parsed(const std::string& text, const std::string& file) {
  jit::Parser parser(std::make_shared<jit::Source>(text, file, 1));
  std::vector<Def> definitions;
  try {
    while (parser.lexer().cur().kind != jit::TK_EOF)
      definitions.emplace_back(parser.parseFunction(/*is_method=*/false));
  } catch (const std::exception& error) {
    const std::string what = message_of(error);
    if (what.find("<--- HERE") != std::string::npos) throw;  // it says where
    const size_t end = what.find(" here:\n");
    throw PlacedError(with_place(stopped_at(parser), what.substr(0, end)), /*unsupported=*/true);
  }
  return definitions;
}

std::string body_name(const std::string& name) { return name + "__body"; }

std::shared_ptr<RecursiveFunction> declared(const Def& definition,
                                            const std::shared_ptr<Resolver>& resolver) {
  const std::string name = definition.name().name();
  c10::FunctionSchema schema =
      jit::ScriptTypeParser(resolver).parseSchemaFromDef(definition, /*skip_self=*/false);
  if (schema.returns().size() != 1)
    throw PlacedError(with_place(definition.name().range(),
                                 "'" + name + "' calls itself, so it has to say what it returns: " +
                                     "def " + name + "(…) -> float:"));
  return std::make_shared<RecursiveFunction>(name, std::move(schema));
}

void define(Functions& functions, const std::vector<Def>& definitions) {
  const Names recursive = recursive_among(definitions);
  const auto resolver = std::make_shared<Resolver>();
  std::vector<Def> plain;
  for (const Def& definition : definitions) {
    const std::string name = definition.name().name();
    functions.names.push_back(name);
    if (recursive.contains(name))
      resolver->names[name] = declared(definition, resolver);
    else
      plain.push_back(definition);
  }
  const auto compile = [&](const std::vector<Def>& some) {
    const std::vector<jit::ResolverPtr> resolvers(some.size(), resolver);
    return functions.unit->define(std::nullopt, {}, {}, some, resolvers, nullptr);
  };
  for (torch::jit::Function* function : compile(plain))
    resolver->names[function->name()] = std::make_shared<jit::FunctionValue>(function);
  for (const Def& definition : definitions) {
    const std::string name = definition.name().name();
    if (recursive.contains(name))
      functions.recursive[name] = compile({definition.withName(body_name(name))}).at(0);
  }
}

}  // namespace

torch::jit::Function* Functions::find(const std::string& name) const {
  const auto found = recursive.find(name);
  return found != recursive.end() ? found->second : unit->find_function(name);
}

Functions functions_of(const std::string& text, const std::string& file) {
  register_call();
  Functions functions{std::make_shared<torch::jit::CompilationUnit>(), {}, {}};
  with_subset([&] {
    try {
      define(functions, parsed(text, file));
    } catch (const PlacedError&) {
      throw;
    } catch (const std::exception& error) {
      throw composit::UserError(compile_error(message_of(error)));
    }
  });
  return functions;
}

}  // namespace flashlight::torchscript
