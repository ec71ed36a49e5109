// Contexts and the step: decode rows and sample those that want a token.
#include "shim_impl.h"

#include "engine.h"
#include "ggml-cpu.h"
#include "llama-context.h"
#include "llama-model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

using namespace quern;

namespace {

constexpr int max_threads = 256;

ggml_type kv_type(int32_t t) {
    switch (t) {
        case 0: return GGML_TYPE_F16;
        case 1: return GGML_TYPE_Q8_0;
        case 2: return GGML_TYPE_Q4_0;
        default: throw failure(QUERN_BAD_ARG, message("unknown kv type %d", t));
    }
}

void check_params(const quern_model & m, const quern_context_params & p) {
    auto bad = [](const char * name, int v, int lo, int hi) {
        if (v < lo || v > hi) {
            throw failure(QUERN_BAD_ARG, message("%s %d is out of range [%d, %d]", name, v, lo, hi));
        }
    };
    const auto & hp = m.model->hparams;
    if (hp.vocab_only) {
        throw failure(QUERN_UNSUPPORTED, "only the vocabulary of this model was loaded");
    }
    if (!llama_model_has_decoder(m.model)) {
        throw failure(QUERN_UNSUPPORTED, "the model has no decoder: it can't generate text");
    }
    if (llama_model_has_encoder(m.model)) {
        throw failure(QUERN_UNSUPPORTED, "encoder-decoder models are not supported");
    }
    if (llama_model_is_diffusion(m.model)) {
        throw failure(QUERN_UNSUPPORTED, "diffusion models are not supported");
    }
    if (!hp.causal_attn) {
        throw failure(QUERN_UNSUPPORTED, "the model has no causal attention: it can't generate text");
    }
    if (m.n_vocab <= 0) {
        throw failure(QUERN_UNSUPPORTED, "the model has no vocabulary");
    }
    bad("context size", p.n_ctx, 0, 1 << 28);
    bad("batch size", p.n_batch, 1, 1 << 20);
    bad("micro-batch size", p.n_ubatch, 1, 1 << 20);
    bad("number of sequences", p.n_seq_max, 1, (int) llama_max_parallel_sequences());
    bad("threads", p.n_threads, 1, max_threads);
    bad("batch threads", p.n_threads_batch, 1, max_threads);
    bad("poll level", p.poll, 0, 100);
    bad("flash attention", p.flash_attn, -1, 1);
    if (p.n_ctx == 0 && hp.n_ctx_train == 0) {
        throw failure(QUERN_BAD_ARG, "context size 0 (the model's own), but the model states none");
    }
    const int64_t cells = GGML_PAD((int64_t) (p.n_ctx ? p.n_ctx : hp.n_ctx_train), 256);
    if (!p.unified && cells < (int64_t) p.n_seq_max * 256) {
        throw failure(QUERN_BAD_ARG, message("%d cells are too few for %d sequences with 256 each", (int) cells, p.n_seq_max));
    }
    const ggml_type type = kv_type(p.kv_type);
    if (ggml_is_quantized(type)) {
        if (p.flash_attn == 0) {
            throw failure(QUERN_BAD_ARG, message("kv type %s needs flash attention", ggml_type_name(type)));
        }
        const int block = (int) ggml_blck_size(type);
        for (uint32_t il = 0; il < engine::layers(hp); il++) {
            const uint32_t k = engine::key_size(hp, il), v = engine::value_size(hp, il);
            if (k % block || v % block) {
                throw failure(QUERN_UNSUPPORTED,
                              message("kv type %s needs a head size that is a multiple of %d; the model has %u / %u",
                                      ggml_type_name(type), block, k, v));
            }
        }
    }
}

// Arrays of one batch, carved out of one allocation.
void lay_batch(quern_context & c, int32_t cap) {
    quern_batch & b    = c.batch;
    size_t        used = 0;
    auto          take = [&](size_t bytes) {
        const size_t at = used;
        used += GGML_PAD(bytes, 64);
        return at;
    };
    const size_t n      = cap;
    const size_t i32    = n * sizeof(int32_t);
    const size_t token  = take(i32);
    const size_t pos    = take(i32);
    const size_t seq    = take(i32);
    const size_t want   = take(i32);
    const size_t smp    = take(n * sizeof(void *));
    const size_t otok   = take(i32);
    const size_t ocode  = take(i32);
    const size_t ologp  = take(i32);
    const size_t ontop  = take(i32);
    const size_t ttok   = take(i32 * QUERN_TOP_MAX);
    const size_t tlogp  = take(i32 * QUERN_TOP_MAX);
    c.arena.assign(used + 64, 0);
    uint8_t * base = c.arena.data() + (64 - (uintptr_t) c.arena.data() % 64) % 64;
    b.cap          = cap;
    b.token        = (int32_t *) (base + token);
    b.pos          = (int32_t *) (base + pos);
    b.seq          = (int32_t *) (base + seq);
    b.want         = (int32_t *) (base + want);
    b.sampler      = (quern_sampler **) (base + smp);
    b.out_token    = (int32_t *) (base + otok);
    b.out_code     = (int32_t *) (base + ocode);
    b.out_logprob  = (float *) (base + ologp);
    b.out_ntop     = (int32_t *) (base + ontop);
    b.top_token    = (int32_t *) (base + ttok);
    b.top_logprob  = (float *) (base + tlogp);

    c.n_seq_id.assign(n, 1);
    c.logits.assign(n, 0);
    c.seq_id.resize(n);
    for (size_t i = 0; i < n; i++) {
        c.seq_id[i] = b.seq + i;
    }
}

bool on_abort_check(void * data) { return static_cast<quern_context *>(data)->abort_flag.load(std::memory_order_relaxed); }

void check_rows(quern_context & c, int32_t n) {
    const quern_batch & b = c.batch;
    if (n < 1 || n > b.cap) {
        throw failure(QUERN_BAD_ARG, message("%d rows are out of range [1, %d]", n, b.cap));
    }
    c.step++;
    c.touched_list.clear();
    for (int32_t i = 0; i < n; i++) {
        if (b.token[i] < 0 || b.token[i] >= c.m->n_vocab) {
            throw failure(QUERN_BAD_ARG, message("row %d: token %d is not in the vocabulary of %d", i, b.token[i], c.m->n_vocab));
        }
        const int32_t s = b.seq[i];
        if (s < 0 || s >= c.p.n_seq_max) {
            throw failure(QUERN_BAD_ARG, message("row %d: sequence %d is out of range [0, %d)", i, s, c.p.n_seq_max));
        }
        if (c.touched[s] != c.step) {
            c.touched[s] = c.step;
            c.before[s]  = llama_memory_seq_pos_max(c.mem, s) + 1;
            c.next[s]    = c.before[s];
            c.touched_list.push_back(s);
        }
        if (b.pos[i] != c.next[s]) {
            throw failure(QUERN_BAD_ARG, message("row %d: position %d of sequence %d does not follow %d", i, b.pos[i], s, c.next[s] - 1));
        }
        c.next[s]++;
        if (b.want[i] < -1 || b.want[i] > 1 + QUERN_TOP_MAX) {
            throw failure(QUERN_BAD_ARG, message("row %d: want %d is out of range [-1, %d]", i, b.want[i], 1 + QUERN_TOP_MAX));
        }
        c.logits[i] = b.want[i] >= 0;
        if (b.want[i] < 0) {
            continue;
        }
        quern_sampler * smp = b.sampler[i];
        if (!smp) {
            throw failure(QUERN_BAD_ARG, message("row %d: wants a token but has no sampler", i));
        }
        if (smp->m != c.m) {
            throw failure(QUERN_BAD_ARG, message("row %d: the sampler belongs to another model", i));
        }
        if (smp->stamp == c.step && smp->user == &c && !is_guess(b, i)) {
            throw failure(QUERN_BAD_ARG, message("row %d: its sampler is used by another row", i));
        }
        smp->stamp = c.step;
        smp->user  = &c;
    }
}

// rewind takes back what a failed decode left. A recurrent state can't go back,
// nor can a sliding window that has moved on: such a sequence is emptied, and
// the caller sees it by its position.
void rewind(quern_context & c) {
    for (int32_t s : c.touched_list) {
        if (llama_memory_seq_pos_max(c.mem, s) + 1 == c.before[s] && c.resumable(s, c.before[s])) {
            continue;
        }
        if (c.before[s] == 0 || !llama_memory_seq_rm(c.mem, s, c.before[s], -1) || !c.resumable(s, c.before[s])) {
            llama_memory_seq_rm(c.mem, s, -1, -1);
            c.forget_sharing(s);
        }
    }
}

} // namespace

