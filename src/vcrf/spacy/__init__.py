"""Components for spaCy: the factories "vcrf_tagger" and "vcrf_ner". See docs/migration.md."""
