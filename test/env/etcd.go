package env

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Stored returns the bytes of all objects that etcd has below a key, by the rest of their keys. Only for a control plane of the test's own.
func (e *Env) Stored(prefix string) (map[string][]byte, error) {
	ports, err := e.ports()
	if err != nil {
		return nil, err
	}
	pki := filepath.Join(e.state, e.name, "pki", "etcd")
	pair, err := tls.LoadX509KeyPair(filepath.Join(pki, "client.crt"), filepath.Join(pki, "client.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots}}}
	end := []byte(prefix)
	end[len(end)-1]++
	query, err := json.Marshal(map[string][]byte{"key": []byte(prefix), "range_end": end}) // etcd wants base64, which Go makes of bytes
	if err != nil {
		return nil, err
	}
	answer, err := client.Post(fmt.Sprintf("https://127.0.0.1:%d/v3/kv/range", ports["etcd"]), "application/json", bytes.NewReader(query))
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("etcd answers %s", answer.Status)
	}
	found := struct{ Kvs []struct{ Key, Value []byte } }{}
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, kv := range found.Kvs {
		out[strings.TrimPrefix(string(kv.Key), prefix)] = kv.Value
	}
	return out, nil
}
