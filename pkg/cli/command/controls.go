package command

import (
	"io"
	"sync"

	"kudo.dev/kudo/pkg/text"
)

// controlWriter escapes the control characters of what is written, which is whole text each time. Several goroutines may write.
type controlWriter struct {
	io.Writer
	lock *sync.Mutex
}

// Write implements io.Writer.
func (w controlWriter) Write(p []byte) (int, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if _, err := io.WriteString(w.Writer, text.EscapeControls(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// printer is where text for people goes. Values in YAML and JSON go to Out itself.
func (env *Env) printer() io.Writer { return controlWriter{env.Out, &env.writing} }

// messages is where warnings, errors and progress go.
func (env *Env) messages() io.Writer { return controlWriter{env.Err, &env.writing} }
