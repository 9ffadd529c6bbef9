//@ 2.1
#include "largest.h"

int ring_largest(const struct ring *r, int *value) {
  if (r->count == 0) return 0;
  *value = r->values[r->first];
  for (int at = 1; at < r->count; at++) {
    int next = r->values[(r->first + at) % RING_SIZE];
    if (next > *value) *value = next;
  }
  return 1;
}
//@ half
#include "largest.h"

int ring_largest(const struct ring *r, int *value) {
  *value = 0;
  for (int at = 0; at < r->count; at++)
    if (r->values[at] > *value) *value = r->values[at];
  return 1;
}
//@ end
