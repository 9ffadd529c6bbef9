"""The recovery manager for a loop of one's own: history, decisions, hints, reports and remedies without a supervisor."""
