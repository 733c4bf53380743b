//go:build unix

package live

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Unread says whether out is a pipe whose reader is gone, which writing would notice only once there is something to write.
func Unread(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	ask := []unix.PollFd{{Fd: int32(file.Fd())}}
	n, err := unix.Poll(ask, 0)
	return err == nil && n > 0 && ask[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
