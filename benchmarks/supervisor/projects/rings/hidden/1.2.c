#undef NDEBUG
#include <assert.h>

#include "ring.h"

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  ring_put(&r, 1);
  ring_put(&r, 2);
  assert(ring_peek(&r, &value) && value == 1);
  ring_take(&r, &value);
  assert(ring_peek(&r, &value) && value == 2 && ring_count(&r) == 1);
  ring_take(&r, &value);
  assert(!ring_peek(&r, &value));
  return 0;
}
