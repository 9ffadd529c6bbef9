//@ 1.1
#undef NDEBUG
#include <assert.h>

#include "ring.h"

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  for (int at = 0; at < RING_SIZE; at++) assert(ring_put(&r, at));
  assert(!ring_put(&r, 99) && ring_count(&r) == RING_SIZE);
  return 0;
}
//@ end
