/* The C interface of the installed package: a capture of nothing, and an error. */
#include <flashlight/c.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  flashlight_scope scope = NULL;
  flashlight_capture capture = NULL;
  char* text = NULL;
  if (flashlight_c_version() < FLASHLIGHT_C_VERSION) return 1;
  if (flashlight_scope_begin(NULL, &scope) != FLASHLIGHT_OK ||
      flashlight_scope_end(scope, &capture) != FLASHLIGHT_OK ||
      flashlight_capture_graph(capture, &text) != FLASHLIGHT_OK) {
    fprintf(stderr, "%s\n", flashlight_last_error());
    return 1;
  }
  puts(text);
  flashlight_string_free(text);
  flashlight_capture_free(capture);
  return flashlight_capture_free(capture) == FLASHLIGHT_ERROR &&
                 strstr(flashlight_last_error(), "was freed") != NULL
             ? 0
             : 1;
}
