// What loading makes of the weights of a file, before it is loaded.
#include "shim_impl.h"

#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "traits.h"

#include <algorithm>

using namespace quern;

// product_of is a product as a model computes it, without memory.
static ggml_tensor * product_of(ggml_context * ctx, ggml_tensor * w, int32_t experts) {
    constexpr int64_t rows = 512;
    if (experts > 0) {
        ggml_tensor * x   = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, w->ne[0], experts, rows);
        ggml_tensor * ids = ggml_new_tensor_2d(ctx, GGML_TYPE_I32, experts, rows);
        return ggml_mul_mat_id(ctx, w, x, ids);
    }
    return ggml_mul_mat(ctx, w, ggml_new_tensor_4d(ctx, GGML_TYPE_F32, w->ne[0], rows, w->ne[2], w->ne[3]));
}

// The first of the CPU's extra buffer types that takes a weight gets it, as in
// llama.cpp's loader.
int64_t quern_weight_copy(int32_t type, const int64_t ne[4], int32_t experts) {
    int64_t bytes = 0;
    guard(nullptr, [&]() -> int {
        assert_guard asserts;
        quern_init();
        if (type < 0 || type >= GGML_TYPE_COUNT || ggml_blck_size((ggml_type) type) <= 0 || std::any_of(ne, ne + 4, [](int64_t n) { return n < 1; }) ||
            ne[0] % ggml_blck_size((ggml_type) type) || experts > ne[2]) {
            return QUERN_BAD_ARG;
        }
        std::unique_ptr<ggml_context, decltype(&ggml_free)> ctx(
            ggml_init({ggml_tensor_overhead() * 8, nullptr, true}), ggml_free);
        ggml_tensor *      w   = ggml_new_tensor(ctx.get(), (ggml_type) type, GGML_MAX_DIMS, ne);
        ggml_tensor *      op  = product_of(ctx.get(), w, experts);
        ggml_backend_dev_t cpu = ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0);
        for (ggml_backend_buffer_type_t t : ggml_backend_cpu_get_extra_buffer_types()) {
            std::unique_ptr<ggml_backend_buffer, decltype(&ggml_backend_buffer_free)> none(ggml_backend_buft_alloc_buffer(t, 0),
                                                                                          ggml_backend_buffer_free);
            w->buffer     = none.get();
            const bool is = ggml_backend_dev_supports_op(cpu, op);
            w->buffer     = nullptr;
            if (is) {
                bytes = (int64_t) ggml_backend_buft_get_alloc_size(t, w);
                break;
            }
        }
        return QUERN_OK;
    });
    return bytes;
}
