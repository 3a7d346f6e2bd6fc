package podlogs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // the conversion of queries to options
	"k8s.io/kubernetes/pkg/apis/core/v1/validation"
)

// requestTime bounds how long one request may take: logs are short, and none is followed.
const requestTime = 10 * time.Second

// Files are the paths of what the server identifies itself by, and of the authority of its only client, the API server.
type Files struct {
	Cert, Key, ClientCA string
}

// TLS is the configuration of a server that speaks to clients of its authority only.
func (f Files) TLS() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of the log server: %w", err)
	}
	ca, err := os.ReadFile(f.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("reading the authority of the API server: %w", err)
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s holds no certificate", f.ClientCA)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair},
		ClientCAs:    clients,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS13,
	}, nil
}

// Pods reads pods.
type Pods interface {
	// Pod returns a pod. Its errors are those of the API.
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
}

// PodsFn is a function that is Pods.
type PodsFn func(ctx context.Context, namespace, name string) (*corev1.Pod, error)

// Pod implements Pods.
func (fn PodsFn) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return fn(ctx, namespace, name)
}

// Serve answers requests for logs and files until ctx ends, and closes the listener.
func Serve(ctx context.Context, listener net.Listener, config *tls.Config, pods Pods) error {
	server := &http.Server{
		Handler:           Handler(pods),
		TLSConfig:         config,
		ReadHeaderTimeout: requestTime,
		WriteTimeout:      2 * requestTime,
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the logs of pods: %w", err)
	}
	return ctx.Err()
}

// Handler answers as a kubelet does when it is asked for a log, or for a file of a Pipe task, and refuses all else.
func Handler(pods Pods) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		text, code, err := answer(r, pods)
		if err != nil {
			http.Error(w, err.Error(), code)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, text) // a client that has gone needs no answer
	})
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		if isPipe(r) {
			servePipe(w, r)
			return
		}
		refuse(w, r)
	})
	mux.HandleFunc("/", refuse)
	return mux
}

func refuse(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "the pods of this node are simulated: no container runs", http.StatusNotImplemented)
}

// answer returns the log that a request asks for, or the code of its error.
func answer(r *http.Request, pods Pods) (text string, code int, err error) {
	options := &corev1.PodLogOptions{}
	if err := legacyscheme.ParameterCodec.DecodeParameters(r.URL.Query(), corev1.SchemeGroupVersion, options); err != nil {
		return "", http.StatusBadRequest, fmt.Errorf("decoding the options: %w", err)
	}
	if errs := validation.ValidatePodLogOptions(options); len(errs) > 0 {
		return "", http.StatusUnprocessableEntity, errs.ToAggregate()
	}
	options.Container = r.PathValue("container")
	ctx, cancel := context.WithTimeout(r.Context(), requestTime)
	defer cancel()
	pod, err := pods.Pod(ctx, r.PathValue("namespace"), r.PathValue("pod"))
	switch {
	case apierrors.IsNotFound(err):
		return "", http.StatusNotFound, err
	case err != nil:
		return "", http.StatusInternalServerError, err
	}
	if text, err = Read(pod, options, time.Now()); err != nil {
		return "", http.StatusBadRequest, err
	}
	return text, 0, nil
}
