// Test and benchmark support: one product of a weight matrix through a ggml
// graph, with ggml's kernels or ours.
#ifndef QUERN_KERNEL_PRODUCT_H
#define QUERN_KERNEL_PRODUCT_H

#include "shim.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    QUERN_WEIGHTS_PLAIN    = 0, // as a file has them
    QUERN_WEIGHTS_KERNELS  = 1, // packed for our kernels
    QUERN_WEIGHTS_REPACKED = 2, // packed for ggml's
};

typedef struct quern_product quern_product;

// Quantises rows*k weights to the ggml type of that name. QUERN_UNSUPPORTED if
// the type has no such kernels in this build.
int  quern_product_new(const char * type, int64_t k, int64_t rows, int64_t columns, int threads, int where,
                       const float * weights, quern_product ** out, quern_error * err);
void quern_product_free(quern_product * p);
void quern_product_input(quern_product * p, const float * x); // [columns][k]
int  quern_product_run(quern_product * p, int times);
void quern_product_output(const quern_product * p, float * y);  // [columns][rows]
void quern_product_weights(const quern_product * p, float * w); // [rows][k], as quantised
size_t quern_product_weight_bytes(const quern_product * p);

#ifdef __cplusplus
}
#endif
#endif
