"""The page that people look at: its files, and pages that need no server. The service itself is in `vcrf.web`."""
