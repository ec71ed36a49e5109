// What the kernels' buffer type needs of attention.
#pragma once

namespace ggml::cpu {
class tensor_traits;
}

namespace quern::kernel {

// attention_traits computes FLASH_ATTN_EXT where it is over f16 with a plain
// mask, and leaves the rest to ggml.
ggml::cpu::tensor_traits * attention_traits();

} // namespace quern::kernel
