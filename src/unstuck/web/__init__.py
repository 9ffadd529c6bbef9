"""The face in the browser: a live board, and a page to keep."""
