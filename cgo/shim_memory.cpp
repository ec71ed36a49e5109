// The memory of a context: copy, remove, shift, save and restore sequences.
#include "shim_impl.h"

#include "llama-context.h"
#include "llama-model.h"

using namespace quern;

void quern_context::check_seq(int32_t seq, const char * what) const {
    if (seq < 0 || seq >= p.n_seq_max) {
        throw failure(QUERN_BAD_ARG, format("%s %d is out of range [0, %d)", what, seq, p.n_seq_max));
    }
}

static void check_range(int32_t p0, int32_t p1) {
    if (p0 < 0 || p1 < p0) {
        throw failure(QUERN_BAD_ARG, format("positions [%d, %d) are not a range", p0, p1));
    }
}

// Copies and shifts are queued by llama.cpp until the next decode, where an
// abort would tear them: do them at once.
static void settle(quern_context * c) {
    c->abort_flag.store(false, std::memory_order_relaxed);
    c->ctx->memory_update(false);
}

int32_t quern_seq_pos_min(const quern_context * c, int32_t seq) {
    return seq < 0 || seq >= c->p.n_seq_max ? -1 : llama_memory_seq_pos_min(c->mem, seq);
}

int32_t quern_seq_pos_max(const quern_context * c, int32_t seq) {
    return seq < 0 || seq >= c->p.n_seq_max ? -1 : llama_memory_seq_pos_max(c->mem, seq);
}

int quern_seq_remove(quern_context * c, int32_t seq, int32_t p0, int32_t p1) {
    return guard(c->msg, [&]() -> int {
        c->check_seq(seq, "sequence");
        check_range(p0, p1);
        if (!llama_memory_seq_rm(c->mem, seq, p0, p1)) {
            throw failure(QUERN_UNSUPPORTED, "this model's state can only be removed whole");
        }
        return QUERN_OK;
    });
}

int quern_seq_copy(quern_context * c, int32_t src, int32_t dst, int32_t p0, int32_t p1) {
    return guard(c->msg, [&]() -> int {
        c->check_seq(src, "source sequence");
        c->check_seq(dst, "target sequence");
        check_range(p0, p1);
        if (src == dst) {
            throw failure(QUERN_BAD_ARG, format("sequence %d can't be copied onto itself", src));
        }
        if (llama_memory_seq_pos_max(c->mem, dst) >= 0) {
            throw failure(QUERN_BAD_ARG, format("target sequence %d is not empty", dst));
        }
        if (c->n_stream() == 1) {
            llama_memory_seq_cp(c->mem, src, dst, p0, p1);
        } else {
            // Only whole streams can be copied: cut the rest off afterwards.
            llama_memory_seq_cp(c->mem, src, dst, -1, -1);
            settle(c);
            if (p0 > 0) {
                llama_memory_seq_rm(c->mem, dst, 0, p0);
            }
            llama_memory_seq_rm(c->mem, dst, p1, -1);
        }
        return QUERN_OK;
    });
}

int quern_seq_shift(quern_context * c, int32_t seq, int32_t p0, int32_t p1, int32_t delta) {
    return guard(c->msg, [&]() -> int {
        c->check_seq(seq, "sequence");
        check_range(p0, p1);
        if (!llama_memory_can_shift(c->mem) || c->m->model->hparams.n_pos_per_embd() != 1) {
            throw failure(QUERN_UNSUPPORTED, "this model's positions can't be shifted");
        }
        if (p0 + (int64_t) delta < 0 || p1 + (int64_t) delta > INT32_MAX) {
            throw failure(QUERN_BAD_ARG, format("shift by %d leaves the range of positions", delta));
        }
        llama_memory_seq_add(c->mem, seq, p0, p1, delta);
        settle(c);
        return QUERN_OK;
    });
}

void quern_memory_clear(quern_context * c) { llama_memory_clear(c->mem, false); }

int quern_seq_state_size(quern_context * c, int32_t seq, size_t * size) {
    return guard(c->msg, [&]() -> int {
        c->check_seq(seq, "sequence");
        *size = llama_state_seq_get_size(c->ctx, seq);
        return QUERN_OK;
    });
}

int quern_seq_state_get(quern_context * c, int32_t seq, uint8_t * dst, size_t size, size_t * n) {
    return guard(c->msg, [&]() -> int {
        c->check_seq(seq, "sequence");
        capture log;
        *n = llama_state_seq_get_data(c->ctx, dst, size, seq);
        if (*n == 0) {
            throw failure(QUERN_FAILED, "state not saved: " + log.text);
        }
        return QUERN_OK;
    });
}

int quern_seq_state_set(quern_context * c, int32_t seq, const uint8_t * src, size_t size) {
    return guard(c->msg, [&]() -> int {
        c->check_seq(seq, "sequence");
        llama_memory_seq_rm(c->mem, seq, -1, -1);
        capture      log;
        assert_guard asserts;
        size_t       n = 0;
        try {
            n = llama_state_seq_set_data(c->ctx, src, size, seq);
        } catch (...) {
            llama_memory_seq_rm(c->mem, seq, -1, -1);
            throw;
        }
        if (n == 0 || n != size) {
            llama_memory_seq_rm(c->mem, seq, -1, -1);
            throw failure(QUERN_FAILED, n == 0 ? "state not restored: " + log.text : "state not restored: it has bytes left over");
        }
        return QUERN_OK;
    });
}
