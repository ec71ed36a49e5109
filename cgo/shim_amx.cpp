// The AMX backend of ggml, kept out where the CPU's tiles do not work.
#include "shim_impl.h"

#if defined(__AMX_INT8__) && defined(__AVX512VNNI__)

#include "ggml-impl.h"
#include "traits.h"

#if !defined(QUERN_ENGINE_CURRENT)
// The module's Go packages leave it out, although their ggml-cpu.cpp refers to
// it where the compiler's target has AMX.
#include "ggml/src/ggml-cpu/amx/amx.cpp"
#endif

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// A hypervisor may announce AMX without running it: try a tile instruction
// in a child process, where it can do no harm.
static bool amx_works() {
    const pid_t pid = fork();
    if (pid == 0) {
        signal(SIGILL, SIG_DFL);
        signal(SIGSEGV, SIG_DFL);
        constexpr int request_permission = 0x1023, tile_data = 18;
        if (syscall(SYS_arch_prctl, request_permission, tile_data)) {
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

static std::vector<ggml_backend_buffer_type_t>::iterator find_amx() {
    auto & types = ggml_backend_cpu_get_extra_buffer_types();
    return std::find_if(types.begin(), types.end(),
                        [](ggml_backend_buffer_type_t t) { return !strcmp(ggml_backend_buft_name(t), "AMX"); });
}

void quern::check_amx() {
    auto & types = ggml_backend_cpu_get_extra_buffer_types();
    if (const auto amx = find_amx(); amx != types.end() && !amx_works()) {
        GGML_LOG_WARN("AMX does not work on this machine: computing without it\n");
        types.erase(amx);
    }
}

int quern_amx(void) { return find_amx() != ggml_backend_cpu_get_extra_buffer_types().end(); }

#else

void quern::check_amx() {}

int quern_amx(void) { return -1; }

#endif
