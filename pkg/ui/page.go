package ui

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/pkg/ui/access"
)

// view is a page at one moment.
type view struct {
	// Title of the document and its heading.
	Title string
	// Nav is the entry of the navigation that is marked: instances, versions, catalog, shared, clusters or settings.
	Nav string
	// Status of the response; 0 is 200.
	Status int
	// Fixed is set if the page has no stream: it shows what it was asked for, once.
	Fixed bool
	// Form is the part of the page that does not change by itself: a stream would take what a user is typing. It is a template and its data.
	Form *fragment
	// Fragments change with the cluster.
	Fragments []fragment
}

// fragment is a part of a page.
type fragment struct {
	// ID of the element.
	ID string
	// Spoken is set if screen readers are to speak what changes.
	Spoken bool
	// Template and Data give the content.
	Template string
	Data     any
}

// screen is a page that a browser has open: once, or as long as its stream lasts.
type screen struct {
	draw  func() view
	close func()
}

// page opens a screen for a request.
type page func(r *http.Request) screen

// still returns a screen that has nothing to close.
func still(draw func() view) screen { return screen{draw: draw, close: func() {}} }

// routes are the pages, each with its stream below /live, and those from which a user previews a change. Only those that end in act change
// anything, and they are there only if the user has asked for it (U5).
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, open := range map[string]page{
		"/instances":                    s.instancesPage,
		"/instances/{namespace}/{name}": s.instancePage,
		"/versions":                     s.versionsPage,
		"/versions/{namespace}/{name}":  s.versionPage,
		"/shared":                       s.sharedPage,
		"/clusters":                     s.clusters.page,
		"/settings":                     s.settingsPage,
	} {
		mux.HandleFunc("GET "+pattern, s.show(open))
		mux.HandleFunc("GET /live"+pattern, s.stream(open))
	}
	mux.HandleFunc("GET /catalog", s.show(s.catalogPage))
	mux.HandleFunc("GET /catalog/package", s.show(s.packagePage))
	mux.HandleFunc("GET /instances/{namespace}/{name}/drift", s.show(s.driftPage))
	mux.HandleFunc("GET /instances/{namespace}/{name}/change", s.show(s.changePage))
	mux.HandleFunc("POST /instances/{namespace}/{name}/preview", s.show(s.previewPage(s.changePlace)))
	mux.HandleFunc("GET /versions/{namespace}/{name}/install", s.show(s.installPage))
	mux.HandleFunc("POST /versions/{namespace}/{name}/preview", s.show(s.previewPage(s.installPlace)))
	if s.AllowActions {
		mux.HandleFunc("POST /instances/{namespace}/{name}/act", s.actOn(s.changePlace))
		mux.HandleFunc("POST /versions/{namespace}/{name}/act", s.actOn(s.installPlace))
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/instances", http.StatusSeeOther) })
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		s.Deny(w, http.StatusNotFound, "There is no such page.")
	})
	return mux
}

func (s *Server) parseTemplates() error {
	var err error
	s.templates, err = template.New("").Funcs(template.FuncMap{"moment": moment, "long": long}).ParseFS(files, "templates/*.html")
	return err
}

// long is how many bytes of a text are shown at most.
func long(s string) string { return text.Truncate(s, 2000) }

// moment returns a time as an element, or nothing for a time that is not known. A script replaces it by an age: the bytes of a page change
// with the cluster only, and not with time.
func moment(at any) template.HTML {
	var when time.Time
	switch t := at.(type) {
	case time.Time:
		when = t
	case metav1.Time:
		when = t.Time
	case *metav1.Time:
		if t != nil {
			when = t.Time
		}
	case metav1.MicroTime:
		when = t.Time
	case *metav1.MicroTime:
		if t != nil {
			when = t.Time
		}
	}
	if when.IsZero() {
		return ""
	}
	when = when.UTC()
	return template.HTML(fmt.Sprintf(`<time datetime="%s">%s</time>`, when.Format(time.RFC3339), when.Format("2006-01-02 15:04:05 MST")))
}

// execute returns what a template gives. Control characters of what others have written are escaped, also where html/template lets them
// pass.
func (s *Server) execute(name string, data any) (template.HTML, error) {
	var out bytes.Buffer
	if err := s.templates.ExecuteTemplate(&out, name, data); err != nil {
		return "", err
	}
	return template.HTML(text.EscapeControls(out.String())), nil
}

// part is a fragment with its content.
type part struct {
	fragment
	HTML template.HTML
}

// parts returns the fragments of a view with their content: first what is to be said of the connection.
func (s *Server) parts(v view) ([]part, error) {
	var out []part
	for _, f := range append([]fragment{{ID: "connection", Spoken: true, Template: "connection", Data: s.connection()}}, v.Fragments...) {
		html, err := s.execute(f.Template, f.Data)
		if err != nil {
			return nil, err
		}
		out = append(out, part{f, html})
	}
	return out, nil
}

// digestOf returns a short digest of the content of all parts.
func digestOf(parts []part) string {
	sum := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", p.ID, len(p.HTML), p.HTML)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// document is the data of the template of a whole page.
type document struct {
	view
	Server *Server
	// Session is the path of the files that all pages load.
	Session string
	// Clusters is set if clusters can be registered.
	Clusters bool
	Form     template.HTML
	Parts    []part
	Seen     string
}

// show returns the handler of a page.
func (s *Server) show(open page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		screen := open(r)
		defer screen.close()
		v := screen.draw()
		body, err := s.whole(v)
		if err != nil {
			s.Deny(w, http.StatusInternalServerError, "The page cannot be drawn.")
			return
		}
		writePage(w, max(v.Status, http.StatusOK), body)
	}
}

// whole returns a whole page.
func (s *Server) whole(v view) (template.HTML, error) {
	doc := document{view: v, Server: s, Session: access.SessionPath, Clusters: s.clusters.served()}
	var err error
	if doc.Parts, err = s.parts(v); err != nil {
		return "", err
	}
	if !v.Fixed {
		doc.Seen = digestOf(doc.Parts)
	}
	if v.Form != nil {
		if doc.Form, err = s.execute(v.Form.Template, v.Form.Data); err != nil {
			return "", err
		}
	}
	return s.execute("page", doc)
}

func writePage(w http.ResponseWriter, status int, body template.HTML) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

// Deny writes a page that says why a request is refused.
func (s *Server) Deny(w http.ResponseWriter, status int, message string) {
	body, err := s.execute("denied", map[string]any{"Title": http.StatusText(status), "Message": message, "Session": access.SessionPath})
	if err != nil {
		http.Error(w, message, status)
		return
	}
	writePage(w, status, body)
}

// Public returns the handler of what browsers without a session get: the page that changes a token into a session, and its files.
func (s *Server) Public() http.Handler {
	assets := map[string]string{"style.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8",
		"icon.svg": "image/svg+xml"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == access.SessionPath {
			body, err := s.execute("session", map[string]any{"Session": access.SessionPath})
			if err != nil {
				s.Deny(w, http.StatusInternalServerError, "The page cannot be drawn.")
				return
			}
			writePage(w, http.StatusOK, body)
			return
		}
		name := strings.TrimPrefix(r.URL.Path, access.SessionPath+"/")
		content, err := files.ReadFile("assets/" + name)
		if kind := assets[name]; kind != "" && err == nil {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(content)
			return
		}
		s.Deny(w, http.StatusNotFound, "There is no such page.")
	})
}
