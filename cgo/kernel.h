// Matrix products for CPUs with AVX512-VNNI, for weight types that ggml
// multiplies row by row. Weights are packed when a model is loaded, so that a
// register holds 4 values of each of 16 rows; they keep their bits and what
// they mean, and activations are quantised as ggml does it.
#pragma once

#include "ggml.h"

#include <cstddef>
#include <cstdint>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && \
    defined(__AVX512VNNI__) && defined(__F16C__) && defined(__BMI2__)
#define QUERN_KERNELS 1
#endif

struct ggml_backend_buffer_type;

namespace quern {

// kernels_register offers the kernels to ggml, if this build has them. It has
// to come before the first question about the CPU device's buffer types.
void kernels_register();

// kernels_buffer_type is where their weights live, nullptr without kernels.
ggml_backend_buffer_type * kernels_buffer_type();

// kernels_off keeps weights that this thread loads away from them.
struct kernels_off {
    explicit kernels_off(bool off);
    ~kernels_off();
    kernels_off(const kernels_off &)             = delete;
    kernels_off & operator=(const kernels_off &) = delete;

  private:
    bool outer;
};

namespace kernel {

constexpr int group_rows    = 16; // rows packed together
constexpr int panel_columns = 8;  // activation columns multiplied together
constexpr int pair_columns  = 4;  // up to so many, two groups go together

// A product multiplies the groups at w by all columns of a panel:
// out[c*stride + row].
using product = void (*)(const uint8_t * w, int64_t blocks, const uint8_t * panel, float * out, int64_t stride);

// format is a weight type: how it is packed and multiplied.
//
// A group of rows is its heads (scales), one a block, then its bodies (values),
// one a block, each part rounded up to a cache line. A panel is a sequence of
// blocks; a block holds the values of its columns one after the other and then
// their scales.
struct format {
    ggml_type type;
    int       block;      // values of a row that share a scale
    size_t    head, body; // bytes of a block of a group
    size_t    column;     // bytes of a block of an activation column

    void (*pack)(const uint8_t * rows, size_t row_bytes, int64_t blocks, uint8_t * group);
    void (*quantize)(const float * x, uint8_t * block, int col, int width);

    product one[panel_columns]; // by width - 1
    product two[pair_columns];

    size_t head_bytes(int64_t blocks) const { return line(head * blocks); }
    size_t group_bytes(int64_t blocks) const { return head_bytes(blocks) + line(body * blocks); }

    static constexpr size_t line(size_t n) { return (n + 63) / 64 * 64; }
};

const format * find_format(ggml_type type); // nullptr: not ours

extern const format q4_0, q4_1, q5_0, q5_1, q8_0, q4_K, q5_K, q6_K;

} // namespace kernel
} // namespace quern
