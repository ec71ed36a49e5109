// Attention over f16 keys and values (ggml's FLASH_ATTN_EXT), for a cache whose
// cells belong to many sequences.
//
// ggml walks every cell of the window once a head and row, and skips those that
// the mask hides one by one. Here the cells that rows see are listed once, and
// rows of a prompt, each of which sees what the one before it saw and one cell
// more, go together: 64 cells at a time are widened to f32, keys turned so that a
// vector holds one dimension of 16 cells, and scores and sums are small matrix
// products in registers. The sum is the online softmax of
// https://arxiv.org/abs/2112.05682, in f32.
//
// A row's terms are added in the same order however many rows go together, so
// that a token's result does not depend on how a prompt was cut into batches.
#include "kernel_attention.h"

#include "ggml-cpu-impl.h"
#include "kernel.h"
#include "traits.h"

#if defined(QUERN_KERNELS)
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>
#endif

namespace quern::kernel {

#if defined(QUERN_KERNELS)
namespace {

constexpr int lanes   = 16;
constexpr int tile    = 64; // cells widened at once
constexpr int at_once = 64; // queries (rows times the heads that share keys) that use them
constexpr int max_dim = 256;

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
        return dim % lanes == 0 && dim <= max_dim && v->ne[0] == dim && bias == 0 && cap == 0 && !out->src[4] && mask &&
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

// sight is which cells a row sees, a bit a cell. The mask is 0 or -infinity.
using sight = std::vector<uint32_t>;

void look(const problem & p, int64_t row, int64_t stream, sight & out) {
    const uint16_t * m      = at<uint16_t>(p.mask, row, 0, p.mask->ne[3] == 1 ? 0 : stream);
    const __m512i    hidden = _mm512_set1_epi16(short(0xfc00));
    out.resize((p.cells + 31) / 32);
    for (int64_t c = 0; c < p.cells; c += 32) {
        const __mmask32 in = p.cells - c >= 32 ? ~__mmask32(0) : (__mmask32(1) << (p.cells - c)) - 1;
        out[c / 32]        = _mm512_mask_cmpneq_epi16_mask(in, _mm512_maskz_loadu_epi16(in, m + c), hidden);
    }
}

// group is rows that are done together: the cells that any of them sees, in the
// order in which they come into sight, and of each tile of them the row's own.
struct group {
    int64_t               row;
    int                   rows;
    std::vector<int32_t>  cells;
    std::vector<uint64_t> seen[at_once];

    int tiles() const { return int(cells.size() + tile - 1) / tile; }
};

// A row joins the group of those before it if it sees at most one cell that the
// last of them did not, and hides at most one that it saw: a prompt's rows do,
// with a sliding window, too.
bool joins(const sight & last, const sight & next) {
    int gained = 0, lost = 0;
    for (size_t i = 0; i < next.size() && gained <= 1 && lost <= 1; i++) {
        gained += __builtin_popcount(next[i] & ~last[i]);
        lost   += __builtin_popcount(last[i] & ~next[i]);
    }
    return gained <= 1 && lost <= 1;
}

// mark notes which cells of the group a row sees: those in sight by then, the
// first so many, unless it hides some that rows before it saw.
void mark(const sight & now, bool hides, size_t so_far, group & g, int r) {
    std::vector<uint64_t> & seen = g.seen[r];
    seen.assign(g.tiles(), 0);
    if (!hides) {
        for (size_t i = 0; i < so_far; i += tile) {
            seen[i / tile] = so_far - i < tile ? (uint64_t(1) << (so_far - i)) - 1 : ~uint64_t(0);
        }
        return;
    }
    for (size_t i = 0; i < so_far; i++) {
        const int32_t c = g.cells[i];
        seen[i / tile] |= uint64_t(now[c / 32] >> (c % 32) & 1) << (i % tile);
    }
}

// gather makes the group of row and of those up to end that join it.
void gather(const problem & p, int64_t row, int64_t end, int64_t stream, group & g) {
    static thread_local sight sights[at_once], known;
    size_t                    so_far[at_once];
    bool                      hides[at_once];
    g.row  = row;
    g.rows = 0;
    g.cells.clear();
    known.assign((p.cells + 31) / 32, 0);
    for (; row < end; row++, g.rows++) {
        sight & now = sights[g.rows];
        look(p, row, stream, now);
        if (g.rows && !joins(sights[g.rows - 1], now)) {
            break;
        }
        uint32_t hidden = 0;
        for (size_t i = 0; i < now.size(); i++) {
            hidden |= known[i] & ~now[i];
            for (uint32_t fresh = now[i] & ~known[i]; fresh; fresh &= fresh - 1) {
                g.cells.push_back(int32_t(i * 32) + __builtin_ctz(fresh));
            }
            known[i] |= now[i];
        }
        hides[g.rows]  = hidden;
        so_far[g.rows] = g.cells.size();
    }
    for (int r = 0; r < g.rows; r++) {
        mark(sights[r], hides[r], so_far[r], g, r);
    }
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

// turn transposes 16 vectors of 16.
inline void turn(__m512 (&r)[lanes]) {
    __m512 t[lanes];
    for (int i = 0; i < lanes; i += 2) {
        t[i]     = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < lanes; i += 4) {
        for (int j = 0; j < 2; j++) {
            const __m512d x = _mm512_castps_pd(t[i + j]), y = _mm512_castps_pd(t[i + j + 2]);
            r[i + 2 * j]     = _mm512_castpd_ps(_mm512_unpacklo_pd(x, y));
            r[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, y));
        }
    }
    for (int i = 0; i < 4; i++) {
        t[i]      = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4]  = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
        t[i + 8]  = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    }
    for (int i = 0; i < 8; i++) {
        r[i]     = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
    }
}

inline __m512 widened(const uint16_t * p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) p)); }

