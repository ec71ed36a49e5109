// Hooks into ggml's process-wide state: its log and its abort callback.
#include "shim_impl.h"

#include "kernel.h"

#include <cstdarg>
#include <cstring>
#include <mutex>
#include <unistd.h>

extern "C" void quernLog(int level, char * text); // Go

namespace quern {

std::string message(const char * fmt, ...) {
    char    buf[QUERN_MSG_SIZE];
    va_list args;
    va_start(args, fmt);
    vsnprintf(buf, sizeof(buf), fmt, args);
    va_end(args);
    return buf;
}

static thread_local capture *   current_capture = nullptr;
static thread_local bool        assert_throws   = false;
static thread_local std::string line;
static thread_local int         line_level = 0;
static std::atomic<int>         min_level{GGML_LOG_LEVEL_WARN};

capture::capture() : outer(current_capture) { current_capture = this; }
capture::~capture() { current_capture = outer; }

assert_guard::assert_guard() : outer(assert_throws) { assert_throws = true; }
assert_guard::~assert_guard() { assert_throws = outer; }

static void emit(int level, const std::string & text) {
    if (text.empty()) {
        return;
    }
    if (current_capture && level >= GGML_LOG_LEVEL_WARN) {
        if (current_capture->text.size() < 4096) {
            current_capture->text += current_capture->text.empty() ? "" : "; ";
            current_capture->text += text;
        }
        level = GGML_LOG_LEVEL_DEBUG; // its owner reports it
    }
    if (level >= min_level.load(std::memory_order_relaxed)) {
        quernLog(level, const_cast<char *>(text.c_str()));
    }
}

// Lines come in pieces: a piece without a newline waits for the rest.
static void on_log(ggml_log_level level, const char * text, void *) {
    try {
        if (level != GGML_LOG_LEVEL_CONT) {
            if (!line.empty()) {
                emit(line_level, line);
                line.clear();
            }
            line_level = level;
        }
        for (const char * p = text; *p;) {
            const char * nl = strchr(p, '\n');
            if (!nl) {
                line.append(p);
                if (line.size() > 8192) {
                    emit(line_level, line);
                    line.clear();
                }
                return;
            }
            line.append(p, nl - p);
            emit(line_level, line);
            line.clear();
            p = nl + 1;
        }
    } catch (...) {
        line.clear();
    }
}

// ggml calls abort() when this returns.
static void on_abort(const char * message) {
    if (assert_throws) {
        throw failure(QUERN_FAILED, std::string("llama.cpp assertion: ") + message);
    }
    fprintf(stderr, "fatal: llama.cpp assertion: %s\n", message);
    fflush(stderr);
}

} // namespace quern

void quern_init(void) {
    static std::once_flag once;
    std::call_once(once, [] {
        llama_log_set(quern::on_log, nullptr); // sets ggml's, too
        ggml_set_abort_callback(quern::on_abort);
        quern::check_amx();
        quern::kernels_register();
        llama_backend_init();
    });
}

void quern_log_level(int level) { quern::min_level.store(level, std::memory_order_relaxed); }
