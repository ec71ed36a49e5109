// Models and their vocabulary.
#include "shim_impl.h"

#include "engine.h"
#include "kernel.h"
#include "llama-model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <pthread.h>

#if defined(__linux__)
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

extern "C" int quernProgress(uintptr_t handle, float fraction); // Go

using namespace quern;

// Values that llama.cpp only asserts while it computes, on all threads, where
// nothing can be caught any more.
static void check_hparams(const llama_hparams & hp) {
    auto bad = [](const char * what) { throw failure(QUERN_FAILED, std::string("corrupt metadata: ") + what); };
    for (float eps : {hp.f_norm_eps, hp.f_norm_rms_eps, hp.f_norm_group_eps}) {
        if (!(eps >= 0 && eps <= 1)) {
            bad("layer norm epsilon");
        }
    }
    for (float f : {hp.rope_freq_base_train, hp.rope_freq_scale_train}) {
        if (hp.rope_type != LLAMA_ROPE_TYPE_NONE && !(std::isfinite(f) && f > 0)) {
            bad("rope frequency");
        }
    }
    const uint32_t layers = engine::layers(hp);
    if (hp.n_embd == 0 || layers == 0 || layers > LLAMA_MAX_LAYERS) {
        bad("embedding length or block count");
    }
    for (uint32_t il = 0; il < layers; il++) {
        const uint32_t rotated = engine::rotated(hp, il);
        if (rotated % 2 || rotated > engine::key_size(hp, il)) {
            bad("rope dimension count");
        }
        const uint32_t kv = hp.n_head_kv(il);
        if (kv > 0 && (hp.n_head(il) == 0 || hp.n_head(il) % kv)) {
            bad("head counts");
        }
        if (hp.n_expert > 0 && engine::experts_used(hp, il) > hp.n_expert) {
            bad("expert counts");
        }
    }
}

// Packed weights are copies: the pages of their originals are of no more use,
// but the loader has read them in. Give back what no tensor is computed from.
// The addresses stay taken, for the loader's mapping to be removed as one; an
// advice to the kernel would not do, since a fault at a small tensor maps
// whole folios around it again.
static void drop_unused_pages(const llama_model & model) {
#if defined(__linux__)
    std::map<ggml_backend_buffer_t, std::vector<std::pair<uintptr_t, uintptr_t>>> used;
    for (const auto & kv : model.tensors_by_name) {
        const ggml_tensor * t = kv.second;
        if (t->buffer && strstr(ggml_backend_buffer_name(t->buffer), "_Mapped")) {
            const auto at = (uintptr_t) t->data;
            used[t->buffer].push_back({at, at + ggml_nbytes(t)});
        }
    }
    const uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE);
    auto            drop = [&](uintptr_t from, uintptr_t to) {
        from = (from + page - 1) / page * page;
        to   = to / page * page;
        if (from < to) {
            mmap((void *) from, to - from, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        }
    };
    for (auto & kv : used) {
        auto & ranges = kv.second;
        std::sort(ranges.begin(), ranges.end());
        uintptr_t end = (uintptr_t) ggml_backend_buffer_get_base(kv.first);
        const uintptr_t last = end + ggml_backend_buffer_get_size(kv.first);
        for (const auto & r : ranges) {
            drop(end, r.first);
            end = std::max(end, r.second);
        }
        drop(end, last);
    }
    malloc_trim(0); // what parsing the vocabulary left
#else
    (void) model;
#endif
}

// copied_bytes is what the weights take beside the mapped file.
static uint64_t copied_bytes(const llama_model & model) {
    std::map<ggml_backend_buffer_t, uint64_t> buffers;
    for (const auto & kv : model.tensors_by_name) {
        const ggml_backend_buffer_t b = kv.second->buffer;
        if (b && !strstr(ggml_backend_buffer_name(b), "_Mapped")) {
            buffers[b] = ggml_backend_buffer_get_size(b);
        }
    }
    uint64_t sum = 0;
    for (const auto & kv : buffers) {
        sum += kv.second;
    }
    return sum;
}

