// Attention over f16 keys and values (ggml's FLASH_ATTN_EXT), for a cache whose
// cells belong to many sequences.
//
// ggml walks every cell of the window once a head and row, and skips those that
// the mask hides one by one. Here a row's visible cells are listed once; then 16
// cells at a time are widened to f32 once for all heads that share them, and
// their scores, exponentials and sums are vectors. The sum is the online softmax
// of https://arxiv.org/abs/2112.05682, in f32.
#include "kernel_attention.h"

#include "ggml-cpu-impl.h"
#include "kernel.h"
#include "traits.h"

#if defined(QUERN_KERNELS)
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
#endif

namespace quern::kernel {

#if defined(QUERN_KERNELS)
namespace {

constexpr int lanes     = 16;
constexpr int max_group = 16; // heads that share keys, handled at once
constexpr int max_dim   = 128;

struct problem {
    const ggml_tensor *q, *k, *v, *mask, *out;
    int64_t            dim, rows, heads, heads_kv, group, cells, streams;
    float              scale;

    explicit problem(const ggml_tensor * op)
        : q(op->src[0]), k(op->src[1]), v(op->src[2]), mask(op->src[3]), out(op), dim(q->ne[0]), rows(q->ne[1]),
          heads(q->ne[2]), heads_kv(k->ne[2]), group(heads_kv ? heads / heads_kv : 0), cells(k->ne[1]), streams(q->ne[3]) {
        memcpy(&scale, op->op_params, sizeof(scale));
    }

    bool ours() const {
        float bias, cap;
        memcpy(&bias, reinterpret_cast<const float *>(out->op_params) + 1, sizeof(bias));
        memcpy(&cap, reinterpret_cast<const float *>(out->op_params) + 2, sizeof(cap));
        return (dim == 64 || dim == 128) && v->ne[0] == dim && bias == 0 && cap == 0 && !out->src[4] && mask &&
               mask->type == GGML_TYPE_F16 && mask->nb[0] == 2 && mask->ne[2] == 1 &&
               (mask->ne[3] == 1 || mask->ne[3] == streams) &&
               q->type == GGML_TYPE_F32 && k->type == GGML_TYPE_F16 && v->type == GGML_TYPE_F16 && q->nb[0] == 4 &&
               k->nb[0] == 2 && v->nb[0] == 2 && k->ne[3] == streams && v->ne[3] == streams &&
               v->ne[2] == heads_kv && v->ne[1] == cells && heads % heads_kv == 0 && out->type == GGML_TYPE_F32 &&
               ggml_is_contiguous(out);
    }
};

template <typename T> const T * at(const ggml_tensor * t, int64_t i1, int64_t i2, int64_t i3) {
    return reinterpret_cast<const T *>(static_cast<const char *>(t->data) + i1 * t->nb[1] + i2 * t->nb[2] + i3 * t->nb[3]);
}

// visible lists the cells that a row sees. The mask is 0 or -infinity.
int list_visible(const problem & p, int64_t row, int64_t stream, int32_t * cell) {
    const uint16_t * m      = at<uint16_t>(p.mask, row, 0, p.mask->ne[3] == 1 ? 0 : stream);
    const __m512i    hidden = _mm512_set1_epi16(short(0xfc00));
    int              n      = 0;
    for (int64_t c = 0; c < p.cells; c += 32) {
        const __mmask32 in   = p.cells - c >= 32 ? ~__mmask32(0) : (__mmask32(1) << (p.cells - c)) - 1;
        uint32_t        seen = _mm512_mask_cmpneq_epi16_mask(in, _mm512_maskz_loadu_epi16(in, m + c), hidden);
        for (; seen; seen &= seen - 1) {
            cell[n++] = int32_t(c) + __builtin_ctz(seen);
        }
    }
    return n;
}

// exp for x <= 0: 2^n times a polynomial on [-ln2/2, ln2/2], within 2 ulp.
inline __m512 exp_neg(__m512 x) {
    x              = _mm512_max_ps(x, _mm512_set1_ps(-87.0f));
    const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), _MM_FROUND_TO_NEAREST_INT);
    __m512       r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
    r              = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
    __m512 y       = _mm512_set1_ps(1.0f / 720);
    for (float c : {1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) {
        y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(c));
    }
    return _mm512_scalef_ps(y, n);
}

inline __m512 merge(__m512 a, __m512 b) { return _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)); }

inline __m512 merge2(__m512 a, __m512 b) {
    const __m512d x = _mm512_castps_pd(a), y = _mm512_castps_pd(b);
    return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)), _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
}

inline __m512 merge4(__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

// sums adds each of 16 vectors up: lane i of the result is the sum of a[i].
inline __m512 sums(const __m512 * a) {
    __m512 four[4];
    for (int i = 0; i < 4; i++) {
        four[i] = merge2(merge(a[4 * i], a[4 * i + 1]), merge(a[4 * i + 2], a[4 * i + 3]));
    }
    return merge4(merge4(four[0], four[1]), merge4(four[2], four[3]));
}

// state is the running softmax of the heads that share keys.
template <int N> struct state {
    alignas(64) float q[max_group][N * lanes]; // scaled
    alignas(64) float sum[max_group][N * lanes];
    alignas(64) float total[max_group][lanes];
    float             top[max_group];
};

// widen reads 16 rows of halves; past n it repeats the last.
template <int N>
void widen(const ggml_tensor * t, int64_t head, int64_t stream, const int32_t * cell, int n, float (*to)[N * lanes]) {
    for (int c = 0; c < lanes; c++) {
        const uint16_t * from = at<uint16_t>(t, cell[std::min(c, n - 1)], head, stream);
        for (int j = 0; j < N; j++) {
            _mm512_store_ps(to[c] + j * lanes, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) (from + j * lanes))));
        }
    }
}

