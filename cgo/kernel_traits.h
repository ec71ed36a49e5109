// What the kernels' buffer type needs of their products.
#pragma once

#include "ggml.h"

namespace ggml::cpu {
class tensor_traits;
}

namespace quern::kernel {

ggml::cpu::tensor_traits * find_traits(ggml_type type); // nullptr: not ours

}
