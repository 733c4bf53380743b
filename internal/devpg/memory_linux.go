package devpg

import "syscall"

const (
	sharedMemory = "/dev/shm"
	tmpfsMagic   = 0x01021994 // TMPFS_MAGIC of linux/magic.h
	enoughMemory = 8 << 30    // bytes; all tests of this repository fill less than half of it
)

// inMemory is a folder in memory with room for a test's server, "" when there is none.
func inMemory() string {
	var place syscall.Statfs_t
	var machine syscall.Sysinfo_t
	if syscall.Statfs(sharedMemory, &place) != nil || place.Type != tmpfsMagic || place.Bavail*uint64(place.Bsize) < enoughMemory ||
		syscall.Sysinfo(&machine) != nil || machine.Freeram*uint64(machine.Unit) < enoughMemory {
		return ""
	}
	return sharedMemory
}
