//go:build unix

package tier

import "syscall"

var page = syscall.Getpagesize()

func reserve(bytes int) ([]byte, error) {
	return syscall.Mmap(-1, 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

func release(m []byte) error { return syscall.Munmap(m) }
