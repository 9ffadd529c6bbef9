#undef NDEBUG
#include <assert.h>

#include "ring.h"

int main(void) {
  struct ring r = {0};
  int value = 0;
  (void)value;
  struct ring other = {0};
  for (int round = 0; round < 11; round++) {
    ring_put(&r, round);
    if (round > 3) ring_take(&r, &value);
  }
  ring_copy(&other, &r);
  for (int at = 7; at < 11; at++) assert(ring_take(&other, &value) && value == at);
  assert(ring_count(&r) == 4);
  return 0;
}
