package main

import (
	"runtime/debug"
	"strconv"
)

// memoryLimit is the environment variable with the limit of the container's memory, in bytes.
const memoryLimit = "MEMORY_LIMIT"

// limitMemory lets the garbage collector keep the heap below nine tenths of the container's memory: at the limit itself the kernel
// ends the manager. A GOMEMLIMIT that was given wins, and what is no number of bytes is ignored. It returns the limit; 0 for none.
func limitMemory(container, given string) int64 {
	bytes, err := strconv.ParseInt(container, 10, 64)
	if err != nil || bytes <= 0 || given != "" {
		return 0
	}
	limit := bytes / 10 * 9
	debug.SetMemoryLimit(limit)
	return limit
}
