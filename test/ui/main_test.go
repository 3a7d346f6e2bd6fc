package ui

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/cli/ui"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/sourcetree"
)

// programs are names of a browser that needs no display.
var programs = []string{"chromium-headless-shell", "chromium", "google-chrome"}

// chrome runs the browser of all tests.
var chrome context.Context

// missing says what is not tested without a browser; empty if there is one.
var missing string

// TestBrowser is skipped without a browser, so that the results of the tests say so. No other test runs then.
func TestBrowser(t *testing.T) {
	if missing != "" {
		t.Skip(missing)
	}
}

// TestMain shows U15: without a browser, it says loudly what is not tested, and fails where KUDO_REQUIRE_BROWSER is 1.
func TestMain(m *testing.M) {
	flag.Parse()
	program := ""
	for _, name := range programs {
		if found, err := exec.LookPath(name); err == nil && program == "" {
			program = found
		}
	}
	if program == "" {
		missing = fmt.Sprintf("SKIP test/ui: no chromium found (%s), %d pages untested: apt-get install chromium-headless-shell", strings.Join(programs, ", "), len(pages))
		fmt.Println(missing)
		if os.Getenv("KUDO_REQUIRE_BROWSER") == "1" {
			os.Exit(1)
		}
		if err := flag.Set("test.run", "^TestBrowser$"); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Env("FONTCONFIG_FILE="+filepath.Join(sourcetree.Root(), "test", "ui", "testdata", "fonts.conf")))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	browser, closeBrowser := chromedp.NewContext(allocator)
	if err := chromedp.Do(browser); err != nil {
		fmt.Println("the browser does not start:", err)
		os.Exit(1)
	}
	chrome = browser
	code := m.Run()
	closeBrowser()
	stop()
	os.Exit(code)
}

// command is kubectl kudo ui, which runs.
type served struct {
	out   *commandtest.Output
	enter io.Writer
	stop  func()
	taken int
}

// addRepository makes a repository of the packages of the documents the one in use.
func addRepository(t testing.TB) {
	t.Helper()
	var packages []fs.FS
	for _, name := range []string{"web", "site"} {
		packages = append(packages, os.DirFS(filepath.Join(sourcetree.Root(), "docs", "examples", name)))
	}
	dir := t.TempDir()
	if err := gen.WriteRepository(dir, packages...); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	home := repository.Home{Dir: t.TempDir()}
	if err := home.Change(t.Context(), func(l *repository.Repositories) error {
		return l.Add(repository.Repository{Name: "examples", URL: server.URL})
	}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUDO_HOME", home.Dir)
}

// serve runs kubectl kudo ui until the test ends. The arguments follow those of the kubeconfig.
func serve(t testing.TB, kubeconfig string, args ...string) *served {
	t.Helper()
	addRepository(t)
	in, enter := io.Pipe()
	s := &served{out: &commandtest.Output{}, enter: enter}
	env := command.NewEnv(in, s.out, s.out)
	root := &cobra.Command{Use: "kubectl-kudo", SilenceUsage: true, SilenceErrors: true}
	env.AddFlags(root)
	root.AddCommand(ui.New(env))
	root.SetArgs(append([]string{"ui", "--kubeconfig", kubeconfig}, args...))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // tabs are closed first
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("kubectl kudo ui: %v", err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// address returns an address that has not been used.
func (s *served) address(t testing.TB) string {
	t.Helper()
	if s.taken > 0 {
		if _, err := s.enter.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
	}
	s.taken++
	var found []string
	apitest.Eventually(t, "kubectl kudo ui prints an address", func() bool {
		found = s.out.Find(`http://\S+`)
		return len(found) >= s.taken
	})
	return found[s.taken-1]
}

// tab is a tab of the browser, with cookies of its own.
type tab struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	console  []string
	requests []string
	// messages is how many messages the streams of the pages have brought.
	messages int
	// expected matches what the console may say.
	expected *regexp.Regexp
}

// open opens a tab. When the test ends, its console must be empty, and it must have asked no other host (U13, U14).
func open(t testing.TB) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(chrome, chromedp.WithNewBrowserContext())
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	if err == nil {
		err = chromedp.Do(ctx, chromedp.EmulateViewport(1200, 800))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, line := range b.console {
			if b.expected == nil || !b.expected.MatchString(line) {
				t.Errorf("U14: the console says %s", line)
			}
		}
		for _, asked := range b.requests {
			u, err := url.Parse(asked)
			if err != nil || u.Scheme != "data" && u.Scheme != "about" && u.Hostname() != "127.0.0.1" && !strings.HasSuffix(u.Hostname(), ".localhost") {
				t.Errorf("U14: the page asks another host: %s", asked)
			}
			if token := regexp.MustCompile(`[0-9a-f]{64}`).FindString(asked); token != "" {
				t.Errorf("U9: a token stands in an address that is sent: %s", asked)
			}
		}
	})
	return b
}

// hear notes what the browser reports.
func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		b.console = append(b.console, fmt.Sprintf("%s %v", e.Type, e.Args))
	case *runtime.EventExceptionThrown:
		b.console = append(b.console, "exception "+e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		b.console = append(b.console, fmt.Sprintf("%s %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *network.EventEventSourceMessageReceived:
		b.messages++
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// do runs actions, for two minutes at most.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		body, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.location + '\\n' + document.body.innerText"))
		b.t.Fatalf("%v, on the page\n%s", err, body)
	}
}

// enter opens a session.
func (b *tab) enter(s *served) {
	b.t.Helper()
	b.do(chromedp.Navigate(s.address(b.t)), chromedp.WaitVisible("#rows"))
}

// visit opens a page of the session.
func (b *tab) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.eval("location.origin")+path), chromedp.WaitVisible("h1"))
}

// eval returns the value of an expression as text; of a promise, when it is kept, within two minutes.
func (b *tab) eval(expression string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Minute)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[any](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	if text, is := value.(string); is {
		return text
	}
	text, _ := json.Marshal(value)
	return string(text)
}

// until waits until an expression is true.
func (b *tab) until(expression string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingMutation(), chromedp.WithPollingTimeout(2*time.Minute))); err != nil {
		b.t.Fatalf("%s: %v, on the page\n%s", expression, err, b.eval("document.body.innerText"))
	}
}

// shows waits until the page has a text.
func (b *tab) shows(text string) {
	b.t.Helper()
	quoted, _ := json.Marshal(text)
	// While a document is replaced, it has no body.
	b.until("document.body?.innerText.includes(" + string(quoted) + ")")
}

// theme sets what the system prefers, as people do outside of the page.
func (b *tab) theme(name string) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name}}}); err != nil {
		b.t.Fatal(err)
	}
}

// freeze sets the clock of the pages that are opened from now on, so that ages do not differ between runs.
func (b *tab) freeze(at time.Time) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: fmt.Sprintf("Date.now = () => %d;", at.UnixMilli())}); err != nil {
		b.t.Fatal(err)
	}
}

// axe is the library that finds violations of accessibility rules. It is no part of what is shipped.
var axe = sync.OnceValues(func() ([]byte, error) { return os.ReadFile("testdata/axe.min.js") })

// checkAccess shows U11: no violation of a rule of accessibility.
func (b *tab) checkAccess(where string) {
	b.t.Helper()
	library, err := axe()
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[any](string(library)+"\n;0")); err != nil {
		b.t.Fatal(err)
	}
	found := b.eval(`axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => v.id + ': ' + v.help + ': ' + v.nodes.map(n => n.html + ' ' + n.failureSummary).join(' | ')).join('\n'))`)
	if found != "" {
		b.t.Errorf("U11: %s: %s", where, found)
	}
}
