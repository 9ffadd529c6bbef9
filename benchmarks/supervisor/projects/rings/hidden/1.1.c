#undef NDEBUG
#include <assert.h>

#include "ring.h"

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  ring_put(&r, 1);
  ring_take(&r, &value);
  for (int at = 0; at < RING_SIZE; at++) assert(ring_put(&r, 10 + at));
  assert(!ring_put(&r, 99));
  for (int at = 0; at < RING_SIZE; at++) assert(ring_take(&r, &value) && value == 10 + at);
  return 0;
}
