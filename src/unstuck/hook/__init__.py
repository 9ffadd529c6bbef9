"""Hook inside agents: advice after a failing call, guards before dangerous ones."""
