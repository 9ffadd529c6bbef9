//@ 2.2
#undef NDEBUG
#include <assert.h>

#include "ring.h"

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  struct ring other = {0};
  ring_put(&r, 7);
  ring_copy(&other, &r);
  assert(ring_take(&other, &value) && value == 7);
  return 0;
}
//@ end
