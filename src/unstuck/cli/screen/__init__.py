"""What a terminal shows: text, widths, boxes, and a board that keeps up with a run."""