// room is what a thread works in.
struct room {
    alignas(64) float key[max_dim * tile];     // [dim][tile]
    alignas(64) float value[tile * max_dim];   // [tile][dim]
    alignas(64) float query[at_once * max_dim]; // [query][dim], scaled
    alignas(64) float sum[at_once * max_dim];   // [query][dim]
    alignas(64) float share[at_once * tile];    // [query][tile]: scores, then weights
    alignas(64) float total[at_once * lanes];
    float             top[at_once];

    // load widens n cells. The keys of a last vector that they don't fill are zero.
    void load(const problem & p, int64_t head, int64_t stream, const int32_t * cell, int n) {
        for (int c0 = 0; c0 < n; c0 += lanes) {
            for (int64_t d = 0; d < p.dim; d += lanes) {
                __m512 r[lanes];
                for (int c = 0; c < lanes; c++) {
                    r[c] = c0 + c < n ? widened(at<uint16_t>(p.k, cell[c0 + c], head, stream) + d) : _mm512_setzero_ps();
                }
                turn(r);
                for (int i = 0; i < lanes; i++) {
                    _mm512_store_ps(key + (d + i) * tile + c0, r[i]);
                }
            }
        }
        for (int c = 0; c < n; c++) {
            const uint16_t * from = at<uint16_t>(p.v, cell[c], head, stream);
            for (int64_t d = 0; d < p.dim; d += lanes) {
                _mm512_store_ps(value + c * p.dim + d, widened(from + d));
            }
        }
    }
};

// fetch_ahead brings n cells closer while those before them are worked on. Not
// inlined it would count as a call without effects and be left out.
[[gnu::always_inline]] inline void fetch_ahead(const problem & p, int64_t head, int64_t stream, const int32_t * cell, int n) {
    constexpr int64_t line = 64 / sizeof(uint16_t);
    for (int c = 0; c < n; c++) {
        for (int64_t d = 0; d < p.dim; d += line) {
            _mm_prefetch(at<uint16_t>(p.k, cell[c], head, stream) + d, _MM_HINT_T1);
            _mm_prefetch(at<uint16_t>(p.v, cell[c], head, stream) + d, _MM_HINT_T1);
        }
    }
}

