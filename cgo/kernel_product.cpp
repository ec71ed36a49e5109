#include "kernel_product.h"

#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "kernel.h"
#include "shim_impl.h"
#include "traits.h"

#include <cstring>

using namespace quern;

struct quern_product {
    ggml_context *        ctx     = nullptr;
    ggml_backend_t        backend = nullptr;
    ggml_threadpool *     pool    = nullptr;
    ggml_backend_buffer_t weights = nullptr, rest = nullptr;
    ggml_tensor *         w = nullptr, * x = nullptr, * y = nullptr;
    ggml_cgraph *         graph = nullptr;
    std::vector<uint8_t>  quantized;

    ~quern_product() {
        ggml_backend_buffer_free(weights);
        ggml_backend_buffer_free(rest);
        if (backend) {
            ggml_backend_free(backend);
        }
        ggml_threadpool_free(pool);
        ggml_free(ctx);
    }
};

static ggml_type type_named(const char * name) {
    for (int t = 0; t < GGML_TYPE_COUNT; t++) {
        const char * n = ggml_type_name(ggml_type(t));
        if (n && !strcmp(n, name)) {
            return ggml_type(t);
        }
    }
    throw failure(QUERN_BAD_ARG, message("no type %s", name));
}

static ggml_backend_buffer_type_t weight_buffer_type(int where) {
    if (where == QUERN_WEIGHTS_PLAIN) {
        return ggml_backend_cpu_buffer_type();
    }
    const char * wanted = where == QUERN_WEIGHTS_KERNELS ? "CPU_QUERN" : "CPU_REPACK";
    for (ggml_backend_buffer_type_t t : ggml_backend_cpu_get_extra_buffer_types()) {
        if (!strcmp(ggml_backend_buft_name(t), wanted)) {
            return t;
        }
    }
    throw failure(QUERN_UNSUPPORTED, message("no %s in this build", wanted));
}

// place puts the weights where their kernels want them, as the model loader does.
static void place(quern_product & p, int where) {
    const ggml_backend_buffer_type_t type = weight_buffer_type(where);
    p.w->buffer                           = ggml_backend_buft_alloc_buffer(type, 0);
    const bool supported = ggml_backend_dev_supports_op(ggml_backend_get_device(p.backend), p.y);
    ggml_backend_buffer_free(p.w->buffer);
    p.w->buffer = nullptr;
    if (!supported) {
        throw failure(QUERN_UNSUPPORTED, message("%s has no kernels for %s", ggml_backend_buft_name(type), ggml_type_name(p.w->type)));
    }
    p.weights = ggml_backend_buft_alloc_buffer(type, ggml_backend_buft_get_alloc_size(type, p.w));
    if (!p.weights || ggml_backend_tensor_alloc(p.weights, p.w, ggml_backend_buffer_get_base(p.weights))) {
        throw std::bad_alloc();
    }
    ggml_backend_tensor_set(p.w, p.quantized.data(), 0, p.quantized.size());
}

int quern_product_new(const char * type, int64_t k, int64_t rows, int64_t columns, int threads, int where,
                      const float * weights, quern_product ** out, quern_error * err) {
    return guard(text_of(err), [&]() -> int {
        quern_init();
        auto p     = std::make_unique<quern_product>();
        p->ctx     = ggml_init({size_t(1) << 20, nullptr, true});
        p->backend = ggml_backend_cpu_init();
        auto tp    = ggml_threadpool_params_default(threads);
        p->pool    = ggml_threadpool_new(&tp);
        ggml_backend_cpu_set_n_threads(p->backend, threads);
        ggml_backend_cpu_set_threadpool(p->backend, p->pool);

        const ggml_type t = type_named(type);
        p->quantized.resize(ggml_row_size(t, k) * rows);
        ggml_quantize_chunk(t, weights, p->quantized.data(), 0, rows, k, nullptr);

        p->w     = ggml_new_tensor_2d(p->ctx, t, k, rows);
        p->x     = ggml_new_tensor_2d(p->ctx, GGML_TYPE_F32, k, columns);
        p->y     = ggml_mul_mat(p->ctx, p->w, p->x);
        p->graph = ggml_new_graph(p->ctx);
        ggml_build_forward_expand(p->graph, p->y);
        place(*p, where);
        p->rest = ggml_backend_alloc_ctx_tensors(p->ctx, p->backend);
        if (!p->rest) {
            throw std::bad_alloc();
        }
        *out = p.release();
        return QUERN_OK;
    });
}

void quern_product_free(quern_product * p) { delete p; }

void quern_product_input(quern_product * p, const float * x) { ggml_backend_tensor_set(p->x, x, 0, ggml_nbytes(p->x)); }

int quern_product_run(quern_product * p, int times) {
    for (int i = 0; i < times; i++) {
        if (ggml_backend_graph_compute(p->backend, p->graph) != GGML_STATUS_SUCCESS) {
            return QUERN_FAILED;
        }
    }
    return QUERN_OK;
}

void quern_product_output(const quern_product * p, float * y) { ggml_backend_tensor_get(p->y, y, 0, ggml_nbytes(p->y)); }

void quern_product_weights(const quern_product * p, float * w) {
    const size_t row = ggml_row_size(p->w->type, p->w->ne[0]);
    for (int64_t r = 0; r < p->w->ne[1]; r++) {
        ggml_get_type_traits(p->w->type)->to_float(p->quantized.data() + r * row, w + r * p->w->ne[0], p->w->ne[0]);
    }
}

size_t quern_product_weight_bytes(const quern_product * p) { return ggml_backend_buffer_get_size(p->weights); }
