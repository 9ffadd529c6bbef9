"""The same run over many machines: the journal on Postgres, jobs for workers, and the dispatcher that gives them out."""
