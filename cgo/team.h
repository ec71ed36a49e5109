// The threads that compute a graph, for other work while none is computed.
#pragma once

namespace quern {

// run_together calls body(data) on as many threads at once, this one among
// them, and returns when all calls have. Nothing may be thrown out of body. With
// as many threads as graphs have, those that computed the last one do it.
void run_together(void (*body)(void *), void * data, int threads);

} // namespace quern
