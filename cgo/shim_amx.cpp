// The AMX backend of ggml, which the module's Go packages leave out although
// its ggml-cpu.cpp refers to it where the compiler's target has AMX. ggml's
// getter of its buffer type is renamed, so that ours can say no.
#if defined(__AMX_INT8__) && defined(__AVX512VNNI__)

#define ggml_backend_amx_buffer_type quern_ggml_amx_buffer_type
#include "ggml/src/ggml-cpu/amx/amx.cpp"
#undef ggml_backend_amx_buffer_type

#include <cerrno>
#include <csignal>
#include <sys/wait.h>

// A hypervisor may announce AMX without running it: try a tile instruction
// in a child process, where it can do no harm.
static bool amx_works() {
    const pid_t pid = fork();
    if (pid == 0) {
        signal(SIGILL, SIG_DFL);
        signal(SIGSEGV, SIG_DFL);
        if (syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)) {
            _exit(1);
        }
        alignas(64) unsigned char config[64] = {1}; // palette 1
        config[16]                           = 64;  // bytes a row of tile 0
        config[48]                           = 16;  // rows of tile 0
        asm volatile("ldtilecfg %0\n\ttilezero %%tmm0\n\ttilerelease" ::"m"(config));
        _exit(0);
    }
    int status = 0;
    if (pid < 0) {
        return false;
    }
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return false;
        }
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

ggml_backend_buffer_type_t ggml_backend_amx_buffer_type(void) {
    static const bool works = amx_works();
    if (!works) {
        GGML_LOG_WARN("AMX does not work on this machine: computing without it\n");
        return nullptr;
    }
    return quern_ggml_amx_buffer_type();
}

extern "C" int quern_amx(void) { return ggml_backend_amx_buffer_type() ? 1 : 0; }

#else

extern "C" int quern_amx(void) { return -1; }

#endif
