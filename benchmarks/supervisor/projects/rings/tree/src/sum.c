//@ 1.4
#include "sum.h"

long ring_sum(const struct ring *r) {
  long sum = 0;
  for (int at = 0; at < r->count; at++) sum += r->values[(r->first + at) % RING_SIZE];
  return sum;
}
//@ half
#include "sum.h"

long ring_sum(const struct ring *r) {
  long sum = 0;
  for (int at = 0; at < r->count; at++) sum += r->values[at];
  return sum;
}
//@ end
