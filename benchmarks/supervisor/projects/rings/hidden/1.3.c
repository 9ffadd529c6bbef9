#undef NDEBUG
#include <assert.h>

#include "ring.h"

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  for (int at = 0; at < 5; at++) ring_put(&r, at);
  ring_take(&r, &value);
  ring_clear(&r);
  assert(ring_count(&r) == 0 && !ring_take(&r, &value));
  assert(ring_put(&r, 3) && ring_take(&r, &value) && value == 3);
  return 0;
}
