// How fast this machine can be: what the speed of a model is measured against.
#ifndef QUERN_ROOF_H
#define QUERN_ROOF_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quern_roof {
    double read_bytes;     // read from memory, bytes a second
    double float_products; // f32 multiply-adds a second
    double int8_products;  // int8 multiply-adds a second; 0: no instruction for it here
} quern_roof;

// Runs each probe a few times on so many threads and keeps the best. Returns 0,
// or -1 if there is no memory or no thread to be had.
int quern_measure_roof(int threads, quern_roof * out);

#ifdef __cplusplus
}
#endif
#endif
