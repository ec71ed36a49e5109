// What the llama.cpp that is linked in differs in from the other one.
#pragma once

#if defined(QUERN_ENGINE_CURRENT)
#include "engine_current.h"
#else
#include "engine_module.h"
#endif
