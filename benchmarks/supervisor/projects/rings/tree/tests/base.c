#undef NDEBUG
#include <assert.h>

#include "ring.h"

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  assert(ring_put(&r, 4) && ring_put(&r, 5) && ring_count(&r) == 2);
  assert(ring_take(&r, &value) && value == 4 && ring_count(&r) == 1);
  assert(ring_take(&r, &value) && !ring_take(&r, &value));
  return 0;
}
