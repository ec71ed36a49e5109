// Types whose blocks are 256 values with a scale, and whose parts of 16 or 32
// values have scales of their own, and maybe minima: q4_K, q5_K, q6_K.
#include "kernel_packed.h"

#if defined(QUERN_KERNELS)

#define GGML_COMMON_DECL_C
#include "ggml-common.h"

namespace quern::kernel {
namespace {

constexpr int chunks = 8; // of 32 values in a block

// A type is its block in a file, how 32 values are packed, how many values have
// a scale together, and its offset: what is taken off a packed value, 0 for a
// type with minima.
//
// A body is the block's chunks, then for each part the scales of the rows (a
// byte each), then, for each two parts, the minima of the rows (two bytes each).
template <class Block, class Packed, int Part, int Offset> struct type {
    using block                   = Block;
    using packed                  = Packed;
    static constexpr int part     = Part;
    static constexpr int offset   = Offset;
    static constexpr int parts    = 256 / Part;
    static constexpr int head     = Offset ? 32 : 64;
    static constexpr int scale_at = chunks * Packed::bytes;
    static constexpr int least_at = scale_at + parts * group_rows;
    static constexpr int body     = least_at + (Offset ? 0 : parts * group_rows);

    // A column of a panel's block: values, sums, the scale. A sum is what the
    // offset of a part's packed values adds to its sum of products, negated (32
    // bits), or the sum of a part's values (16 bits).
    static constexpr int sums = Offset ? 4 * parts : 2 * parts;
    static constexpr int column = 256 + sums + 4;
};

// part_scale is scale and minimum of part j of a q4_K or q5_K block, 6 bits
// each: those of the last four parts have their upper two bits elsewhere.
void part_scale(const uint8_t * s, int j, uint8_t & scale, uint8_t & least) {
    if (j < 4) {
        scale = s[j] & 63;
        least = s[j + 4] & 63;
    } else {
        scale = (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
        least = s[j + 4] >> 4 | (s[j] >> 6) << 4;
    }
}

template <class T, class Block> void pack_scales(const Block & b, int row, uint8_t * head, uint8_t * body) {
    memcpy(head + 2 * row, &b.d, 2);
    memcpy(head + 32 + 2 * row, &b.dmin, 2);
    for (int j = 0; j < T::parts; j++) {
        uint8_t & least = body[T::least_at + j / 2 * 2 * group_rows + 2 * row + j % 2];
        part_scale(b.scales, j, body[T::scale_at + j * group_rows + row], least);
    }
}

struct type4 : type<block_q4_K, nibbles, 32, 0> {
    static void values(const block_q4_K & b, int chunk, uint8_t * v) {
        for (int j = 0; j < 32; j++) {
            v[j] = b.qs[chunk / 2 * 32 + j] >> chunk % 2 * 4 & 15;
        }
    }
    static void scales(const block_q4_K & b, int row, uint8_t * head, uint8_t * body) {
        pack_scales<type4>(b, row, head, body);
    }
};

struct type5 : type<block_q5_K, nibbles_and_bit, 32, 0> {
    static void values(const block_q5_K & b, int chunk, uint8_t * v) {
        for (int j = 0; j < 32; j++) {
            v[j] = (b.qs[chunk / 2 * 32 + j] >> chunk % 2 * 4 & 15) | (b.qh[j] >> chunk & 1) << 4;
        }
    }
    static void scales(const block_q5_K & b, int row, uint8_t * head, uint8_t * body) {
        pack_scales<type5>(b, row, head, body);
    }
};

struct type6 : type<block_q6_K, nibbles_and_pair, 16, 32> {
    static void values(const block_q6_K & b, int chunk, uint8_t * v) {
        const int half = chunk / 4, quarter = chunk % 4;
        for (int j = 0; j < 32; j++) {
            const uint8_t low  = b.ql[64 * half + quarter % 2 * 32 + j] >> quarter / 2 * 4 & 15;
            const uint8_t high = b.qh[32 * half + j] >> 2 * quarter & 3;
            v[j]               = low | high << 4;
        }
    }
    static void scales(const block_q6_K & b, int row, uint8_t * head, uint8_t * body) {
        memcpy(head + 2 * row, &b.d, 2);
        for (int j = 0; j < parts; j++) {
            body[scale_at + j * group_rows + row] = uint8_t(b.scales[j]);
        }
    }
};

template <class T> void pack(const uint8_t * rows, size_t row_bytes, int64_t blocks, uint8_t * group) {
    uint8_t * head = group;
    uint8_t * body = group + format::line(T::head * blocks);
    for (int64_t b = 0; b < blocks; b++) {
        for (int r = 0; r < group_rows; r++) {
            const auto & src = reinterpret_cast<const typename T::block *>(rows + r * row_bytes)[b];
            T::scales(src, r, head, body);
            for (int c = 0; c < chunks; c++) {
                uint8_t v[32];
                T::values(src, c, v);
                T::packed::pack(v, r, body + c * T::packed::bytes);
            }
        }
        head += T::head;
        body += T::body;
    }
}

// farthest is the first value of the largest size, sign included.
float farthest(const float * x) {
    __m512 most = _mm512_setzero_ps();
    for (int i = 0; i < 256; i += 16) {
        most = _mm512_max_ps(_mm512_abs_ps(_mm512_loadu_ps(x + i)), most);
    }
    most = _mm512_set1_ps(_mm512_reduce_max_ps(most));
    for (int i = 0; i < 256; i += 16) {
        const unsigned at = _mm512_cmpeq_ps_mask(_mm512_abs_ps(_mm512_loadu_ps(x + i)), most);
        if (at) {
            return x[i + __builtin_ctz(at)];
        }
    }
    return 0;
}

// round_product is x times y, rounded to an integer once, as ggml's nearest_int
// comes out where multiplication and addition are fused. The product must be
// below 2^22.
__m512i round_product(__m512 x, __m512 y) {
    const __m512 magic = _mm512_set1_ps(12582912.0f); // 1.5 * 2^23: its last bit is worth 1
    return _mm512_sub_epi32(_mm512_castps_si512(_mm512_fmadd_ps(x, y, magic)), _mm512_castps_si512(magic));
}

// quantize is ggml's quantize_row_q8_K.
template <class T> void quantize(const float * x, uint8_t * block, int col, int width) {
    const float  max     = farthest(x);
    const float  inverse = max != 0 ? -127.0f / max : 0.0f, d = max != 0 ? 1 / inverse : 0.0f;
    const __m512 inv     = _mm512_set1_ps(inverse);
    uint8_t *    q       = block + 256 * col;
    uint8_t *    s       = block + 256 * width + T::sums * col;
    int          sum     = 0;
    for (int i = 0; i < 256; i += 16) {
        const __m512i v = to_bytes(round_product(_mm512_loadu_ps(x + i), inv));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(q + i), _mm512_cvtepi32_epi8(v));
        sum += _mm512_reduce_add_epi32(v);
        if ((i + 16) % T::part == 0) {
            if (T::offset) {
                store32(s + 4 * (i / T::part), -T::offset * sum);
            } else {
                const auto of_values = int16_t(sum);
                memcpy(s + 2 * (i / T::part), &of_values, 2);
            }
            sum = 0;
        }
    }
    memcpy(block + (256 + T::sums) * width + 4 * col, &d, 4);
}

// row_scales are one part's scales of the rows of a group.
template <class T> __m512 row_scales(const uint8_t * p) {
    const __m128i s = _mm_load_si128(reinterpret_cast<const __m128i *>(p));
    return _mm512_cvtepi32_ps(T::offset ? _mm512_cvtepi8_epi32(s) : _mm512_cvtepu8_epi32(s));
}

// add_part adds one part's products, lines first to last of its chunk, each
// times the scale of its row.
template <class T, int first, int last, int groups, int width>
[[gnu::always_inline]] inline void add_part(const uint8_t * chunk, size_t group, const uint8_t * scales,
                                            const typename T::packed::common (&common)[groups], const uint8_t * x,
                                            const uint8_t * sums, __m512 (&sum)[groups][width]) {
    __m512i acc[groups][width];
#pragma GCC unroll 8
    for (int c = 0; c < width; c++) {
        const __m512i start = T::offset ? _mm512_set1_epi32(load32(sums + T::sums * c)) : _mm512_setzero_si512();
        for (int g = 0; g < groups; g++) {
            acc[g][c] = start;
        }
    }
    add_lines<typename T::packed, first, last, 256>(chunk, group, common, x, acc);
    for (int g = 0; g < groups; g++) {
        const __m512 scale = row_scales<T>(scales + g * group);
#pragma GCC unroll 8
        for (int c = 0; c < width; c++) {
            sum[g][c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc[g][c]), scale, sum[g][c]);
        }
    }
}

// block_products are a block's products but for the block's scales.
template <class T, int groups, int width>
[[gnu::always_inline]] inline void block_products(const uint8_t * body, size_t group, const uint8_t * panel,
                                                  const ahead<groups> & next, int64_t block,
                                                  __m512 (&sum)[groups][width]) {
    const uint8_t * sums = panel + 256 * width;
    for (int k = 0; k < chunks; k++) {
        const uint8_t * chunk  = body + k * T::packed::bytes;
        const uint8_t * scales = body + T::scale_at + k * (32 / T::part) * group_rows;
        const uint8_t * x      = panel + 32 * k;
        next.template fetch<chunks, T::head + T::body>(block, k);
        typename T::packed::common common[groups];
        for (int g = 0; g < groups; g++) {
            common[g] = typename T::packed::common(chunk + g * group);
        }
        if constexpr (T::part == 16) {
            add_part<T, 0, 3>(chunk, group, scales, common, x, sums + 8 * k, sum);
            add_part<T, 4, 7>(chunk, group, scales + group_rows, common, x, sums + 8 * k + 4, sum);
        } else {
            add_part<T, 0, 7>(chunk, group, scales, common, x, sums, sum);
        }
    }
}

// minima is the sum over the parts of the minimum times the sum of the values.
template <class T> [[gnu::always_inline]] inline __m512 minima(const uint8_t * body, const uint8_t * sums) {
    __m512i acc = _mm512_setzero_si512();
    for (int k = 0; k < T::parts / 2; k++) {
        const auto *  p     = reinterpret_cast<const __m256i *>(body + T::least_at + 2 * k * group_rows);
        const __m512i least = _mm512_cvtepu8_epi16(_mm256_load_si256(p));
        acc                 = _mm512_dpwssd_epi32(acc, least, _mm512_set1_epi32(load32(sums + 4 * k)));
    }
    return _mm512_cvtepi32_ps(acc);
}

template <class T, int groups, int width>
void multiply(const uint8_t * w, int64_t blocks, const uint8_t * panel, float * out, int64_t stride) {
    const size_t    heads = format::line(T::head * blocks), group = heads + format::line(T::body * blocks);
    const uint8_t * head  = w;
    const uint8_t * body  = w + heads;

    const ahead<groups> next(w, group, T::head + T::body, blocks);
    __m512              sum[groups][width];
    for (int g = 0; g < groups; g++) {
        for (int c = 0; c < width; c++) {
            sum[g][c] = _mm512_setzero_ps();
        }
    }
    for (int64_t b = 0; b < blocks; b++) {
        __m512 part[groups][width];
        for (int g = 0; g < groups; g++) {
            for (int c = 0; c < width; c++) {
                part[g][c] = _mm512_setzero_ps();
            }
        }
        block_products<T>(body, group, panel, next, b, part);
        for (int g = 0; g < groups; g++) {
            const __m512 scale = load_halves(head + g * group);
#pragma GCC unroll 8
            for (int c = 0; c < width; c++) {
                const __m512 d = _mm512_set1_ps(load_float(panel + (256 + T::sums) * width + 4 * c));
                sum[g][c]      = _mm512_fmadd_ps(part[g][c], _mm512_mul_ps(scale, d), sum[g][c]);
                if (!T::offset) {
                    const __m512 least = minima<T>(body + g * group, panel + 256 * width + T::sums * c);
                    sum[g][c] = _mm512_fnmadd_ps(least, _mm512_mul_ps(load_halves(head + g * group + 32), d), sum[g][c]);
                }
            }
        }
        head += T::head;
        body += T::body;
        panel += T::column * width;
    }
    for (int g = 0; g < groups; g++) {
        for (int c = 0; c < width; c++) {
            _mm512_storeu_ps(out + c * stride + g * group_rows, sum[g][c]);
        }
    }
}

template <class T> constexpr format make(ggml_type t) {
    return {t, 256, T::head, T::body, T::column, pack<T>, quantize<T>, QUERN_PRODUCTS(multiply, T)};
}

} // namespace

extern const format q4_K = make<type4>(GGML_TYPE_Q4_K);
extern const format q5_K = make<type5>(GGML_TYPE_Q5_K);
extern const format q6_K = make<type6>(GGML_TYPE_Q6_K);

} // namespace quern::kernel

#endif
