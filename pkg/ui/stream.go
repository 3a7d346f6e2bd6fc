package ui

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"time"
)

// interval is the least time between two messages of a stream.
const interval = 100 * time.Millisecond

// update is a message of a stream: the fragments whose bytes have changed.
type update struct {
	Fragments []updated `json:"fragments"`
}

// updated is a fragment that has changed.
type updated struct {
	ID   string        `json:"id"`
	HTML template.HTML `json:"html"`
}

// stream returns the handler that sends the fragments of a page when their bytes change, as server-sent events. It sends nothing as long as
// nothing changes. It sends no first message if the browser has the newest content: the id of the last message, or seen in the address, is
// the digest of the content that it has.
func (s *Server) stream(open page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		changed, stop := s.changes.listen()
		defer stop()
		screen := open(r)
		defer screen.close()
		w.Header().Set("Content-Type", "text/event-stream")
		control := http.NewResponseController(w)
		if _, err := w.Write([]byte("retry: 1000\n\n")); err != nil || control.Flush() != nil {
			return
		}
		sent := map[string]template.HTML{}
		for first := true; ; first = false {
			parts, err := s.parts(screen.draw())
			if err != nil {
				return
			}
			message := changedParts(sent, parts)
			digest := digestOf(parts)
			if message != nil && (!first || seenBy(r) != digest) {
				if writeUpdate(w, control, digest, update{message}) != nil {
					return
				}
			}
			if !await(r.Context().Done(), changed) {
				return
			}
		}
	}
}

// seenBy returns the digest of what a browser has.
func seenBy(r *http.Request) string {
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		return last
	}
	return r.URL.Query().Get("seen")
}

// await waits for the interval and for a change, and reports whether one has come: false means that the stream has ended.
func await(done <-chan struct{}, changed <-chan struct{}) bool {
	earliest := time.NewTimer(interval)
	defer earliest.Stop()
	select {
	case <-done:
		return false
	case <-changed:
	}
	select {
	case <-done:
		return false
	case <-earliest.C:
	}
	return true
}

// changedParts returns the parts that differ from what was sent, and notes them as sent.
func changedParts(sent map[string]template.HTML, parts []part) []updated {
	var out []updated
	for _, p := range parts {
		if before, known := sent[p.ID]; !known || before != p.HTML {
			sent[p.ID] = p.HTML
			out = append(out, updated{p.ID, p.HTML})
		}
	}
	return out
}

// writeUpdate writes a message as one event, whose id is the digest of all that the browser has then. JSON has no line breaks.
func writeUpdate(w http.ResponseWriter, control *http.ResponseController, id string, message update) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "id: %s\ndata: %s\n\n", id, body); err != nil {
		return err
	}
	return control.Flush()
}