// plain takes the function names out of a loader's log.
static std::string plain(std::string text) {
    for (const char * noise : {"llama_model_load_from_file_impl: failed to load model", "llama_model_load: ",
                               "error loading model: ", "error loading model hyperparameters: ",
                               "error loading model architecture: ", "error loading model vocabulary: ", "check_tensor_dims: "}) {
        for (size_t at; (at = text.find(noise)) != std::string::npos;) {
            text.erase(at, strlen(noise));
        }
    }
    while (!text.empty() && strchr("; ", text.back())) {
        text.pop_back();
    }
    return text.empty() ? "llama.cpp could not load it" : text;
}

int quern_model_load(const quern_load_params * p, quern_model ** out, quern_error * err) {
    return guard(text_of(err), [&]() -> int {
        quern_init();
        *out = nullptr;

        llama_model_params mp = llama_model_default_params();
        mp.n_gpu_layers       = 0;
        mp.vocab_only         = p->vocab_only;
        mp.use_extra_bufts    = p->repack;
        engine::map_file(mp, p->mmap);

        struct progress_state {
            uintptr_t handle;
            bool      cancelled;
        } state{p->handle, false};
        mp.progress_callback_user_data = &state;
        mp.progress_callback           = [](float fraction, void * data) {
            auto * s = static_cast<progress_state *>(data);
            if (s->handle && !quernProgress(s->handle, fraction)) {
                s->cancelled = true;
            }
            return !s->cancelled;
        };

        capture       log;
        llama_model * model = nullptr;
        {
            assert_guard asserts;
            kernels_off  kernels(!p->kernels);
            model = llama_model_load_from_file(p->path, mp);
        }
        if (!model) {
            if (state.cancelled) {
                throw failure(QUERN_CANCELLED, "load cancelled");
            }
            throw failure(QUERN_FAILED, plain(log.text));
        }
        std::unique_ptr<llama_model, decltype(&llama_model_free)> owner(model, llama_model_free);

        if (!p->vocab_only) {
            check_hparams(model->hparams);
            if (p->mmap) {
                drop_unused_pages(*model);
            }
        }
        auto m     = std::make_unique<quern_model>();
        m->model   = model;
        m->vocab   = llama_model_get_vocab(model);
        m->n_vocab = llama_vocab_n_tokens(m->vocab);
        owner.release();
        *out = m.release();
        return QUERN_OK;
    });
}

void quern_model_free(quern_model * m) {
    if (m) {
        llama_model_free(m->model);
        delete m;
    }
}

int quern_model_get_info(const quern_model * m, quern_model_info * out, quern_error * err) {
    return guard(text_of(err), [&]() -> int {
        assert_guard asserts;
        memset(out, 0, sizeof(*out));
        out->n_params    = llama_model_n_params(m->model);
        out->size        = llama_model_size(m->model);
        out->copied      = copied_bytes(*m->model);
        out->n_ctx_train = llama_model_n_ctx_train(m->model);
        out->n_embd      = llama_model_n_embd(m->model);
        out->n_layer     = llama_model_n_layer(m->model);
        out->n_swa       = llama_model_n_swa(m->model);
        out->n_vocab     = m->n_vocab;
        out->vocab_type  = llama_vocab_type(m->vocab);
        out->rope_type   = llama_model_rope_type(m->model);
        out->recurrent   = llama_model_is_recurrent(m->model);
        out->hybrid      = llama_model_is_hybrid(m->model);
        out->diffusion   = llama_model_is_diffusion(m->model);
        out->encoder     = llama_model_has_encoder(m->model);
        out->decoder     = llama_model_has_decoder(m->model);
        llama_model_desc(m->model, out->desc, sizeof(out->desc));
        if (out->n_layer > 0) {
            out->n_head    = llama_model_n_head(m->model);
            out->n_head_kv = llama_model_n_head_kv(m->model);
        }
        return QUERN_OK;
    });
}

int quern_model_meta_count(const quern_model * m) { return llama_model_meta_count(m->model); }

int quern_model_meta_key(const quern_model * m, int i, char * buf, size_t size) {
    return llama_model_meta_key_by_index(m->model, i, buf, size);
}

int quern_model_meta_val(const quern_model * m, int i, char * buf, size_t size) {
    return llama_model_meta_val_str_by_index(m->model, i, buf, size);
}

const char * quern_model_chat_template(const quern_model * m) { return llama_model_chat_template(m->model, nullptr); }

