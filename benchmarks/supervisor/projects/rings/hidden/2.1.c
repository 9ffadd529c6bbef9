#undef NDEBUG
#include <assert.h>

#include "largest.h"

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  assert(!ring_largest(&r, &value));
  for (int round = 0; round < 11; round++) {
    ring_put(&r, -round);
    if (round > 3) ring_take(&r, &value);
  }
  assert(ring_largest(&r, &value) && value == -7);
  return 0;
}
