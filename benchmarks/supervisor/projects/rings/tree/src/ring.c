#include "ring.h"

int ring_count(const struct ring *r) { return r->count; }

int ring_put(struct ring *r, int value) {
  //@ 1.1
  if (r->count == RING_SIZE) return 0;
  r->values[(r->first + r->count) % RING_SIZE] = value;
  r->count++;
  return 1;
  //@ half
  r->values[(r->first + r->count) % RING_SIZE] = value;
  if (r->count == RING_SIZE) return 0;
  r->count++;
  return 1;
  //@ before
  r->values[(r->first + r->count) % RING_SIZE] = value;
  r->count++;
  return 1;
  //@ end
}

//@ 0
int ring_take(struct ring *r, int *value) {
  if (r->count == 0) return 0;
  *value = r->values[r->first];
  r->first = (r->first + 1) % RING_SIZE;
  r->count--;
  return 1;
}
//@ half
int ring_take(struct ring *r, int *value) {
  *value = r->values[r->first];
  r->first = r->first + 1;
  r->count--;
  return 1;
}
//@ end
//@ 1.2

int ring_peek(const struct ring *r, int *value) {
  if (r->count == 0) return 0;
  *value = r->values[r->first];
  return 1;
}
//@ half

int ring_peek(const struct ring *r, int *value) {
  *value = r->values[0];
  return 1;
}
//@ end
//@ 1.3

void ring_clear(struct ring *r) {
  r->first = 0;
  r->count = 0;
}
//@ half

void ring_clear(struct ring *r) {
  r->first = 0;
}
//@ end
//@ 2.2

void ring_copy(struct ring *to, const struct ring *from) {
  *to = *from;
}
//@ half

void ring_copy(struct ring *to, const struct ring *from) {
  to->count = from->count;
}
//@ end