void quern_vocab_get_info(const quern_model * m, quern_vocab_info * out) {
    out->bos     = llama_vocab_bos(m->vocab);
    out->eos     = llama_vocab_eos(m->vocab);
    out->eot     = llama_vocab_eot(m->vocab);
    out->sep     = llama_vocab_sep(m->vocab);
    out->nl      = llama_vocab_nl(m->vocab);
    out->pad     = llama_vocab_pad(m->vocab);
    out->add_bos = llama_vocab_get_add_bos(m->vocab);
    out->add_eos = llama_vocab_get_add_eos(m->vocab);
}

static int token_flags(const quern_model * m, int32_t token) {
    const int attr  = llama_vocab_get_attr(m->vocab, token);
    int       flags = 0;
    flags |= attr & LLAMA_TOKEN_ATTR_CONTROL ? QUERN_TOKEN_CONTROL : 0;
    flags |= attr & LLAMA_TOKEN_ATTR_USER_DEFINED ? QUERN_TOKEN_USER_DEFINED : 0;
    flags |= attr & LLAMA_TOKEN_ATTR_UNKNOWN ? QUERN_TOKEN_UNKNOWN : 0;
    flags |= attr & LLAMA_TOKEN_ATTR_BYTE ? QUERN_TOKEN_BYTE : 0;
    flags |= attr & LLAMA_TOKEN_ATTR_UNUSED ? QUERN_TOKEN_UNUSED : 0;
    flags |= llama_vocab_is_eog(m->vocab, token) ? QUERN_TOKEN_EOG : 0;
    return flags;
}

int quern_vocab_table(const quern_model * m, uint32_t * offset, uint8_t * flags, char * buf, size_t cap, size_t * need,
                      quern_error * err) {
    return guard(text_of(err), [&]() -> int {
        assert_guard      asserts;
        std::vector<char> piece(256);
        size_t            used = 0;
        for (int32_t t = 0; t < m->n_vocab; t++) {
            flags[t]  = (uint8_t) token_flags(m, t);
            offset[t] = (uint32_t) used;
            int n     = llama_token_to_piece(m->vocab, t, piece.data(), (int32_t) piece.size(), 0, true);
            if (n < 0) {
                piece.resize(-n);
                n = llama_token_to_piece(m->vocab, t, piece.data(), (int32_t) piece.size(), 0, true);
            }
            n = n < 0 ? 0 : n;
            if (used + n <= cap) {
                memcpy(buf + used, piece.data(), n);
            }
            used += n;
            if (used > UINT32_MAX) {
                throw failure(QUERN_UNSUPPORTED, "the vocabulary's text is too large");
            }
        }
        offset[m->n_vocab] = (uint32_t) used;
        *need              = used;
        return QUERN_OK;
    });
}

// on_deep_stack runs f on a thread of its own with much stack.
template <class F> static void on_deep_stack(F & f) {
    pthread_attr_t attr;
    pthread_t      thread;
    pthread_attr_init(&attr);
    int rc = pthread_attr_setstacksize(&attr, (size_t) 512 << 20);
    if (rc == 0) {
        rc = pthread_create(&thread, &attr, [](void * p) -> void * { (*static_cast<F *>(p))(); return nullptr; }, &f);
    }
    pthread_attr_destroy(&attr);
    if (rc != 0) {
        throw failure(QUERN_FAILED, std::string("no thread to tokenize on: ") + strerror(rc));
    }
    pthread_join(thread, nullptr);
}

int quern_tokenize(const quern_model * m, const char * text, int32_t len, bool special, bool deep, int32_t * out,
                   int32_t cap, int32_t * n, quern_error * err) {
    int  code = QUERN_FAILED;
    auto run  = [&]() {
        code = guard(text_of(err), [&]() -> int {
            assert_guard asserts;
            int32_t      got = llama_tokenize(m->vocab, text, len, out, cap, false, special);
            if (got == INT32_MIN) {
                throw failure(QUERN_BAD_ARG, "text too long");
            }
            *n = got < 0 ? -got : got;
            return QUERN_OK;
        });
    };
    if (!deep) {
        run();
        return code;
    }
    const int rc = guard(text_of(err), [&]() -> int {
        on_deep_stack(run);
        return QUERN_OK;
    });
    return rc == QUERN_OK ? code : rc;
}
