//@ 1.4
#undef NDEBUG
#include <assert.h>

#include "sum.h"

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  ring_put(&r, 7);
  ring_put(&r, 8);
  assert(ring_sum(&r) == 15);
  return 0;
}
//@ end
