// Command explore-sample is an explore webhook to learn from: it answers for the kinds Foo and Bar.
//
//	explore-sample --configuration webhooks.yaml &
//	kubectl apply -f webhooks.yaml
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"kudo.dev/kudo/cmd/explore-sample/sample"
)

// options are the flags.
type options struct {
	listen, hosts, certificate, key, configuration string
}

func main() {
	var o options
	flag.StringVar(&o.listen, "listen", "127.0.0.1:8443", "address to serve at; port 0 takes a free one")
	flag.StringVar(&o.hosts, "hosts", "127.0.0.1,localhost", "names and addresses that the webhook is reached by, of which the first is in "+
		"its URL")
	flag.StringVar(&o.certificate, "certificate", "", "file of the serving certificate; without it, one is made for --hosts, and lost at "+
		"the end")
	flag.StringVar(&o.key, "key", "", "file of its key")
	flag.StringVar(&o.configuration, "configuration", "", "file to write the ResourceExploringWebhookConfiguration to that makes kudo ask "+
		"this webhook")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	started := func(base string) { fmt.Println("serving", base+sample.FooPath, base+sample.BarPath) }
	if err := serve(ctx, o, started); err != nil {
		fmt.Fprintln(os.Stderr, "explore-sample:", err)
		os.Exit(1)
	}
}

// serve answers until the context ends. It calls started with the URL once it listens.
func serve(ctx context.Context, o options, started func(base string)) error {
	hosts := strings.Split(o.hosts, ",")
	certificate, bundle, err := identity(o, hosts)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return err
	}
	base := "https://" + net.JoinHostPort(hosts[0], port)
	if o.configuration != "" {
		text, err := sample.Configuration(base, bundle)
		if err != nil {
			return err
		}
		if err := os.WriteFile(o.configuration, text, 0o644); err != nil {
			return fmt.Errorf("write the configuration: %w", err)
		}
	}
	server := &http.Server{
		Handler: sample.Handler(), ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
	}
	defer context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(grace) // what still runs then is cut off by the end of the process
	})()
	started(base)
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// identity reads the certificate, or makes one. The bundle verifies it; it is empty for one that was read.
func identity(o options, hosts []string) (certificate tls.Certificate, bundle []byte, err error) {
	if o.certificate == "" {
		return sample.SelfSigned(hosts, time.Now())
	}
	if certificate, err = tls.LoadX509KeyPair(o.certificate, o.key); err != nil {
		return certificate, nil, fmt.Errorf("read --certificate and --key: %w", err)
	}
	return certificate, nil, nil
}
