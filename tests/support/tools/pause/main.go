// Pause does nothing until it is told to end, and collects the orphans of its process namespace meanwhile. It is the
// first process of every pod's sandbox, and of the namespaces that a test node lives in.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for {
			if child, _ := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); child <= 0 {
				break
			}
		}
	}
}
