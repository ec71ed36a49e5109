// One product of a packed weight on all threads of a graph: first the
// activations are quantised into the work buffer, then threads take chunks of
// rows and columns until none is left.
#include "kernel_traits.h"

#include "ggml-cpu-impl.h"
#include "kernel.h"
#include "traits.h"

#include <algorithm>

namespace quern::kernel {
namespace {

#if defined(QUERN_KERNELS)

// problem is a product's sizes.
struct problem {
    const format &      f;
    const ggml_tensor * x;
    int64_t             groups, blocks, columns, panels;

    problem(const format & f, const ggml_tensor * op)
        : f(f), x(op->src[1]), groups(op->src[0]->ne[1] / group_rows), blocks(op->src[0]->ne[0] / f.block),
          columns(x->ne[1] * x->ne[2] * x->ne[3]), panels((columns + panel_columns - 1) / panel_columns) {}

    int     width(int64_t panel) const { return std::min<int64_t>(panel_columns, columns - panel * panel_columns); }
    size_t  panel_at(int64_t panel) const { return panel * panel_columns * blocks * f.column; }
    size_t  work_size() const { return columns * blocks * f.column; }

    const float * column(int64_t c) const {
        const int64_t i1 = c % x->ne[1], i2 = c / x->ne[1] % x->ne[2], i3 = c / x->ne[1] / x->ne[2];
        const auto *  p  = static_cast<const char *>(x->data) + i1 * x->nb[1] + i2 * x->nb[2] + i3 * x->nb[3];
        return reinterpret_cast<const float *>(p);
    }
};

// quantize_share does this thread's part of the activations.
void quantize_share(const problem & p, const ggml_compute_params & params, uint8_t * work) {
    const int64_t all = p.columns * p.blocks;
    const int64_t end = all * (params.ith + 1) / params.nth;
    for (int64_t i = all * params.ith / params.nth; i < end;) {
        const int64_t c = i / p.blocks, panel = c / panel_columns;
        const int     width = p.width(panel);
        const float * x     = p.column(c);
        const int64_t stop  = std::min(p.blocks, end - c * p.blocks);
        for (int64_t b = i - c * p.blocks; b < stop; b++) {
            p.f.quantize(x + b * p.f.block, work + p.panel_at(panel) + b * width * p.f.column, c % panel_columns, width);
        }
        i = c * p.blocks + stop;
    }
}

// chunking divides a product: few enough groups that their weights stay in a
// core's own cache while panels pass, small enough that threads, which may be
// disturbed by others, end together.
struct chunking {
    int64_t groups, panels; // of a chunk
    int64_t across, all;    // chunks

    chunking(const problem & p, int threads) {
        constexpr size_t cache = 256 << 10;
        const int64_t    want  = 8 * threads;
        const int64_t    fit   = cache / p.f.group_bytes(p.blocks) & ~int64_t(1);

        groups = std::clamp<int64_t>(fit, 2, std::max<int64_t>(2, p.groups));
        panels = p.panels;
        while (panels > 4 && count(p) < want) {
            panels = (panels + 1) / 2;
        }
        while (groups > 2 && count(p) < want) {
            groups = (groups / 2 + 1) & ~int64_t(1);
        }
        across = (p.groups + groups - 1) / groups;
        all    = count(p);
    }

  private:
    int64_t count(const problem & p) const {
        return ((p.groups + groups - 1) / groups) * ((p.panels + panels - 1) / panels);
    }
};

// multiply_chunk takes each panel past the chunk's groups.
void multiply_chunk(const problem & p, const chunking & ch, int64_t chunk, const uint8_t * w, const uint8_t * work,
                    float * out) {
    const int64_t g0 = chunk % ch.across * ch.groups, g1 = std::min(p.groups, g0 + ch.groups);
    const int64_t p0 = chunk / ch.across * ch.panels, p1 = std::min(p.panels, p0 + ch.panels);
    const size_t  group = p.f.group_bytes(p.blocks);
    const int64_t rows  = p.groups * group_rows;
    for (int64_t panel = p0; panel < p1; panel++) {
        const int       width = p.width(panel);
        const uint8_t * act   = work + p.panel_at(panel);
        float *         to    = out + panel * panel_columns * rows;
        int64_t         g     = g0;
        if (width <= pair_columns) {
            for (; g + 2 <= g1; g += 2) {
                p.f.two[width - 1](w + g * group, p.blocks, act, to + g * group_rows, rows);
            }
        }
        for (; g < g1; g++) {
            p.f.one[width - 1](w + g * group, p.blocks, act, to + g * group_rows, rows);
        }
    }
}

class traits : public ggml::cpu::tensor_traits {
    const format & f;

  public:
    explicit traits(const format & f) : f(f) {}

    bool work_size(int, const ggml_tensor * op, size_t & size) override {
        size = problem(f, op).work_size();
        return true;
    }

    bool compute_forward(ggml_compute_params * params, ggml_tensor * op) override {
        if (op->op != GGML_OP_MUL_MAT) {
            return false;
        }
        const problem p(f, op);
        GGML_ASSERT(p.x->nb[0] == sizeof(float) && ggml_is_contiguous(op) && params->wsize >= p.work_size());
        const chunking ch(p, params->nth);
        auto *         work = static_cast<uint8_t *>(params->wdata);

        quantize_share(p, *params, work);
        if (params->ith == 0) {
            ggml_threadpool_chunk_set(params->threadpool, params->nth);
        }
        ggml_barrier(params->threadpool);
        for (int64_t c = params->ith; c < ch.all; c = ggml_threadpool_chunk_add(params->threadpool, 1)) {
            multiply_chunk(p, ch, c, static_cast<const uint8_t *>(op->src[0]->data), work, static_cast<float *>(op->data));
        }
        return true;
    }
};

struct kernels {
    const format & f;
    traits         t;
};

kernels * find(ggml_type type) {
    static kernels all[] = {
        {q4_0, traits(q4_0)}, {q4_1, traits(q4_1)}, {q5_0, traits(q5_0)}, {q5_1, traits(q5_1)},
        {q8_0, traits(q8_0)}, {q4_K, traits(q4_K)}, {q5_K, traits(q5_K)}, {q6_K, traits(q6_K)},
    };
    for (kernels & k : all) {
        if (k.f.type == type) {
            return &k;
        }
    }
    return nullptr;
}

#endif

} // namespace

#if defined(QUERN_KERNELS)

const format * find_format(ggml_type type) {
    const kernels * k = find(type);
    return k ? &k->f : nullptr;
}

ggml::cpu::tensor_traits * find_traits(ggml_type type) {
    kernels * k = find(type);
    return k ? &k->t : nullptr;
}

#else

const format * find_format(ggml_type) { return nullptr; }

ggml::cpu::tensor_traits * find_traits(ggml_type) { return nullptr; }

#endif

} // namespace quern::kernel
