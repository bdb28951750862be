#include "frontends/ks/parse.h"

#include <spdlog/logger.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "composit/io/log.h"
#include "composit/ir/error.h"
#include "frontends/ks/tokens.h"

namespace flashlight::ks {
namespace {

using Kind = Token::Kind;

const std::set<std::string, std::less<>>& derivations() {
  static const std::set<std::string, std::less<>> names = {
      "D", "fwd", "rev", "CL", "suffwdpass", "sufrevpass", "sufrev", "shape"};
  return names;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& file)
      : file_(file), tokens_(tokens_of(text, file)) {}

  Name whole_name() {
    Name made = name();
    if (!is(Kind::end)) refuse_token("the end of a name");
    return made;
  }
  Program run() {
    Program program{file_, {}};
    while (now().kind != Kind::end) program.declarations.push_back(declaration());
    expect_each_defined_once(program);
    return program;
  }

 private:
  // ---- tokens -----------------------------------------------------------------------------------

  const Token& now(size_t ahead = 0) const {
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  const Token& take() { return tokens_[std::min(next_++, tokens_.size() - 1)]; }
  bool is(Kind kind) const { return now().kind == kind; }
  bool is_word(std::string_view word) const { return is(Kind::word) && now().text == word; }

  [[noreturn]] void refuse_token(const std::string& expected) const {
    const Token& token = now();
    const std::string received = token.kind == Kind::end      ? "the end of the text"
                                 : token.kind == Kind::string ? "a string"
                                                              : "'" + token.text + "'";
    refuse(file_, token.at, "expected " + expected + ", received " + received);
  }
  // Counts expressions and types around what is read: recursion that deep would end the stack.
  class Nested {
   public:
    explicit Nested(Parser& parser) : depth_(++parser.depth_) {
      constexpr int kMost = 2000;
      if (depth_ > kMost)
        refuse(parser.file_, parser.now().at,
               "expected at most " + std::to_string(kMost) + " expressions around one");
    }
    ~Nested() { --depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    int& depth_;
  };

  const Token& expect(Kind kind, const std::string& expected) {
    if (!is(kind)) refuse_token(expected);
    return take();
  }
  std::string word(const std::string& expected) { return expect(Kind::word, expected).text; }
  void open(const std::string& what) { expect(Kind::open, "'(' of " + what); }
  void close(const std::string& what) { expect(Kind::close, "')' after " + what); }

  // ---- types and names --------------------------------------------------------------------------

  Type type() {
    const Nested nested(*this);
    static const std::pair<std::string_view, Type::Kind> scalars[] = {
        {"Integer", Type::Kind::integer},
        {"Float", Type::Kind::floating},
        {"Bool", Type::Kind::boolean},
        {"String", Type::Kind::string}};
    for (const auto& [name, kind] : scalars)
      if (is_word(name)) return take(), Type{kind};
    if (!is(Kind::open)) refuse_token("a type: Integer, Float, Bool, String or (…)");
    take();
    Type inner = open_type();
    close("a type");
    return inner;
  }
  // Without its parentheses, as after a parameter's colon.
  Type open_type() {
    if (is_word("Vec")) return take(), Type{Type::Kind::tensor, 1, {type()}};
    if (is_word("Tensor")) {
      take();
      const Token& rank = expect(Kind::number, "the number of a tensor's dimensions");
      int axes = 0;
      const auto [end, error] =
          std::from_chars(rank.text.data(), rank.text.data() + rank.text.size(), axes);
      if (error != std::errc() || *end != '\0' || axes < 0)
        refuse(file_, rank.at,
               "expected the number of a tensor's dimensions, received '" + rank.text + "'");
      return {Type::Kind::tensor, axes, {type()}};
    }
    if (is_word("Tuple")) {
      Type tuple{Type::Kind::tuple};
      for (take(); !is(Kind::close);) tuple.parts.push_back(type());
      return tuple;
    }
    for (const auto& [name, kind] :
         {std::pair("Lam", Type::Kind::lambda), std::pair("LM", Type::Kind::linear_map)})
      if (is_word(name)) {
        take();
        Type from = type();
        return {kind, 0, {std::move(from), type()}};
      }
    return type();
  }

  Name name() {
    if (!is(Kind::open_name)) return {{}, word("the name of a function"), {}};
    take();
    const Token& first = expect(Kind::word, "the name of a function or a derivation");
    Name inner;
    if (derivations().count(first.text) == 0 &&
        (is(Kind::open_name) || (is(Kind::word) && !starts_type())))
      refuse(file_, first.at,
             "expected a derivation (fwd, rev, suffwdpass, sufrevpass, sufrev, shape, D, CL), or a "
             "function and the type of its argument, received '" +
                 first.text + "'");
    if (derivations().count(first.text) > 0 && (is(Kind::open_name) || is(Kind::word)) &&
        !starts_type()) {
      inner = name();
      inner.derivations.insert(inner.derivations.begin(), first.text);
    } else {
      inner = {{}, first.text, type()};
    }
    expect(Kind::close_name, "']' after a name");
    return inner;
  }
  bool starts_type() const {
    return is_word("Integer") || is_word("Float") || is_word("Bool") || is_word("String");
  }

  // ---- declarations -----------------------------------------------------------------------------

  Declaration declaration() {
    const Position at = now().at;
    open("a declaration");
    const std::string which = is(Kind::word) ? now().text : "";
    Declaration made{at, {}};
    if (which == "def") {
      take();
      made.form = def();
    } else if (which == "edef") {
      take();
      Name declared = name();
      Type result = type();
      made.form = Edef{std::move(declared), std::move(result), argument_type()};
    } else if (which == "gdef") {
      take();
      const Position place = now().at;
      const std::string derivation = word("a derivation: fwd, rev, suffwdpass, sufrevpass, sufrev");
      if (derivations().count(derivation) == 0)
        refuse(file_, place,
               "expected a derivation (fwd, rev, suffwdpass, sufrevpass, sufrev), received '" +
                   derivation + "'");
      made.form = Gdef{derivation, name()};
    } else if (which == "rule") {
      take();
      const std::string title = expect(Kind::string, "the name of a rule, a string").text;
      std::vector<Parameter> variables = parameters();
      ExpressionPtr left = expr();
      made.form = Rule{title, std::move(variables), std::move(left), expr()};
    } else {
      refuse_token("def, edef, gdef or rule");
    }
    close("a declaration");
    return made;
  }

  Def def() {
    Def made{name(), type(), parameters(), nullptr};
    made.body = expr();
    return made;
  }

  // (Float Float): of several arguments, their tuple. (Float), Float and (Vec Float) are of one.
  Type argument_type() {
    if (!is(Kind::open)) return type();
    if (now(1).kind == Kind::word && now(1).text != "Integer" && now(1).text != "Float" &&
        now(1).text != "Bool" && now(1).text != "String")
      return type();
    take();
    std::vector<Type> types;
    while (!is(Kind::close)) types.push_back(type());
    close("types");
    return types.size() == 1 ? types[0] : Type{Type::Kind::tuple, 0, std::move(types)};
  }

  std::vector<Parameter> parameters() {
    open("parameters");
    std::vector<Parameter> all;
    if (is(Kind::word)) {
      all.push_back(parameter());
    } else {
      while (is(Kind::open)) {
        take();
        all.push_back(parameter());
        close("a parameter");
      }
    }
    close("parameters");
    std::set<std::string> names;
    for (const Parameter& one : all) expect_new(names, one.name);
    return all;
  }
  // UserError at the token before, for a name that stands twice among those bound at once.
  void expect_new(std::set<std::string>& names, const std::string& name) const {
    if (!names.insert(name).second)
      refuse(file_, tokens_[next_ - 1].at,
             "expected names that differ, received '" + name + "' twice");
  }
  void expect_each_defined_once(const Program& program) const {
    std::set<std::string> defined;
    for (const Declaration& one : program.declarations) {
      const auto* def = std::get_if<Def>(&one.form);
      if (def == nullptr) continue;
      std::string of = print(def->name);
      for (const Parameter& parameter : def->parameters) of += " " + print(parameter.type);
      if (!defined.insert(of).second)
        refuse(file_, one.at, "'" + print(def->name) + "' is defined twice for these arguments");
    }
  }
  Parameter parameter() {
    std::string variable = word("the name of a parameter");
    if (!is_word(":")) refuse_token("':' and a type after the parameter '" + variable + "'");
    take();
    return {std::move(variable), open_type()};
  }

  // ---- expressions ------------------------------------------------------------------------------

  ExpressionPtr made(Position at, decltype(Expression::form) form) {
    return std::make_shared<const Expression>(Expression{at, std::move(form)});
  }

  ExpressionPtr expr() {
    const Nested nested(*this);
    const Token& token = now();
    switch (token.kind) {
      case Kind::number:
        return take(), made(token.at, number(token));
      case Kind::string:
        return take(), made(token.at, Constant{token.text});
      case Kind::word:
        take();
        if (token.text == "true" || token.text == "false")
          return made(token.at, Constant{token.text == "true"});
        return made(token.at, Variable{token.text});
      case Kind::open: {
        take();
        ExpressionPtr inner = compound(token.at);
        close("an expression");
        return inner;
      }
      default:
        refuse_token("an expression");
    }
  }

  Constant number(const Token& token) const {
    const char *const begin = token.text.data() + (token.text[0] == '+' ? 1 : 0),
                      *const end = token.text.data() + token.text.size();
    if (token.text.find_first_of(".eE") == std::string::npos) {
      int64_t value = 0;
      const auto [last, error] = std::from_chars(begin, end, value);
      if (error == std::errc() && last == end) return {value};
      if (error == std::errc::result_out_of_range)
        refuse(file_, token.at, "'" + token.text + "' is too large for an Integer, of 64 bits");
    } else {
      double value = 0;
      const auto [last, error] = std::from_chars(begin, end, value);
      if (error == std::errc() && last == end) return {value};
      if (error == std::errc::result_out_of_range)
        refuse(file_, token.at, "'" + token.text + "' is too large or too small for a Float");
    }
    refuse(file_, token.at, "expected a number, received '" + token.text + "'");
  }

  // Behind '('.
  ExpressionPtr compound(Position at) {
    if (is_word("let")) return take(), let(at);
    if (is_word("if")) {
      take();
      ExpressionPtr condition = expr(), then = expr();
      return made(at, If{std::move(condition), std::move(then), expr()});
    }
    if (is_word("assert")) {
      take();
      ExpressionPtr condition = expr();
      return made(at, Assert{std::move(condition), expr()});
    }
    if (is_word("lam")) {
      take();
      open("a parameter");
      Parameter variable = parameter();
      close("a parameter");
      return made(at, Lambda{std::move(variable.name), std::move(variable.type), expr()});
    }
    if (is_word("tuple")) return take(), made(at, TupleOf{rest()});
    if (is_word("$dummy")) return take(), made(at, Dummy{type()});
    if (is(Kind::open)) return expr();  // ((f x)) is (f x)
    if (!is(Kind::word) && !is(Kind::open_name))
      refuse_token("a function, let, if, assert, lam or tuple");
    Name function = name();
    return made(at, Call{std::move(function), rest()});
  }
  std::vector<ExpressionPtr> rest() {
    std::vector<ExpressionPtr> all;
    while (!is(Kind::close) && !is(Kind::end)) all.push_back(expr());
    return all;
  }

  // (let (x e) body), (let ((x e) (y e)) body), (let ((x y) e) body).
  ExpressionPtr let(Position at) {
    struct Binding {
      Position at;
      Pattern pattern;
      ExpressionPtr value;
    };
    std::vector<Binding> bindings;
    const auto add = [&] {
      const Position begin = now().at;
      Pattern names = pattern();
      bindings.push_back({begin, std::move(names), expr()});
    };
    open("what let binds");
    if (is(Kind::word) || binds_tuple()) {
      add();
    } else {
      while (is(Kind::open)) {
        take();
        add();
        close("a binding");
      }
    }
    close("what let binds");
    constexpr size_t kMost = 20000;
    if (bindings.size() > kMost)
      refuse(file_, at, "expected at most " + std::to_string(kMost) + " bindings of one let");
    ExpressionPtr body = expr();
    for (size_t i = bindings.size(); i-- > 0;)
      body = made(i == 0 ? at : bindings[i].at,
                  Let{std::move(bindings[i].pattern), std::move(bindings[i].value), body});
    return body;
  }
  // True for a list of names, an expression, and the end: "((x y) e)". Two bindings of variables,
  // "((x a) (y b))", read the same way.
  bool binds_tuple() const {
    size_t at = 0;
    if (now(at++).kind != Kind::open) return false;
    while (now(at).kind == Kind::word) ++at;
    if (now(at++).kind != Kind::close) return false;
    return now(at).kind != Kind::close && now(end_of_expression(at)).kind == Kind::close;
  }
  // The token after the expression that begins there.
  size_t end_of_expression(size_t at) const {
    int depth = 0;
    do {
      const Kind kind = now(at).kind;
      if (kind == Kind::end) return at;
      depth += kind == Kind::open || kind == Kind::open_name     ? 1
               : kind == Kind::close || kind == Kind::close_name ? -1
                                                                 : 0;
      ++at;
    } while (depth > 0);
    return at;
  }
  Pattern pattern() {
    if (is(Kind::word)) return {{take().text}, false};
    open("a pattern");
    Pattern tuple{{}, true};
    std::set<std::string> names;
    while (is(Kind::word)) {
      tuple.names.push_back(take().text);
      expect_new(names, tuple.names.back());
    }
    close("a pattern");
    return tuple;
  }

  std::string file_;
  std::vector<Token> tokens_;
  size_t next_ = 0;
  int depth_ = 0;
};

}  // namespace

void refuse(const std::string& file, Position at, const std::string& what) {
  const bool is_known = at.line > 0;  // names that a caller gives stand nowhere
  throw composit::UserError(
      "[ks] " + file + ":" +
      (is_known ? std::to_string(at.line) + ":" + std::to_string(at.column) + ": " : " ") + what);
}

Program parse(std::string_view text, const std::string& file) { return Parser(text, file).run(); }
Program load(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream || std::filesystem::is_directory(file))
    throw composit::UserError("[ks] " + file + " cannot be read");
  Program program = parse(std::string(std::istreambuf_iterator<char>(stream), {}), file);
  for (const auto& [at, what] : unknown_names(program))
    composit::log().warn("[ks] {}:{}:{}: {}", file, at.line, at.column, what);
  return program;
}
Name parse_name(std::string_view text) { return Parser(text, "<name>").whole_name(); }

}  // namespace flashlight::ks
