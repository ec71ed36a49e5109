#include "kernel_attention_check.h"

#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "shim_impl.h"

#include <cmath>
#include <cstring>

using namespace quern;

int quern_attention(const quern_attention_shape * s, const float * q, const float * k, const float * v,
                    const uint8_t * visible, float * out, quern_error * err) {
    return guard(text_of(err), [&]() -> int {
        quern_init();
        ggml_context * ctx = ggml_init({size_t(256) << 20, nullptr, false});
        ggml_tensor *  tq  = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, s->dim, s->rows, s->heads);
        ggml_tensor *  tk  = ggml_new_tensor_3d(ctx, GGML_TYPE_F16, s->dim, s->cells, s->heads_kv);
        ggml_tensor *  tv  = ggml_new_tensor_3d(ctx, GGML_TYPE_F16, s->dim, s->cells, s->heads_kv);
        ggml_tensor *  tm  = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, s->cells, (s->rows + 63) / 64 * 64);
        memcpy(tq->data, q, ggml_nbytes(tq));
        ggml_fp32_to_fp16_row(k, static_cast<ggml_fp16_t *>(tk->data), ggml_nelements(tk));
        ggml_fp32_to_fp16_row(v, static_cast<ggml_fp16_t *>(tv->data), ggml_nelements(tv));
        auto * mask = static_cast<ggml_fp16_t *>(tm->data);
        for (int64_t i = 0; i < ggml_nelements(tm); i++) {
            mask[i] = ggml_fp32_to_fp16(i < s->cells * s->rows && visible[i] ? 0.0f : -INFINITY);
        }
        ggml_tensor * y     = ggml_flash_attn_ext(ctx, tq, tk, tv, tm, 1 / std::sqrt(float(s->dim)), 0, 0);
        ggml_cgraph * graph = ggml_new_graph(ctx);
        ggml_build_forward_expand(graph, y);
        const ggml_status status = ggml_graph_compute_with_ctx(ctx, graph, s->threads);
        memcpy(out, y->data, ggml_nbytes(y));
        ggml_free(ctx);
        return status == GGML_STATUS_SUCCESS ? QUERN_OK : QUERN_FAILED;
    });
}