// attend adds n <= 16 cells to the softmax of one head.
template <int N> void attend(state<N> & s, int h, const float (*k)[N * lanes], const float (*v)[N * lanes], int n) {
    __m512 dot[lanes];
    for (int c = 0; c < lanes; c++) {
        dot[c] = _mm512_mul_ps(_mm512_load_ps(s.q[h]), _mm512_load_ps(k[c]));
        for (int j = 1; j < N; j++) {
            dot[c] = _mm512_fmadd_ps(_mm512_load_ps(s.q[h] + j * lanes), _mm512_load_ps(k[c] + j * lanes), dot[c]);
        }
    }
    const __mmask16 in    = __mmask16((1u << n) - 1);
    const __m512    score = sums(dot);
    const float     best  = _mm512_mask_reduce_max_ps(in, score);
    __m512          total = _mm512_load_ps(s.total[h]);
    __m512          sum[N];
    for (int j = 0; j < N; j++) {
        sum[j] = _mm512_load_ps(s.sum[h] + j * lanes);
    }
    if (best > s.top[h]) {
        const __m512 less = _mm512_set1_ps(expf(s.top[h] - best));
        total             = _mm512_mul_ps(total, less);
        for (int j = 0; j < N; j++) {
            sum[j] = _mm512_mul_ps(sum[j], less);
        }
        s.top[h] = best;
    }
    const __m512 share = _mm512_maskz_mov_ps(in, exp_neg(_mm512_sub_ps(score, _mm512_set1_ps(s.top[h]))));
    alignas(64) float w[lanes];
    _mm512_store_ps(w, share);
    for (int c = 0; c < n; c++) {
        const __m512 wc = _mm512_set1_ps(w[c]);
        for (int j = 0; j < N; j++) {
            sum[j] = _mm512_fmadd_ps(wc, _mm512_load_ps(v[c] + j * lanes), sum[j]);
        }
    }
    _mm512_store_ps(s.total[h], _mm512_add_ps(total, share));
    for (int j = 0; j < N; j++) {
        _mm512_store_ps(s.sum[h] + j * lanes, sum[j]);
    }
}

// run does the heads [h0,h0+n) of one row of a stream; they share the keys of head_kv.
template <int N>
void run(const problem & p, int64_t row, int64_t stream, int64_t h0, int n, int64_t head_kv, const int32_t * cell, int seen) {
    state<N> s;
    alignas(64) float k[lanes][N * lanes], v[lanes][N * lanes];
    const __m512 scale = _mm512_set1_ps(p.scale);
    for (int h = 0; h < n; h++) {
        const float * q = at<float>(p.q, row, h0 + h, stream);
        for (int j = 0; j < N; j++) {
            _mm512_store_ps(s.q[h] + j * lanes, _mm512_mul_ps(scale, _mm512_loadu_ps(q + j * lanes)));
            _mm512_store_ps(s.sum[h] + j * lanes, _mm512_setzero_ps());
        }
        _mm512_store_ps(s.total[h], _mm512_setzero_ps());
        s.top[h] = -INFINITY;
    }
    for (int c = 0; c < seen; c += lanes) {
        const int width = std::min(lanes, seen - c);
        widen<N>(p.k, head_kv, stream, cell + c, width, k);
        widen<N>(p.v, head_kv, stream, cell + c, width, v);
        for (int h = 0; h < n; h++) {
            attend<N>(s, h, k, v, width);
        }
    }
    for (int h = 0; h < n; h++) {
        const float  total = _mm512_reduce_add_ps(_mm512_load_ps(s.total[h]));
        const __m512 by    = _mm512_set1_ps(total > 0 ? 1 / total : 0);
        float *      out   = static_cast<float *>(p.out->data) + ((stream * p.rows + row) * p.heads + h0 + h) * p.dim;
        for (int j = 0; j < N; j++) {
            _mm512_storeu_ps(out + j * lanes, _mm512_mul_ps(by, _mm512_load_ps(s.sum[h] + j * lanes)));
        }
    }
}

class traits : public ggml::cpu::tensor_traits {
  public:
    bool work_size(int, const ggml_tensor *, size_t &) override { return false; } // ggml's own is enough

    // A unit of work is a row and a key head; threads take them until none is left.
    bool compute_forward(ggml_compute_params * params, ggml_tensor * op) override {
        const problem p(op);
        if (!p.ours()) {
            return false;
        }
        static thread_local std::vector<int32_t> cells;
        cells.resize(std::max<size_t>(cells.size(), p.cells));
        if (params->ith == 0) {
            ggml_threadpool_chunk_set(params->threadpool, params->nth);
        }
        ggml_barrier(params->threadpool);
        int64_t listed = -1;
        int     seen   = 0;
        for (int64_t u = params->ith; u < p.streams * p.rows * p.heads_kv; u = ggml_threadpool_chunk_add(params->threadpool, 1)) {
            const int64_t at = u / p.heads_kv, row = at % p.rows, stream = at / p.rows, head = u % p.heads_kv;
            if (at != listed) {
                seen   = list_visible(p, row, stream, cells.data());
                listed = at;
            }
            for (int64_t h = 0; h < p.group; h += max_group) {
                const int n = int(std::min<int64_t>(max_group, p.group - h));
                (p.dim == 64 ? run<4> : run<8>) (p, row, stream, head * p.group + h, n, head, cells.data(), seen);
            }
        }
        return true;
    }
};

} // namespace

ggml::cpu::tensor_traits * attention_traits() {
    static traits t;
    return &t;
}

#else

ggml::cpu::tensor_traits * attention_traits() { return nullptr; }

#endif

} // namespace quern::kernel
