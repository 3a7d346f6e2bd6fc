// Command kudo-node runs a real node for kudo-local: it holds the kubelet and kube-proxy, and what starts them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/component-base/cli"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"kudo.dev/kudo/cmd/kudo-local/internal/node"
)

func main() {
	if len(os.Args) < 3 {
		fail(errors.New("kudo-local starts this program: see kudo-local up --help"))
	}
	command, args := os.Args[1], os.Args[2:]
	switch command {
	case "run":
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		fail(node.Run(ctx, args[0]))
	case "init":
		fail(node.Init(args[0]))
	case "clean":
		c, err := node.Read(args[0])
		if err == nil {
			err = c.Clean()
		}
		fail(err)
	case "kubelet":
		os.Args = append([]string{command}, args...)
		os.Exit(cli.Run(kubelet.NewKubeletCommand(context.Background())))
	case "kube-proxy":
		os.Args = append([]string{command}, args...)
		os.Exit(cli.Run(proxy.NewProxyCommand()))
	default:
		fail(fmt.Errorf("there is no command %q", command))
	}
}

// fail ends the program, with an exit code and words if there is an error.
func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "kudo-node:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