int quern_context_new(quern_model * m, const quern_context_params * p, quern_context ** out, quern_error * err) {
    return guard(text_of(err), [&]() -> int {
        *out = nullptr;
        check_params(*m, *p);
        std::unique_ptr<quern_context, decltype(&quern_context_free)> c(new quern_context, quern_context_free);
        c->m = m;
        c->p = *p;

        llama_context_params cp = llama_context_default_params();
        cp.n_ctx                = p->n_ctx;
        cp.n_batch              = p->n_batch;
        cp.n_ubatch             = std::min(p->n_ubatch, p->n_batch);
        cp.n_seq_max            = p->n_seq_max;
        cp.n_threads            = p->n_threads;
        cp.n_threads_batch      = p->n_threads_batch;
        cp.flash_attn_type      = (llama_flash_attn_type) p->flash_attn;
        cp.type_k               = kv_type(p->kv_type);
        cp.type_v               = kv_type(p->kv_type);
        cp.kv_unified           = p->unified;
        cp.swa_full             = !p->small_swa;
        cp.abort_callback       = on_abort_check;
        cp.abort_callback_data  = c.get();
        cp.no_perf              = true;

        capture log;
        {
            assert_guard asserts;
            c->ctx = llama_init_from_model(m->model, cp);
        }
        if (!c->ctx) {
            throw failure(QUERN_FAILED, log.text.empty() ? "llama.cpp could not create a context" : log.text);
        }
        c->mem = llama_get_memory(c->ctx);
        if (!c->mem) {
            throw failure(QUERN_UNSUPPORTED, "the model keeps no state: it can't generate text");
        }

        // One pool for both thread counts: ggml runs a graph on the first n of
        // its threads. With a low poll level the others sleep.
        ggml_threadpool_params tp = ggml_threadpool_params_default(std::max(p->n_threads, p->n_threads_batch));
        tp.poll                   = p->poll;
        c->most_threads           = tp.n_threads;
        c->pool                   = ggml_threadpool_new(&tp);
        if (!c->pool) {
            throw failure(QUERN_FAILED, "could not start the compute threads");
        }
        llama_attach_threadpool(c->ctx, (ggml_threadpool_t) c->pool, (ggml_threadpool_t) c->pool);

        const auto & cparams = c->ctx->get_cparams();
        c->p.n_ctx           = cparams.n_ctx;
        c->p.n_batch         = cparams.n_batch;
        c->p.n_ubatch        = cparams.n_ubatch;
        c->p.flash_attn      = cparams.flash_attn;
        for (const auto & kv : c->mem->memory_breakdown()) {
            c->kv_bytes += kv.second;
        }
        for (const auto & kv : c->ctx->memory_breakdown()) {
            c->compute_bytes += kv.second.compute;
        }
        c->output_bytes = (uint64_t) c->m->n_vocab * p->n_seq_max * sizeof(float);

        lay_batch(*c, cparams.n_batch);
        c->shares.assign(p->n_seq_max, std::vector<bool>(p->n_seq_max));
        c->touched.assign(p->n_seq_max, 0);
        c->before.assign(p->n_seq_max, 0);
        c->next.assign(p->n_seq_max, 0);
        c->touched_list.reserve(p->n_seq_max);
        c->row_logits.assign(cparams.n_batch, nullptr);
        c->turns.reserve(cparams.n_batch);
        *out = c.release();
        return QUERN_OK;
    });
}

