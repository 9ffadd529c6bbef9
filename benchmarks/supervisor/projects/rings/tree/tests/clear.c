//@ 1.3
#undef NDEBUG
#include <assert.h>

#include "ring.h"

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  ring_put(&r, 7);
  ring_clear(&r);
  assert(ring_count(&r) == 0);
  return 0;
}
//@ end
