package main

import "testing"

func TestCount(t *testing.T) {
	for _, tc := range []struct {
		reason, body string
		want         int
	}{
		{"methods of a test", `t.Error(); s.t.Fatalf("x"); t.Log(); t.Helper(); t.Cleanup(f)`, 2},
		{"functions that are given the test", `env.Must(t, c.Create(ctx, obj)); x := read(s.t, 1); newSide(GinkgoTB())`, 3},
		{"gomega", `Expect(x).To(Equal(1)); Eventually(f).Should(Succeed()); Fail("no")`, 3},
		{"in a closure", `It("runs", func() { t := GinkgoTB(); t.Errorf("x") })`, 1},
		{"a name", `f := newFleet(t)`, 0},
		{"methods of others", `log.Error(); c.Fail()`, 0},
	} {
		if got, err := count("package a\nfunc f() {" + tc.body + "}"); err != nil || got != tc.want {
			t.Errorf("%s: %d assertions, want %d (%v)", tc.reason, got, tc.want, err)
		}
	}
	if got, err := count("package a\nfunc must(t T, err error) { t.Fatal(err) }"); err != nil || got != 0 {
		t.Errorf("what a wrapper holds counts: %d (%v)", got, err)
	}
	if _, err := count("package"); err == nil {
		t.Error("a source that is none must fail")
	}
}

func TestRecorded(t *testing.T) {
	for folder, want := range map[string]int{"test/a": 7, "./test/a/": 7, "test/b": 3, "test/c": 0} {
		if got := recorded("# counts\nkudo.dev/kudo/test/a 7\nkudo.dev/kudo/test/b 3 varies\n", folder); got != want {
			t.Errorf("%s: %d, want %d", folder, got, want)
		}
	}
}
