//@ 2.1
#undef NDEBUG
#include <assert.h>

#include "largest.h"

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  ring_put(&r, -7);
  assert(ring_largest(&r, &value) && value == -7);
  return 0;
}
//@ end
