package instance

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"kudo.dev/kudo/cmd/kudo-local/internal/process"
)

// Run is the record of a component that was started. It stays when the
// component dies, and goes when the component is stopped: that is how a crash
// is told from a 'down'.
type Run struct {
	process.ID
	// Spec is a digest of the program, arguments and configuration it was
	// started with. A component with another one is restarted.
	Spec string `json:"spec"`
}

func (i *Instance) runFile(component string) string { return i.Path("run", component+".json") }

// Run returns the record of a component, nil when there is none.
func (i *Instance) Run(component string) (*Run, error) {
	data, err := os.ReadFile(i.runFile(component))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the process record of %s: %w", component, err)
	}
	run := &Run{}
	if err := json.Unmarshal(data, run); err != nil {
		return nil, fmt.Errorf("reading %s: %w", i.runFile(component), err)
	}
	return run, nil
}

// SetRun records that a component was started.
func (i *Instance) SetRun(component string, run Run) error {
	return writeJSON(i.runFile(component), run)
}

// ClearRun forgets a component that was stopped.
func (i *Instance) ClearRun(component string) error {
	if err := os.Remove(i.runFile(component)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the process record of %s: %w", component, err)
	}
	return nil
}
