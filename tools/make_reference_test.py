"""What becomes of a header's comments on their way to Doxygen, and that warnings are errors."""

import unittest

import make_reference
from doxygen_comments import doxygen_lines, macros_of

HEADER = """// Boxes.
//
//   Box box(2);   // a comment
//
// * a list
#pragma once

#define LIST(f) f(one) f(two)

namespace shop {

class Box {
 public:
  // Of `size` pieces; UserError for <0.
  explicit Box(int size);
  Box(const Box&) = delete;
  ~Box();
  int width() const { return size_; }  // in pieces,
                                       // outside

  // One comment
  void open();
  void close();

  void bare();

 private:
  int size_;  // hidden
};

namespace detail {
void hidden();
}

#define DECLARE(name) int name(int x);
// Numbers.
LIST(DECLARE)
#undef DECLARE

struct Point {
  double x = 0, y = 0;  // in metres
};

}  // namespace shop
"""


def words_before(declaration: str, text: str = HEADER) -> str:
    """The comment in front of a declaration, on one line; nothing: there is none."""
    lines = [line.text for line in doxygen_lines("shop/box.h", text, "shop", macros_of(text))]
    at = lines.index(declaration)
    if at == 0 or lines[at - 1] != "*/":
        return ""
    begin = max(i for i in range(at) if lines[i].startswith("/**"))
    return " ".join(" ".join(lines[begin:at]).removeprefix("/**").removesuffix("*/").split())


class MakeReferenceTest(unittest.TestCase):
    def test_the_opening_is_about_the_class_of_that_name(self):
        self.assertEqual(
            words_before("class Box {"), "Boxes. @code{.cpp} Box box(2); // a comment @endcode * a list"
        )

    def test_comments_before_and_behind(self):
        self.assertEqual(words_before("explicit Box(int size);"), "Of `size` pieces; UserError for \\<0.")
        self.assertEqual(words_before("int width() const;"), "in pieces, outside")

    def test_a_comment_goes_on_to_the_next_empty_line(self):
        self.assertEqual(words_before("void close();"), "One comment")
        self.assertEqual(words_before("void bare();"), "")

    def test_what_is_hidden(self):
        text = "\n".join(line.text for line in doxygen_lines("shop/box.h", HEADER, "shop", {}))
        for hidden in ("~Box", "Box&", "size_;", "hidden", "LIST", "DECLARE"):
            self.assertNotIn(hidden, text)

    def test_macros_are_expanded(self):
        self.assertEqual(words_before("int one(int x);"), "Numbers.")
        self.assertEqual(words_before("int two(int x);"), "Numbers.")

    def test_each_of_several_variables(self):
        self.assertEqual(words_before("double y = 0;"), "in metres")

    def test_topics_of_the_start_page(self):
        page = "# Start\n\n## Small boxes\n\n| header | for |\n|---|---|\n| `shop/box.h` | boxes |\n"
        self.assertEqual(make_reference.topics(page), {"shop/box.h": "small_boxes"})
        self.assertIn('@ref shop/box.h "shop/box.h"', make_reference.start_page(page))

    def test_places_of_warnings_are_those_of_the_header(self):
        lines = doxygen_lines("shop/box.h", HEADER, "shop", {})
        at = next(i for i, line in enumerate(lines) if line.text == "void bare();")
        warning = f"/x/headers/shop/box.h:{at + 1}: warning: bare"
        place = HEADER.splitlines().index("  void bare();") + 1
        found = make_reference.in_header(warning, {"/x/headers/shop/box.h": lines})
        self.assertEqual(found, f"shop/box.h:{place}: warning: bare")


if __name__ == "__main__":
    unittest.main()
