package testsuite

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What a command leaves running ends with the case, whether it holds the command's output or not.
func TestLeftBehind(t *testing.T) {
	for reason, redirect := range map[string]string{"holds the output": "", "holds nothing": " >/dev/null 2>&1"} {
		t.Run(reason, func(t *testing.T) {
			dir := t.TempDir()
			beat := filepath.Join(dir, "beat")
			s := &shell{dir: dir, path: os.Getenv("PATH"), log: t.Logf}
			script := "(while echo >>beat; do sleep 0.02; done)" + redirect + " & while ! test -s beat; do sleep 0.02; done"
			if err := s.run(context.Background(), Command{Script: script}, time.Minute); err != nil {
				t.Fatal(err)
			}
			s.end()
			time.Sleep(100 * time.Millisecond) // what was killed ends
			before := size(t, beat)
			time.Sleep(300 * time.Millisecond)
			if after := size(t, beat); after != before {
				t.Errorf("it runs on: it has written %d bytes since", after-before)
			}
		})
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
