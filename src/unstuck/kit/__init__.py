"""What every stage of a run works with: its ports, its settings, its record, and how checks went before."""
