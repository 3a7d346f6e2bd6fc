// Package ui is the command that serves a page to the browser of one user.
package ui

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/ui"
	"kudo.dev/kudo/pkg/ui/access"
)

// options are the flags of ui.
type options struct {
	env           *command.Env
	allNamespaces bool
	port          uint16
	host          string
	open          bool
	allowActions  bool
	// browse opens a file in a browser.
	browse func(file string) error
}

// New returns the command ui.
func New(env *command.Env) *cobra.Command {
	o := &options{env: env, browse: browse}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Serve a page that shows Instances, their plans, and what they share",
		Long: `Serve a page that shows Instances with what is wrong, the plans of each as they run, its objects, events and history,
OperatorVersions, what they share in the cluster, and the packages of your repositories. The page shows what you may see, and
previews what you may change, with the command for it; it changes nothing, unless --allow-actions is given.

It is served on this machine only, at the address that is printed. The address opens the page once, within a minute: press Enter for
another one. Ctrl-C ends it.

  kubectl kudo ui -A --open
  kubectl kudo ui -n lab --port 8001`,
		Args: command.ExactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "show all namespaces")
	f.Uint16Var(&o.port, "port", 0, "port to listen on (default any free one)")
	f.StringVar(&o.host, "host", "", "name of this machine in the address: 127.0.0.1 or localhost, for browsers that cannot resolve names "+
		"below localhost. Programs on other ports of such a name get the page's cookie, too")
	f.BoolVar(&o.open, "open", false, "open the page in the default browser")
	f.BoolVar(&o.allowActions, "allow-actions", false, "let the page start plans and edit Instances with your rights, each time after a "+
		"preview (default: it shows the commands)")
	return cmd
}

// hosts are the values of --host.
var hosts = []string{"", "127.0.0.1", "localhost"}

func (o *options) run(ctx context.Context) error {
	if !slices.Contains(hosts, o.host) {
		return command.UsageError("--host %s: must be 127.0.0.1 or localhost, since the page is for this machine only", o.host)
	}
	_, config, namespace, err := o.env.Connect()
	if err != nil {
		return err
	}
	if o.allNamespaces {
		namespace = ""
	}
	home, _ := o.env.RepositoryHome() // the page of the catalog says that it is not known
	server, err := ui.New(ui.Options{Config: config, Namespace: namespace, Context: o.contextName(), Version: command.Version,
		Home: home, AllowActions: o.allowActions, Clock: clock.RealClock{}})
	if err != nil {
		return err
	}
	listeners, err := listen(o.port, o.host)
	if err != nil {
		return err
	}
	return o.serve(ctx, server, listeners)
}

// serve serves the page until the context ends.
func (o *options) serve(ctx context.Context, server *ui.Server, listeners []net.Listener) error {
	name := o.host
	if name == "" {
		name = access.NewName()
	}
	_, port, err := net.SplitHostPort(listeners[0].Addr().String())
	if err != nil {
		return err
	}
	gate := access.New(net.JoinHostPort(name, port), access.Pages{Private: server, Public: server.Public(), Deny: server.Deny},
		clock.RealClock{})
	address := func() string {
		return "http://" + net.JoinHostPort(name, port) + access.SessionPath + "#" + gate.NewToken()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	serving := &http.Server{
		Handler: gate, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0), // errors that other programs cause by their requests are not printed
	}
	go server.Run(ctx)
	go func() {
		<-ctx.Done()
		_ = serving.Close()
	}()
	o.env.Printf("%s", address())
	o.env.Notef("The address opens the page once, within a minute. Press Enter for another one, Ctrl-C to end.")
	if o.open {
		folder, err := os.MkdirTemp("", "kudo-ui-") // of mode 0700
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(folder) }()
		go o.openFile(folder, address())
	}
	go o.readEnter(func() { o.env.Printf("%s", address()) })
	ended := make(chan error, len(listeners))
	for _, listener := range listeners {
		go func() { ended <- serving.Serve(listener) }()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// readEnter calls next for each line of the input.
func (o *options) readEnter(next func()) {
	for lines := bufio.NewScanner(o.env.In); lines.Scan(); {
		next()
	}
}

// contextName returns the name of the context of the kubeconfig, for people.
func (o *options) contextName() string {
	if named := o.env.Flags.Context; named != nil && *named != "" {
		return *named
	}
	raw, err := o.env.Flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(raw.CurrentContext)
}
