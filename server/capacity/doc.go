// Package capacity answers what this machine lets a node use: how many threads
// a step may run on, how much memory is left, and how many KV cells that makes.
//
// It only reads: /proc, /sys and the limits of the control group (both versions)
// that a container or a service manager sets. The choice itself, Cells, is a
// pure function. It is called once, before a model is loaded.
package capacity
