"""Turn values into text: briefs, questions, summaries."""