// score multiplies Q queries with the keys of V vectors of cells.
template <int Q, int V> void score(room & m, int64_t dim, int query) {
    __m512        acc[Q][V];
    const float * q = m.query + query * dim;
    for (auto & a : acc) {
        for (__m512 & v : a) {
            v = _mm512_setzero_ps();
        }
    }
    for (int64_t d = 0; d < dim; d++) {
        __m512 k[V];
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) {
            k[v] = _mm512_load_ps(m.key + d * tile + v * lanes);
        }
#pragma GCC unroll 6
        for (int i = 0; i < Q; i++) {
            const __m512 b = _mm512_set1_ps(q[i * dim + d]);
#pragma GCC unroll 4
            for (int v = 0; v < V; v++) {
                acc[i][v] = _mm512_fmadd_ps(b, k[v], acc[i][v]);
            }
        }
    }
    for (int i = 0; i < Q; i++) {
        for (int v = 0; v < V; v++) {
            _mm512_store_ps(m.share + (query + i) * tile + v * lanes, acc[i][v]);
        }
    }
}

// add adds n cells' values by weight to V vectors of the sums of Q queries.
template <int Q, int V> void add(room & m, int64_t dim, int query, int64_t from, int n) {
    __m512        acc[Q][V];
    float *       sum = m.sum + query * dim + from;
    const float * w   = m.share + query * tile;
    for (int i = 0; i < Q; i++) {
        for (int v = 0; v < V; v++) {
            acc[i][v] = _mm512_load_ps(sum + i * dim + v * lanes);
        }
    }
    for (int c = 0; c < n; c++) {
        __m512 x[V];
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) {
            x[v] = _mm512_load_ps(m.value + c * dim + from + v * lanes);
        }
#pragma GCC unroll 6
        for (int i = 0; i < Q; i++) {
            const __m512 b = _mm512_set1_ps(w[i * tile + c]);
#pragma GCC unroll 4
            for (int v = 0; v < V; v++) {
                acc[i][v] = _mm512_fmadd_ps(b, x[v], acc[i][v]);
            }
        }
    }
    for (int i = 0; i < Q; i++) {
        for (int v = 0; v < V; v++) {
            _mm512_store_ps(sum + i * dim + v * lanes, acc[i][v]);
        }
    }
}

constexpr int max_queries = 6, max_vectors = 4; // 24 sums, 4 vectors and a factor fill the registers

using score_fn = void (*)(room &, int64_t, int);
using add_fn   = void (*)(room &, int64_t, int, int64_t, int);
#define QUERN_BY_VECTORS(f, q) {f<q, 1>, f<q, 2>, f<q, 3>, f<q, 4>}
#define QUERN_BY_SIZE(f)                                                                                               \
    {QUERN_BY_VECTORS(f, 1), QUERN_BY_VECTORS(f, 2), QUERN_BY_VECTORS(f, 3),                                           \
     QUERN_BY_VECTORS(f, 4), QUERN_BY_VECTORS(f, 5), QUERN_BY_VECTORS(f, 6)}
constexpr score_fn scores[max_queries][max_vectors] = QUERN_BY_SIZE(score);
constexpr add_fn   adds[max_queries][max_vectors]   = QUERN_BY_SIZE(add);

// weigh makes weights of the scores of one query's n cells, and rescales its sum
// when one is above all before.
void weigh(room & m, int64_t dim, int query, int n, uint64_t seen) {
    float *   share   = m.share + query * tile;
    const int vectors = (n + lanes - 1) / lanes;
    __m512    best    = _mm512_set1_ps(-INFINITY);
    for (int v = 0; v < vectors; v++) {
        best = _mm512_mask_max_ps(best, __mmask16(seen >> (v * lanes)), best, _mm512_load_ps(share + v * lanes));
    }
    const float top   = std::max(m.top[query], _mm512_reduce_max_ps(best));
    __m512      total = _mm512_load_ps(m.total + query * lanes);
    if (top > m.top[query]) {
        const __m512 less = _mm512_set1_ps(expf(m.top[query] - top));
        total             = _mm512_mul_ps(total, less);
        for (int64_t d = 0; d < dim; d += lanes) {
            float * at = m.sum + query * dim + d;
            _mm512_store_ps(at, _mm512_mul_ps(_mm512_load_ps(at), less));
        }
        m.top[query] = top;
    }
    for (int v = 0; v < vectors; v++) {
        const __m512 x = exp_neg(_mm512_sub_ps(_mm512_load_ps(share + v * lanes), _mm512_set1_ps(top)));
        const __m512 w = _mm512_maskz_mov_ps(__mmask16(seen >> (v * lanes)), x);
        total          = _mm512_add_ps(total, w);
        _mm512_store_ps(share + v * lanes, w);
    }
    _mm512_store_ps(m.total + query * lanes, total);
}

