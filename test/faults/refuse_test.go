package faults

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"kudo.dev/kudo/pkg/apiproxy"
)

// groups that may vanish.
var groups = []string{"/apis/kudo.dev", "/apis/rbac.authorization.k8s.io", "/apis/apps", "/apis/apiextensions.k8s.io"}

// vanished serves all but a group.
func vanished(group string) handler {
	return func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
		if r.URL.Path == "/apis" || strings.HasPrefix(r.URL.Path, group) {
			return notServed(r, group, forward)
		}
		return forward(r)
	}
}

// notServed answers as an apiserver that does not know a group of the API: a page without a name, and no word of the group
// in discovery.
func notServed(r *http.Request, group string, forward apiproxy.Forward) (*http.Response, error) {
	if r.URL.Path != "/apis" {
		text := "404 page not found\n"
		return &http.Response{
			StatusCode: http.StatusNotFound, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(text)),
			Header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, Body: io.NopCloser(strings.NewReader(text)),
		}, nil
	}
	r.Header.Del("Accept-Encoding")
	answer, err := forward(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, err
	}
	if text, err = withoutGroup(text, strings.TrimPrefix(group, "/apis/")); err != nil {
		return nil, err
	}
	answer.Header.Del("Content-Length")
	answer.ContentLength = int64(len(text))
	answer.Body = io.NopCloser(bytes.NewReader(text))
	return answer, nil
}

// withoutGroup drops a group from a discovery document, in either of its forms.
func withoutGroup(text []byte, group string) ([]byte, error) {
	doc := map[string]any{}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	for _, field := range []string{"groups", "items"} {
		list, _ := doc[field].([]any)
		var left []any
		for _, item := range list {
			entry, _ := item.(map[string]any)
			meta, _ := entry["metadata"].(map[string]any)
			if entry["name"] != group && meta["name"] != group {
				left = append(left, item)
			}
		}
		if list != nil {
			doc[field] = left
		}
	}
	return json.Marshal(doc)
}
