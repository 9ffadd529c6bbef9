#undef NDEBUG
#include <assert.h>

#include "ring.h"

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  for (int round = 0; round < 20; round++) {
    assert(ring_put(&r, round) && ring_put(&r, -round));
    assert(ring_take(&r, &value) && value == round);
    assert(ring_take(&r, &value) && value == -round);
  }
  assert(ring_count(&r) == 0 && !ring_take(&r, &value));
  return 0;
}
