// Package capacity answers what this machine lets a node use: how many threads
// a step may run on, how much memory is left, and what plan of a node that makes.
//
// It only reads: /proc, /sys and the limits of the control group (both versions)
// that a container or a service manager sets. The plan itself, Fit, is a
// pure function. It is made once, before a model is loaded.
package capacity
