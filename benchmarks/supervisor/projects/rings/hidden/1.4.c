#undef NDEBUG
#include <assert.h>

#include "sum.h"

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  for (int round = 0; round < 11; round++) {
    ring_put(&r, round);
    if (round > 3) ring_take(&r, &value);
  }
  assert(ring_sum(&r) == 7 + 8 + 9 + 10 && ring_count(&r) == 4);
  return 0;
}
