// How ggml comes to the kernels: a buffer type of ours among the CPU's extra
// ones, which llama.cpp asks about each weight, and which packs what is loaded
// into it.
#include "kernel.h"

#include "ggml-backend-impl.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "kernel_attention.h"
#include "kernel_traits.h"
#include "traits.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace quern {

static thread_local bool off = false;

kernels_off::kernels_off(bool now) : outer(off) { off = off || now; }
kernels_off::~kernels_off() { off = outer; }

namespace kernel {

namespace {

// claims says if a weight is one for us: whole groups and whole blocks.
bool claims(const ggml_tensor * w) {
    const format * f = find_format(w->type);
    return f && ggml_n_dims(w) == 2 && ggml_is_contiguous(w) && w->ne[1] % group_rows == 0 && w->ne[0] % f->block == 0;
}

struct buffer_type : ggml::cpu::extra_buffer_type {
    // Also asked by the loader, with a weight that has no memory yet.
    bool supports_op(ggml_backend_dev_t, const ggml_tensor * op) override {
        const ggml_tensor * w = op->src[0];
        const ggml_tensor * x = op->src[1];
        if (op->op != GGML_OP_MUL_MAT || !w->buffer || w->buffer->buft != kernels_buffer_type() || !claims(w)) {
            return false;
        }
        if (off && !w->data) {
            return false;
        }
        return x->type == GGML_TYPE_F32 && (!x->buffer || ggml_backend_buft_is_host(x->buffer->buft));
    }

    ggml::cpu::tensor_traits * get_tensor_traits(const ggml_tensor * op) override {
        if (op->op == GGML_OP_MUL_MAT && op->src[0]->buffer && op->src[0]->buffer->buft == kernels_buffer_type()) {
            return static_cast<ggml::cpu::tensor_traits *>(op->src[0]->extra);
        }
        return op->op == GGML_OP_FLASH_ATTN_EXT ? attention_traits() : nullptr;
    }
};

void free_buffer(ggml_backend_buffer_t b) { free(b->context); }

void * get_base(ggml_backend_buffer_t b) { return b->context; }

ggml_status init_tensor(ggml_backend_buffer_t, ggml_tensor * t) {
    t->extra = claims(t) ? find_traits(t->type) : nullptr;
    return GGML_STATUS_SUCCESS;
}

void set_tensor(ggml_backend_buffer_t, ggml_tensor * t, const void * data, size_t offset, size_t size) {
    GGML_ASSERT(t->extra && offset == 0 && size == ggml_nbytes(t));
    const format * f      = find_format(t->type);
    const int64_t  blocks = t->ne[0] / f->block;
    const auto *   src    = static_cast<const uint8_t *>(data);
    auto *         dst    = static_cast<uint8_t *>(t->data);
    for (int64_t row = 0; row < t->ne[1]; row += group_rows) {
        f->pack(src + row * t->nb[1], t->nb[1], blocks, dst);
        dst += f->group_bytes(blocks);
    }
}

void memset_tensor(ggml_backend_buffer_t, ggml_tensor * t, uint8_t value, size_t offset, size_t size) {
    memset(static_cast<uint8_t *>(t->data) + offset, value, size);
}

void clear(ggml_backend_buffer_t b, uint8_t value) { memset(b->context, value, b->size); }

const ggml_backend_buffer_i buffer_calls = [] {
    ggml_backend_buffer_i calls{};
    calls.free_buffer   = free_buffer;
    calls.get_base      = get_base;
    calls.init_tensor   = init_tensor;
    calls.memset_tensor = memset_tensor;
    calls.set_tensor    = set_tensor;
    calls.clear         = clear;
    return calls;
}();

// Huge pages, where the system gives them: a step reads all weights once, and
// with small pages it waits for their translations.
ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t type, size_t size) {
    constexpr size_t huge = size_t(2) << 20;
    void *           p    = nullptr;
    if (posix_memalign(&p, size >= huge ? huge : 64, std::max<size_t>(size, 64))) {
        return nullptr;
    }
#if defined(__linux__)
    if (size >= huge) {
        madvise(p, size, MADV_HUGEPAGE);
    }
#endif
    return ggml_backend_buffer_init(type, buffer_calls, p, size);
}

size_t alloc_size(ggml_backend_buffer_type_t, const ggml_tensor * t) {
    if (!claims(t)) {
        return ggml_nbytes(t);
    }
    const format * f = find_format(t->type);
    return t->ne[1] / group_rows * f->group_bytes(t->ne[0] / f->block);
}

const char * name(ggml_backend_buffer_type_t) { return "CPU_QUERN"; }

size_t alignment(ggml_backend_buffer_type_t) { return 64; }

} // namespace
} // namespace kernel

ggml_backend_buffer_type * kernels_buffer_type() {
#if defined(QUERN_KERNELS)
    using namespace kernel;
    static buffer_type              context;
    static ggml_backend_buffer_type type = {
        {name, alloc_buffer, alignment, nullptr, alloc_size, nullptr},
        ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0),
        &context,
    };
    return &type;
#else
    return nullptr;
#endif
}

// The first buffer type that wants a weight gets it: after AMX, where that
// works, before ggml's own repacking.
void kernels_register() {
    if (!kernels_buffer_type()) {
        return;
    }
    auto & types = ggml_backend_cpu_get_extra_buffer_types();
    auto   at    = std::find_if(types.begin(), types.end(),
                                [](ggml_backend_buffer_type_t t) { return !strcmp(ggml_backend_buft_name(t), "CPU_REPACK"); });
    types.insert(at, kernels_buffer_type());
}

} // namespace quern
