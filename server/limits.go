package server

// Bounds on one request. They are generous: each is far above what real
// clients send, and exists so that no single body can take the node down. Those
// in Limits can be set lower.
const (
	defaultMaxBody   = 64 << 20 // bytes, also after decompression
	defaultMaxText   = 32 << 20 // bytes
	defaultMaxImages = 48 << 20 // bytes; as base64 they fill a body of defaultMaxBody
	maxDepth         = 200      // nesting of a body; schemas are the deepest part
	maxObjectFields  = 1000     // fields of an object that is decoded
	maxItems         = 100_000  // input items or chat messages
	maxParts         = 10_000   // parts of one message
	maxTools         = 2_000
	maxGrammars      = 64  // of custom tools that are enforced: each may take a tenth of a second to compile
	maxNameLength    = 128 // characters of a tool's name
	maxCallIDLength  = 512
	maxStops         = 64
	maxStopLength    = 1000 // characters
	maxTopLogprobs   = 20
	maxMetadata      = 16
	maxMetadataKey   = 64
	maxMetadataText  = 512
	maxKeyLength     = 64 // prompt_cache_key, safety_identifier
)