void quern_context_free(quern_context * c) {
    if (!c) {
        return;
    }
    if (c->ctx) {
        llama_detach_threadpool(c->ctx);
        llama_free(c->ctx);
    }
    if (c->pool) {
        ggml_threadpool_free((ggml_threadpool_t) c->pool);
    }
    delete c;
}

int quern_context_set_threads(quern_context * c, int32_t n, int32_t n_batch) {
    return guard(c->msg, [&]() -> int {
        const int most = c->most_threads;
        if (n < 1 || n > most || n_batch < 1 || n_batch > most) {
            throw failure(QUERN_BAD_ARG, message("%d and %d threads are out of range [1, %d]", n, n_batch, most));
        }
        llama_set_n_threads(c->ctx, n, n_batch);
        c->p.n_threads       = n;
        c->p.n_threads_batch = n_batch;
        return QUERN_OK;
    });
}

void quern_context_get_params(const quern_context * c, quern_context_params * out) { *out = c->p; }

void quern_context_get_memory(const quern_context * c, uint64_t * kv, uint64_t * compute, uint64_t * output) {
    *kv      = c->kv_bytes;
    *compute = c->compute_bytes;
    *output  = c->output_bytes;
}

quern_batch * quern_context_batch(quern_context * c) { return &c->batch; }
const char *  quern_context_message(const quern_context * c) { return c->msg; }
const char *  quern_sampler_message(const quern_sampler * s) { return s->msg; }

void quern_abort(quern_context * c) { c->abort_flag.store(true, std::memory_order_relaxed); }

int quern_step(quern_context * c, int32_t n) {
    return guard(c->msg, [&]() -> int {
        c->abort_flag.store(false, std::memory_order_relaxed);
        check_rows(*c, n);

        llama_batch lb{};
        lb.n_tokens = n;
        lb.token    = c->batch.token;
        lb.pos      = c->batch.pos;
        lb.n_seq_id = c->n_seq_id.data();
        lb.seq_id   = c->seq_id.data();
        lb.logits   = c->logits.data();

        capture log;
        int     rc;
        try {
            rc = llama_decode(c->ctx, lb);
        } catch (...) {
            rewind(*c);
            throw;
        }
        switch (rc) {
            case 0: break;
            case 1: throw failure(QUERN_NO_CELLS, "no free cells for this batch");
            case 2: rewind(*c); throw failure(QUERN_ABORTED, "decode aborted");
            default:
                rewind(*c);
                throw failure(QUERN_DECODE, message("llama_decode gave %d: %s", rc, log.text.c_str()));
        }
        const auto start = std::chrono::steady_clock::now();
        sample_rows(*c, n);
        c->batch.sample_ns = std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
        return QUERN_OK;
    });
}
