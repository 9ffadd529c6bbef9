//@ 1.2
#undef NDEBUG
#include <assert.h>

#include "ring.h"

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  assert(!ring_peek(&r, &value));
  ring_put(&r, 7);
  assert(ring_peek(&r, &value) && value == 7 && ring_count(&r) == 1);
  return 0;
}
//@ end
