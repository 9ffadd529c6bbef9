"""What is known of tools: command lines, stacks, detection, and the doctor."""
