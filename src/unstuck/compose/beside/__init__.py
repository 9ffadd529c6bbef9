"""What is put together beside runs: checks by hand, a first configuration proved, drafts, a doctor, agents tried."""