// run does n heads from h0 on, which share the keys of head_kv, of a group's rows.
// Query i is head i%n of row i/n.
void run(room & m, const problem & p, const group & g, int64_t stream, int64_t h0, int n, int64_t head_kv) {
    const int    queries = g.rows * n;
    const __m512 scale   = _mm512_set1_ps(p.scale);
    for (int i = 0; i < queries; i++) {
        const float * q = at<float>(p.q, g.row + i / n, h0 + i % n, stream);
        for (int64_t d = 0; d < p.dim; d += lanes) {
            _mm512_store_ps(m.query + i * p.dim + d, _mm512_mul_ps(scale, _mm512_loadu_ps(q + d)));
            _mm512_store_ps(m.sum + i * p.dim + d, _mm512_setzero_ps());
        }
        _mm512_store_ps(m.total + i * lanes, _mm512_setzero_ps());
        m.top[i] = -INFINITY;
    }
    const int parts = (queries + max_queries - 1) / max_queries;
    for (int t = 0; t < g.tiles(); t++) {
        const int       left  = int(g.cells.size()) - t * tile, cells = std::min(tile, left);
        const int32_t * first = g.cells.data() + t * tile;
        m.load(p, head_kv, stream, first, cells);
        fetch_ahead(p, head_kv, stream, first + cells, std::min(tile, left - cells));
        for (int part = 0; part < parts; part++) {
            const int from = queries * part / parts, width = queries * (part + 1) / parts - from;
            scores[width - 1][(cells - 1) / lanes](m, p.dim, from);
            for (int i = from; i < from + width; i++) {
                weigh(m, p.dim, i, cells, g.seen[i / n][t]);
            }
            for (int64_t d = 0; d < p.dim; d += max_vectors * lanes) {
                const int64_t vectors = std::min<int64_t>(max_vectors, (p.dim - d) / lanes);
                adds[width - 1][vectors - 1](m, p.dim, from, d, cells);
            }
        }
    }
    for (int i = 0; i < queries; i++) {
        const float  total = _mm512_reduce_add_ps(_mm512_load_ps(m.total + i * lanes));
        const __m512 by    = _mm512_set1_ps(total > 0 ? 1 / total : 0);
        float *      out   = static_cast<float *>(p.out->data) +
                      ((stream * p.rows + g.row + i / n) * p.heads + h0 + i % n) * p.dim;
        for (int64_t d = 0; d < p.dim; d += lanes) {
            _mm512_storeu_ps(out + d, _mm512_mul_ps(by, _mm512_load_ps(m.sum + i * p.dim + d)));
        }
    }
}

class traits : public ggml::cpu::tensor_traits {
  public:
    bool work_size(int, const ggml_tensor *, size_t &) override { return false; } // ggml's own is enough

    // A unit of work is some rows and a key head; threads take them until none is
    // left. Of few rows a unit is one, so that each thread has some.
    bool compute_forward(ggml_compute_params * params, ggml_tensor * op) override {
        const problem p(op);
        if (!p.ours()) {
            return false;
        }
        static thread_local const auto m = std::make_unique<room>();
        static thread_local group      g;
        const int64_t heads = std::min<int64_t>(p.group, at_once);
        const int64_t rows  = std::clamp<int64_t>(p.rows * p.heads_kv / (8 * params->nth), 1, at_once / heads);
        const int64_t slices = (p.rows + rows - 1) / rows;
        if (params->ith == 0) {
            ggml_threadpool_chunk_set(params->threadpool, params->nth);
        }
        ggml_barrier(params->threadpool);
        for (int64_t u = params->ith; u < p.streams * slices * p.heads_kv; u = ggml_threadpool_chunk_add(params->threadpool, 1)) {
            const int64_t head = u % p.heads_kv, slice = u / p.heads_kv % slices, stream = u / p.heads_kv / slices;
            const int64_t end  = std::min(p.rows, (slice + 1) * rows);
            for (int64_t row = slice * rows; row < end; row += g.rows) {
                gather(p, row, end, stream, g);
                for (int64_t h = 0; h < p.group; h += heads) {
                    run(*m, p, g, stream, head * p.group + h, int(std::min(heads, p.group - h)), head);
                }
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
