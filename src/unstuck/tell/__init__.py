"""Values to text: briefs, reports, questions and the lines of events."""
