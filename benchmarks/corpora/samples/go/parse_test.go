package duration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	tests := []struct {
		text string
		want time.Duration
	}{
		{"1s", time.Second},
		{"2m", 2 * time.Minute},
		{"3h", 3 * time.Hour},
		{"4d", 96 * time.Hour},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			got, err := Parse(tt.text)
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestParseRefuses(t *testing.T) {
	_, err := Parse("soon")
	assert.EqualError(t, err, "duration: no number in \"soon\"")
	assert.ErrorIs(t, err, ErrSyntax)
}

func TestFormat(t *testing.T) {
	if got := Format(90 * time.Second); got != "1m30s" {
		t.Errorf("Format(90s) = %q, want 1m30s", got)
	}
	assert.Equal(t, "0s", Format(0))
	assert.Len(t, Format(time.Hour), 2)
}
